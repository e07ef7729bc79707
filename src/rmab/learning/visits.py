"""How often pairs are visited, and estimators weighted by it.

The executed policy ranks all arms together, so an arm's planned occupancy is not what is executed: visits are counted in
simulated episodes under the empirical kernels. Importance weights are those visits, times the optimism about an arm.
"""

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, log_over
from rmab.learning.pools import Observations, Pools, empirical
from rmab.model import Arms, Problem, View, cells, split_cells
from rmab.play import Feedback, Policy, visit_rates
from rmab.solvers.compiled.bounds import occupancy_bounds
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.transitions import TransitionSets

ROUNDS = 200  # simulated episodes
KEY = 7  # key of the random stream


def executed_occupancy(pools: Pools, policy: Policy, counts: IntArray, seed: tuple[int, int]) -> FloatArray:
    """(N, H, S, 2) visits of every arm when the policy plays under the empirical kernels of the counts (G,S,2,S).

    seed: of the learner, and the episode, so that the same state always gives the same result.
    """
    view = pools.view
    kernels = split_cells(empirical(counts, pools.support), view.phases)
    arms, sizes = Arms.of_groups(kernels, pools.group_of), (view.start, view.budget, view.horizon, view.phase_of)
    problem = Problem(arms, *sizes, exact=view.exact, cost=view.cost)
    return visit_rates(problem, policy, np.random.default_rng((KEY, *seed)), ROUNDS)


def of_payoffs(pools: Pools, values: FloatArray) -> FloatArray:
    """(R, ...) means over the arms of a payoff, of values (N, ...), or (N, K, ...) with phases."""
    return np.asarray(cells(_mean(pools.payoff_of, values), pools.view.phases))


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
    return float(np.sqrt(log_over(states * horizon**2 * 2, epsilon) / (view.episodes * states * 2)))


def own_occupancy(pools: Pools, share: FloatArray, counts: IntArray) -> FloatArray:
    """(C, H, S, 2) occupancy of a block that activates the share (C,H,S) of each state, under the empirical kernels."""
    kernels = empirical(counts, pools.support)[pools.group]
    occupancy = np.empty((*share.shape, 2))
    view = pools.view
    forward(kernels, view.steps, pools.begins, np.full(view.horizon, np.inf), share.copy(), occupancy)
    return occupancy


def bounds(pools: Pools, sets: TransitionSets, share: FloatArray, wanted: BoolArray, *, most: bool) -> FloatArray:
    """(C, H, S, 2) largest or smallest mass of every pair of the wanted nodes (C,H,S), over all kernels of the boxes."""
    bound = np.empty((*share.shape, 2))
    occupancy_bounds(sets.rows, pools.view.steps, share, pools.begins, wanted, 1.0 if most else -1.0, bound)
    return bound


def importance(
    pools: Pools, policy: Policy, share: FloatArray, counts: IntArray, optimistic: FloatArray, seed: tuple[int, int]
) -> FloatArray:
    """(C, H, S, 2) importance weights: visits of the executed policy, times the optimism about its block's state.

    share (C,H,S) is what each block plans by itself, optimistic (C,H,S,2) its optimistic masses. Their excess over
    the block's own occupancy under the empirical kernels is a factor, the same for both actions: a summand would make
    the action that is planned more often than executed look better than it is. No state has more than mass 1. An action that
    never occurred in a visited state has half a count, as it is not impossible. What is executed under other kernels
    of the boxes is not bounded: under a hard budget, only the weights plus gamma are optimistic.
    """
    executed = of_blocks(pools, executed_occupancy(pools, policy, counts, seed))
    half = (0.5 / (ROUNDS * pools.weights))[:, np.newaxis, np.newaxis, np.newaxis]
    executed = np.where(executed.sum(axis=3, keepdims=True) > 0, np.maximum(executed, half), 0.0)
    own, hoped, seen = (table.sum(axis=3) for table in (own_occupancy(pools, share, counts), optimistic, executed))
    most = np.divide(1.0, seen, out=np.zeros_like(seen), where=seen > 0)
    certain = hoped > own * most
    factor = np.divide(hoped, own, out=np.ones_like(own), where=~certain & (own > 0))  # own can be too small to divide by
    factor = np.where(certain, most, np.minimum(np.maximum(factor, 1.0), most))
    # A state that no simulated episode visited has the optimistic mass.
    return np.where(seen[..., np.newaxis] > 0, executed * factor[..., np.newaxis], optimistic)


def step_visits(pools: Pools, feedback: Feedback) -> FloatArray:
    """(C, H, S, 2) the share of a block's arms in each state, active and passive, step by step."""
    return of_blocks(pools, placed(pools.view, feedback, np.ones(feedback.actions.shape)))


def placed(view: View, feedback: Feedback, values: FloatArray) -> FloatArray:
    """(N, H, S, 2) values (H,N) of every arm and step, placed in its state; 0 elsewhere."""
    table = np.zeros((view.arms, view.horizon, view.states, 2))
    arm, step = np.arange(view.arms), np.arange(view.horizon)[:, np.newaxis]
    table[arm, step, feedback.states[:-1], feedback.actions.astype(np.int64)] = values
    return table


def weighted_losses(
    pools: Pools, observed: Observations, visits: FloatArray, weights: FloatArray, *, alike: bool = False
) -> FloatArray:
    """(C, H, S, 2) loss times visits over weights (both C,H,S,2); pairs known to pay 0 keep their loss unweighted.

    alike: those are weighted, too. If weights make losses too low on average, exact losses look too high beside them.
    """
    loss = pools.by_block(np.where(np.isnan(observed.values), 0.0, 1.0 - observed.values))
    weighted = np.divide(loss * visits, weights, out=np.zeros(visits.shape), where=visits > 0)
    return weighted if alike else np.where(pools.by_block(pools.zero), loss, weighted)
