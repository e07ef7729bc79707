"""From shares to whole arms: systematic sampling, and dependent rounding under costs."""

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.play.compiled.selection import add_drawn


def systematic(
    share: FloatArray, place: IntArray, budget: int, rng: np.random.Generator, *, exact: bool = False
) -> BoolArray:
    """(N,) which arms are active, each with probability share (N,): arms of the same place (N,) are next to each other.

    The number of active arms of every place, and of all, is the sum of their shares rounded up or down, and never more than
    the budget. Which arms of a place they are is drawn. exact: the largest shares get what rounding leaves of the budget.
    """
    order = np.lexsort((rng.random(share.size), place))
    reached = np.floor(np.cumsum(share[order]) + rng.random())
    active = np.zeros(share.size, dtype=bool)
    active[order[np.diff(np.minimum(reached, budget), prepend=0.0) > 0]] = True
    if exact and (left := budget - int(active.sum())) > 0:
        ranks = order[np.argsort(-share[order] + active[order], kind="stable")]
        active[ranks[~active[ranks]][:left]] = True
    return active


def draw_within(share: FloatArray, cost: FloatArray, limit: float, rng: np.random.Generator) -> BoolArray:
    """(N,) which arms are active, each with probability share (N,) but for one: their costs (N,) stay within the limit."""
    active, stream = np.zeros(share.size, dtype=bool), rng.integers(0, 2**64, size=4, dtype=np.uint64)
    work = (np.empty(share.size), np.empty(share.size, dtype=np.int64))
    add_drawn(np.ascontiguousarray(share), np.asarray(cost), limit, stream, active, *work)
    return active
