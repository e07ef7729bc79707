"""The contracts of policies and planners, as suites: `check_policy` and `check_planner` pass, or name the broken clause."""

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
from rmab.testing.games import LUCK, Print, copy_of, exactly, require, require_refusal

MOST = 40  # joint states that are tried at every step; drawn where there are more
FEW = 3  # episodes that copies play
STRIDE = 7  # from one step of an episode to the next, in the list of joint states


def check_policy(policy: Policy, problem: Problem) -> None:
    """Ask for decisions at every step, in up to 40 joint states, and raise AssertionError where the contract is broken.

    kind         it has a method `act(h, states, rng)`; what its `begin(states, rng)` returns, if it has one, has it too.
    decision     a decision is an array of N bools.
    budget       no more arms are active than the budget of the step allows; as many as it says where it is exact.
    determinism  the same episode with the same generators leads to the same decisions: all randomness is the generator's.
    episodes     two episodes in turns do not change each other; without `begin`, the order of the questions has no effect.
    read-only    states and problem stay as they were.
    pickling     a copy from another process decides the same.
    storage      where it has `save`: what `load` of its class returns decides the same.
    refusal      states that no episode has are refused with PolicyError or ModelError.
    raises       nothing else is raised.

    Parameters
    ----------
    policy : Policy
        The policy to check.
    problem : Problem
        What it decides for.

    Raises
    ------
    AssertionError
        In one line that names the broken clause.

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
    require(problem == before, "read-only: deciding has changed the problem")
    for clause, copy in _copies(policy):
        same = [play(copy, problem, places, episode) for episode in range(FEW)] == first
        require(same, f"{clause}: a copy makes other decisions")
    _check_refusal(policy, problem, places[0])


def play(policy: Policy, problem: Problem, places: IntArray, episode: int) -> list[Print]:
    """Return the decisions of one episode through these joint states (J, N), as prints; each step has a generator."""
    return list(_steps(policy, problem, places, episode))


def _steps(policy: Policy, problem: Problem, places: IntArray, episode: int) -> Iterator[Print]:
    player = _player(policy, places[episode % len(places)], episode)
    for h in range(problem.horizon):
        yield _decide(player, problem, h, places[(episode + STRIDE * h) % len(places)], episode)


def _player(policy: Policy, states: IntArray, episode: int) -> Policy:
    """Return who plays an episode; whatever is raised is a broken clause."""
    try:
        return begin_episode(policy, states.copy(), np.random.default_rng((LUCK, episode)))
    except RmabError as error:
        raise AssertionError(f"kind: {error}") from error
    except Exception as error:
        raise AssertionError(f"raises: begin: {type(error).__name__}: {error}") from error


def _decide(player: Policy, problem: Problem, h: int, states: IntArray, episode: int) -> Print:
    """Return a decision as a print, after a check of what it is and of what it left unchanged."""
    given, where = states.copy(), f"step {h}, states {states.tolist()}"
    try:
        active: Any = player.act(h, given, np.random.default_rng((LUCK, episode, h)))
    except Exception as error:
        raise AssertionError(f"raises: {where}: {type(error).__name__}: {error}".replace("\n", " ")) from error
    require(np.array_equal(given, states), f"read-only: {where}: the decision has changed the states")
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
    """(J, N) all joint states, or as many as are tried: all arms in one state, and draws."""
    sizes = problem.arms.real_states
    if np.prod(sizes, dtype=float) <= MOST:
        return np.array(list(product(*map(range, sizes))))
    alike = np.minimum(np.arange(sizes.max())[:, np.newaxis], sizes - 1)[: MOST // 2]
    return np.concatenate([alike, np.random.default_rng(LUCK).integers(0, sizes, size=(MOST - len(alike), sizes.size))])


def _check_episodes(policy: Policy, problem: Problem, places: IntArray, first: list[list[Print]]) -> None:
    turns = zip(*(_steps(policy, problem, places, episode) for episode in range(2)), strict=True)
    same = [list(course) for course in zip(*turns, strict=True)] == first[:2]
    require(same, "episodes: two episodes, step by step in turns, change each other's decisions")
    if not callable(getattr(policy, "begin", None)):
        asked = [(h, places[STRIDE * h % len(places)]) for h in reversed(range(problem.horizon))]
        same = [_decide(policy, problem, h, states, 0) for h, states in asked] == first[0][::-1]
        require(same, "episodes: a policy without `begin` has no memory, but the order of the questions has an effect")


def _copies(policy: Any) -> Iterator[tuple[str, Policy]]:
    """Yield the copies of a policy, by the clause that they are for."""
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
        "a state that is no whole number": states + 0.5,
    }
    for name, given in wrong.items():
        act = partial(_player(policy, states, 0).act, 0, given, np.random.default_rng(LUCK))
        require_refusal("refusal", name, act, PolicyError, ModelError)


def check_planner(planner: Planner | str) -> None:
    """Plan small problems of all kinds and raise AssertionError, in one line that names the clause and the problem.

    kind         it is a function of a problem and a reward.
    returns      it returns a policy for the problem, or refuses it with ModelError; it does not refuse the plain one.
    raises       nothing else is raised.
    read-only    problem and reward stay as they were.
    determinism  the same problem and reward lead to the same decisions.
    And all clauses of `check_policy`, for every policy that it returns.

    The problems: a plain one of 4 arms, one arm, one step, budgets of 0, of all arms and by step, phases, a discount, start
    states that are drawn, groups of like arms with different numbers of states, an exact budget, costs, costs by state.

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
    ...     return rmab.IndexPolicy.of(problem, np.ptp(reward, axis=-1))  # not for phases
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
    yield "an exact budget", Problem(arms, start, [2, 0, 4, 1], 4, exact=True), reward - [0.0, 1.0]
    yield "costs", Problem(arms, start, [3.5, 0.0, 9.0, 1.0], 4, cost=[2.0, 1.5, 1.0, 4.0]), reward
    by_state = np.arange(1.0, 13.0).reshape(4, 3)
    yield "costs by state", Problem(arms, start, [13.5, 0.0, 30.0, 2.0], 4, cost=by_state), reward
