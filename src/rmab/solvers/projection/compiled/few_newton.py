"""Newton's method on the dual of the projection with few states: all steps in one call, where all arms are one chunk.

It does what `DualNewton.improve` does, step by step, which is for many arms and many states.
"""

from typing import NamedTuple

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting as compiled, compiled_on_loan as on_loan
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import load, select, size, spread, store
from rmab.solvers.projection.compiled.few import FewFactors, FewProgram, FewRows
from rmab.solvers.projection.compiled.few_curvature import few_curvature, few_direction
from rmab.solvers.projection.compiled.few_dual import few_dual, highest
from rmab.solvers.projection.compiled.steps import (
    ARMIJO,
    FARTHEST,
    NOISE,
    SHORTEST,
    free_prices,
    largest_violation,
    step_from_schur,
)


class FewPoint(NamedTuple):
    """A dual point: potentials v (G*(H+1)*S,W) and prices (H,); and of the dual there, gradient (G*H*S,W), used (H,)."""

    v: FloatArray
    prices: FloatArray
    gradient: FloatArray
    used: FloatArray


@on_loan
def move_lanes(v: FloatArray, step: FloatArray, length: float, groups: int, nodes: int, moved: FloatArray) -> None:
    """Write v + length step into moved; groups have so many nodes, and those after the last step stay."""
    ahead = v.shape[0] // groups
    for g in range(groups):
        for i in range(nodes):
            store(moved, load(v, g * ahead + i) + length * load(step, g * nodes + i), g * ahead + i)


@on_loan
def first_potential(v: FloatArray, groups: int, states: int, ends: FloatArray) -> float:
    """Return the largest potential of step 0, without its sign. Scratch: ends (.,W)."""
    ahead, largest = v.shape[0] // groups, spread(0.0)
    for g in range(groups):
        for s in range(states):
            x = size(load(v, g * ahead + s))
            largest = select(x <= largest, largest, x)
    return highest(largest, ends)


@compiled
def few_search(
    program: FewProgram, here: FewPoint, value: float, step: FloatArray, price_step: FloatArray, slope: float,
    longest: float, rows: FewRows, there: FewPoint,
) -> tuple[float, float, float]:  # fmt: skip
    """Go along the step until the dual function has come down enough. Return the part of it that was taken, or 0, and at the
    point found, which is written: the dual function and the largest violation of flow.
    """
    groups, horizon, budget, ends = program.weights.shape[0], program.budget.size, program.budget, np.empty((1, WIDTH))
    states = program.start.shape[0] // groups
    for h in range(horizon):
        longest = max(longest, abs(price_step[h]))
    length = min(1.0, FARTHEST / longest) if 0.0 < longest < np.inf else 1.0
    shortest = SHORTEST * length
    while length > shortest:
        move_lanes(here.v, step, length, groups, horizon * states, there.v)
        priced, expected = 0.0, length * slope
        for h in range(horizon):
            price = max(here.prices[h] + length * price_step[h], 0.0)
            expected += (budget[h] - here.used[h]) * (price - here.prices[h])
            priced += budget[h] * price
            there.prices[h] = price
        found, flow = few_dual(program, 0, groups, there.v, there.prices, rows, False, there.gradient, there.used)
        found += priced
        if np.isfinite(found):  # not where the step was far too long
            noise = NOISE * (abs(value) + abs(found) + first_potential(there.v, groups, states, ends))
            if found <= value + ARMIJO * expected + noise:
                return length, found, flow
        length *= 0.5
    return 0.0, value, 0.0


@compiled
def few_descend(
    program: FewProgram, here: FewPoint, there: FewPoint, value: float, flow: float, tolerance: float, most: int,
    whole: bool, rows: FewRows, factors: FewFactors, step: FloatArray,
) -> tuple[int, float, float, float, bool]:  # fmt: skip
    """Take Newton steps from `here` until the residual is at most tolerance, but at most so many.

    whole: end after a first step that is not whole. value, flow: of the dual function here. Returns how many steps were
    tried; what part of the last one was taken, 0 where it led nowhere; value and flow of the last point; and whether this is
    `there`. Scratch: factors, step (G*H*S,W).
    """
    groups, horizon = program.weights.shape[0], program.budget.size
    taken, length, swapped = 0, 1.0, False
    active, prices, slack = np.empty(horizon), np.empty(horizon), np.empty(horizon)
    while taken < most and np.isfinite(value):
        if largest_violation(program.budget, here.used, here.prices, program.idle, flow) <= tolerance:
            break
        for h in range(horizon):
            slack[h] = program.budget[h] - here.used[h]
        columns, column = free_prices(program.binds, here.prices, slack)
        schur = np.empty((1 + columns, 1 + columns))
        few_curvature(program, 0, groups, rows, here.gradient, False, column, factors, step, active, schur)
        step_from_schur(schur, active, slack, column, prices)
        slope, longest = few_direction(program, 0, groups, here.gradient, factors, prices, step)
        length, value, flow_there = few_search(program, here, value, step, prices, slope, longest, rows, there)
        taken += 1
        if length == 0.0:
            break
        here, there, flow, swapped = there, here, flow_there, not swapped
        if whole and taken == 1 and length < 1.0:
            break
    return taken, length, value, flow, swapped
