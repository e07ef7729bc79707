"""The contract of a planner, as a suite: `check_planner(planner)` passes, or names the broken clause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.errors import ModelError
from rmab.model import Arms, Problem
from rmab.planners.contract import Planner
from rmab.planners.registry import make_planner
from rmab.play import Policy
from rmab.testing.games import copy_of, require
from rmab.testing.policy import FEW, check_policy, joint_states, play


def check_planner(planner: Planner | str) -> None:
    """Plan small problems of all kinds and raise AssertionError, in one line that names the clause and the problem.

    kind         it is a function of a problem and a reward.
    returns      it returns a policy for the problem, or refuses it with ModelError; it does not refuse the plain one.
    raises       nothing else is raised.
    read-only    problem and reward stay as they were.
    determinism  the same problem and reward lead to the same decisions.
    And all clauses of `check_policy`, for every policy that it returns.

    The problems: a plain one of 4 arms, one arm, one step, budgets of 0, of all arms and by step, phases, a discount, start
    states that are drawn, groups of like arms with different numbers of states.

    Parameters
    ----------
    planner : Planner or str
        A planner, or its name, as `rmab.make_planner` takes it.

    Raises
    ------
    AssertionError
        In one line that names the broken clause.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> from rmab.testing import check_planner
    >>> def hasty(problem, reward):
    ...     return rmab.IndexPolicy(np.ptp(reward, axis=-1), problem.budget)  # not for phases
    >>> check_planner(hasty)
    Traceback (most recent call last):
    AssertionError: raises: step 2, states [1, 1, 0]: PolicyError: step must be in 0..1, got 2 (problem: phases)
    """
    call: Any = make_planner(planner) if isinstance(planner, str) else planner
    require(callable(call), f"kind: a planner is a function of a problem and a reward, got {type(planner).__name__}")
    for name, problem, reward in _problems():
        try:
            policy = _plan(call, problem, reward)
            if policy is None:
                require(name != "plain", "returns: it refuses a plain problem")
                continue
            check_policy(policy, problem)
            again, places = _plan(call, problem, reward), joint_states(problem)
            pairs = [[play(one, problem, places, k) for k in range(FEW)] for one in (policy, again) if one is not None]
            require(pairs[0] == pairs[-1] and len(pairs) > 1, "determinism: planned twice, it decides differently")
        except AssertionError as error:
            raise AssertionError(f"{error} (problem: {name})") from error


def _plan(planner: Planner, problem: Problem, reward: FloatArray) -> Policy | None:
    """Return the policy, or None where the problem is refused; whatever else happens is a broken clause."""
    before, given = copy_of(problem, "the problem"), reward.copy()
    try:
        policy: Any = planner(problem, given)
    except ModelError:
        policy = None
    except Exception as error:
        raise AssertionError(f"raises: {type(error).__name__}: {error}".replace("\n", " ")) from error
    require(problem == before and np.array_equal(given, reward), "read-only: planning has changed the problem or the reward")
    require(policy is None or isinstance(policy, Policy), f"returns: {type(policy).__name__} is not a policy")
    return policy  # type: ignore[no-any-return]


def _problems() -> Iterator[tuple[str, Problem, FloatArray]]:
    rng = np.random.default_rng(0)
    arms, reward = Arms(rng.dirichlet(np.ones(3), size=(4, 3, 2))), rng.uniform(-1, 2, size=(4, 3, 2))
    start = np.array([0, 1, 2, 0])
    yield "plain", Problem(arms, start, 2, 5), reward
    yield "one arm", Problem(Arms(arms.kernels[:1]), 0, 1, 4), reward[:1]
    yield "one step", Problem(arms, start, 2, 1), reward
    yield "budget 0", Problem(arms, start, 0, 3), reward
    yield "a budget of all arms", Problem(arms, start, 4, 3), reward
    yield "budgets by step", Problem(arms, start, [2, 0, 4, 1], 4), reward
    kernels = rng.dirichlet(np.ones(2), size=(3, 2, 2, 2))
    yield "phases", Problem(Arms(kernels), 0, 1, 4, [0, 1, 1, 0]), rng.uniform(size=(3, 2, 2, 2))
    yield "discount", Problem(arms, start, 2, 4, discount=0.8), reward
    yield "drawn start", Problem(arms, rng.dirichlet(np.ones(3), size=4), 1, 4), reward
    pair, groups = [rng.dirichlet(np.ones(size), size=(size, 2)) for size in (3, 2)], [0, 1, 0, 1]
    like = Arms.of_sizes([pair[g] for g in groups], groups=groups)
    yield "groups of different sizes", Problem(like, 0, 2, 4), reward[groups]
