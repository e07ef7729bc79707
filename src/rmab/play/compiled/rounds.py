"""One step of many rounds at once: the budget, the pay of every arm, and the next states."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.play.compiled.episodes import begin, step
from rmab.play.compiled.selection import ROUNDING, gather, select, select_within


@compiled
def begin_rounds(start: IntArray, start_sums: FloatArray, streams: NDArray[np.uint64], states: IntArray) -> None:
    """Write the states (R,N) in which R episodes begin; start and start_sums as in `begin`, streams (R,4)."""
    for r in range(states.shape[0]):
        begin(start, start_sums, streams[r], states[r])


@compiled
def step_rounds(
    states: IntArray,
    active: BoolArray,
    budget: float,
    exact: bool,
    cost: FloatArray,
    cumulative: FloatArray,
    groups: IntArray,
    reward: FloatArray,
    streams: NDArray[np.uint64],
    draws: NDArray[np.uint64],
    paid: FloatArray,
    totals: FloatArray,
    dropped: IntArray,
) -> None:
    """Play one step of R rounds, as `step` plays one.

    states (R,N) move in place. active (R,N) holds the requests; where they exceed the budget, a random draw decides which of
    them stay active, and dropped (R,) counts the others; where they are fewer than an exact budget, others are
    drawn. cost (N,1 or S) is empty where every arm costs 1. reward is (R,N,S,2), or (1,N,S,2) where all rounds are paid
    alike. Writes the pay of every arm, paid (R,N), and the totals (R,). The arms draw from streams (R,4), the budget from
    draws (R,4), and only where it is exceeded.
    """
    rounds, arms = states.shape
    index, scratch, order, charge = np.empty(arms), np.empty(arms), np.empty(arms, np.int64), np.empty(arms)
    for r in range(rounds):
        count, spent = 0, 0.0
        if cost.size > 0:
            gather(cost, states[r], charge)
        for n in range(arms):
            count += int(active[r, n])
            if cost.size > 0 and active[r, n]:
                spent += charge[n]
        dropped[r] = 0
        if (spent if cost.size > 0 else float(count)) > budget * (1.0 + ROUNDING) or (exact and count < budget):
            for n in range(arms):
                index[n] = 1.0 if active[r, n] else 0.0
            if cost.size > 0:
                select_within(index, charge, budget, 0.0, False, draws[r], active[r], scratch, order)
            else:
                select(index, int(budget), -np.inf if exact else 0.0, False, draws[r], active[r], scratch, order)
            dropped[r] = count
            for n in range(arms):
                dropped[r] -= int(active[r, n])
            dropped[r] = max(dropped[r], 0)
        pay = reward[r if reward.shape[0] > 1 else 0]
        for n in range(arms):
            paid[r, n] = pay[n, states[r, n], int(active[r, n])]
        totals[r] = step(states[r], active[r], cumulative, groups, pay, streams[r])


@compiled
def top_rounds(
    scores: FloatArray, states: IntArray, budget: float, cost: FloatArray, draws: NDArray[np.uint64], active: BoolArray
) -> None:
    """Activate the arms of the highest scores (R,N) in every round, as many as the budget allows; draws (R,4) break ties.

    cost (N,1 or S), in states (R,N), is empty where every arm costs 1.
    """
    rounds, arms = scores.shape
    index, scratch, order, charge = np.empty(arms), np.empty(arms), np.empty(arms, np.int64), np.empty(arms)
    for r in range(rounds):
        for n in range(arms):
            index[n] = scores[r, n]
        if cost.size > 0:
            gather(cost, states[r], charge)
            select_within(index, charge, budget, -np.inf, False, draws[r], active[r], scratch, order)
        else:
            select(index, int(budget), -np.inf, False, draws[r], active[r], scratch, order)
