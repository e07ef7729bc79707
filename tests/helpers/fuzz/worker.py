"""The process in which cases are played, and the handle on it: a crash or a hang ends the worker, not the fuzzing."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz.cases import attempt
from fuzz.patience import Patience

MOST_MEMORY = 12 * 2**30  # bytes of address space: a case that wants more gets MemoryError, and the machine goes on
LOOK = 0.5  # seconds between looks at a worker that has not answered yet
HERE = Path(__file__).resolve().parents[1]


def serve() -> None:
    """Play the cases that come in line by line, and answer each with a line; runs in the worker."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a case prints does not get between the answers
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    for line in sys.stdin:
        part, seed = json.loads(line)
        answers.write(json.dumps(attempt(part, seed)) + "\n")
        answers.flush()


class Worker:
    """One worker process, in a group of its own, so that its forked children end with it."""

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        code = "from fuzz.worker import serve; serve()"
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_BOUNDSCHECK": "1"},
            start_new_session=True,
        )
        self.played: list[tuple[str, int]] = []

    def ask(self, part: str, seed: int, limit: float) -> dict[str, Any]:
        """Let it play a case, and return what came of it; a worker that crashed or hung is gone afterwards."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.played.append((part, seed))
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([part, seed]).encode() + b"\n")
            self.process.stdin.flush()
        late = self._late(limit)
        answer = b"" if late else self.process.stdout.readline()
        if answer.endswith(b"\n"):
            found: dict[str, Any] = json.loads(answer)
            return found
        if late:
            return {"finding": f"hang: {late}", "trace": self._ended(dump=True)}
        code = self.process.wait()
        name = signal.Signals(-code).name if code < 0 else f"status {code}"
        return {"finding": f"crash: the worker ended with {name}", "trace": self._ended()}

    def _late(self, limit: float) -> str:
        """Wait for an answer; return why not to wait any longer, or nothing."""
        patience, late = Patience(self.process.pid, limit), ""
        while not late and not select.select([self.process.stdout], [], [], LOOK)[0]:
            late = patience.over()
        return late

    def _ended(self, *, dump: bool = False) -> str:
        """End the worker, and return the last that it said; dump: with the stacks of all its threads."""
        if dump and self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.3)  # it goes on, and has said where it is by then
        self.log.seek(0)
        said = self.log.read().decode(errors="replace")[-6000:]
        self.close()
        return said

    def close(self) -> None:
        """End the worker and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
