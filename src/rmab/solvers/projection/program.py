"""From a reference and sets of transitions to the arrays of one projection, checked."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.checks import SUMMED, as_floats, as_states, check_magnitude, check_unmasked
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.solvers.checks import checked_budget, checked_weights
from rmab.solvers.projection.compiled.program import Program, misfit
from rmab.solvers.transitions import CERTAIN, TransitionSets


def make_program(
    reference: FloatArray,
    sets: TransitionSets,
    start: ArrayLike,
    budget: ArrayLike,
    weights: ArrayLike | None = None,
) -> Program:
    """Join a reference (N,H,S,2,S), the sets (N,S,2,S) and the rest, or raise ModelError saying what does not fit."""
    reference = _checked_reference(reference)
    arms, horizon, states, _, _ = reference.shape
    if sets.low.shape != (arms, states, 2, states):
        name = "lower and upper" if sets.radius is None else "centre"
        raise ModelError(f"{name} must have shape (N, S, 2, S) = {(arms, states, 2, states)}, got {sets.low.shape}")
    if sets.radius is None or sets.centre is None:
        low, high, allowed = _box_bounds(sets)
    else:
        if sets.possible is not None:
            reference = reference * sets.possible[:, np.newaxis]
        low, high, allowed = sets.centre, sets.centre, _ball_support(sets.centre, sets.radius, reference)
    first = as_states(start, np.full(arms, states))
    limit = checked_budget(budget, horizon)
    many = checked_weights(weights, arms)
    reach = _reachable(allowed, first, limit == 0)
    place = misfit(reference, allowed, reach, limit == 0)
    if place >= 0:
        n, h, s, a, y = np.unravel_index(place, reference.shape)
        where = f"arm {n}, step {h}, state {s}, action {a}, next state {y}"
        raise ModelError(f"reference: {where} is {reference[n, h, s, a, y]}; it must be finite, and positive where allowed")
    times = float(many.sum()) * reference[0].size
    check_magnitude(reference, "reference", times, f" times {times:.3g} (weights, steps and transitions)", SUMMED)
    return Program(
        reference,
        low,
        high,
        sets.radius,
        successors=np.argsort(~allowed, axis=3, kind="stable").astype(np.uint32),
        counts=allowed.sum(axis=3).astype(np.uint32),
        reach=reach,
        budget=limit,
        idle=limit == 0,
        binds=(limit > 0) & (limit < many.sum()),
        start=first,
        weights=many,
    )


def _checked_reference(reference: FloatArray) -> FloatArray:
    check_unmasked(reference, "reference")
    table = reference if isinstance(reference, np.ndarray) else as_floats(reference, "reference")
    check_memory(f"the projection of a reference {table.shape}", 16.0 * table.size)  # its kernels, and their factors
    table = np.ascontiguousarray(table)
    if table.dtype != np.float64:
        table = as_floats(table, "reference")
    if table.ndim != 5 or table.shape[2] != table.shape[4] or table.shape[3] != 2 or 0 in table.shape:
        raise ModelError(f"reference must have shape (N, H, S, 2, S), got {table.shape}")
    return table


def _box_bounds(sets: TransitionSets) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return low, high and what is allowed (N,S,2,S). A row with a single next state is known, and never solved again."""
    spare = 1.0 - sets.low.sum(axis=3, keepdims=True)
    allowed = (sets.low > 0) | ((sets.high > 0) & (spare > CERTAIN))  # lower bounds that fill a row leave no room
    sure = allowed & (allowed.sum(axis=3, keepdims=True) == 1)
    return np.where(sure, 1.0, sets.low), np.where(sure, 1.0, sets.high), allowed


def _ball_support(centre: FloatArray, radius: FloatArray, reference: FloatArray) -> BoolArray:
    """(N,S,2,S) what balls allow: transitions that the reference has, in the centre or within a positive radius."""
    allowed: BoolArray = (reference != 0).any(axis=1) & ((centre > 0) | (radius[..., np.newaxis] > 0))
    lost = ~allowed & (centre > 0)
    if lost.any():
        n, s, a, y = np.argwhere(lost)[0]
        raise ModelError(f"arm {n}, state {s}, action {a}, next state {y}: in the centre, but the reference is 0")
    return allowed


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
