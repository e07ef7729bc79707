"""`check_policy`: sound policies pass, and each clause catches one that breaks nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import BoolArray, IntArray
from rmab.errors import ModelError
from rmab.planners import check_states
from rmab.testing import check_policy

pytestmark = pytest.mark.compiled

RNG = np.random.default_rng(0)
PROBLEM = rmab.Problem(rmab.Arms(RNG.dirichlet(np.ones(3), size=(3, 3, 2))), [0, 1, 2], [2, 1, 0, 2], 4)
TIMELESS = rmab.Problem(PROBLEM.arms, [0, 1, 2], 2, 4)
REWARD = RNG.uniform(size=(3, 3, 2))


class Lowest:
    """Activate the arms in the lowest states: a sound policy, which others break."""

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return self.choose(h, check_states(PROBLEM, h, states, rng), rng)

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return np.argsort(np.argsort(states + 0.5 * rng.random(states.size))) < PROBLEM.budgets[h]


class Careless(Lowest):
    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return self.choose(h, states, rng)


class Strange(Lowest):
    """Refuse with an error that is not ours."""

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        try:
            return super().act(h, states, rng)
        except rmab.RmabError as error:
            raise KeyError(str(error)) from error


class Greedy(Lowest):
    """Exceed the budget in one joint state and step only."""

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, states, rng) | ((states == 1).all() & (h == 1))


class Whole(Lowest):
    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> Any:
        return super().choose(h, states, rng).astype(int)


class Listed(Lowest):
    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> Any:
        return super().choose(h, states, rng).tolist()


class Short(Lowest):
    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, states, rng)[:-1]


class Lucky(Lowest):
    """Draw from a generator of its own, which nobody seeds."""

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, states * 0, np.random.default_rng())


class Forgetful(Lowest):
    """Remember the first states of an episode in the policy itself, so that two episodes share them."""

    first: IntArray = np.zeros(3, dtype=int)

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        self.first = states if h == 0 else self.first
        return super().choose(h, self.first, rng)

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Late(Lowest):
    """Remember the last step: sound as long as steps are asked in order."""

    last = -1

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        ordered, self.last = h in (0, self.last, self.last + 1), h
        return super().choose(h, states, rng) & ordered


class Writing(Lowest):
    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        active = super().choose(h, states, rng)
        states[:] = 0
        return active


class Meddling(Lowest):
    """Change the problem, after the last decision that matters."""

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        object.__setattr__(PROBLEM, "discount", 0.5)
        return super().choose(h, states, rng)


class Rigid(Lowest):
    def __init__(self) -> None:
        self.order = lambda states: states

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, self.order(states), rng)


class Changing(Lowest):
    """A copy prefers the highest states."""

    sign = 1

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, self.sign * states, rng)

    def __reduce__(self) -> Any:
        return _turned, ()


def _turned() -> Changing:
    policy = Changing()
    policy.sign = -1
    return policy


class Filed(Lowest):
    """A file of it holds another policy."""

    sign = 1

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        return super().choose(h, self.sign * states, rng)

    def save(self, path: Path) -> None:
        path.write_text("nothing")

    @classmethod
    def load(cls, path: Path) -> Filed:
        policy = cls()
        policy.sign = -1
        return policy


class Unwritable(Filed):
    def save(self, path: Path) -> None:
        raise OSError(f"{path}: no space")


class Restless(Lowest):
    """An episode with a memory that two of them share."""

    def __init__(self) -> None:
        self.memory: list[int] = []

    def begin(self, states: IntArray, rng: np.random.Generator) -> Restless:
        self.memory.clear()
        return self

    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        self.memory.append(int(states[0]))
        return super().choose(h, states + sum(self.memory), rng) & (len(self.memory) <= h + 1)


class Beginner(Lowest):
    def begin(self, states: IntArray, rng: np.random.Generator) -> Any:
        return 3


class Falling(Lowest):
    def choose(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        if h == 3:
            raise ZeroDivisionError("no such\nluck")
        return super().choose(h, states, rng)


BROKEN: list[tuple[Any, str]] = [
    (3, r"kind: int has no method act\(h, states, rng\)"),
    (Beginner(), r"kind: Beginner\.begin\(states, rng\) must return an object with a method act"),
    (Whole(), r"decision: step 0, states \[0, 0, 0\]: it must be an array of 3 bools, got int64 \(3,\)"),
    (Listed(), "decision: .* got list"),
    (Short(), r"decision: .* got bool \(2,\)"),
    (Greedy(), r"budget: step 1, states \[1, 1, 1\]: 3 arms are active, the budget is 1"),
    (Lucky(), "determinism: two episodes with the same states and generators have different decisions"),
    (Forgetful(), "episodes: two interleaved episodes change each other's decisions"),
    (Restless(), "episodes: two interleaved episodes"),
    (Late(), "episodes: a policy without `begin` must have no memory, but the order of calls has an effect"),
    (Writing(), "read-only: .* the decision changed the states"),
    (Meddling(), "read-only: a decision changed the problem"),
    (Rigid(), "pickling: the policy cannot be pickled"),
    (Changing(), "pickling: a copy makes different decisions"),
    (Filed(), "storage: a copy makes different decisions"),
    (Unwritable(), "storage: OSError: .*no space"),
    (Careless(), "refusal: a missing arm"),
    (Strange(), r"refusal: a missing arm raises KeyError, not PolicyError or ModelError"),
    (Falling(), r"raises: step 3, states .*: ZeroDivisionError: no such luck$"),
]


@pytest.mark.parametrize(("policy", "line"), BROKEN, ids=[type(policy).__name__ for policy, _ in BROKEN])
def test_each_clause_catches_what_breaks_it(policy: Any, line: str) -> None:
    try:
        with pytest.raises(AssertionError, match=f"^{line}"):
            check_policy(policy, PROBLEM)
    finally:
        object.__setattr__(PROBLEM, "discount", 1.0)


def test_a_sound_policy_passes() -> None:
    check_policy(Lowest(), PROBLEM)


@pytest.mark.parametrize("name", rmab.list_planners())
def test_the_policies_of_all_planners_pass(name: str) -> None:
    """Many arms, so that joint states are drawn."""
    task = rmab.make_task("gast-1", arms=8, horizon=4)
    check_policy(rmab.make_planner(name)(task.problem, task.base_reward), task.problem)


def test_the_states_of_a_custom_policy_are_checked() -> None:
    rng = np.random.default_rng(0)
    assert check_states(TIMELESS, 9, [0, 1, 2], rng, any_step=True).tolist() == [0, 1, 2]
    with pytest.raises(rmab.errors.PolicyError, match=r"step must be in 0\.\.3, got 9"):
        check_states(TIMELESS, 9, [0, 1, 2], rng)
    with pytest.raises(ModelError, match="rng must be"):
        check_states(TIMELESS, 0, [0, 1, 2], 3)  # type: ignore[arg-type]


def test_exact_budgets_and_costs_are_checked() -> None:
    exact = rmab.Problem(PROBLEM.arms, 0, 1, 2, exact=True)
    lazy = rmab.IndexPolicy(np.zeros((PROBLEM.arms.count, PROBLEM.arms.states)), 1, rule="at-most")
    with pytest.raises(AssertionError, match="0 arms are active, the budget is exactly 1"):
        check_policy(lazy, exact)
    priced = rmab.Problem(PROBLEM.arms, 0, 2.5, 2, cost=np.linspace(2.0, 3.0, PROBLEM.arms.count))
    with pytest.raises(AssertionError, match=r"1 arms are active, at a cost of 3, the budget is 2\.5"):
        check_policy(
            rmab.IndexPolicy(np.arange(6.0).reshape(-1, 1)[: PROBLEM.arms.count] + np.zeros(PROBLEM.arms.states), 1), priced
        )
    check_policy(rmab.planners.myopic_index(priced, np.ones((PROBLEM.arms.count, PROBLEM.arms.states, 2))), priced)
