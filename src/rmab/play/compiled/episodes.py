"""The dynamics: one step of all arms, and whole episodes of an index policy."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.play.compiled.selection import ROUNDING, Stream, draw_uniform, gather, select, select_within


@compiled
def successor(cumulative: FloatArray, g: int, s: int, a: int, point: float) -> int:
    """Return the first state whose running sum in cumulative[g, s, a] (S,) exceeds point in [0, 1)."""
    low, high = 0, cumulative.shape[3] - 1
    if high <= 8:  # counting has no branch that the processor could mispredict
        for y in range(high):
            low += cumulative[g, s, a, y] <= point
        return low
    while high > low:
        middle = (low + high) // 2
        if cumulative[g, s, a, middle] > point:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def step(
    states: IntArray, active: BoolArray, cumulative: FloatArray, groups: IntArray, reward: FloatArray, stream: Stream
) -> float:
    """Collect the reward (N,S,2) of one step and move states (N,) in place; each arm takes one draw, whatever happens."""
    total = 0.0
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for n in range(states.size):
        s, a = states[n], int(active[n])
        total += reward[n, s, a]
        point, s0, s1, s2, s3 = draw_uniform(s0, s1, s2, s3)
        states[n] = successor(cumulative, groups[n], s, a, point)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return total


@compiled
def begin(start: IntArray, start_sums: FloatArray, stream: Stream, states: IntArray) -> None:
    """Write the states (N,) in which an episode begins: start (N,), or drawn by cumulative start_sums (N,S) unless empty."""
    if start_sums.shape[0] == 0:
        for n in range(states.size):  # a loop: to assign an array takes seconds to compile, for what Numba says of misfits
            states[n] = start[n]
        return
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for n in range(states.size):
        point, s0, s1, s2, s3 = draw_uniform(s0, s1, s2, s3)
        s = 0
        while start_sums[n, s] <= point:
            s += 1
        states[n] = s
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@compiled
def index_episodes(
    cumulative: FloatArray,
    groups: IntArray,
    start: IntArray,
    start_sums: FloatArray,
    table: FloatArray,
    row_of: IntArray,
    reward: FloatArray,
    phase_of: IntArray,
    discounts: FloatArray,
    budget: FloatArray,
    least: FloatArray,
    cost: FloatArray,
    limit: FloatArray,
    own: FloatArray,
    floor: float,
    dependent: bool,
    streams: NDArray[np.uint64],
    active: BoolArray,
    states: IntArray,
    rewards: FloatArray,
    activations: IntArray,
    states_seen: NDArray[np.int32],
    actions_seen: BoolArray,
) -> int:
    """Play R episodes of an index policy; streams (R,2,4) hold one stream for the arms and one for the policy per episode.

    cumulative (K,G,S,2,S) and reward (K,N,S,2) have phases first, table (H,C,S) has steps first; row_of (N,) is the row of
    every arm in it. Rewards of a step count discounts (H,) of themselves. The policy activates arms that cost up to limit
    (H,) by its own costs (1 or H,N,1 or S); what they cost the problem, by cost (1 or K,N,1 or S), must lie from least to
    budget (H,). Costs are empty where every arm costs 1. Writes rewards (R,) and activations (R,), and every step into
    states_seen (R,H+1,N) and actions_seen (R,H,N) unless they are empty. Returns -1, or the step at which the arms that
    are active (N,) in these states (N,) do not keep the budget.
    """
    horizon, arms = table.shape[0], row_of.size
    record = states_seen.shape[0] > 0
    index, scratch, charge, order = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms, np.int64)
    for r in range(streams.shape[0]):
        begin(start, start_sums, streams[r, 0], states)
        total, used = 0.0, 0
        for h in range(horizon):
            for n in range(arms):
                index[n] = table[h, row_of[n], states[n]]
            phase = phase_of[h]
            if own.size > 0:
                gather(own[h if own.shape[0] > 1 else 0], states, charge)
                select_within(index, charge, limit[h], floor, dependent, streams[r, 1], active, scratch, order)
            else:
                select(index, int(limit[h]), floor, dependent, streams[r, 1], active, scratch, order)
            count, spent = 0, 0.0
            if cost.size > 0:
                gather(cost[phase if cost.shape[0] > 1 else 0], states, charge)
            for n in range(arms):
                count += int(active[n])
                if cost.size > 0 and active[n]:
                    spent += charge[n]
            spent = spent if cost.size > 0 else float(count)
            if spent > budget[h] * (1.0 + ROUNDING) or spent < least[h]:
                return h
            used += count
            if record:
                for n in range(arms):
                    states_seen[r, h, n], actions_seen[r, h, n] = states[n], active[n]
            total += discounts[h] * step(states, active, cumulative[phase], groups, reward[phase], streams[r, 0])
        if record:
            for n in range(arms):
                states_seen[r, horizon, n] = states[n]
        rewards[r] = total
        activations[r] = used
    return -1
