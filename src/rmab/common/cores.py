"""How many cores there are for us."""

import os

__all__ = ["cores"]


def cores() -> int:
    """Return the number of cores that this process may use: those that the system gives it, and no more than the customary
    OMP_NUM_THREADS allows.
    """
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(given, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else given
