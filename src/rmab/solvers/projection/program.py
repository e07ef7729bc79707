"""What a projection is asked for, checked: sets that are not empty, a reference that is positive where it must be."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.checks import as_floats, as_states
from rmab.errors import ModelError
from rmab.solvers.projection.compiled.program import Program, misfit

__all__ = ["ball_program", "box_program", "checked_boxes", "checked_budget", "checked_weights"]

ROUNDING = 1e-9
FULL = 1e-12  # lower bounds that sum to 1 up to this leave nothing to choose


def box_program(
    reference: FloatArray,
    lower: ArrayLike,
    upper: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    weights: ArrayLike | None,
) -> Program:
    """Check boxes lower..upper (N,S,2,S) and what goes with them."""
    reference = _checked_reference(reference)
    low, high = checked_boxes(lower, upper)
    _check_shape(low, "lower", reference)
    spare = 1.0 - low.sum(axis=3, keepdims=True)
    allowed = (low > 0) | ((high > 0) & (spare > FULL))  # a row that its lower bounds fill has room for nothing else
    sure = allowed & (
        allowed.sum(axis=3, keepdims=True) == 1
    )  # nothing to choose: a row that is known is never solved again
    low, high = np.where(sure, 1.0, low), np.where(sure, 1.0, high)
    return _program(reference, low, high, None, allowed, start, budget, weights)


def checked_boxes(lower: ArrayLike, upper: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return boxes lower..upper (N,S,2,S) of distributions, or raise ModelError naming the row that has none."""
    low, high = as_floats(lower, "lower"), as_floats(upper, "upper")
    if low.ndim != 4 or low.shape[1] != low.shape[3] or low.shape[2] != 2 or 0 in low.shape or high.shape != low.shape:
        raise ModelError(f"lower and upper must both have shape (N, S, 2, S), got {low.shape} and {high.shape}")
    bad = ~((low >= 0) & (low <= high) & (high <= 1))
    if bad.any():
        n, s, a, y = np.argwhere(bad)[0]
        interval = f"[{low[n, s, a, y]}, {high[n, s, a, y]}]"
        raise ModelError(f"arm {n}, state {s}, action {a}, next state {y}: {interval} is no interval within [0, 1]")
    least, most = low.sum(axis=3), high.sum(axis=3)
    empty = (least > 1 + ROUNDING) | (most < 1 - ROUNDING)
    if empty.any():
        n, s, a = np.argwhere(empty)[0]
        sums = f"lower sums to {least[n, s, a]:.12g}, upper to {most[n, s, a]:.12g}"
        raise ModelError(f"arm {n}, state {s}, action {a}: no distribution lies between lower and upper ({sums})")
    return low, high


def ball_program(
    reference: FloatArray,
    centre: ArrayLike,
    radius: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    weights: ArrayLike | None,
) -> Program:
    """Check balls of radius (N,S,2) around centre (N,S,2,S) and what goes with them."""
    reference = _checked_reference(reference)
    middle = as_floats(centre, "centre")
    _check_shape(middle, "centre", reference)
    size = as_floats(radius, "radius")
    if size.shape != middle.shape[:3]:
        raise ModelError(f"radius must have shape (N, S, 2) = {middle.shape[:3]}, got {size.shape}")
    off = ~((middle >= 0).all(axis=3) & (np.abs(middle.sum(axis=3) - 1) <= ROUNDING) & (size >= 0))
    if off.any():
        n, s, a = np.argwhere(off)[0]
        raise ModelError(f"arm {n}, state {s}, action {a}: centre must be a distribution and radius at least 0")
    allowed = (reference != 0).any(axis=1) & ((middle > 0) | (size[..., np.newaxis] > 0))
    lost = ~allowed & (middle > 0)
    if lost.any():
        n, s, a, y = np.argwhere(lost)[0]
        raise ModelError(f"arm {n}, state {s}, action {a}, next state {y}: in the centre, but the reference is 0")
    return _program(reference, middle, middle, size, allowed, start, budget, weights)


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


def _checked_reference(reference: FloatArray) -> FloatArray:
    table = np.ascontiguousarray(reference) if isinstance(reference, np.ndarray) else as_floats(reference, "reference")
    if table.dtype != np.float64:
        table = as_floats(table, "reference")
    if table.ndim != 5 or table.shape[2] != table.shape[4] or table.shape[3] != 2 or 0 in table.shape:
        raise ModelError(f"reference must have shape (N, H, S, 2, S), got {table.shape}")
    return table


def _check_shape(table: FloatArray, name: str, reference: FloatArray) -> None:
    arms, _, states, _, _ = reference.shape
    if table.shape != (arms, states, 2, states):
        raise ModelError(f"{name} must have shape (N, S, 2, S) = {(arms, states, 2, states)}, got {table.shape}")


def checked_weights(weights: ArrayLike | None, arms: int) -> FloatArray:
    """Return one positive multiplicity per arm, 1 by default."""
    many = np.ones(arms) if weights is None else as_floats(weights, "weights")
    if many.shape != (arms,) or not (many > 0).all() or not np.isfinite(many).all():
        raise ModelError(f"weights must be {arms} positive numbers")
    return many


def _program(
    reference: FloatArray,
    low: FloatArray,
    high: FloatArray,
    radius: FloatArray | None,
    allowed: BoolArray,
    start: ArrayLike,
    budget: ArrayLike,
    weights: ArrayLike | None,
) -> Program:
    arms, horizon, states, _, _ = reference.shape
    first = as_states(start, np.full(arms, states))
    limit = checked_budget(budget, horizon)
    many = checked_weights(weights, arms)
    reach = _reachable(allowed, first, limit == 0)
    place = misfit(reference, allowed, reach, limit == 0)
    if place >= 0:
        n, h, s, a, y = np.unravel_index(place, reference.shape)
        where = f"arm {n}, step {h}, state {s}, action {a}, next state {y}"
        raise ModelError(f"reference: {where} is {reference[n, h, s, a, y]}; it must be finite, and positive where allowed")
    order = np.argsort(~allowed, axis=3, kind="stable").astype(np.uint32)
    counts = allowed.sum(axis=3).astype(np.uint32)
    return Program(
        reference,
        low,
        high,
        radius,
        order,
        counts,
        reach,
        limit,
        limit == 0,
        (limit > 0) & (limit < many.sum()),
        first,
        many,
    )


def _reachable(allowed: BoolArray, start: IntArray, idle: BoolArray) -> BoolArray:
    """(N, H, S) whether some kernel of the sets can bring mass there, nobody being active at the idle steps (H,)."""
    arms, states = allowed.shape[:2]
    passive, either = allowed[:, :, 0], allowed.any(axis=2)
    reach = np.zeros((arms, idle.size, states), dtype=bool)
    reach[np.arange(arms), 0, start] = True
    for h in range(1, idle.size):
        moves = passive if idle[h - 1] else either
        reach[:, h] = (reach[:, h - 1, :, np.newaxis] & moves).any(axis=1)
    return reach
