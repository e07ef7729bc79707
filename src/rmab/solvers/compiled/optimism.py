"""Backward induction over confidence boxes: each row takes the kernel of its box with the largest future value.

A known kernel is the box with low = high, so one implementation serves both. Cost is proportional to the
support.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline


class Rows(NamedTuple):
    """Boxes of C cells: low, high (C,S,2,S), spare (C,S,2) = 1 - sum low; successors (C,S,2,S), of which counts (C,S,2)."""

    low: FloatArray
    high: FloatArray
    spare: FloatArray
    successors: NDArray[np.uint32]
    counts: NDArray[np.uint32]


@compiled_inline
def rank(values: FloatArray, n: int, h: int, order: IntArray) -> None:
    """Fill order (S,) with the states from the highest values[n,h] to the lowest: insertion, from the current order."""
    for i in range(1, order.size):
        y = order[i]
        value = values[n, h, y]
        j = i
        while j > 0 and values[n, h, order[j - 1]] < value:
            order[j] = order[j - 1]
            j -= 1
        order[j] = y


@compiled_inline
def best_mean(rows: Rows, cell: int, s: int, a: int, values: FloatArray, n: int, h: int, order: IntArray) -> float:
    """Return the largest sum of p(y) values[n,h,y] over the row's box: low, and the spare mass to the best states first."""
    low, high, spare, successors, counts = rows
    total = 0.0
    for k in range(counts[cell, s, a]):
        y = successors[cell, s, a, k]
        total += low[cell, s, a, y] * values[n, h, y]
    rest = spare[cell, s, a]
    i = 0
    while rest > 0.0 and i < order.size:
        y = order[i]
        more = min(high[cell, s, a, y] - low[cell, s, a, y], rest)
        total += more * values[n, h, y]
        rest -= more
        i += 1
    return total


@compiled
def best_values(
    rows: Rows, reward: FloatArray, phase_of: IntArray, idle: BoolArray, prices: FloatArray, values: FloatArray
) -> None:
    """Plan every block separately when activating at step h costs prices[h] (H,): write values (C,H+1,S).

    reward (C*K,S,2) by cell, phase_of (H,). At idle steps (H,) no arm is active, and prices[h] is the smallest price at
    which none would be.
    """
    blocks, states, horizon = values.shape[0], values.shape[2], prices.size
    order, phases = np.arange(states), reward.shape[0] // blocks
    for h in range(horizon):
        if idle[h]:
            prices[h] = 0.0
    for n in range(blocks):
        values[n, horizon] = 0.0
        for h in range(horizon - 1, -1, -1):
            rank(values, n, h + 1, order)
            cell = n * phases + phase_of[h]
            for s in range(states):
                passive = reward[cell, s, 0] + best_mean(rows, cell, s, 0, values, n, h + 1, order)
                busy = reward[cell, s, 1] + best_mean(rows, cell, s, 1, values, n, h + 1, order)
                if idle[h]:
                    prices[h] = max(prices[h], busy - passive)
                    values[n, h, s] = passive
                else:
                    values[n, h, s] = max(busy - prices[h], passive)


@compiled
def intervals_fit(low: FloatArray, high: FloatArray, rounding: float) -> bool:
    """Return whether all intervals [low, high] lie within [0, 1], and every row (M,S) of them admits a distribution."""
    for m in range(low.shape[0]):
        bottom, top = 0.0, 0.0
        for y in range(low.shape[1]):
            if not 0.0 <= low[m, y] <= high[m, y] <= 1.0:
                return False
            bottom += low[m, y]
            top += high[m, y]
        if bottom > 1.0 + rounding or top < 1.0 - rounding:
            return False
    return True
