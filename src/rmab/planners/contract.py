"""The contract of a planner: a function of a problem and a reward that returns a policy."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, IntArray, check_rng
from rmab.model import Problem
from rmab.play import Policy, checked_states


class Planner(Protocol):
    """Any function of a problem and a reward that returns a policy, or raises ModelError if it does not apply.

    The reward is an array (N, S, 2), or (N, K, S, 2) with K phases. A planner with a keyword `fluid` receives the fluid plan
    that `rmab.plan` has already solved. `rmab.testing.check_planner` tests the contract.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> def hasty(problem, reward):
    ...     return rmab.IndexPolicy.of(problem, np.ptp(reward, axis=2))
    >>> problem, reward = rmab.make_task("cpap").problem, rmab.make_task("cpap").base_reward
    >>> best = rmab.plan(problem, reward, candidates=["lagrangian", hasty], episodes=20)
    >>> sorted(one.name for one in best.candidates)
    ['hasty', 'lagrangian']
    """

    def __call__(self, problem: Problem, reward: FloatArray, /) -> Policy:
        """Return a policy for this problem and reward."""
        ...


def check_states(
    problem: Problem, h: int, states: ArrayLike, rng: np.random.Generator, *, any_step: bool = False
) -> IntArray:
    """Return the states as an array, or raise PolicyError: the first line of a custom policy's `act`.

    Parameters
    ----------
    problem : Problem
        The problem of the policy.
    h : int
        The step, from 0.
    states : array_like of int, shape (N,)
        The state of every arm.
    rng : numpy.random.Generator
        Random generator of the policy.
    any_step : bool
        Whether steps beyond the horizon are accepted.

    Returns
    -------
    (N,) int array

    Raises
    ------
    PolicyError
        If the step or a state is out of range.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> problem = rmab.make_task("cpap", arms=4, budget=2, horizon=5).problem
    >>> rmab.planners.check_states(problem, 0, [0, 1, 2, 0], np.random.default_rng(0))
    array([0, 1, 2, 0])
    """
    check_rng(rng)
    arms = problem.arms
    return checked_states(h, states, arms.count, None if any_step else problem.horizon, arms.states)
