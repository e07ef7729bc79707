"""Time in the model: phases of the steps, budgets by step, and start states. All shapes are documented here.

The H steps of an episode belong to K **phases**, for example the hours of a day: `phase_of` (H,) has the phase of each step.
Kernels and rewards are the same at all steps of a phase. With one phase, the default, tables have no axis for it:

    kernels  (N, S, 2, S)  or  (N, K, S, 2, S)        reward  (N, S, 2)  or  (N, K, S, 2)
    budget   B             or  (H,), one per step     start   (N,) states, or (N, S) probabilities
    cost     (N,), (N, S)  or  (N, K, S), of one activation; 1 by default

If every step differs, there are K = H phases. Solvers and learners join the two axes of a table into one axis of **cells**,
so that one phase has no overhead: cell ``n * K + k`` is arm (or group, or block) n in phase k.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import FloatArray, IntArray, as_amount, as_floats, as_integer, as_states, check_memory, frozen, is_number
from rmab.errors import ModelError, notify_once

Limit: TypeAlias = "int | float | IntArray | FloatArray"  # a budget: whole numbers of arms, or any amount if arms have costs
MOST_PHASES = 1_000_000  # limit if the kernels do not give the number: tables have all phases up to the last
UNCHANGED = 1e-9  # probabilities whose sum is within this of 1 are not changed
RESCALED = 1e-6 * (1 + 1e-6)  # those within this are divided by their sum, as for float32 or printed digits
AXES = ("arm", "phase", "state", "action", "next state")


def location(index: Any, phases: int, first: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the axes of an index into a table: {'arm': 0, 'state': 1}, with the phase if there are several.

    `first`: names of the axes before that of the arms.
    """
    axes = (*first, *(AXES if phases > 1 else AXES[:1] + AXES[2:]))
    return {axis: int(i) for axis, i in zip(axes, index, strict=False)}


def place(index: Any, phases: int, first: tuple[str, ...] = ()) -> str:
    """Describe such a location: 'arm 0, state 1'."""
    return ", ".join(f"{axis} {i}" for axis, i in location(index, phases, first).items())


def shape_of(phases: int, *sizes: int) -> tuple[int, ...]:
    """Return the shape of a table with these sizes, arms first, with an axis for the phases if there are several."""
    return sizes if phases == 1 else (sizes[0], phases, *sizes[1:])


def words_of(phases: int, *letters: str) -> str:
    """Return the same shape in letters, for messages: '(N, K, S, 2)'."""
    return f"({', '.join(letters if phases == 1 else (letters[0], 'K', *letters[1:]))})"


def bare(table: NDArray[Any], axes: int, axis: int = 1) -> NDArray[Any]:
    """Drop the axis of phases from a table with this many axes, if there is only one phase."""
    return table.take(0, axis=axis) if table.ndim == axes and table.shape[axis] == 1 else table


def cells(table: NDArray[Any], phases: int) -> NDArray[Any]:
    """Join the axes of arms and phases: (N, K, ...) becomes (N * K, ...); unchanged with one phase."""
    return table if phases == 1 else table.reshape(-1, *table.shape[2:])


def split_cells(table: NDArray[Any], phases: int) -> NDArray[Any]:
    """Split the axis of cells: (N * K, ...) becomes (N, K, ...); unchanged with one phase."""
    return table if phases == 1 else table.reshape(-1, phases, *table.shape[1:])


def by_step(table: NDArray[Any], count: int, phase_of: IntArray) -> NDArray[Any]:
    """Return the values of a table of cells (C * K, ...) at each step: (C, H, ...), or (C, 1, ...) with one phase."""
    if len(table) == count:
        return table[:, np.newaxis]
    return np.asarray(table.reshape(count, -1, *table.shape[1:])[:, phase_of])


def by_phase(table: NDArray[Any], phase_of: IntArray, phases: int) -> NDArray[Any]:
    """Sum a table (N, H, ...) over the steps of each phase: (N, K, ...), or (N, ...) with one phase."""
    if phases == 1:
        return np.asarray(table.sum(axis=1))
    total = np.zeros((phases, len(table), *table.shape[2:]), dtype=table.dtype)
    np.add.at(total, phase_of, table.swapaxes(0, 1))
    return total.swapaxes(0, 1)


def checked_discount(discount: object) -> float:
    """Return a discount above 0 and at most 1, or raise ModelError."""
    if not is_number(discount) or not 0.0 < discount <= 1.0:
        raise ModelError(f"discount must be above 0 and at most 1, got {discount!r:.40}", field="discount")
    return float(discount)


def checked_phases(phase_of: ArrayLike | None, phases: int, horizon: int) -> IntArray:
    """Return the phase (H,) of each step, or raise ModelError.

    phases: number of phases of the kernels; 1 leaves it open. By default all steps have the same phase, or each step has a
    separate one if the kernels have H phases.
    """
    if phase_of is None:
        if phases not in (1, horizon):
            which = f"the kernels have {phases} phases, and there are {horizon} steps"
            raise ModelError(f"phase_of is missing: {which}; give the phase of each step")
        return frozen(np.zeros(horizon, dtype=np.int64) if phases == 1 else np.arange(horizon))
    given = as_floats(phase_of, "phase_of")
    if given.shape != (horizon,):
        raise ModelError(f"phase_of must have shape (H,) = ({horizon},), one phase per step, got {given.shape}")
    most = phases if phases > 1 else MOST_PHASES
    for h in np.flatnonzero(~((given >= 0) & (given < most) & (given == np.floor(given))))[:1]:
        raise ModelError(f"phase_of: step {h} must be a whole number in 0..{most - 1}, got {given[h]:g}")
    return frozen(given.astype(np.int64))


def checked_limits(budget: ArrayLike, arms: int, horizon: int, cost: FloatArray | None = None) -> Limit:
    """Return the budget, a number or one per step (H,); raise ModelError unless all are in 0..N, or >= 0 with costs.

    Equal budgets become one number, so that equal problems compare equal.
    """
    given = as_floats(budget, "budget") if is_list(budget) else None
    if given is None or given.ndim == 0:
        one = budget if given is None else given.item()
        limit = as_integer(one, "budget") if cost is None else as_amount(one, "budget")
        if cost is None and not 0 <= limit <= arms:
            raise ModelError(f"budget must be in 0..{arms} (the number of arms), got {limit}", field="budget")
        return limit
    if given.size == 0:
        raise ModelError("budget must be a number, or one per step, got an empty list", field="budget")
    if given.shape != (horizon,):
        wrong = f"budget must be a number or have shape (H,) = ({horizon},), one per step, got {given.shape}"
        raise ModelError(wrong, code="bad-shape", field="budget")
    whole = (given == np.floor(given)) & (given <= arms) if cost is None else np.isfinite(given)
    for h in np.flatnonzero(~((given >= 0) & whole))[:1]:
        wanted = f"a whole number in 0..{arms} (the number of arms)" if cost is None else "0 or more, and finite"
        wrong = f"budget: step {h} must be {wanted}, got {given[h]:g}"
        raise ModelError(wrong, field="budget", step=h)
    if (given == given[0]).all():
        return int(given[0]) if cost is None else float(given[0])
    return frozen(given.astype(np.int64)) if cost is None else frozen(given)


def check_phases(phases: int, arms: int, groups: int, states: int) -> None:
    """Raise ModelError if the kernels of all groups and the rewards of all arms in K phases do not fit in memory."""
    if phases > 1:
        what = f"{arms} arms of {states} states in {phases} phases"
        check_memory(what, 16.0 * phases * states * (float(groups) * states + arms))


def is_list(values: object) -> bool:
    """Return whether these may be several values: not a number, a string, or anything else without a length."""
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def limits_of(budget: Limit, horizon: int) -> IntArray | FloatArray:
    """(H,) budget of each step."""
    if isinstance(budget, np.ndarray):
        return budget
    check_memory(f"the budgets of {horizon} steps", 8.0 * horizon)
    if isinstance(budget, int):
        return frozen(np.full(horizon, budget, dtype=np.int64))
    return frozen(np.full(horizon, budget))


def checked_start(start: ArrayLike, sizes: IntArray, states: int, *, one_for_all: bool = True) -> IntArray | FloatArray:
    """Return the state (N,) of each arm, or its probabilities (N, S); raise ModelError unless they fit the sizes (N,).

    Probabilities of 0 and 1 become states, so that equal problems compare equal.
    """
    given = as_floats(start, "start")
    if given.ndim != 2:
        return as_states(given, sizes, one_for_all=one_for_all)
    if given.shape != (sizes.size, states):
        wanted = f"(N,) = ({sizes.size},), or (N, S) = {(sizes.size, states)} for probabilities"
        raise ModelError(f"start must have shape {wanted}, got {given.shape}")
    real = np.arange(states) < sizes[:, np.newaxis]
    for n, s in np.argwhere(~((given >= 0) & (given <= 1) & (real | (given == 0))))[:1]:
        why = "" if real[n, s] else f": arm {n} has states 0..{sizes[n] - 1}"
        raise ModelError(f"start: arm {n}, state {s} has probability {given[n, s]:g}{why}")
    sums = given.sum(axis=1)
    for n in np.flatnonzero(np.abs(sums - 1.0) > RESCALED)[:1]:
        raise ModelError(f"start: the probabilities of arm {n} sum to {sums[n]:.12g}, not 1")
    if (off := np.abs(sums - 1.0) > UNCHANGED).any():
        notify_once("start masses that miss 1", f"start: the probabilities of {off.sum()} arms divided by their sums")
        given[off] /= sums[off, np.newaxis]
    return frozen(given.argmax(axis=1)) if np.isin(given, (0.0, 1.0)).all() else frozen(given)


def masses_of(start: IntArray | FloatArray, states: int) -> FloatArray:
    """(N, S) probabilities of the start states."""
    return start if start.ndim == 2 else np.eye(states)[start]  # type: ignore[return-value]


def format_limit(budget: Limit) -> str:
    """Format the amount of a budget: '10', or '5 to 10'."""
    return f"{budget.min():g} to {budget.max():g}" if isinstance(budget, np.ndarray) else f"{budget:g}"


def describe_budget(budget: Limit, *, exact: bool, cost: FloatArray | None) -> str:
    """Describe a budget: 'budget 10', 'budget exactly 10', 'budget 100 at costs 22 to 50'."""
    costs = ""
    if cost is not None:
        costs = f" at costs {cost.min():g} to {cost.max():g}" if np.ptp(cost) else f" at cost {cost.flat[0]:g}"
        costs += " by state" if cost.ndim > 1 else ""
    return f"budget {'exactly ' if exact else ''}{format_limit(budget)}{costs}"
