"""What is found out about the arguments of a projection before it begins, in one pass over each of them."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_in_any_order

Found = tuple[NDArray[np.uint32], NDArray[np.uint32], BoolArray, BoolArray, BoolArray, float]


@compiled_in_any_order
def measure_reference(reference: FloatArray, sums: FloatArray) -> tuple[bool, float]:
    """Write the sum of every arm; return whether all entries (N,H,S,2,S) are positive and finite, and if so, the largest.

    Positive numbers are in the order of their bits, and integers are compared several at a time.
    """
    arms = reference.shape[0]
    table = reference.reshape(arms, -1)
    bits, ends = table.view(np.int64), np.array([np.inf])
    low, high, infinite = np.int64(1), np.int64(0), ends.view(np.int64)[0]
    for n in range(arms):
        total = 0.0
        for i in range(table.shape[1]):
            total += table[n, i]
            low, high = min(low, bits[n, i]), max(high, bits[n, i])
        sums[n] = total
    ends.view(np.int64)[0] = high
    return bool(low > 0 and high < infinite), float(ends[0])


@compiled
def support_boxes(low: FloatArray, high: FloatArray, certain: float, allowed: BoolArray) -> None:
    """Write the possible transitions (C,S,2,S): the lower bound is positive, or the upper one is, and lower ones leave room.

    A row with a single next state is known, and never solved again: its bounds become 1.
    """
    cells, states = low.shape[0], low.shape[1]
    for c in range(cells):
        for s in range(states):
            for a in range(2):
                spare, count = 1.0, 0
                for y in range(states):
                    spare -= low[c, s, a, y]
                for y in range(states):
                    there = low[c, s, a, y] > 0.0 or (high[c, s, a, y] > 0.0 and spare > certain)
                    allowed[c, s, a, y] = there
                    count += there
                for y in range(states if count == 1 else 0):
                    if allowed[c, s, a, y]:
                        low[c, s, a, y] = high[c, s, a, y] = 1.0


@compiled
def survey(
    allowed: BoolArray, start: FloatArray, budget: FloatArray, weights: FloatArray, cost: FloatArray, phase: IntArray
) -> Found:
    """Return successors, counts, reach, idle and binds, as in `Program`, and the sum of the weights.

    allowed (C,S,2,S): the possible transitions. start (N,S), budget (H,), weights, cost (N,) and phase (H,) as there.
    """
    cells, states = allowed.shape[0], allowed.shape[1]
    arms, horizon = start.shape[0], budget.size
    phases = cells // arms
    successors = np.empty((cells, states, 2, states), dtype=np.uint32)
    counts = np.empty((cells, states, 2), dtype=np.uint32)
    for c in range(cells):
        for s in range(states):
            for a in range(2):
                first, other = 0, states - 1
                for y in range(states):  # the possible ones in order, and then the others
                    if allowed[c, s, a, y]:
                        successors[c, s, a, first] = y
                        first += 1
                for y in range(states - 1, -1, -1):
                    if not allowed[c, s, a, y]:
                        successors[c, s, a, other] = y
                        other -= 1
                counts[c, s, a] = first
    reach, idle = np.zeros((arms, horizon, states), dtype=np.bool_), budget == 0.0
    for n in range(arms):
        for s in range(states):
            reach[n, 0, s] = start[n, s] > 0.0
        for h in range(horizon - 1):
            cell, count = n * phases + phase[h], 0
            for s in range(states):
                if count == states:
                    break
                for a in range((1 if idle[h] else 2) if reach[n, h, s] else 0):
                    for k in range(counts[cell, s, a]):
                        y = successors[cell, s, a, k]
                        if not reach[n, h + 1, y]:
                            reach[n, h + 1, y] = True
                            count += 1
    all_of_them, many = 0.0, 0.0
    for n in range(arms):
        many += weights[n]
        for s in range(states):
            all_of_them += weights[n] * cost[n] * start[n, s]
    return successors, counts, reach, idle, ~idle & (budget < all_of_them), many


@compiled
def are_masses(mass: FloatArray) -> bool:
    """Return whether all numbers are finite and not negative."""
    flat, sound = mass.reshape(-1), True
    for i in range(flat.size):
        sound = sound and 0.0 <= flat[i] < np.inf
    return sound
