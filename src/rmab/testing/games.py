"""Games for contract tests: a problem, its view and fixed rewards; and prints, which are equal only byte for byte."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common import FloatArray, frozen
from rmab.errors import PolicyError
from rmab.learning.base import EpisodePlan
from rmab.learning.state import State
from rmab.model import Arms, Problem, View, shape_of
from rmab.play import Feedback, IndexPolicy, begin_episode, simulate
from rmab.tasks.definition import Task

SEED, ARM_SEED = 7, 8  # random seeds of the learner and of the arms
Print = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Game:
    """A problem, its view, and the rewards (T, N, S, 2) of its episodes."""

    problem: Problem
    view: View
    rewards: FloatArray

    @classmethod
    def of(cls, task: Task, episodes: int) -> Game:
        """Return the game of a task's first episodes."""
        arms = task.problem.arms
        nowhere = np.zeros(shape_of(task.problem.phases, arms.count, arms.states, 2), dtype=np.int64)
        rewards = [task.reward(t, nowhere) for t in range(min(episodes, task.episodes))]
        return cls(task.problem, task.view(), np.stack(rewards))

    def episode(self, t: int, plan: EpisodePlan) -> Feedback:
        """Play episode t, always with the same random seed."""
        rng = np.random.default_rng((ARM_SEED, t))
        try:
            trajectory = simulate(self.problem, plan.policy, self.rewards[t], rng)
        except PolicyError as error:  # BudgetExceeded is one
            raise AssertionError(f"budget: episode {t}: {error}") from error
        return Feedback.reveal(self.view, t, trajectory, self.rewards[t])

    def mirror_rewards(self, t: int) -> Game:
        """Return the same game with the rewards of episode t mirrored within the range."""
        rewards = self.rewards.copy()
        low, high = self.view.low, self.view.high
        rewards[t] = np.clip(low + high - rewards[t], low, high)  # rounding may leave the range
        if self.view.passive_zero:
            rewards[t, ..., 0] = 0.0
        return replace(self, rewards=rewards)

    def reorder_arms(self, order: NDArray[np.int64]) -> Game:
        """Return the same game with the arms in another order: arm i is the old arm order[i]."""
        old = self.problem.arms
        declared = {name: getattr(old, name) for name in ("groups", "support", "sizes")}
        known = {name: value[order] for name, value in declared.items() if value is not None}
        arms = Arms(old.kernels[order], state_names=old.state_names, **known)
        first, start = self.problem, frozen(np.asarray(self.problem.start[order]))
        cost = None if first.cost is None else first.cost[order]
        problem = Problem(arms, start, first.budget, first.horizon, first.phase_of, exact=first.exact, cost=cost)
        view = replace(self.view, start=problem.start, cost=cost, groups=arms.groups, support=arms.support, sizes=arms.sizes)
        return Game(problem, view, self.rewards[:, order])


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with this line, unless the condition holds."""
    if not holds:
        raise AssertionError(otherwise)


def require_refusal(clause: str, what: str, call: Callable[[], object], *kinds: type[Exception]) -> None:
    """Raise AssertionError unless the call raises one of these errors."""
    try:
        call()
    except kinds:
        return
    except Exception as error:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(f"{clause}: {what} raises {type(error).__name__}, not {names} ({error})") from error
    raise AssertionError(f"{clause}: {what} is accepted")


def copy_of(thing: Any, what: str) -> Any:
    """Return a pickled copy; raise AssertionError if pickling fails."""
    try:
        return pickle.loads(pickle.dumps(thing))
    except Exception as error:
        raise AssertionError(f"pickling: {what} cannot be pickled ({error})".replace("\n", " ")) from error


def small_task(episodes: int) -> Task:
    """Return a task of 5 different arms."""
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(3), size=(5, 3, 2))), [0, 1, 2, 0, 1], 2, 6)
    return Task.from_rewards(problem, rng.uniform(-1, 2, size=(episodes, 5, 3, 2)), low=-1, high=2)


def exactly(value: object) -> Print:
    """Return a print of a value: two prints are equal only if the values are equal byte for byte."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, repr(value)


def of_fields(thing: View | Feedback) -> Print:
    """Return a print of all fields."""
    return tuple(exactly(getattr(thing, field.name)) for field in fields(thing))


def of_state(state: State) -> Print:
    """Return a print of a state with all its arrays."""
    arrays = tuple((name, exactly(state.arrays[name])) for name in sorted(state.arrays))
    return state.learner, state.seed, state.episode, of_fields(state.view), arrays


def of_plan(plan: EpisodePlan, view: View) -> Print:
    """Return a print of a plan: the table of an index policy, or the decisions of any other policy in some states."""
    policy, rest = plan.policy, (exactly(plan.occupancy), exactly(plan.block_of))
    if type(policy) is IndexPolicy:
        return exactly(policy.table), exactly(policy.budget), policy.rule, policy.rounding, rest
    sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
    places = np.random.default_rng(ARM_SEED).integers(0, sizes, size=(view.horizon, view.arms))
    places[0] = view.start_masses.argmax(axis=1)
    player = begin_episode(policy, places[0], np.random.default_rng(ARM_SEED))
    acts = [exactly(np.asarray(player.act(h, places[h], np.random.default_rng(h)))) for h in range(view.horizon)]
    return (*acts, rest)
