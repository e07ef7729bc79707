"""Checks of what is passed to solvers and planners, each in one place."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_floats
from rmab.errors import ModelError

__all__ = ["checked_budget", "checked_weights"]


def checked_budget(budget: ArrayLike, horizon: int) -> FloatArray:
    """Return the budget of every step (H,), or raise ModelError naming the step at which nothing is feasible."""
    limit = as_floats(budget, "budget")
    if limit.ndim == 0:
        limit = np.full(horizon, limit)
    if limit.shape != (horizon,):
        raise ModelError(f"budget must be a number or have shape ({horizon},), got {limit.shape}")
    for h in np.flatnonzero(~((limit >= 0) & np.isfinite(limit)))[:1]:
        raise ModelError(f"budget: step {h} has {limit[h]}; it must be 0 or more, and finite")
    return limit


def checked_weights(weights: ArrayLike | None, arms: int) -> FloatArray:
    """Return one positive multiplicity per arm, 1 by default."""
    many = np.ones(arms) if weights is None else as_floats(weights, "weights")
    if many.shape != (arms,) or not (many > 0).all() or not np.isfinite(many).all():
        raise ModelError(f"weights must be {arms} positive numbers")
    return many
