"""Backward induction over confidence boxes: each row takes the kernel of its box that is best for what comes after.

A known kernel is the box with low = high, so planning and optimistic planning are one piece of code. Cost follows the
support.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.arrays import FloatArray, IntArray
from rmab.kernels.compile import compiled, compiled_inline

__all__ = ["add_flow", "best_plans"]


@compiled_inline
def rank(values: FloatArray, n: int, h: int, order: IntArray) -> None:
    """Fill order (S,) with the states from the highest values[n,h] to the lowest: insertion, from the order at hand."""
    for i in range(1, order.size):
        y = order[i]
        value = values[n, h, y]
        j = i
        while j > 0 and values[n, h, order[j - 1]] < value:
            order[j] = order[j - 1]
            j -= 1
        order[j] = y


@compiled_inline
def best_mean(
    low: FloatArray,
    high: FloatArray,
    spare: FloatArray,
    successors: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    n: int,
    s: int,
    a: int,
    values: FloatArray,
    h: int,
    order: IntArray,
) -> float:
    """Return the largest sum of p(y) values[n,h,y] over the row's box: low, and what is spare to the best states first."""
    total = 0.0
    for k in range(counts[n, s, a]):
        y = successors[n, s, a, k]
        total += low[n, s, a, y] * values[n, h, y]
    rest = spare[n, s, a]
    i = 0
    while rest > 0.0 and i < order.size:
        y = order[i]
        more = min(high[n, s, a, y] - low[n, s, a, y], rest)
        total += more * values[n, h, y]
        rest -= more
        i += 1
    return total


@compiled
def best_plans(
    low: FloatArray,
    high: FloatArray,
    spare: FloatArray,
    successors: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    reward: FloatArray,
    start: FloatArray,
    prices: FloatArray,
    first: int,
    last: int,
    values: FloatArray,
    active: NDArray[np.bool_],
    best: FloatArray,
    earned: FloatArray,
    used: FloatArray,
) -> None:
    """Plan every block (first..last-1) by itself when activating at step h costs prices[h] (H,).

    low, high (C,S,2,S), spare (C,S,2) = 1 - sum low, reward (C,S,2), start (C,S) masses. Writes values (C,H+1,S), the
    decision active (C,H,S), best (C,), the priced value from the start, and what the plan earns (C,) and uses (C,H).
    """
    states, horizon = low.shape[1], prices.size
    order, mass, coming = np.arange(states), np.empty(states), np.empty(states)
    for n in range(first, last):
        values[n, horizon] = 0.0
        for h in range(horizon - 1, -1, -1):
            rank(values, n, h + 1, order)
            for s in range(states):
                passive = reward[n, s, 0] + best_mean(low, high, spare, successors, counts, n, s, 0, values, h + 1, order)
                busy = reward[n, s, 1] + best_mean(low, high, spare, successors, counts, n, s, 1, values, h + 1, order)
                active[n, h, s] = busy - prices[h] > passive
                values[n, h, s] = max(busy - prices[h], passive)
        best[n] = 0.0
        earned[n] = 0.0
        for s in range(states):
            best[n] += start[n, s] * values[n, 0, s]
            coming[s] = start[n, s]
        for h in range(horizon):
            mass, coming = coming, mass
            coming[:] = 0.0
            used[n, h] = 0.0
            rank(values, n, h + 1, order)
            for s in range(states):
                if mass[s] == 0.0:
                    continue
                a = 1 if active[n, h, s] else 0
                earned[n] += mass[s] * reward[n, s, a]
                used[n, h] += mass[s] * a
                for k in range(counts[n, s, a]):
                    y = successors[n, s, a, k]
                    coming[y] += mass[s] * low[n, s, a, y]
                rest, i = spare[n, s, a], 0
                while rest > 0.0 and i < states:
                    y = order[i]
                    more = min(high[n, s, a, y] - low[n, s, a, y], rest)
                    coming[y] += mass[s] * more
                    rest -= more
                    i += 1


@compiled
def add_flow(
    low: FloatArray,
    high: FloatArray,
    spare: FloatArray,
    successors: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    start: FloatArray,
    values: FloatArray,
    active: NDArray[np.bool_],
    share: FloatArray,
    occupancy: FloatArray,
    flow: FloatArray,
) -> None:
    """Add share[n] times the masses of each block's plan (values, active as `best_plans` left them) to occupancy (C,H,S,2),
    and its flows to flow (C,H,S,2,S) where that has room.
    """
    record = flow.shape[0] > 0
    blocks, horizon, states = active.shape
    order, mass, coming = np.arange(states), np.empty(states), np.empty(states)
    for n in range(blocks):
        if share[n] <= 0.0:
            continue
        for s in range(states):
            coming[s] = share[n] * start[n, s]
        for h in range(horizon):
            mass, coming = coming, mass
            coming[:] = 0.0
            rank(values, n, h + 1, order)
            for s in range(states):
                if mass[s] == 0.0:
                    continue
                a = 1 if active[n, h, s] else 0
                occupancy[n, h, s, a] += mass[s]
                for k in range(counts[n, s, a]):
                    y = successors[n, s, a, k]
                    if record:
                        flow[n, h, s, a, y] += mass[s] * low[n, s, a, y]
                    coming[y] += mass[s] * low[n, s, a, y]
                rest, i = spare[n, s, a], 0
                while rest > 0.0 and i < states:
                    y = order[i]
                    more = min(high[n, s, a, y] - low[n, s, a, y], rest)
                    if record:
                        flow[n, h, s, a, y] += mass[s] * more
                    coming[y] += mass[s] * more
                    rest -= more
                    i += 1
