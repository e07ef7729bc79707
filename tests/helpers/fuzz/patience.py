"""When to stop waiting for a case: by the CPU time that it took, not by the clock, which counts other people's work too.

A case hangs when it has computed for too long, or when it has waited for too long without computing. A process that is ready
to run, and has no turn on a busy machine, does neither.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
TICK = 1.0 / os.sysconf("SC_CLK_TCK")
READY = "RD"  # states of a thread that runs or would, or waits for the disk


@dataclass
class Patience:
    """With the processes of one session: `over` says why to stop waiting, or nothing.

    session  the process id of the worker that leads it.
    limit    seconds: of CPU time, all processes and threads together, or of waiting for nothing.
    """

    session: int
    limit: float
    begun: float = field(init=False)
    used: float = field(init=False)
    idle_since: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun, _ = usage(self.session)
        self.used, self.idle_since = self.begun, time.monotonic()

    def over(self) -> str:
        """Look once; to be called every second or so."""
        used, ready = usage(self.session)
        if ready or used > self.used:
            self.idle_since = time.monotonic()
        self.used = max(used, self.used)  # what an ended child has used is no longer seen
        if self.used - self.begun >= self.limit:
            return f"no answer after {self.limit:g} s of CPU time"
        if time.monotonic() - self.idle_since >= self.limit:
            return f"no answer after {self.limit:g} s of waiting"
        return ""


def usage(session: int) -> tuple[float, bool]:
    """Return the CPU seconds of all processes of a session, ended children included, and whether any thread is ready."""
    seconds, ready = 0.0, False
    for process in PROC.iterdir():
        if process.name.isdigit() and (own := _stat(process / "stat")) and int(own[3]) == session:
            seconds += TICK * sum(int(one) for one in own[11:15])  # utime, stime, cutime, cstime
            ready = ready or any(state[0] in READY for state in _threads(process))
    return seconds, ready


def _threads(process: Path) -> Iterator[list[str]]:
    try:
        tasks = list((process / "task").iterdir())
    except FileNotFoundError:  # it ended in between
        return
    for task in tasks:
        if state := _stat(task / "stat"):
            yield state


def _stat(path: Path) -> list[str]:
    """Return the fields of a stat file from the state on (the third of proc(5)); none if the process is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
