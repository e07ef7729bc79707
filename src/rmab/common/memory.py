"""Memory: what would need far more than there is says so in one line, before it is allocated."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from rmab.errors import ModelError

try:
    import resource
except ImportError:  # not on this system
    resource = None  # type: ignore[assignment]

SMALL = 2**28  # bytes that are not worth a look at what there is
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def check_memory(what: str, size: float) -> None:
    """Raise ModelError where `what` needs more bytes than there are now: 'simulate would need 745 GB of memory (...)'."""
    if size > SMALL and size > (there := available()):
        raise ModelError(f"{what} would need {in_words(size)} of memory; there are {in_words(there)}")


def available() -> float:
    """Return how many bytes this process can still get, as far as the system tells; infinite where it tells nothing."""
    return min(_of_machine(), _of_group(), _of_process())


def in_words(size: float) -> str:
    """Return a number of bytes with three digits or fewer: '745 GB'."""
    power = min(max(int(math.log10(max(size, 1.0)) // 3), 0), len(UNITS) - 1)
    value = size / 1000**power
    return f"{value:.3g} {UNITS[power]}" if value < 1e4 else f"{value:.0e} {UNITS[power]}"


def _of_machine() -> float:
    """Return what is free or can be freed; all that there is, where only that is known."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return math.inf


def _of_group() -> float:
    """Return what a container leaves, by its own account; infinite outside of one."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        most, used = ((folder / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        return max(float(most) - float(used), 0.0)
    return math.inf


def _of_process() -> float:
    """Return what the limit on this process's address space leaves; infinite where there is none."""
    if resource is None:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with suppress(OSError, ValueError, IndexError):
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        return max(float(limit - used), 0.0)
    return float(limit)
