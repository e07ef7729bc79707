"""The commands: serve and stop, tokens, and addresses that are refused."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rmab
from commands import call
from services import Caller, fill, rows

P = "programmes/mothers"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(store: str, port: int) -> tuple["subprocess.Popen[str]", Caller]:
    words = [sys.executable, "-m", "rmab", "live", "serve", store, "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    caller = Caller(f"http://127.0.0.1:{port}")
    for _ in range(600):
        try:
            assert caller("GET", "/readyz").status == 200
            return process, caller
        except OSError:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    raise AssertionError("it does not start")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_stops_in_order_and_what_was_answered_is_kept(tmp_path: Path, how: signal.Signals) -> None:
    path = f"{tmp_path}/p.db"
    with rmab.live.open(path) as store:
        fill(store)
    process, caller = start(path, free_port())
    assert caller("POST", f"{P}/observations", {"period": "2026-W47", "rows": rows()[:2]}).json["event"] == 3
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM) if how == signal.SIGTERM else process.returncode == -how
    assert "serves" in out
    lines = [json.loads(one) for one in err.splitlines()]
    if how == signal.SIGTERM:  # a killed process may not have written the line of its last answer
        assert {"route": "report", "status": 200}.items() <= lines[-1].items()
    assert not any(word in err for word in ("m00", "mothers", "127.0.0.1"))
    with rmab.live.open(path) as store:
        assert store.programme("mothers").verify() == 3


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    path = f"{tmp_path}/p.db"
    assert "no such file; create a programme with" in call("live", "token", "list", path).stderr
    with rmab.live.open(path) as store:
        fill(store)
    made = call("live", "token", "create", path, "ann", "--role", "operator", "--programme", "mothers", "--days", "30")
    assert made.stdout.startswith("rmab_")
    assert "cannot be shown again" in made.stderr
    number = made.stdout.split("_")[1]
    assert (
        "no programme 'x'; the store has"
        in call("live", "token", "create", path, "bea", "--role", "viewer", "--programme", "x").stderr
    )
    shown = call("live", "token", "list", path).stdout
    assert all(word in shown for word in (number, "ann", "operator (mothers)", "never"))
    assert made.stdout.strip().split("_", 2)[2] not in shown
    assert call("live", "token", "revoke", path, number).stdout == f"The token {number} of ann is revoked.\n"
    assert "revoked" in call("live", "token", "list", path).stdout


def test_addresses_of_others_are_refused_without_tokens(tmp_path: Path) -> None:
    path = f"{tmp_path}/p.db"
    found = call("live", "serve", path, "--host", "0.0.0.0")
    assert found.exit_code == 2
    assert "rmab live token create STORE OWNER --role operator" in found.stderr
    assert "give one store" in call("live", "serve").stderr
