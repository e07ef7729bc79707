"""Dask clusters on loopback, and waiting for processes."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from distributed import Client

import rmab
from studies import HERE

SOURCE = str(Path(rmab.__file__).parents[1])


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, HERE])}


def until(condition: Callable[[], object], what: str) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"waited in vain: {what}")


def gone(process: int) -> bool:
    """Return whether a process has ended, even if nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Cluster:
    """A Dask scheduler and some workers, each a process of its own, on loopback."""

    def __init__(self, folder: Path, stack: ExitStack, workers: int) -> None:
        self.folder, self.stack = folder, stack
        self.scheduler, lines = self.started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        address = re.compile(r"tcp://127\.0\.0\.1:\d+")
        until(lambda: address.search(lines.read_text()), "the scheduler tells its address")
        found = address.search(lines.read_text())
        assert found
        self.address = found[0]
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", "60")
        self.workers = [self.started("worker", self.address, *options)[0] for _ in range(workers)]
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)

    def started(self, kind: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        lines = self.folder / f"{kind}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        process = subprocess.Popen(
            command,
            stdout=self.stack.enter_context(lines.open("wb")),
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            cwd=self.folder,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process, lines
