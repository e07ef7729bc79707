"""The fluid bound of an infinite horizon: average reward per step, when kernels are known and the budget holds on average.

It is the stationary LP of `stationary.py` over boxes of one kernel each; identical arms form one block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, ReadOnly, as_tolerance, check_memory, frozen
from rmab.errors import ModelError
from rmab.model import Problem
from rmab.model.costs import ROUNDING
from rmab.solvers.checks import check_one_budget, check_timeless, checked_table
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.state_costs import like_arms
from rmab.solvers.stationary.stationary import stationary_fluid


@dataclass(frozen=True, eq=False)
class AverageFluid(ReadOnly):
    """Solution of the stationary LP, as `rmab.solvers.solve_average_fluid` returns it: all numbers are per step.

    Attributes
    ----------
    value : float
        Reward of the masses, summed over arms.
    bound : float
        The dual value: from no start does any policy within the budget earn more in the long run.
    price : float
        Price of an activation per step, or of a unit of cost: the most that one more can add to the bound. Negative
        if an exact budget does harm.
    gap : float
        bound - value, relative to the larger of the bound and all arms times the widest range of rewards, all counted from
        each arm's least reward: certified.
    mass : (C, S, 2) float array
        For one arm of each block, the share of the steps in a state, passive and active.
    share : (C, S) float array
        For each block of identical arms, the probability of activation in a state. Without mass: 1 if activating gains
        more than its price, 0 if less, and if equal, the weight of the plan with more activations.
    advantage : (C, S) float array
        Gain of activating over staying passive, before its price: Q(s,1) - Q(s,0) by the relative values of
        the best policy at the price. Actions after which the best states cannot be reached count as very expensive.
    problem : Problem
        The problem; its start and horizon are ignored.
    blocks : Blocks
        The arms that were planned together; `blocks.block_of` (N,) is the block of each.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> plan = rmab.solvers.solve_average_fluid(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3)
    >>> round(plan.price, 3), plan.advantage[0].round(3)  # every activation is worth its price
    (0.5, array([0.5, 0.5]))
    """

    value: float
    bound: float
    price: float
    gap: float
    mass: FloatArray
    share: FloatArray
    advantage: FloatArray
    problem: Problem
    blocks: Blocks

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g}, bound {self.bound:.6g}, gap {self.gap:.0e}, price {self.price:.6g}"
        return f"AverageFluid({numbers})"

    @property
    def occupancy(self) -> FloatArray:
        """(N, S, 2) the share of the steps that arm n spends in state s under action a; built on demand."""
        arms = self.problem.arms
        check_memory(f"the occupancy of {arms.count} arms", 16.0 * arms.count * arms.states)
        return frozen(self.mass[self.blocks.block_of])

    def check_made_for(self, problem: Problem, reward: FloatArray) -> None:
        """Raise ModelError unless this is the plan of these arms, this budget and this reward (N, S, 2)."""
        same = all(np.array_equal(getattr(self.problem, one), getattr(problem, one)) for one in ("budget", "exact", "cost"))
        if not (same and self.problem.arms == problem.arms and self.blocks.same_rewards(Blocks.of(problem, reward))):
            raise ModelError("average: it belongs to another problem or reward")


def solve_average_fluid(problem: Problem, reward: ArrayLike, *, tolerance: float = 1e-9) -> AverageFluid:
    """Solve the fluid LP of an infinite horizon: the best average reward per step when the budget holds on average.

    The bound holds for arms of any kind: no policy within the budget has a larger average in the long run, from any start,
    by weak duality. The plan puts each arm in its best states, which a start
    may not lead to if an arm has several recurrent classes; then the bound is not tight, and an arm that follows the
    shares may stay in another class. If an arm has one class under its shares, they lead to the masses from every start;
    if it is periodic, in the mean over the steps.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are ignored. Arms that share group and reward are planned together.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    tolerance : float
        Largest certified gap, relative.

    Returns
    -------
    AverageFluid
        Value, bound, price, masses, shares and advantages.

    Raises
    ------
    ModelError
        If an argument is wrong, or dynamics or budget depend on time.
    SolverError
        If the gap cannot be certified.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> rmab.solvers.solve_average_fluid(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3)
    AverageFluid(value 1, bound 1, gap ..., price 0.5)
    """
    table = checked_table(problem, reward, "solvers.solve_average_fluid")
    check_timeless("solve_average_fluid", problem.phases, "rmab.solvers.solve_fluid supports them")
    check_one_budget("solve_average_fluid", problem.budget)
    if problem.discount < 1.0:
        raise ModelError(f"solve_average_fluid does not support discounting, got discount {problem.discount:g}")
    wanted = as_tolerance(tolerance, "tolerance")
    blocks, states = Blocks.of(problem, table), problem.arms.states
    check_memory(f"the stationary LP of {blocks.count} blocks and {states} states", 96.0 * blocks.count * states**2)
    first = np.unique(blocks.block_of, return_index=True)[1]
    real = np.arange(states) < problem.arms.real_states[first, np.newaxis]
    cell = np.arange(blocks.count) * blocks.phases + blocks.phase_of[0]
    if blocks.weights is not None and blocks.weights.ndim > 1:
        return _by_state(problem, table, blocks.weights, blocks, real, wanted)
    kernels, weights = blocks.kernels[cell], blocks.start.sum(axis=1)
    given = (float(blocks.budget[0]), weights.round() if problem.weights is None else weights, real)
    solved = stationary_fluid(kernels, kernels, blocks.reward[cell], *given, exact=problem.exact, tolerance=wanted)
    share, mass = solved.share, solved.mass
    if problem.exact and blocks.phases > 1:  # all arms must be active, which the plan represents as passive
        share, mass = np.ones_like(share), frozen(np.flip(mass, axis=2).copy())
    elif (barred := blocks.barred) is not None:  # both actions are the passive one
        share, mass = np.where(barred[:, :1], 0.0, share), mass.copy()
        mass[barred[:, 0]] = mass[barred[:, 0]].sum(axis=2, keepdims=True) * [1.0, 0.0]
        frozen(mass)
    share, advantage = (frozen(np.where(real, one, 0.0)) for one in (share, solved.advantage))
    numbers = (solved.value, solved.bound, solved.price, solved.gap)
    return AverageFluid(*numbers, mass, share, advantage, problem, blocks)


def _by_state(
    problem: Problem, table: FloatArray, weights: FloatArray, blocks: Blocks, real: BoolArray, tolerance: float
) -> AverageFluid:
    """Solve with costs that depend on the state: a budget row with costs relative to their mean."""
    first, block_of = like_arms(problem, weights, table)
    costs = weights[first]
    unit, limit = float(costs[real].mean()), float(problem.budgets[0])
    out = (costs > limit * (1.0 + ROUNDING))[..., np.newaxis] & (limit > 0)  # both actions are the passive one
    kernels, pays = problem.arms.group_kernels[problem.arms.group_of[first]], table[first]
    kernels = np.ascontiguousarray(np.where(out[..., np.newaxis], kernels[:, :, :1], kernels))
    pays = np.ascontiguousarray(np.where(out, pays[..., :1], pays))
    given = (limit / unit, np.bincount(block_of).astype(np.float64), real)
    solved = stationary_fluid(kernels, kernels, pays, *given, tolerance=tolerance, charge=np.ascontiguousarray(costs / unit))
    share = np.where(out[..., 0] | ~real, 0.0, solved.share)
    mass = np.where(out, solved.mass.sum(axis=2, keepdims=True) * [1.0, 0.0], solved.mass)
    advantage = np.where(real, solved.advantage / unit, 0.0)
    numbers = (solved.value, solved.bound, solved.price / unit, solved.gap)
    return AverageFluid(*numbers, frozen(mass), frozen(share), frozen(advantage), problem, blocks)
