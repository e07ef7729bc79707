"""The number of usable cores."""

import os


def cores() -> int:
    """Return the number of cores that this process may use, or OMP_NUM_THREADS where that is lower."""
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(given, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else given
