"""Costs of activations: one number per arm, or per arm and state, or per arm, phase and state.

A table of costs is stored without axes along which it does not change. So equal costs in all states become one cost per
arm, and equal problems compare equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, IntArray, as_floats, frozen
from rmab.errors import ModelError
from rmab.model.time import Limit

ROUNDING = 1e-9  # relative: by how much costs may exceed a budget


def checked_cost(cost: ArrayLike | None, sizes: IntArray, states: int, rows: int, axis: str = "phase") -> FloatArray | None:
    """Return the costs of activations, (N,), (N, S) or (N, K, S); None if all are 1.

    Raise ModelError unless all are positive. sizes (N,): number of states of each arm; other entries have no effect. axis:
    meaning of the `rows` K, phases of a problem or steps of a policy. An axis of length 1 applies to all.
    """
    if cost is None:
        return None
    given, whole = as_floats(cost, "cost"), (sizes.size, rows, states)
    table = _with_axes(np.full(sizes.size, given) if given.ndim == 0 else given)
    if table.ndim != 3 or len(table) != whole[0] or any(n not in (1, m) for n, m in zip(table.shape, whole, strict=True)):
        wanted = f"(N,) = {whole[:1]}, (N, S) = {whole[::2]} or (N, {'H' if axis == 'step' else 'K'}, S) = {whole}"
        raise ModelError(f"cost must be a number or have shape {wanted}, got {given.shape}", code="bad-shape", field="cost")
    if table.shape[2] > 1:
        table = np.where(np.arange(states) < sizes[:, np.newaxis, np.newaxis], table, table[:, :, :1])
    for at in np.argwhere(~((table > 0) & np.isfinite(table)))[:1]:
        axes = zip(("arm", axis, "state"), at, table.shape, strict=True)
        place: dict[str, Any] = {one: int(i) for one, i, n in axes if n > 1 or one == "arm"}
        where = ", ".join(f"{one} {i}" for one, i in place.items())
        wrong = f"cost: {where} must be a finite number above 0, got {table[tuple(at)]:g}"
        raise ModelError(wrong, field="cost", **place)
    if (table == table[:, :1]).all():
        table = table[:, 0, 0] if (table[:, 0] == table[:, 0, :1]).all() else table[:, 0]
    else:
        table = np.broadcast_to(table, whole)
    return None if (table == 1.0).all() else frozen(np.ascontiguousarray(table))


def _with_axes(table: FloatArray) -> FloatArray:
    """Return costs (N,) or (N, S) as (N, 1, 1) or (N, 1, S)."""
    return table.reshape(-1, 1, 1) if table.ndim == 1 else table[:, np.newaxis] if table.ndim == 2 else table


def check_exact(exact: object, cost: FloatArray | None, budget: Limit, arms: int) -> None:
    """Raise ModelError unless `exact` is a bool, and False unless equal costs (N,) of some arms can sum to each budget.

    Whether different costs can sum to an amount is a subset-sum problem at each step, and no rounding of a plan keeps it.
    """
    if not isinstance(exact, bool | np.bool_):
        raise ModelError(f"exact must be True or False, got {exact!r:.40}", field="exact")
    if not exact or cost is None:
        return
    if weights_of(cost) is not None:
        wrong = "exact: costs that differ seldom sum to exactly the budget; use equal costs, or leave out exact"
        raise ModelError(wrong, field="exact")
    amounts, unit = np.atleast_1d(np.asarray(budget, dtype=np.float64)), float(cost.flat[0])
    count = np.rint(amounts / unit)
    for h in np.flatnonzero((np.abs(amounts - count * unit) > ROUNDING * amounts) | (count > arms))[:1]:
        step, place = ("", {}) if amounts.size == 1 else (f": step {h}", {"step": h})
        wrong = f"budget{step} must be the cost of 0 to {arms} arms at {unit:g} each, as it is exact, got {amounts[h]:g}"
        raise ModelError(wrong, field="budget", **place)


def slots_of(limits: IntArray | FloatArray, cost: FloatArray | None) -> IntArray:
    """(H,) number of arms that the budgets (H,) allow if all cost the same; rounding errors do not lose a slot."""
    if cost is None:
        return limits  # type: ignore[return-value]
    return frozen(np.minimum(np.floor(limits / cost.min() * (1.0 + ROUNDING)), len(cost)).astype(np.int64))


def weights_of(cost: FloatArray | None) -> FloatArray | None:
    """Return the costs; None if all are equal."""
    return None if cost is None or (cost == cost.flat[0]).all() else cost


def costs_in(weights: FloatArray, row: int | IntArray, states: IntArray) -> FloatArray:
    """Return the costs of the arms, (N,) or (..., N), in these states, in this row: a phase, or a step of a policy.

    weights (N,), (N, S) or (N, K, S); several rows have a last axis of length 1.
    """
    if weights.ndim == 1:
        return weights
    arms = np.arange(len(weights))
    return np.asarray(weights[arms, states] if weights.ndim == 2 else weights[arms, row, states])


def rows_of(weights: FloatArray | None) -> FloatArray:
    """Return costs for compiled code: (1 or K, N, 1 or S), with rows first; empty if there are none."""
    if weights is None:
        return frozen(np.empty((0, 0, 0)))
    if weights.ndim < 3:
        return frozen(weights.reshape(1, len(weights), -1))
    return frozen(np.ascontiguousarray(weights.swapaxes(0, 1)))


def table_of(weights: FloatArray, rows: int, states: int) -> FloatArray:
    """(N, K, S) cost of each arm, phase and state."""
    return np.broadcast_to(_with_axes(weights), (len(weights), rows, states))


def budget_fields(model: Any) -> dict[str, Any]:
    """Return the non-default fields `exact` and `cost` of a problem or a view."""
    return {name: value for name in ("exact", "cost") if (value := getattr(model, name)) is not None and value is not False}
