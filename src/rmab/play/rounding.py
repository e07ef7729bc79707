"""From shares to whole arms: systematic sampling."""

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray


def systematic(share: FloatArray, place: IntArray, budget: int, rng: np.random.Generator) -> BoolArray:
    """(N,) which arms are active, each with probability share (N,): arms of the same place (N,) are next to each other.

    The number of active arms of every place, and of all, is the sum of their shares rounded up or down, and never more than
    the budget. Which arms of a place they are is drawn.
    """
    order = np.lexsort((rng.random(share.size), place))
    reached = np.floor(np.cumsum(share[order]) + rng.random())
    active = np.zeros(share.size, dtype=bool)
    active[order[np.diff(np.minimum(reached, budget), prepend=0.0) > 0]] = True
    return active
