"""The threads that solvers share: one pool in a process, made when it is first needed, and anew in a forked child."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from rmab.common.cores import cores
from rmab.common.forks import in_child

Result = TypeVar("Result")


@cache
def pool() -> ThreadPoolExecutor:
    """Return the pool, with a thread for every usable core."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="rmab")


in_child(pool.cache_clear)


def each(chunks: Sequence[tuple[int, int]], work: Callable[[int, int], Result]) -> list[Result]:
    """Do the work for every chunk (first, last), in threads; results come in the order of the chunks."""
    others = [pool().submit(work, *chunk) for chunk in chunks[1:]]
    return [work(*chunks[0]), *(other.result() for other in others)]  # the first in this thread: no switch


def chunks_of(count: int, size: int) -> list[tuple[int, int]]:
    """Part 0..count into chunks (first, last) of this size: fixed, so that sums do not depend on the number of threads."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]
