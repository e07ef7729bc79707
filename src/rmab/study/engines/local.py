"""Worker processes on this machine: each has one thread, executes one run at a time, and writes its shard.

Workers are spawned, not forked (threads do not survive a fork), each with its own pipe. A worker that dies loses only its
run: the pipe ends, a new worker takes its place, and the run is repeated. A run that exceeds its time limit is stopped and
fails. Workers end with the study, however it ends.

Why no library: `concurrent.futures` and `loky` fail every run under way when one worker dies and cannot stop a single run;
a pool of one process per worker avoids that, but saves 14 lines of 190, and hides why a worker died.
"""

import ctypes
import math
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from itertools import groupby
from multiprocessing import connection, get_context, parent_process
from pathlib import Path

from rmab.common import as_integer, cores, folders, folders_aside, look_in
from rmab.errors import FileError, ModelError, StudyError
from rmab.study.engines import ATTEMPTS, Outcome
from rmab.study.shards import write_shard
from rmab.study.single_run import attempt
from rmab.study.spec import Job

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS")
SAFE = "PYTHONSAFEPATH"  # makes a new process import nothing from the current folder
SETTINGS = dict.fromkeys((*THREADS, SAFE), "1")
LONG = 3600.0  # maximum seconds to wait for a message
SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
LOOK = 1.0  # seconds between checks of the parent process
READY, DONE, FAILED, UNWRITABLE = "ready", "done", "failed", "unwritable"


class LocalEngine:
    """Executes runs in worker processes on this machine.

    Parameters
    ----------
    workers : int, optional
        Number of processes, 1 or more; by default the number of usable cores. No more are started than there are jobs.
    time_limit : float, optional
        Time limit of a run in seconds, including compilation; a longer run is stopped and fails. No limit by default.

    Raises
    ------
    ModelError
        If one of the numbers is wrong.
    """

    name = "local"

    def __init__(self, workers: int | None = None, time_limit: float | None = None) -> None:
        self.workers = cores() if workers is None else as_integer(workers, "workers")
        if self.workers < 1:
            raise ModelError(f"workers must be at least 1, got {self.workers}")
        self.time_limit = None if time_limit is None else _seconds(time_limit)

    def run(self, jobs: Iterable[Job], folder: Path) -> Generator[Outcome, None, None]:
        """Execute all jobs; see Engine."""
        most = min(self.workers, len(jobs)) if isinstance(jobs, Sized) else self.workers
        queue, crew = _Queue(jobs), [_Worker(n, folder, self.time_limit) for n in range(most)]
        try:
            for worker in crew:
                worker.start()
            while busy := [worker for worker in crew if worker.alive]:
                ready = connection.wait([worker.pipe for worker in busy], min(worker.seconds_left() for worker in busy))
                for worker in busy:
                    if worker.pipe in ready:
                        outcome = worker.receive() if worker.answers() else worker.restart(queue)
                    else:
                        outcome = worker.enforce_time_limit()
                    if outcome is not None:
                        yield outcome
                    if worker.alive and worker.job is None and worker.ready and worker.pipe in ready:
                        worker.hand(queue.next_for(worker.number))
        finally:
            for worker in crew:
                worker.stop()


class _Queue:
    """Jobs, grouped by task and round, whose runs share their comparators.

    A worker stays with its group; when no groups are left, it takes jobs of other workers.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.groups = groupby(jobs, key=lambda job: (job.task.label, job.round))
        self.assigned: dict[int, deque[Job]] = {}
        self.deaths: dict[str, int] = {}

    def next_for(self, worker: int) -> Job | None:
        """Return the next job for a worker, or None if there are none left."""
        mine = self.assigned.setdefault(worker, deque())
        if not mine:
            mine.extend(next(self.groups, (None, ()))[1])
        fullest = max(self.assigned.values(), key=len)
        return mine.popleft() if mine else fullest.pop() if fullest else None

    def put_back(self, worker: int, job: Job) -> int:
        """Put back a job whose worker died, unless that happened too often; return the number of deaths."""
        self.deaths[job.id] = self.deaths.get(job.id, 0) + 1
        if self.deaths[job.id] < ATTEMPTS:
            self.assigned[worker].appendleft(job)
            return self.deaths[job.id]
        return self.deaths.pop(job.id)


class _Worker:
    """One worker process and its pipe, as seen by the study."""

    def __init__(self, number: int, folder: Path, time_limit: float | None) -> None:
        self.number, self.folder, self.time_limit = number, folder, time_limit
        self.job: Job | None = None
        self.begun = 0.0
        self.ready, self.alive, self.false_starts = False, False, 0

    def start(self) -> None:
        self.pipe, theirs = get_context("spawn").Pipe()
        in_main = threading.current_thread() is threading.main_thread()
        arguments = (theirs, self.folder, folders(), in_main, os.environ.get(SAFE))
        self.process = get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
        with _environment_of_workers(), folders_aside():
            self.process.start()
        theirs.close()
        self.ready, self.alive, self.job = False, True, None

    def answers(self) -> bool:
        """Return whether there is a message; False if the process has ended."""
        try:
            self.message: tuple[str, str, str] = self.pipe.recv()
        except (EOFError, OSError):
            return False
        return True

    def receive(self) -> Outcome | None:
        kind, text, trace = self.message
        job, self.job = self.job, None
        if kind == UNWRITABLE:
            raise FileError(text)
        self.ready, self.false_starts = True, 0
        return None if job is None else Outcome(job, text, trace)

    def hand(self, job: Job | None) -> None:
        """Send a job to the worker, or stop the worker if there is none."""
        self.job, self.begun = job, time.monotonic()
        if job is None:
            self.stop()
            return
        with suppress(OSError):  # if the worker has ended, the next read of its pipe shows it
            self.pipe.send(job)

    def seconds_left(self) -> float:
        """Return the seconds until the time limit of the current run."""
        if self.job is None or self.time_limit is None:
            return LONG
        return min(max(self.begun + self.time_limit - time.monotonic(), 0.0), LONG)

    def enforce_time_limit(self) -> Outcome | None:
        """Restart the worker if its run exceeds the time limit; the run fails."""
        if self.job is None or self.seconds_left() > 0 or self.pipe.poll():
            return None
        job = self.job
        self.stop()
        self.start()
        return Outcome(job, f"stopped: the run took longer than the time limit of {self.time_limit:g} seconds")

    def restart(self, queue: _Queue) -> Outcome | None:
        """Restart a worker that died; its job is put back, or fails."""
        self.process.join()
        job, cause = self.job, _cause(self.process.exitcode)
        if not self.ready:
            self.false_starts += 1
            if self.false_starts >= ATTEMPTS:
                raise StudyError(f"worker {self.number} does not start: {cause}")
        self.pipe.close()
        deaths = queue.put_back(self.number, job) if job is not None else 0
        self.start()
        if job is None or deaths < ATTEMPTS:
            return None
        return Outcome(job, f"its worker died {deaths} times (last cause: {cause})")

    def stop(self) -> None:
        if self.alive:
            self.alive = False
            self.process.kill()
            self.process.join()
            self.pipe.close()


def _seconds(limit: float) -> float:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
        raise ModelError(f"time_limit must be a number of seconds above 0, got {limit!r}")
    return float(limit)


def _cause(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Set one thread per library and ignore interrupts in processes started inside, as Ctrl-C reaches the whole group."""
    before = {name: os.environ.get(name) for name in SETTINGS}
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        if main:
            signal.signal(signal.SIGINT, handler)


def _serve(
    pipe: "connection.Connection[tuple[str, str, str], Job]", folder: Path, extra: list[str], main: bool, safe: str | None
) -> None:
    """Execute the jobs that come through the pipe until it is closed.

    extra: folders of custom modules, besides the path. main: whether the main thread of the study started this process.
    safe: the user's setting of SAFE, for processes that learners start.
    """
    os.environ.pop(SAFE, None) if safe is None else os.environ.update({SAFE: safe})
    end_with_parent(main)
    look_in(extra)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _print_to_stderr()
    try:
        pipe.send((READY, "", ""))
        while True:
            job = pipe.recv()
            content, failure, trace = attempt(job, LocalEngine.name)
            try:
                if content is not None:
                    write_shard(folder, job.id, content)
            except FileError as error:
                pipe.send((UNWRITABLE, str(error), ""))
                return
            pipe.send((FAILED if failure else DONE, failure, trace))
    except (EOFError, OSError):
        return  # the study has ended; finished runs are written


def _print_to_stderr() -> None:
    """Redirect standard output, of Python and C code, to standard error: standard output belongs to the study."""
    sys.stdout = sys.stderr
    with suppress(OSError):  # standard error is closed
        os.dup2(2, 1)


def end_with_parent(started_by_main_thread: bool) -> None:
    """Make this process, a child of `multiprocessing`, end when its parent does.

    A thread watches the parent, on all systems. On Linux the kernel also ends the process, even while compiled code blocks
    all threads. The kernel watches the thread that started this process, so this is used only if that was the main thread,
    which lives as long as its process.
    """
    parent = parent_process()
    if parent is None:
        return
    if started_by_main_thread and sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(parent.sentinel, parent.pid), daemon=True).start()


def _watch(sentinel: int, pid: int | None) -> None:
    while not connection.wait([sentinel], LOOK) and (sys.platform == "win32" or os.getppid() == pid):
        pass
    os._exit(1)
