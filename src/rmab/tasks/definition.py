"""A task: a problem, an adversary, and the feedback of a learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, Format, Stored, as_floats, as_integer, check_memory, checked_text, expect, frozen
from rmab.errors import ModelError
from rmab.model import FORESEES, Adversary, Arms, FeedbackMode, Problem, RewardModel, View, checked_range, shape_of, words_of

Posed = tuple[Problem, RewardModel]  # result of a task function; any adversary can be combined with it


def model_rng(seed: int) -> np.random.Generator:
    """Return the random generator of a task's model; its adversary uses another stream of the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))


def pose_identical(
    kernel: FloatArray, pays: FloatArray, arms: int, budget: int, horizon: int, *, exact: bool = False
) -> Posed:
    """Return identical arms with kernel (S, 2, S) and rewards (S, 2), from state 0; adversaries scale all arms together."""
    low, high = (float(end) for end in (min(2 * pays.min(), 0.0), 2 * pays.max() + 0.0))  # + 0.0 avoids -0.0
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, *pays.shape)), low, high, units=np.zeros(arms))
    return Problem(Arms.identical(kernel, arms), 0, budget, horizon, exact=exact), stakes


@dataclass(frozen=True, eq=False)
class Task(Stored):
    """A named problem with an adversary, which a learner plays.

    Parameters
    ----------
    name : str
        Name in tables.
    problem : Problem
        Arms, start, budget and horizon.
    adversary : Adversary
        Sets the rewards of each episode, in the shape of the problem, (N, S, 2) or (N, K, S, 2). Rewards without phases
        hold in all phases.
    feedback : {'bandit', 'active', 'full'}, optional
        What is revealed after an episode: rewards of visited pairs ('bandit', the default), of visited active pairs
        ('active'), or of all pairs ('full', which no real programme observes).
    change : tuple of int and Problem, optional
        Episode from which on the dynamics are those of another problem of the same sizes (`changed`).

    Raises
    ------
    ModelError
        If the rewards do not fit the problem, or the feedback is unknown.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> problem = rmab.Problem(rmab.Arms(np.full((3, 2, 2, 2), 0.5)), start=0, budget=1, horizon=4)
    >>> mine = rmab.Task.from_rewards(problem, np.random.default_rng(0).uniform(size=(10, 3, 2, 2)), low=0, high=1)
    >>> mine.episodes, mine.reward(0).shape
    (10, (3, 2, 2))

    A task can be saved to a file and loaded again, unless its adversary is adaptive. In a handwritten JSON file,
    `"normalise": true` divides the rows of the kernels by their sums, as in `rmab.Arms`.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "small.npz"
    ...     mine.save(path)
    ...     rmab.Task.load(path).episodes
    10
    """

    name: str
    problem: Problem
    adversary: Adversary
    feedback: FeedbackMode = "bandit"
    change: tuple[int, Problem] | None = None

    OPTIONS = frozenset({"name", "low", "high", "feedback", "passive_zero"})
    FORMAT = Format(
        "rmab task", 2, Problem.FORMAT.required | {"rewards"}, Problem.FORMAT.optional | OPTIONS, upgrades={1: dict}
    )

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ModelError(f"name must be text, got {self.name!r:.40}")
        checked_text(self.name, "name")
        expect(self.problem, Problem, "problem")
        expect(self.adversary, Adversary, "adversary")
        if not isinstance(self.feedback, str) or self.feedback not in get_args(FeedbackMode):
            raise ModelError(f"feedback must be one of {', '.join(get_args(FeedbackMode))}, got {self.feedback!r:.40}")
        checked_range(self.adversary.low, self.adversary.high)
        if as_integer(self.adversary.episodes, "episodes") < 1:
            raise ModelError(f"episodes must be at least 1, got {self.adversary.episodes}")
        arms, phases, given = self.problem.arms, self.problem.phases, self.adversary.base.shape
        wanted = shape_of(phases, arms.count, arms.states, 2)
        if given not in (wanted, (arms.count, arms.states, 2)):
            words = words_of(len(given) - 2, "N", "S", "2")
            raise ModelError(f"the rewards have shape {words} = {given}, the problem needs {wanted}")

    @classmethod
    def from_rewards(
        cls,
        problem: Problem,
        rewards: ArrayLike,
        *,
        low: float | None = None,
        high: float | None = None,
        passive_zero: bool = False,
        feedback: FeedbackMode = "bandit",
        name: str = "own",
    ) -> Self:
        """Build a task from given rewards.

        Parameters
        ----------
        problem : Problem
            Arms, start, budget and horizon.
        rewards : array_like, shape (T, N, S, 2) or (T, N, K, S, 2)
            Reward of each pair in each of T episodes, by phase if it depends on the time.
        low, high : float, optional
            Declared range of the rewards; by default their actual range.
        passive_zero : bool, optional
            Declare that passive rewards are 0.
        feedback : {'bandit', 'active', 'full'}, optional
            What is revealed after an episode.
        name : str, optional
            Name in tables.

        Raises
        ------
        ModelError
            If a shape is wrong, or a reward contradicts a declaration.
        """
        from rmab.model.trace import Trace  # noqa: PLC0415  (tasks by name have none)

        return cls(name, problem, Trace.of(rewards, low=low, high=high, passive_zero=passive_zero), feedback)

    @property
    def episodes(self) -> int:
        """T, the number of episodes."""
        return self.adversary.episodes

    @property
    def base_reward(self) -> FloatArray:
        """(N, S, 2), or (N, K, S, 2) with phases: a typical reward, for planning.

        Every factor is 1; for recorded rewards it is the mean.
        """
        return frozen(self._in_phases(self.adversary.base))

    @property
    def stronger(self) -> str:
        """What makes the adversary stronger than the paper's; empty otherwise."""
        return FORESEES if self.adversary.foresees else ""

    def reward(self, t: int, visits: ArrayLike | None = None) -> FloatArray:
        """Return the rewards of episode t, (N, S, 2) or (N, K, S, 2), given the visits of the episodes before it.

        An adversary that foresees gets the visits of rehearsals of episode t instead (`rmab.Adversary`).
        """
        phases, seen = self.problem.phases, visits
        if visits is not None and phases > 1 and self.adversary.base.ndim == 3:  # its rewards hold in all phases
            counts = as_floats(visits, "visits")
            seen = counts.sum(axis=1) if counts.ndim == 4 and counts.shape[1] == phases else counts
        return frozen(self._in_phases(self.adversary.reward(t, seen)))

    def _in_phases(self, reward: FloatArray) -> FloatArray:
        """Repeat a reward without phases for all phases."""
        phases = self.problem.phases
        return reward if reward.ndim == 4 or phases == 1 else np.repeat(reward[:, np.newaxis], phases, axis=1)

    def changed(self, episode: int, problem: Problem) -> Task:
        """Return the task with the kernels of another problem from an episode on, 1..T-1; learners are not informed."""
        expect(problem, Problem, "problem")
        first, number = self.problem, as_integer(episode, "episode")
        if not 1 <= number < self.episodes:
            raise ModelError(f"the change must be in episode 1..{self.episodes - 1}, got {number}", episode=number)
        same = all(
            np.array_equal(getattr(first, one), getattr(problem, one))
            for one in ("start", "budgets", "phase_of", "exact", "cost")
        )
        same &= all(getattr(first.arms, one) == getattr(problem.arms, one) for one in ("count", "phases", "states"))
        if not same or first.discount != problem.discount:
            raise ModelError(
                "only kernels may change: start, budget, horizon, phases and sizes must be the same", field="problem"
            )
        return replace(self, change=(number, problem))

    def problem_at(self, t: int) -> Problem:
        """Return the problem of episode t."""
        return self.problem if self.change is None or t < self.change[0] else self.change[1]

    def repeated(self, times: int) -> Task:
        """Return the task with `times` copies of each arm and `times` the budget (Xiong & Li 2024, Theorem 1)."""
        if times == 1:
            return self
        if self.change is not None:
            raise ModelError(f"task {self.name}: copies of arms are not supported, as its kernels change")
        single = self.problem
        arms = single.arms.repeated(times)
        start, rest = np.repeat(single.start, times, axis=0), (single.horizon, single.phase_of)
        cost = None if single.cost is None else np.repeat(single.cost, times, axis=0)
        grown = Problem(arms, start, times * single.budget, *rest, discount=single.discount, exact=single.exact, cost=cost)
        return replace(self, problem=grown, adversary=self.adversary.repeated(times))

    def view(self) -> View:
        """Return what a learner may know. A view copies its arrays, so that it has no reference to the kernels."""
        arms = self.problem.arms
        return View(
            arms=arms.count,
            states=arms.states,
            horizon=self.problem.horizon,
            episodes=self.episodes,
            budget=self.problem.budget,
            start=self.problem.start,
            low=self.adversary.low,
            high=self.adversary.high,
            feedback=self.feedback,
            passive_zero=self.adversary.passive_zero,
            pooled_rewards=arms.groups is not None and self.adversary.treats_alike(arms.groups),
            groups=arms.groups,
            support=arms.given()["support"],
            sizes=arms.sizes,
            state_names=arms.state_names,
            phase_of=self.problem.phase_of if self.problem.phases > 1 else None,
            phases=self.problem.phases,
            discount=self.problem.discount,
            exact=self.problem.exact,
            cost=self.problem.cost,
        )

    def to_fields(self) -> dict[str, Any]:
        """Return problem and rewards by name.

        Raises
        ------
        ModelError
            If the adversary is adaptive: its rewards depend on the learner.
        """
        if self.adversary.adaptive:
            raise ModelError(f"task {self.name}: an adaptive adversary has no fixed rewards to save")
        if self.change is not None:
            raise ModelError(f"task {self.name}: its kernels change, which a file cannot store")
        check_memory(f"a file of {self.episodes} episodes", 16.0 * self.episodes * self.adversary.base.size)
        rewards = np.stack([self.reward(t) for t in range(self.episodes)])
        basic = {"name": self.name, "rewards": rewards, "feedback": self.feedback}
        declared = {"low": self.adversary.low, "high": self.adversary.high, "passive_zero": self.adversary.passive_zero}
        return {**self.problem.to_fields(), **basic, **declared}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build a task from what `to_fields` returns; raise ModelError if it is not valid."""
        options = {name: fields[name] for name in cls.OPTIONS & fields.keys()}
        return cls.from_rewards(Problem.from_fields(fields), fields["rewards"], **options)

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {self.problem!r}, {self.episodes} episodes, {self.feedback} feedback)"
