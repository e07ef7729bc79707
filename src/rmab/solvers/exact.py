"""The exact optimum of problems with many identical arms: finite horizon, and average reward.

Both are dynamic programming over counts of identical arms (`rmab.solvers.counts`; Puterman 1994, Sections 4.3 and 8.5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import IntArray, ReadOnly, as_tolerance
from rmab.errors import ModelError, SolverError
from rmab.model import Problem
from rmab.solvers.checks import check_timeless
from rmab.solvers.counts import MOST, Counts

QUICK = 3_000_000  # limit of splits of all counts, times steps: a second or two
ROUNDS, STUCK = 300, 0.99  # steps of relative value iteration in which the bounds must come closer by a hundredth


@dataclass(frozen=True, eq=False)
class ExactOptimum(ReadOnly):
    """The optimum over all policies that keep the budget, as `rmab.solvers.solve_exact` returns it.

    Attributes
    ----------
    value : float
        Reward of an optimal policy per episode, exact to rounding.
    type_of : (N,) int array
        Type of every arm: arms of a type are identical.
    states : int
        Number of joint counts.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> rmab.solvers.solve_exact(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3).type_of
    array([0, 0, 0])
    """

    value: float
    type_of: IntArray
    states: int

    def __repr__(self) -> str:
        return f"ExactOptimum(value {self.value:.6g}, {self.states:,} joint counts)"


@dataclass(frozen=True, eq=False)
class ExactAverage(ReadOnly):
    """The optimal average reward per step, as `rmab.solvers.solve_exact_average` returns it.

    Attributes
    ----------
    value, bound : float
        The optimal average reward of the worst start is at least `value`, that of the best start at most `bound`.
    type_of : (N,) int array
        Type of every arm: arms of a type are identical.
    states : int
        Number of joint counts.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> rmab.solvers.solve_exact_average(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3).type_of
    array([0, 0, 0])
    """

    value: float
    bound: float
    type_of: IntArray
    states: int

    def __repr__(self) -> str:
        return f"ExactAverage({self.value:.6g} to {self.bound:.6g}, {self.states:,} joint counts)"


def solve_exact(problem: Problem, reward: ArrayLike) -> ExactOptimum:
    """Return the optimum of a problem with known kernels: the largest reward of any policy within the budget.

    The work grows with the number of splits of the counts, prod over types of C(n + 2 S - 1, 2 S - 1) for n arms with S
    states: a hundred arms with two states, or thirty with three, take less than a second a step.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.

    Returns
    -------
    ExactOptimum

    Raises
    ------
    ModelError
        If an argument is wrong, or there are too many counts.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, start=0, budget=1, horizon=4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.solvers.solve_exact(problem, reward)
    ExactOptimum(value 2.376, 4 joint counts)
    """
    counts = Counts(problem, reward, "solvers.solve_exact")
    return ExactOptimum(_optimum(problem, counts), counts.type_of, prod(counts.shape))


def quick_optimum(problem: Problem, reward: ArrayLike) -> float | None:
    """Return the optimum of a problem if it takes a second or two, else None."""
    try:
        counts = Counts(problem, reward, "solvers.solve_exact", min(MOST, QUICK / problem.horizon))
    except ModelError as error:
        if error.code != "too-large":
            raise
        return None
    return _optimum(problem, counts)


def _optimum(problem: Problem, counts: Counts) -> float:
    value = np.zeros(counts.shape)
    for step in reversed(range(problem.horizon)):
        value = counts.step_back(problem.discount * value, int(problem.phase_of[step]), _limit(problem, step))
    return float((counts.start * value).sum())


def _limit(problem: Problem, step: int) -> float:
    """Return the budget of a step: a number of arms, or an amount if arms have different costs."""
    return float((problem.slots if problem.weights is None else problem.budgets)[step])


def solve_exact_average(problem: Problem, reward: ArrayLike, *, tolerance: float = 1e-8) -> ExactAverage:
    """Return the optimal average reward per step over an infinite horizon, between two certified bounds.

    Relative value iteration (Puterman 1994, Section 8.5.5): for any V, the optimal average is between the smallest and the
    largest component of T V - V. Every other step is lazy, so that periodic chains converge, too.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start, horizon and discount do not matter. One phase, and the same budget at every step.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    tolerance : float
        Largest difference of the bounds, relative to the range of the joint rewards.

    Returns
    -------
    ExactAverage

    Raises
    ------
    ModelError
        If an argument is wrong or depends on time, or there are too many counts.
    SolverError
        If the bounds do not meet, for example because the average depends on the start.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> rmab.solvers.solve_exact_average(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3)
    ExactAverage(1 to 1, 4 joint counts)
    """
    limit = as_tolerance(tolerance, "tolerance")
    counts = Counts(problem, reward, "solvers.solve_exact_average")
    check_timeless("solve_exact_average", problem.phases)
    if np.ptp(problem.budgets):
        raise ModelError("solve_exact_average: the budget must be the same at every step")
    budget = _limit(problem, 0)
    value, gap, before = np.zeros(counts.shape), np.inf, np.inf
    scale = float(np.abs(counts.step_back(value, 0, budget)).max()) or 1.0
    while True:
        for _ in range(ROUNDS):
            change = counts.step_back(value, 0, budget) - value
            gap = float(np.ptp(change))
            if gap <= limit * scale:
                return ExactAverage(float(change.min()), float(change.max()), counts.type_of, value.size)
            value = value + 0.5 * change
            value -= value.flat[0]
        if gap > STUCK * before:
            reason = "the average may depend on the start"
            raise SolverError(f"solve_exact_average: the gap between the bounds stays at {gap:.1e}; {reason}")
        before = gap
