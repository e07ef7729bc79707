"""The nginx example of docs/security.md, run as it is written: TLS, tokens, secure cookies, addresses, and limits."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import rmab
from rmab.service import Settings
from services import Service, fill, service

DOCS = Path(__file__).parents[2] / "docs"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def nginx() -> str:
    found = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").exists() else None)
    if found is None or shutil.which("openssl") is None:
        (pytest.fail if os.environ.get("RMAB_REQUIRE_NGINX") else pytest.skip)("nginx and openssl are needed for this")
    return found


@pytest.fixture
def behind(tmp_path: Path, nginx: str) -> Iterator[tuple[Service, int]]:
    """Start a service and nginx before it, by the example with other ports and a certificate of its own."""
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    server = re.search(r"```text\n(server \{.*?)```", text, re.S)
    assert server is not None
    names = ["-keyout", f"{tmp_path}/key.pem", "-out", f"{tmp_path}/cert.pem", "-subj", "/CN=localhost"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    subprocess.run([*made, *names], check=True, capture_output=True)
    port = free_port()
    with service(tmp_path, Settings(failures=3)) as running:
        example = (
            server[1]
            .replace("listen 443", f"listen 127.0.0.1:{port}")
            .replace("127.0.0.1:8321", urlsplit(running.url).netloc)
        )
        example = example.replace("/etc/ssl/programme.pem", f"{tmp_path}/cert.pem")
        example = example.replace("/etc/ssl/programme.key", f"{tmp_path}/key.pem")
        places = "".join(
            f"{one}_temp_path {tmp_path}/{one};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        http = f"http {{ access_log off; {places} {example} }}"
        whole = f"{user} daemon off; pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}} {http}"
        (tmp_path / "nginx.conf").write_text(whole)
        process = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], stderr=subprocess.PIPE)
        try:
            for _ in range(100):
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                time.sleep(0.05)
            yield running, port
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.slow
def test_the_example_works(behind: tuple[Service, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, port = behind
    fill(running.store)
    token = running.caller("operator", "ann").token
    trusted = ssl.create_default_context(cafile=f"{tmp_path}/cert.pem")
    monkeypatch.setattr(ssl, "_create_default_https_context", lambda: trusted)
    with rmab.live.connect(f"https://localhost:{port}", token=token) as store:
        assert store.programme("mothers").ask("2026-W47").ids
    call = HTTPSConnection("localhost", port, context=trusted)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://localhost:{port}"}
    call.request("POST", "/sign-in", urlencode({"token": token, "next": "/p/mothers"}), form)
    answer = call.getresponse()
    answer.read()
    assert (answer.status, answer.headers["location"]) == (303, "/p/mothers")
    assert "Secure" in answer.headers["set-cookie"]
    call.request("POST", "/sign-in", urlencode({"token": token}), {**form, "Origin": "https://evil.example"})
    answer = call.getresponse()
    answer.read()
    assert answer.status == 403
    call.request(
        "POST", "/api/v1/programmes/mothers/observations?period=2026-W47", b"x" * 21_000_000, {"Content-Type": "text/csv"}
    )
    answer = call.getresponse()
    assert answer.status == 413
    call.close()
