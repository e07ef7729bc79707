"""Processes and threads: number of cores, safety after forks, and a thread pool."""

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any, TypeVar


def cores() -> int:
    """Return the number of cores that this process may use, or OMP_NUM_THREADS if that is lower."""
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(given, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else given


Value = TypeVar("Value")


def in_child(renew: Callable[[], object]) -> None:
    """Call `renew` at the start of every forked child of this process, on systems with fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


class cached_property(functools.cached_property[Value]):  # noqa: N801  (replaces that of functools)
    """functools.cached_property without a lock: before Python 3.12 all instances share one, which a fork may leave locked.

    Threads may compute a value twice, with the same result.
    """

    def __init__(self, func: Callable[[Any], Value]) -> None:
        super().__init__(func)
        self.lock = nullcontext()


Result = TypeVar("Result")


@cache
def pool() -> ThreadPoolExecutor:
    """Return the thread pool, with one thread per usable core."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="rmab")


in_child(pool.cache_clear)


def each(chunks: Sequence[tuple[int, int]], work: Callable[[int, int], Result]) -> list[Result]:
    """Call `work` for each chunk (first, last), in threads; return the results in order."""
    others = [pool().submit(work, *chunk) for chunk in chunks[1:]]
    return [work(*chunks[0]), *(other.result() for other in others)]  # the first in this thread, without a switch


def chunks_of(count: int, size: int) -> list[tuple[int, int]]:
    """Split 0..count into chunks (first, last) of a fixed size, so that sums do not depend on the number of threads."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]
