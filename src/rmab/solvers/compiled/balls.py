"""Optimism over L1 balls around known rows: the best row of a ball, values of an infinite horizon, plans of joint arms."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled


@compiled
def lift(mean: FloatArray, radius: float, allowed: BoolArray, worth: FloatArray, order: IntArray, row: FloatArray) -> None:
    """Write the row (S,) within L1 distance `radius` of mean (S,) for which the sum of row * worth is largest.

    Half the radius goes to the best state that is allowed, as far as possible, and is taken from the worst states first.
    order (S,) is scratch, with any order of the states on entry.
    """
    for i in range(1, order.size):  # by insertion, from best to worst; from the current order
        y, j = order[i], i
        while j > 0 and worth[order[j - 1]] < worth[y]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = y
    best = 0
    while not allowed[order[best]]:
        best += 1
    row[:] = mean
    top = order[best]
    more = min(0.5 * radius, 1.0 - mean[top])
    row[top] += more
    k = order.size - 1
    while more > 0.0 and k > best:
        less = min(row[order[k]], more)
        row[order[k]] -= less
        more -= less
        k -= 1


@compiled
def lifted_rows(mean: FloatArray, radius: FloatArray, allowed: BoolArray, worth: FloatArray) -> FloatArray:
    """(C, S, 2, S) rows of the balls of radius (C,S,2) around mean (C,S,2,S) with the largest mean worth (C,S)."""
    rows = np.empty_like(mean)
    for c in range(mean.shape[0]):
        order = np.arange(mean.shape[1])  # reset: ties must not depend on the previous block
        for s in range(mean.shape[1]):
            for a in range(2):
                lift(mean[c, s, a], radius[c, s, a], allowed[c, s, a], worth[c], order, rows[c, s, a])
    return rows


@compiled
def iterate_lifted_values(
    mean: FloatArray,
    radius: FloatArray,
    allowed: BoolArray,
    reward: FloatArray,
    price: float,
    discount: float,
    tolerance: float,
    most: int,
    values: FloatArray,
    rows: FloatArray,
) -> bool:
    """Extended value iteration: write values (C,S), the best of reward - price * a over policies and kernels in the balls.

    mean, rows (C,S,2,S), radius (C,S,2), reward (C,S,2). Starts from the current values. rows are the kernels of the last
    round. Return whether values are within `tolerance` after at most `most` rounds.
    """
    blocks, states = values.shape
    new = np.empty(states)
    for c in range(blocks):
        order = np.arange(states)  # reset: ties must not depend on the previous block
        converged = False
        for _ in range(most):
            change = 0.0
            for s in range(states):
                for a in range(2):
                    lift(mean[c, s, a], radius[c, s, a], allowed[c, s, a], values[c], order, rows[c, s, a])
                    worth = reward[c, s, a] - price * a
                    for y in range(states):
                        worth += discount * rows[c, s, a, y] * values[c, y]
                    new[s] = worth if a == 0 else max(new[s], worth)
                change = max(change, abs(new[s] - values[c, s]))
            values[c] = new
            if change * discount <= tolerance * (1.0 - discount):
                converged = True
                break
        if not converged:
            return False
    return True


@compiled
def expect_others(values: FloatArray, rows: FloatArray, own: int, work: FloatArray) -> None:
    """Write into work[:S] the value of the next state of arm `own`, when the others move by rows (N,S); values (S^N,)."""
    arms, states = rows.shape
    work[:] = values
    size = values.size
    for m in range(arms - 1, own, -1):
        size //= states
        for i in range(size):
            total = 0.0
            for y in range(states):
                total += work[i * states + y] * rows[m, y]
            work[i] = total
    for m in range(own):
        size //= states
        for i in range(size):
            total = 0.0
            for y in range(states):
                total += work[y * size + i] * rows[m, y]
            work[i] = total


@compiled
def joint_plan(
    mean: FloatArray,
    radius: FloatArray,
    allowed: BoolArray,
    reward: FloatArray,
    sets: BoolArray,
    passes: int,
    values: FloatArray,
    choice: IntArray,
) -> None:
    """Backward extended value iteration over joint states: write values (H+1,X), X = S^N, and choice (H,X) of a row of sets.

    mean, allowed (N,S,2,S), radius, reward (N,S,2), sets (K,N) who is active. In every joint state, for every set, the arms
    take the best rows of their balls in turn, given those of the others, `passes` times: exact for one arm.
    """
    arms, states = reward.shape[0], reward.shape[1]
    horizon, joint = choice.shape
    rows, work, place = np.empty((arms, states)), np.empty(joint), np.empty(arms, dtype=np.int64)
    order = np.arange(states)
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        for x in range(joint):
            rest = x
            for n in range(arms - 1, -1, -1):
                place[n] = rest % states
                rest //= states
            values[h, x] = -np.inf
            for k in range(sets.shape[0]):
                total = 0.0
                for n in range(arms):
                    a = 1 if sets[k, n] else 0
                    rows[n] = mean[n, place[n], a]
                    total += reward[n, place[n], a]
                for _ in range(passes):
                    for n in range(arms):
                        a = 1 if sets[k, n] else 0
                        expect_others(values[h + 1], rows, n, work)
                        near = (mean[n, place[n], a], radius[n, place[n], a], allowed[n, place[n], a])
                        lift(near[0], near[1], near[2], work[:states], order, rows[n])
                for y in range(states):
                    total += rows[arms - 1, y] * work[y]
                if total > values[h, x] + 1e-12:
                    values[h, x] = total
                    choice[h, x] = k
