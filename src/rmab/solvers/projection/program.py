"""From a reference and sets of transitions to the arrays of one projection, checked."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    SUMMED,
    BoolArray,
    FloatArray,
    IntArray,
    as_floats,
    check_magnitude,
    check_memory,
    check_unmasked,
    frozen,
    sealed,
)
from rmab.errors import ModelError
from rmab.model import checked_phases, checked_start, masses_of, place, split_cells
from rmab.solvers.checks import checked_budget, checked_weights
from rmab.solvers.projection.compiled.program import Program, misfit
from rmab.solvers.projection.compiled.survey import measure_reference, support_boxes, survey
from rmab.solvers.transitions import CERTAIN, TransitionSets


def make_program(
    reference: FloatArray,
    sets: TransitionSets,
    start: ArrayLike,
    budget: ArrayLike,
    weights: ArrayLike | None = None,
    phase_of: ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Program:
    """Join a reference (N,H,S,2,S), the sets (N*K,S,2,S) of cells and the rest, or raise ModelError: something does not fit.

    The rest is as in `project`.
    """
    reference = _checked_reference(reference)
    arms, horizon, states, _, _ = reference.shape
    if len(sets.low) % arms or sets.low.shape[1:] != (states, 2, states):
        raise _misshapen(sets, reference, sets.low.shape)
    phases = len(sets.low) // arms
    phase = checked_phases(phase_of, phases, horizon)
    if phases == 1:  # the same sets at all steps, whatever else their phases have
        phase = frozen(np.zeros_like(phase))
    if sets.radius is None or sets.centre is None:
        low, high, allowed = _box_bounds(sets)
    else:
        if sets.possible is not None:
            room = sets.possible.reshape(arms, phases, states, 2, states)
            reference = reference * (room if phases == 1 else room[:, phase])
        low, high = sets.centre, sets.centre
        allowed = _ball_support(sets.centre, sets.radius, reference, phase, phases)
    given = checked_start(start, np.full(arms, states), states, one_for_all=False)
    first = np.array(masses_of(given, states))  # a copy that can be written to, always: one type for compiled code
    limit = checked_budget(budget, horizon)
    many, charge = checked_weights(weights, arms), checked_weights(cost, arms, "cost")
    successors, counts, reach, idle, binds, count = survey(allowed, first, limit, many, charge, phase)
    sums = np.empty(arms)
    sound, largest = measure_reference(sealed(reference), sums)  # mostly sound: then there is nothing to look for
    wrong = -1 if sound else misfit(reference, allowed, reach, idle, phase, phases)
    if wrong >= 0:
        n, h, s, a, y = np.unravel_index(wrong, reference.shape)
        where = f"arm {n}, step {h}{f' (phase {phase[h]})' if phases > 1 else ''}, state {s}, action {a}, next state {y}"
        raise ModelError(f"reference: {where} is {reference[n, h, s, a, y]}; it must be finite, and positive where allowed")
    times = count * reference[0].size
    if not (sound and largest <= SUMMED / max(times, 1.0)):
        check_magnitude(reference, "reference", times, f" times {times:.3g} (weights, steps and transitions)", SUMMED)
    return Program(
        reference,
        low,
        high,
        sets.radius,
        successors=successors,
        counts=counts,
        reach=reach,
        budget=limit,
        idle=idle,
        binds=binds,
        start=first,
        weights=many,
        phase=phase,
        phases=phases,
        cost=charge,
        total=float(many @ sums),
    )


def fitting_reference(reference: FloatArray, sets: TransitionSets, shape: tuple[int, ...]) -> FloatArray:
    """Return the reference, or raise ModelError where the table that the sets were made of, of this shape, has other arms.

    The sets alone do not tell: 2 arms in 3 phases and 3 arms in 2 have as many cells.
    """
    table = _checked_reference(reference)
    if shape[0] != len(table):
        raise _misshapen(sets, table, shape)
    return table


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


def _misshapen(sets: TransitionSets, reference: FloatArray, got: tuple[int, ...]) -> ModelError:
    arms, _, states, _, _ = reference.shape
    name, shape = "lower and upper" if sets.radius is None else "centre", (arms, states, 2, states)
    return ModelError(f"{name} must have shape (N, S, 2, S), or (N, K, S, 2, S), with (N, S, 2, S) = {shape}, got {got}")


def _box_bounds(sets: TransitionSets) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return low, high and what is allowed (N*K,S,2,S). A row with a single next state is known, and never solved again."""
    low, high, allowed = sets.low.copy(), sets.high.copy(), np.empty(sets.low.shape, dtype=bool)
    support_boxes(low, high, CERTAIN, allowed)
    return low, high, allowed


def _ball_support(centre: FloatArray, radius: FloatArray, reference: FloatArray, phase: IntArray, phases: int) -> BoolArray:
    """(N*K,S,2,S) what balls allow: transitions that the reference has at some step of the phase, in the centre or within a
    positive radius.
    """
    arms, _, states, _, _ = reference.shape
    carried = np.ones((arms, phases, states, 2, states), dtype=bool)  # of a phase without steps nothing is known
    for k in range(phases):
        steps = np.flatnonzero(phase == k)
        if steps.size:
            carried[:, k] = ((reference if phases == 1 else reference[:, steps]) != 0).any(axis=1)
    allowed: BoolArray = carried.reshape(centre.shape) & ((centre > 0) | (radius[..., np.newaxis] > 0))
    lost = ~allowed & (centre > 0)
    if lost.any():
        where = place(np.argwhere(split_cells(lost, phases))[0], phases)
        raise ModelError(f"{where}: in the centre, but the reference is 0")
    return allowed
