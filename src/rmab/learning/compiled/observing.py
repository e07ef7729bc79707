"""What an episode shows: transitions, visits and rewards, pooled; and which arms have shown where activation leads."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled

STUCK = 1e-9  # of one transition, by which states without an observed activation are never left


@compiled
def pool(
    states: IntArray,
    actions: BoolArray,
    rewards: FloatArray,
    phase_of: IntArray,
    group_of: IntArray,
    payoff_of: IntArray,
    low: float,
    high: float,
    counts: IntArray,
    visits: FloatArray,
    values: FloatArray,
) -> None:
    """Add an episode, states (H+1,N) and actions (H,N), to counts (G,S,2,S) and visits (R,S,2), pooled over arms.

    group_of and payoff_of (N,), and phase_of (H or more,), say to which rows arms and steps belong. The rewards (N,K,S,2)
    are mapped from low..high to 0..1; of arms paid alike, values (R,S,2) keeps the largest that was revealed; NaN before.
    """
    arms, phases = rewards.shape[:2]
    for h in range(actions.shape[0]):
        k = phase_of[h]
        for n in range(arms):
            s, a = states[h, n], int(actions[h, n])
            counts[group_of[n] * phases + k, s, a, states[h + 1, n]] += 1
            visits[payoff_of[n] * phases + k, s, a] += 1.0
    for n in range(arms):
        for k in range(phases):
            row = payoff_of[n] * phases + k
            for s in range(rewards.shape[2]):
                for a in range(2):
                    value = (rewards[n, k, s, a] - low) / (high - low)
                    if np.isnan(values[row, s, a]) or value > values[row, s, a]:
                        values[row, s, a] = value


@compiled
def led_to(counts: IntArray, start: FloatArray, horizon: int, settled: float, end: FloatArray) -> int:
    """Write the final states (S,) of arms that are always active, and return the steps until most of them are there.

    Pools all arms, with the counts (G,S,2,S), from the states (S,) where arms start; states without an observed activation
    are never left. settled: the share of the arms that may be elsewhere.
    """
    states = start.size
    moves, path = np.empty((states, states)), np.empty((horizon, states))
    for s in range(states):
        total = 0.0
        for y in range(states):
            moves[s, y] = STUCK if s == y else 0.0
            for g in range(counts.shape[0]):
                moves[s, y] += counts[g, s, 1, y]
            total += moves[s, y]
        for y in range(states):
            moves[s, y] /= total
        path[0, s] = start[s]
    for h in range(1, horizon):
        for y in range(states):
            path[h, y] = 0.0
        for s in range(states):
            if path[h - 1, s] > 0.0:
                for y in range(states):
                    path[h, y] += path[h - 1, s] * moves[s, y]
    for y in range(states):
        end[y] = path[horizon - 1, y]
    for h in range(horizon):
        apart = 0.0
        for y in range(states):
            apart += abs(path[h, y] - end[y])
        if 0.5 * apart <= settled:
            return h + 1
    return horizon


@compiled
def show(values: FloatArray, zero: BoolArray, end: FloatArray, enough: float, shown: BoolArray) -> None:
    """Write into shown (R,) whether a row has shown its active pay in enough of the states (S,) to which activation leads.

    values (R,S,2): the rewards, NaN if not revealed; zero (R,S,2): pairs that pay nothing, as is known.
    """
    for r in range(shown.size):
        some, known, possible = False, 0.0, 0.0
        for s in range(end.size):
            if not zero[r, s, 1]:
                possible += end[s]
                if not np.isnan(values[r, s, 1]):
                    some, known = True, known + end[s]
        shown[r] = some and known >= enough * possible
