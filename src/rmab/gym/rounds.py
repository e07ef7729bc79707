"""Rounds of a task, played step by step by somebody outside: what the environments stand on. It needs no Gymnasium.

The luck of the arms and the rewards of an adversary are those of `rmab.run` with the same seed, to the last bit: the same
decisions earn the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.checks import as_floats, as_integer, expect
from rmab.common.memory import check_memory
from rmab.errors import BudgetExceeded, ModelError, PolicyError
from rmab.gym.compiled.rounds import begin_rounds, step_rounds, top_rounds
from rmab.model.problem import checked_reward
from rmab.model.time import shape_of
from rmab.play.feedback import Feedback
from rmab.play.outcomes import Trajectory
from rmab.play.policy import Policy
from rmab.play.simulation import phases_first, start_of
from rmab.runs.luck import REHEARSAL, SIMULATOR, luck_of
from rmab.runs.visits import count_visits, rehearsed
from rmab.solvers.fluid.fluid import solve_fluid
from rmab.tasks.definition import Task

OverBudget = Literal["draw", "error"]
OPTIONS = ("episode_number", "policy")  # of a reset


class Rounds:
    """R rounds of a task, side by side and in step: each has its own seed, states, and answers of the adversary.

    Parameters
    ----------
    task : Task
        What is played.
    rounds : int
        R, at least 1.
    over_budget : {'draw', 'error'}
        What happens to a request for more arms than the budget: a lot decides who of them is active, or BudgetExceeded.

    Attributes
    ----------
    episode, game, step : int
        The episode t of the adversary, how often the task was played to its end before, and the step h; the same for all.
    states : ndarray of int, shape (R, N)
        Where the arms are.
    view : View
        What a learner may know of the task.
    """

    def __init__(self, task: Task, rounds: int = 1, over_budget: OverBudget = "draw") -> None:
        expect(task, Task, "task")
        if over_budget not in get_args(OverBudget):
            raise ModelError(f"over_budget must be 'draw' or 'error', got {over_budget!r:.40}")
        if as_integer(rounds, "rounds") < 1:
            raise ModelError(f"rounds must be at least 1, got {rounds}")
        problem, arms = task.problem, task.problem.arms
        self.task, self.rounds, self.over_budget = task, int(rounds), over_budget
        self.view = task.view()
        self.seeds: tuple[int, ...] = ()
        self.episode = self.game = self.step = 0
        each = 5.0 * arms.count * (problem.horizon + 1) + 8.0 * arms.count * arms.states * 2 * problem.phases
        check_memory(f"{rounds} rounds of {arms.count} arms and {problem.horizon} steps", rounds * each)
        self.states = np.zeros((self.rounds, arms.count), dtype=np.int64)
        self._where = np.zeros((problem.horizon + 1, self.rounds, arms.count), dtype=np.int32)
        self._active = np.zeros((problem.horizon, self.rounds, arms.count), dtype=bool)
        self._visits = np.zeros((self.rounds, *shape_of(problem.phases, arms.count, arms.states, 2)), dtype=np.int64)
        self._streams = self._lots = np.zeros((self.rounds, 4), dtype=np.uint64)
        self._rewards: list[FloatArray] = []  # one per round, or one for all
        self._paying = np.zeros((1, 1, 1, 1, 1))  # the same with phases first: (K, R or 1, N, S, 2)
        self._bounds: dict[int, float] = {}

    @property
    def budget(self) -> int:
        """The budget of the step to come; 0 after the last one."""
        return 0 if self.over else int(self.task.problem.budgets[self.step])

    @property
    def over(self) -> bool:
        """Whether the episode has come to its end."""
        return self.step == self.task.problem.horizon

    def reset(self, seeds: Sequence[int] | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode: the first of new games with these seeds, or else the next one of the games at hand.

        An episode of which no step was played is not over: it begins again. After the last episode of the task a new game
        begins, with luck of its own.

        Parameters
        ----------
        seeds : sequence of int, optional
            One for each round: the seed that `rmab.run` would take.
        options : dict, optional
            `episode_number`: the number t of the episode, where it is not the next one. `policy`: what will be played, for
            an adversary that foresees it.
        """
        asked = _checked_options(options)
        for seed in () if seeds is None else seeds:
            if seed < 0:
                raise ModelError(f"seed must be 0 or more, got {seed}")
        time = self._time(seeds, asked.get("episode_number"))
        if self.task.adversary.foresees and not isinstance(asked.get("policy"), Policy):
            how = "reset(options={'policy': policy}), with a method act(h, states, rng), shows it"
            raise ModelError(f"task {self.task.name}: its adversary sees the plan of the episode to come: {how}")
        if seeds is not None:
            self.seeds = tuple(seeds)
            self._visits[:] = 0
        else:
            self._count()
            if time[1] != self.game:
                self._visits[:] = 0
        (self.episode, self.game), self.step = time, 0
        self._pay(asked.get("policy"))
        draws = (luck_of(seed, SIMULATOR, self.episode, self.game).bit_generator for seed in self.seeds)
        words = np.stack([one.random_raw(12) for one in draws])  # of the arms, the policy, lots
        self._streams, self._lots = words[:, :4].copy(), words[:, 8:].copy()
        begin_rounds(*start_of(self.task.problem), self._streams, self.states)
        self._where[0] = self.states

    def advance(self, requests: ArrayLike) -> tuple[FloatArray, dict[str, NDArray[Any]]]:
        """Play a step: activate who is asked for, (R, N), within the budget.

        Returns
        -------
        tuple of ndarray (R,) and dict
            What was earned, discounted as the problem says; and `active` (R, N), `dropped` (R,) and `paid` (R, N): who was
            active, how many requests a lot turned down, and what each arm paid, NaN where the task's feedback hides it.
        """
        problem = self.task.problem
        active, h = self._requested(requests), self.step
        paid, totals, dropped = np.empty(active.shape), np.empty(self.rounds), np.empty(self.rounds, dtype=np.int64)
        phase = problem.phase_of[h]
        model = (problem.arms.cumulative[phase], problem.arms.group_of, self._paying[phase])
        step_rounds(self.states, active, int(problem.budgets[h]), *model, self._streams, self._lots, paid, totals, dropped)
        self.step = h + 1
        self._where[h + 1], self._active[h] = self.states, active
        if self.task.feedback == "active":
            paid[~active] = np.nan
        return problem.discounts[h] * totals, {"active": active, "dropped": dropped, "paid": paid}

    def top(self, scores: ArrayLike) -> BoolArray:
        """(R, N) the arms of the highest scores (R, N), as many as the budget; a lot breaks ties."""
        try:
            given = as_floats(scores, "scores")
        except ModelError as error:
            raise PolicyError(f"step {self.step}: {error}") from error
        self._check_shape(given, "scores")
        for r, n in np.argwhere(np.isnan(given))[:1]:
            raise PolicyError(f"step {self.step}: {self._who(r, n)} has no score, but nan")
        active = np.empty(given.shape, dtype=bool)
        top_rounds(np.clip(given, -LARGE, LARGE), self.budget, self._lots, active)
        return active

    def feedback(self, r: int = 0) -> Feedback:
        """Return what a learner may be told of the episode of a round, once it is over."""
        if not self.over:
            raise ModelError(
                f"an episode is told when it is over: {self.step} of {self.task.problem.horizon} steps are played"
            )
        return Feedback.reveal(self.view, self.episode, self._trajectory(r), self._reward(r))

    def bound(self, r: int = 0) -> float:
        """Return the fluid bound of this episode of a round; no policy beats it on average. Cached for scripted rewards."""
        if not self._rewards:
            raise ModelError("there is no episode yet: reset begins one")
        if self.task.adversary.adaptive:
            return solve_fluid(self.task.problem, self._reward(r)).bound
        if self.episode not in self._bounds:
            self._bounds[self.episode] = solve_fluid(self.task.problem, self._reward(r)).bound
        return self._bounds[self.episode]

    def _time(self, seeds: Sequence[int] | None, asked: int | None) -> tuple[int, int]:
        """Return the episode and the game that begin."""
        if seeds is None and not self.seeds:
            raise ModelError("the first reset needs seeds")
        game = 0 if seeds is not None else self.game
        t = 0 if seeds is not None else self.episode + (self.step > 0)
        if asked is not None:
            if not 0 <= asked < self.task.episodes:
                raise ModelError(f"options: episode_number must be in 0..{self.task.episodes - 1}, got {asked}")
            return asked, game
        return (t, game) if t < self.task.episodes else (0, game + 1)

    def _pay(self, policy: Policy | None) -> None:
        """Let the adversary choose what the episode pays."""
        task, adversary = self.task, self.task.adversary
        if not adversary.adaptive:
            self._rewards = [task.reward(self.episode)]
        else:
            seen = self._visits if policy is None or not adversary.foresees else self._rehearsed(policy)
            self._rewards = [task.reward(self.episode, one) for one in seen]
        tables = [phases_first(checked_reward(one, task.problem), task.problem) for one in self._rewards]
        self._paying = np.ascontiguousarray(np.stack(tables, axis=1))

    def _rehearsed(self, policy: Policy) -> list[IntArray]:
        luck = [luck_of(seed, REHEARSAL, self.episode, self.game) for seed in self.seeds]
        return [rehearsed(self.task.problem, policy, rng) for rng in luck]

    def _trajectory(self, r: int) -> Trajectory:
        """Return what happened in a round so far; what it earned is nobody's question here."""
        return Trajectory(self._where[: self.step + 1, r], self._active[: self.step, r], float("nan"))

    def _reward(self, r: int) -> FloatArray:
        return self._rewards[r if len(self._rewards) > 1 else 0]

    def _count(self) -> None:
        """Add the visits of the episode that ends, also one that was left early."""
        if self.task.adversary.adaptive:
            for r in range(self.rounds):
                count_visits(self.task.problem, self._trajectory(r), self._visits[r])

    def _requested(self, requests: ArrayLike) -> BoolArray:
        """Return the request as a new array (R, N) of bools, or raise PolicyError."""
        try:
            given = np.asarray(requests)
        except ValueError as error:
            raise PolicyError(f"step {self.step}: the action is no array ({error})") from error
        self._check_shape(given, "the action")
        if given.dtype != np.bool_:
            for r, n in np.argwhere((given != 0) & (given != 1))[:1]:
                raise PolicyError(f"step {self.step}: the action of {self._who(r, n)} must be 0 or 1, got {given[r, n]}")
        active = np.array(given, dtype=bool, order="C")
        if self.over_budget == "error":
            for count in active.sum(axis=1):
                if count > self.budget:
                    raise BudgetExceeded(self.step, int(count), self.budget)
        return active

    def _check_shape(self, given: NDArray[Any], what: str) -> None:
        if given.shape != self.states.shape:
            wanted, got = (self.states.shape, given.shape) if self.rounds > 1 else (self.states.shape[1:], given.shape[1:])
            raise PolicyError(f"step {self.step}: {what} must have shape {wanted}, got {got}")

    def _who(self, r: int, n: int) -> str:
        return f"arm {n} of round {r}" if self.rounds > 1 else f"arm {n}"


LARGE = float(np.finfo(np.float64).max)  # infinite scores rank above and below all others


def _checked_options(options: dict[str, Any] | None) -> dict[str, Any]:
    asked = dict(options or {})
    for key in asked:
        if key not in OPTIONS:
            raise ModelError(f"options: unknown {key!r}; there are {', '.join(OPTIONS)}")
    if "episode_number" in asked:
        asked["episode_number"] = as_integer(asked["episode_number"], "options: episode_number")
    return asked
