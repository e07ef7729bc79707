"""Replay of a plan: what it would have earned by either execution, under the estimated kernels and what was paid."""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray
from rmab.learning.components.execution import DependentRounding, TopB
from rmab.learning.pools import Pools
from rmab.model import Arms, Problem, parted
from rmab.play import simulate_many

KEY = 9  # of the stream that replays draw from
REPLAYS = 2  # by either execution


def gain_of_drawing(
    pools: Pools,
    share: FloatArray,
    worthless: FloatArray | None,
    kernels: FloatArray,
    paid: FloatArray,
    luck: tuple[int, int],
) -> float:
    """Return what drawn shares earn more than the highest ones, in a mean of two replays that see the same arms.

    share (C, H, S) of a plan, worthless (H,) the share below which arms rest, kernels (C * K, S, 2, S) of every block and
    phase, paid (R, S, 2) by payoff and phase.
    """
    view, highest = pools.view, share
    if worthless is not None:
        highest = np.where(share < worthless[:, np.newaxis], -1.0, share)
    arms = Arms(parted(kernels, view.phases)[pools.block_of])
    problem = Problem(arms, view.start, view.budget, view.horizon, view.phase_of, exact=view.exact, cost=view.cost)
    policies = TopB(rule="auto").policy(pools, highest), DependentRounding().policy(pools, share)
    reward, earned = pools.of_arms(paid, pools.payoff_of), []
    for policy in policies:
        rng = np.random.default_rng((KEY, *luck))
        earned.append(simulate_many(problem, policy, reward, rng, REPLAYS, threads=1).rewards.mean())
    return float(earned[1] - earned[0])
