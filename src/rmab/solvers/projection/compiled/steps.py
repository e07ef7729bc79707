"""What a Newton step on the projection's dual shares over all numbers of states: its limits, and the step of the prices."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.linear import solve_positive

ARMIJO = 1e-4
FARTHEST = 50.0  # most by which logarithms of masses change in one step: the model of second order fails beyond
SHORTEST = 1e-12  # part of the first length at which the line search ends
NOISE = 1e-14  # of the largest terms of the dual function: what is less is rounding
ENDLESS = 1e6  # a step of the prices that is longer is made of rounding
RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # what to try against it, in parts of the largest active mass


@compiled
def price_step(matrix: FloatArray, target: FloatArray, largest: float) -> FloatArray:
    """Solve for the step of the free prices by the upper half of matrix; largest is the most active mass of a step.

    Where plans hardly respond to prices any more, what is left of their diagonal is rounding, and the step has no bound:
    then the least ridge is added with which it has one.
    """
    least = np.full(target.size, 1e-15 * largest + 1e-300)
    step, own = target.copy(), matrix.copy()
    for ridge in RIDGES:
        step[:] = target
        own[:] = matrix
        for i in range(target.size if ridge > 0.0 else 0):
            own[i, i] += ridge * largest
        solve_positive(own, step, least)
        sound = True
        for i in range(target.size):
            sound = sound and abs(step[i]) <= ENDLESS  # not where it is no number
        if sound:
            break
    return step


@compiled
def largest_violation(budget: FloatArray, used: FloatArray, prices: FloatArray, idle: BoolArray, flow: float) -> float:
    """Return the largest violation of the conditions of an optimum: flow, or that of the budget and of complementarity."""
    worst = flow
    for h in range(budget.size):
        if not idle[h]:
            worst = max(worst, abs(min(prices[h], (budget[h] - used[h]) / max(budget[h], 1.0))))
    return worst


@compiled
def free_prices(binds: BoolArray, prices: FloatArray, slack: FloatArray) -> tuple[int, IntArray]:
    """Return how many prices are free to move, and the places of all among these (H,), or -1."""
    count, column = 0, np.full(prices.size, -1)
    for h in range(prices.size):
        if binds[h] and (prices[h] > 0.0 or slack[h] < 0.0):
            column[h] = count
            count += 1
    return count, column


@compiled
def step_from_schur(schur: FloatArray, active: FloatArray, slack: FloatArray, column: IntArray, step: FloatArray) -> None:
    """Write the step of the prices (H,), 0 where they are not free.

    schur, active: what `few_curvature` writes; slack (H,): the budget less the active mass.
    """
    columns = schur.shape[0] - 1
    step[:] = 0.0
    if columns == 0:
        return
    matrix, target, largest = np.empty((columns, columns)), np.empty(columns), 0.0
    for h in range(column.size):
        i = column[h]
        if i < 0:
            continue
        for j in range(i, columns):
            matrix[i, j] = -schur[1 + i, 1 + j]
        matrix[i, i] += active[h]
        target[i] = schur[0, 1 + i] - slack[h]
        largest = max(largest, active[h])
    found = price_step(matrix, target, largest)
    for h in range(column.size):
        if column[h] >= 0:
            step[h] = found[column[h]]
