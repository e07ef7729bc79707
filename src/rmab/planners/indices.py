"""Index policies from a plan: one number per arm, step and state."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.checks import as_integer
from rmab.model.problem import Problem, checked_reward
from rmab.play.policy import IndexPolicy, Rounding, Rule
from rmab.solvers.fluid.fluid import Fluid, fluid

__all__ = ["lagrangian_index", "myopic_index", "occupancy_index", "random_policy", "round_robin"]


def occupancy_index(
    problem: Problem,
    reward: ArrayLike,
    *,
    plan: Fluid | None = None,
    rule: Rule = "fill",
    rounding: Rounding = "top",
) -> IndexPolicy:
    """RMI (paper, eq. importance-index) of the fluid LP: the share of the mass in state s that the plan activates.

    States that the plan never visits have index 0, which makes a vertex of the LP a weak policy. A `plan` at hand saves
    the solve.
    """
    solved = _planned(problem, reward, plan)
    return IndexPolicy(solved.share[solved.blocks.block_of], problem.budget, rule=rule, rounding=rounding)


def lagrangian_index(problem: Problem, reward: ArrayLike, *, plan: Fluid | None = None, rule: Rule = "fill") -> IndexPolicy:
    """Q(s,1) - Q(s,0) under the fluid LP's prices of later steps: defined in every state, visited by the plan or not.

    With rule 'at-most', arms that gain nothing from being active stay passive.
    """
    solved = _planned(problem, reward, plan)
    return IndexPolicy(solved.advantage[solved.blocks.block_of], problem.budget, rule=rule)


def myopic_index(problem: Problem, reward: ArrayLike, *, lookahead: bool = True, rule: Rule = "fill") -> IndexPolicy:
    """What activating pays now, r1 - r0, plus what it changes in the next step's passive reward, (P1 - P0) r(., 0).

    At the last step, and without lookahead, only the first part counts.
    """
    table = checked_reward(reward, problem)
    now = table[..., 1] - table[..., 0]
    kernels = problem.arms.kernels
    later = np.einsum("nsy,ny->ns", kernels[:, :, 1] - kernels[:, :, 0], table[..., 0]) if lookahead else 0.0
    index = np.repeat((now + later)[:, np.newaxis], problem.horizon, axis=1)
    index[:, -1] = now
    return IndexPolicy(index, problem.budget, rule=rule)


def round_robin(problem: Problem, *, episode: int = 0) -> IndexPolicy:
    """Take the arms in turn, B at every step; episode t goes on where t - 1 ended."""
    count, horizon, budget = problem.arms.count, problem.horizon, problem.budget
    first = (as_integer(episode, "episode") * horizon + np.arange(horizon)) * budget % count
    turn = (np.arange(count)[:, np.newaxis] - first) % count < budget
    return IndexPolicy(np.repeat(turn[..., np.newaxis], problem.arms.states, axis=2), budget, rule="at-most")


def random_policy(problem: Problem) -> IndexPolicy:
    """Choose a uniformly random set of B arms at every step: all indices are equal, and ties are broken at random."""
    return IndexPolicy(np.ones((problem.arms.count, problem.arms.states)), problem.budget)


def _planned(problem: Problem, reward: ArrayLike, plan: Fluid | None) -> Fluid:
    if plan is None:
        return fluid(problem, reward)
    plan.check_made_for(problem, checked_reward(reward, problem))
    return plan
