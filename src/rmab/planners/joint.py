"""The optimum of a small problem: backward induction over the states of all arms together, and over all sets of arms."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from math import comb

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, frozen
from rmab.errors import ModelError
from rmab.model import Problem, by_phase, split_cells, table_of
from rmab.model.costs import ROUNDING
from rmab.solvers.checks import checked_table

LARGEST = 50_000  # pairs of joint state and set of arms
MOST_ARMS = 14  # of two states or more; 2^14 joint states have nearly as many pairs


def few_joint_states(problem: Problem) -> bool:
    """Return whether the problem is small enough for `joint_visits`."""
    return _pairs(problem) <= LARGEST


def joint_visits(problem: Problem, reward: FloatArray) -> FloatArray:
    """Return the visits of each pair under an optimal policy for this problem and reward.

    Parameters
    ----------
    problem : Problem
        With at most 50,000 pairs of joint state and set of arms.
    reward : (N, S, 2) or (N, K, S, 2) float array
        Reward of every pair.

    Returns
    -------
    (N, S, 2) or (N, K, S, 2) float array
        Mean visits per episode, discounted as rewards are: times the reward, they are the optimum.

    Raises
    ------
    ModelError
        If there are more pairs.

    Examples
    --------
    >>> import rmab
    >>> from rmab.planners.joint import joint_visits
    >>> game = rmab.make_task("turns", episodes=3)
    >>> joint_visits(game.problem, game.reward(0))[:, 0, 1]  # who pays is activated at all five steps
    array([5., 0.])
    """
    if not few_joint_states(problem):
        raise ModelError(f"the joint process has more than {LARGEST:,} pairs of state and set of arms")
    pays = split_cells(checked_table(problem, reward, "joint_visits"), problem.phases)
    process = _Joint(problem, pays.reshape(problem.arms.count, problem.phases, problem.arms.states, 2))
    return process.visits(process.choices())


def _pairs(problem: Problem) -> int:
    arms, most = problem.arms.count, int(problem.slots.max())
    if arms > MOST_ARMS:
        return LARGEST + 1
    return int(problem.arms.states**arms * sum(comb(arms, size) for size in range(min(most, arms) + 1)))


class _Joint:
    """The process of all arms: values and masses have one axis per arm, of its states."""

    def __init__(self, problem: Problem, reward: FloatArray) -> None:
        self.problem, self.reward, count = problem, reward, problem.arms.count
        self.kernels = problem.arms.kernels.reshape(count, problem.phases, problem.arms.states, 2, problem.arms.states)
        most = min(int(problem.slots.max()), count)
        every = [active for size in range(most, -1, -1) for active in combinations(range(count), size)]
        self.sets: BoolArray = np.array([[n in active for n in range(count)] for active in every])
        self.shape = (problem.arms.states,) * count

    def move(self, table: FloatArray, active: BoolArray, phase: int, *, back: bool) -> FloatArray:
        """Move masses on by a step, or values back, where these arms (N,) are active."""
        for n, a in enumerate(active.astype(int)):
            kernel = self.kernels[n, phase, :, a]
            table = np.moveaxis(np.tensordot(kernel if back else kernel.T, table, axes=(1, n)), 0, n)
        return table

    def choices(self) -> list[IntArray]:
        """Return the best set in every joint state, step by step."""
        problem, values, choices = self.problem, np.zeros(self.shape), []
        for h in range(problem.horizon - 1, -1, -1):
            phase, best, choice = (
                int(problem.phase_of[h]),
                np.full(self.shape, -np.inf),
                np.zeros(self.shape, dtype=np.int64),
            )
            for k, active in enumerate(self.sets):
                paid = [self.reward[n, phase, :, int(a)] for n, a in enumerate(active)]
                worth = problem.discounts[h] * reduce(np.add.outer, paid) + self.move(values, active, phase, back=True)
                better = (worth > best) & self.within_budget(active, h)
                best, choice = np.where(better, worth, best), np.where(better, k, choice)
            values = best
            choices.append(choice)
        return choices[::-1]

    def within_budget(self, active: BoolArray, h: int) -> BoolArray:
        """(S, ..., S) the joint states in which these arms (N,) are within the budget of step h."""
        problem = self.problem
        if problem.weights is None or problem.weights.ndim == 1:
            return np.full(self.shape, problem.keeps_budget(active, h, np.zeros(active.size, dtype=np.int64)))
        table = table_of(problem.weights, problem.phases, problem.arms.states)[:, problem.phase_of[h]]
        return np.asarray(reduce(np.add.outer, table * active[:, np.newaxis]) <= problem.budgets[h] * (1.0 + ROUNDING))

    def visits(self, choices: list[IntArray]) -> FloatArray:
        """Follow the masses under these choices."""
        problem, mass = self.problem, reduce(np.multiply.outer, self.problem.start_masses)
        occupancy = np.zeros((problem.arms.count, problem.horizon, problem.arms.states, 2))
        for h, choice in enumerate(choices):
            phase, after = int(problem.phase_of[h]), np.zeros(self.shape)
            for k in np.unique(choice):
                part = np.where(choice == k, mass, 0.0)
                for n, a in enumerate(self.sets[k].astype(int)):
                    occupancy[n, h, :, a] += part.sum(axis=tuple(m for m in range(part.ndim) if m != n))
                after += self.move(part, self.sets[k], phase, back=False)
            mass = after
        counted = occupancy * problem.discounts[:, np.newaxis, np.newaxis]
        return frozen(by_phase(counted, problem.phase_of, problem.phases))
