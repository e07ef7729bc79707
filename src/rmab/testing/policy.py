"""Contract tests of policies and planners: `check_policy` and `check_planner` pass, or name the broken clause."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError, PolicyError, RmabError
from rmab.model import Arms, Problem
from rmab.planners.contract import Planner
from rmab.planners.registry import make_planner
from rmab.play import Policy, begin_episode
from rmab.testing.games import ARM_SEED, Print, copy_of, exactly, require, require_refusal

MOST = 40  # maximum number of joint states; drawn at random if there are more
FEW = 3  # episodes for comparisons with copies
STRIDE = 7  # from one step of an episode to the next, in the list of joint states


def check_policy(policy: Policy, problem: Problem) -> None:
    """Check the decisions of a policy at each step, in up to 40 joint states, against the contract of a policy.

    kind         it has a method `act(h, states, rng)`; so has the result of `begin(states, rng)`, if it has that.
    decision     a decision is an array of N bools.
    budget       active arms are within the budget of the step, and use it fully if it is exact.
    determinism  equal episodes with equal generators have equal decisions: all random numbers come from the generator.
    episodes     two interleaved episodes do not affect each other; without `begin`, the order of calls has no effect.
    read-only    states and problem are not changed.
    pickling     a pickled copy makes the same decisions.
    storage      if it has `save`, the result of `load` of its class makes the same decisions.
    refusal      invalid states raise PolicyError or ModelError.
    raises       no other exceptions are raised.

    Parameters
    ----------
    policy : Policy
        The policy to check.
    problem : Problem
        The problem of the policy.

    Raises
    ------
    AssertionError
        In one line, with the broken clause.

    Examples
    --------
    >>> import rmab
    >>> from rmab.testing import check_policy
    >>> problem = rmab.make_task("cpap", arms=4, budget=2, horizon=5).problem
    >>> check_policy(rmab.planners.random_policy(problem), problem)
    """
    require(isinstance(policy, Policy), f"kind: {type(policy).__name__} has no method act(h, states, rng)")
    before, places = copy_of(problem, "the problem"), joint_states(problem)
    for episode in range(len(places)):
        course = play(policy, problem, places, episode)
        if episode < FEW:
            same = course == play(policy, problem, places, episode)
            require(same, "determinism: two episodes with the same states and generators have different decisions")
    first = [play(policy, problem, places, episode) for episode in range(FEW)]
    _check_episodes(policy, problem, places, first)
    require(problem == before, "read-only: a decision changed the problem")
    for clause, copy in _copies(policy):
        same = [play(copy, problem, places, episode) for episode in range(FEW)] == first
        require(same, f"{clause}: a copy makes different decisions")
    _check_refusal(policy, problem, places[0])


def play(policy: Policy, problem: Problem, places: IntArray, episode: int) -> list[Print]:
    """Return prints of the decisions of one episode through these joint states (J, N), with a generator per step."""
    return list(_steps(policy, problem, places, episode))


def _steps(policy: Policy, problem: Problem, places: IntArray, episode: int) -> Iterator[Print]:
    player = _player(policy, places[episode % len(places)], episode)
    for h in range(problem.horizon):
        yield _decide(player, problem, h, places[(episode + STRIDE * h) % len(places)], episode)


def _player(policy: Policy, states: IntArray, episode: int) -> Policy:
    """Return the object that plays an episode; raise AssertionError for any exception."""
    try:
        return begin_episode(policy, states.copy(), np.random.default_rng((ARM_SEED, episode)))
    except RmabError as error:
        raise AssertionError(f"kind: {error}") from error
    except Exception as error:
        raise AssertionError(f"raises: begin: {type(error).__name__}: {error}") from error


def _decide(player: Policy, problem: Problem, h: int, states: IntArray, episode: int) -> Print:
    """Return a print of a decision, after checking its type, the budget and its arguments."""
    given, where = states.copy(), f"step {h}, states {states.tolist()}"
    try:
        active: Any = player.act(h, given, np.random.default_rng((ARM_SEED, episode, h)))
    except Exception as error:
        raise AssertionError(f"raises: {where}: {type(error).__name__}: {error}".replace("\n", " ")) from error
    require(np.array_equal(given, states), f"read-only: {where}: the decision changed the states")
    fine = isinstance(active, np.ndarray) and active.dtype == bool and active.shape == states.shape
    kind = f"{active.dtype} {active.shape}" if isinstance(active, np.ndarray) else type(active).__name__
    require(fine, f"decision: {where}: it must be an array of {states.size} bools, got {kind}")
    spent = f"{int(active.sum())} arms are active"
    spent += "" if (cost := problem.costs_at(h, states)) is None else f", at a cost of {active @ cost:g}"
    limit = problem.slots[h] if problem.weights is None else problem.budgets[h]
    words = f"the budget is {'exactly ' if problem.exact else ''}{limit:g}"
    require(problem.keeps_budget(active, h, states), f"budget: {where}: {spent}, {words}")
    return exactly(active)


def joint_states(problem: Problem) -> IntArray:
    """(J, N) all joint states, or a selection: all arms in one state, and random ones."""
    sizes = problem.arms.real_states
    if np.prod(sizes, dtype=float) <= MOST:
        return np.array(list(product(*map(range, sizes))))
    equal = np.minimum(np.arange(sizes.max())[:, np.newaxis], sizes - 1)[: MOST // 2]
    return np.concatenate([equal, np.random.default_rng(ARM_SEED).integers(0, sizes, size=(MOST - len(equal), sizes.size))])


def _check_episodes(policy: Policy, problem: Problem, places: IntArray, first: list[list[Print]]) -> None:
    turns = zip(*(_steps(policy, problem, places, episode) for episode in range(2)), strict=True)
    same = [list(course) for course in zip(*turns, strict=True)] == first[:2]
    require(same, "episodes: two interleaved episodes change each other's decisions")
    if not callable(getattr(policy, "begin", None)):
        calls = [(h, places[STRIDE * h % len(places)]) for h in reversed(range(problem.horizon))]
        same = [_decide(policy, problem, h, states, 0) for h, states in calls] == first[0][::-1]
        require(same, "episodes: a policy without `begin` must have no memory, but the order of calls has an effect")


def _copies(policy: Any) -> Iterator[tuple[str, Policy]]:
    """Yield copies of a policy, with their clauses."""
    yield "pickling", copy_of(policy, "the policy")
    if not hasattr(policy, "save"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        try:
            policy.save(path)
            loaded = type(policy).load(path)
        except Exception as error:
            raise AssertionError(f"storage: {type(error).__name__}: {error}".replace("\n", " ")) from error
    require(isinstance(loaded, Policy), f"storage: load returns {type(loaded).__name__}, not a policy")
    yield "storage", loaded


def _check_refusal(policy: Policy, problem: Problem, states: IntArray) -> None:
    beyond = np.where(np.arange(states.size) == 0, problem.arms.states, states)
    wrong = {
        "a missing arm": states[1:],
        "an arm too many": np.append(states, 0),
        "an unknown state": beyond,
        "a negative state": np.where(np.arange(states.size) == 0, -1, states),
        "a state that is not a whole number": states + 0.5,
    }
    for name, given in wrong.items():
        act = partial(_player(policy, states, 0).act, 0, given, np.random.default_rng(ARM_SEED))
        require_refusal("refusal", name, act, PolicyError, ModelError)


def check_planner(planner: Planner | str) -> None:
    """Check a planner on small problems of all kinds against the contract of a planner.

    kind         it is a function of a problem and a reward.
    returns      it returns a policy for the problem, or raises ModelError, but not for the plain problem.
    raises       no other exceptions are raised.
    read-only    problem and reward are not changed.
    determinism  equal problems and rewards lead to equal decisions.
    And all clauses of `check_policy`, for each returned policy.

    The problems: a plain one of 4 arms, one arm, one step, budgets of 0, of all arms and by step, phases, a discount, random
    start states, groups with different numbers of states, an exact budget, costs, costs by state.

    Parameters
    ----------
    planner : Planner or str
        A planner, or a name as for `rmab.make_planner`.

    Raises
    ------
    AssertionError
        In one line, with the broken clause.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> from rmab.testing import check_planner
    >>> def hasty(problem, reward):
    ...     return rmab.IndexPolicy.of(problem, np.ptp(reward, axis=-1))  # not for phases
    >>> check_planner(hasty)
    Traceback (most recent call last):
    AssertionError: raises: step 2, states [1, 1, 0]: PolicyError: step must be in 0..1, got 2 (problem: phases)
    """
    call: Any = make_planner(planner) if isinstance(planner, str) else planner
    require(callable(call), f"kind: a planner must be a function of a problem and a reward, got {type(planner).__name__}")
    for name, problem, reward in _problems():
        try:
            policy = _plan(call, problem, reward)
            if policy is None:
                require(name != "plain", "returns: it raises ModelError for a plain problem")
                continue
            check_policy(policy, problem)
            again, places = _plan(call, problem, reward), joint_states(problem)
            pairs = [[play(one, problem, places, k) for k in range(FEW)] for one in (policy, again) if one is not None]
            require(
                pairs[0] == pairs[-1] and len(pairs) > 1,
                "determinism: two plans of the same problem make different decisions",
            )
        except AssertionError as error:
            raise AssertionError(f"{error} (problem: {name})") from error


def _plan(planner: Planner, problem: Problem, reward: FloatArray) -> Policy | None:
    """Return the policy, or None for ModelError; raise AssertionError for any other exception."""
    before, given = copy_of(problem, "the problem"), reward.copy()
    try:
        policy: Any = planner(problem, given)
    except ModelError:
        policy = None
    except Exception as error:
        raise AssertionError(f"raises: {type(error).__name__}: {error}".replace("\n", " ")) from error
    require(problem == before and np.array_equal(given, reward), "read-only: planning changed the problem or the reward")
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
    grouped = Arms.of_sizes([pair[g] for g in groups], groups=groups)
    yield "groups of different sizes", Problem(grouped, 0, 2, 4), reward[groups]
    yield "an exact budget", Problem(arms, start, [2, 0, 4, 1], 4, exact=True), reward - [0.0, 1.0]
    yield "costs", Problem(arms, start, [3.5, 0.0, 9.0, 1.0], 4, cost=[2.0, 1.5, 1.0, 4.0]), reward
    by_state = np.arange(1.0, 13.0).reshape(4, 3)
    yield "costs by state", Problem(arms, start, [13.5, 0.0, 30.0, 2.0], 4, cost=by_state), reward
