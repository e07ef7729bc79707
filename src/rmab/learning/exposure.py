"""How often pairs are visited, for importance weights: the executed policy ranks all arms together, so an arm's own
occupancy is not what it goes through. Its visits are counted in simulated episodes under the empirical kernels.
"""

import numpy as np

from rmab.arms import Arms
from rmab.arrays import FloatArray, IntArray
from rmab.learning.confidence import empirical
from rmab.learning.pools import Pools
from rmab.policy import Policy
from rmab.problem import Problem, View
from rmab.simulation import visit_rates

__all__ = ["ROUNDS", "executed_occupancy", "exploration", "of_blocks", "of_kinds"]

ROUNDS = 200  # simulated episodes
KEY = 7  # of the stream that they draw from


def executed_occupancy(view: View, pools: Pools, policy: Policy, counts: IntArray, seed: tuple[int, int]) -> FloatArray:
    """(N, H, S, 2) visits of every arm when the policy plays under the empirical kernels of the counts (G,S,2,S).

    seed: of the learner, and the episode, so that the same state always gives the same.
    """
    kernels = empirical(counts, pools.support)[pools.group_of]
    problem = Problem(Arms(kernels, groups=view.groups), view.start, view.budget, view.horizon)
    return visit_rates(problem, policy, np.random.default_rng((KEY, *seed)), ROUNDS)


def of_kinds(pools: Pools, values: FloatArray) -> FloatArray:
    """(R, ...) means over the arms of each kind of reward, of values (N, ...)."""
    return _mean(pools.kind_of, values)


def of_blocks(pools: Pools, values: FloatArray) -> FloatArray:
    """(C, ...) means over the arms of each block, of values (N, ...)."""
    return _mean(pools.block_of, values)


def _mean(part_of: IntArray, values: FloatArray) -> FloatArray:
    number = np.bincount(part_of)
    total = np.zeros((number.size, *values.shape[1:]))
    np.add.at(total, part_of, values)
    return total / number.reshape(-1, *(1,) * (values.ndim - 1))


def exploration(view: View, epsilon: float) -> float:
    """Gamma = sqrt(L ln(L |X| |A| / epsilon) / (T |X| |A|)) of UOB-REPS, with L = H layers and |X| = S H states."""
    states, horizon = view.states, view.horizon
    return float(np.sqrt(np.log(states * horizon**2 * 2 / epsilon) / (view.episodes * states * 2)))
