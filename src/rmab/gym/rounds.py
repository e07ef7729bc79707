"""Rounds of a task, step by step: the base of all environments. It does not need Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, as_floats, as_integer, check_memory, expect
from rmab.errors import ModelError, PolicyError, raise_as
from rmab.play import Feedback, Policy, Rounds
from rmab.play.compiled.rounds import top_rounds
from rmab.runs.running import Game
from rmab.solvers.fluid.fluid import solve_fluid
from rmab.tasks.definition import Task

OverBudget = Literal["draw", "error"]
OPTIONS = ("episode_number", "policy")  # options of a reset
LARGE = float(np.finfo(np.float64).max)  # infinite scores rank above and below all others


class TaskRounds(Rounds):
    """R parallel rounds of a task, each with its own seed, states and adversary.

    Parameters
    ----------
    task : Task
        The task.
    rounds : int
        R, at least 1.
    over_budget : {'draw', 'error'}
        What happens to a request for more arms than the budget, or for fewer than an exact one: a random draw decides which
        arms are active, or an error is raised.
    bound : bool, optional
        Whether to report the bound at the end of an episode; by default if one solution per episode number is enough.

    Attributes
    ----------
    episode, game_number : int
        The episode t of the adversary, and the number of finished games before.
    view : View
        What a learner may know of the task.
    """

    def __init__(self, task: Task, rounds: int = 1, over_budget: OverBudget = "draw", bound: bool | None = None) -> None:
        expect(task, Task, "task")
        if not isinstance(over_budget, str) or over_budget not in get_args(OverBudget):
            raise ModelError(f"over_budget must be 'draw' or 'error', got {over_budget!r:.40}", field="over_budget")
        if not isinstance(bound, bool | np.bool_ | None):
            raise ModelError(f"bound must be a bool, got {bound!r:.40}", field="bound")
        if as_integer(rounds, "rounds") < 1:
            raise ModelError(f"rounds must be at least 1, got {rounds}", field="rounds")
        problem, arms = task.problem, task.problem.arms
        if task.change is not None:
            raise ModelError(f"task {task.name}: cannot be an environment, as its kernels change between episodes")
        each = 5.0 * arms.count * (problem.horizon + 1) + 8.0 * arms.count * arms.states * 2 * problem.phases
        check_memory(f"{rounds} rounds of {arms.count} arms and {problem.horizon} steps", rounds * each)
        super().__init__(problem, int(rounds))
        self.task, self.view, self.over_budget = task, task.view(), over_budget
        self.has_bound = not task.adversary.adaptive if bound is None else bool(bound)
        self.game: Game | None = None
        self.episode = self.game_number = 0
        self._bounds: dict[int, float] = {}

    def reset(self, seeds: Sequence[int] | None = None, options: dict[str, Any] | None = None) -> dict[str, float]:
        """Start an episode: the first of a new game with these seeds, or else the next one; return its information.

        If no step was taken, the same episode starts again. After the last episode of the task a new game starts, with
        other random streams.

        Parameters
        ----------
        seeds : sequence of int, optional
            One per round, as for `rmab.run`.
        options : dict, optional
            `episode_number`: the number t of the episode, if it is not the next one. `policy`: the policy of the episode,
            for an adversary that foresees it.
        """
        asked = _checked_options(options)
        if seeds is not None and min(seeds) < 0:
            raise ModelError(f"seed must be 0 or more, got {min(seeds)}", field="seed")
        episode, number = self._next(seeds is not None, asked.get("episode_number"))
        policy = asked.get("policy")
        if self.task.adversary.foresees and not isinstance(policy, Policy):
            how = "reset(options={'policy': policy}), with a method act(h, states, rng)"
            raise ModelError(f"task {self.task.name}: its adversary foresees the plan of the episode; call {how}")
        if seeds is not None or number != self.game_number:  # a new game has no visits
            self.game = Game(self.task, self._game.seeds if seeds is None else seeds, self.view)
        elif self.task.adversary.adaptive:
            for r in range(len(self.states)):
                self._game.count(self.trajectory(r), r)
        self.episode, self.game_number = episode, number
        self.streams = self._game.begin(episode, policy, number)
        self.begin(self._game.rewards, self.streams)
        return {"episode_number": episode, "game": number, "budget": self.budget}

    def play(self, requests: ArrayLike) -> tuple[FloatArray, dict[str, Any]]:
        """Advance by one step: activate the requested arms, (R, N), within the budget.

        Returns
        -------
        tuple of ndarray (R,) and dict
            Rewards, discounted if the problem has a discount; and `budget` of the next step, `active` (R, N), `dropped` (R,)
            and `paid` (R, N): active arms, numbers of dropped requests, and rewards of arms, NaN if the task's feedback
            hides them. At the end of an episode also `bound`, if requested.
        """
        active = self.checked_actions(requests, strict=self.over_budget == "error")
        earned, paid, dropped = self.advance(active)
        if self.task.feedback == "active":
            paid[~active] = np.nan
        info = {"budget": self.budget, "active": active, "dropped": dropped, "paid": paid}
        if self.over and self.has_bound:
            info["bound"] = [self.bound(r) for r in range(len(self._game.rewards))]
        return earned, info

    def top(self, scores: ArrayLike) -> BoolArray:
        """(R, N) arms with the highest scores (R, N), as many as the budget; ties are broken at random."""
        with raise_as(PolicyError, f"step {self.step}: ", step=self.step):
            given = as_floats(scores, "scores")
        self.check_shape(given, "scores")
        for r, n in np.argwhere(np.isnan(given))[:1]:
            raise PolicyError(
                f"step {self.step}: {self.name_of(r, n)} has the score nan; every arm needs a number", step=self.step, arm=n
            )
        active = np.empty(given.shape, dtype=bool)
        if self.over:
            active[:] = False
            return active
        limit = float(self._limits[0][self.step])
        top_rounds(np.clip(given, -LARGE, LARGE), self.states, limit, self.costs, self._draws, active)
        return active

    def feedback(self, r: int = 0) -> Feedback:
        """Return the feedback of the finished episode of a round."""
        if not self.over:
            steps = f"{self.step} of {self.problem.horizon} steps are done"
            raise ModelError(f"there is no feedback before the end of the episode: {steps}", step=self.step)
        return self._game.feedback(self.trajectory(r), r)

    def bound(self, r: int = 0) -> float:
        """Return the fluid bound of this episode of a round, which no policy exceeds on average. Cached unless adaptive."""
        if self.task.adversary.adaptive or self.episode not in self._bounds:
            self._bounds[self.episode] = solve_fluid(self.problem, self._game.reward(r)).bound
        return self._bounds[self.episode]

    @property
    def _game(self) -> Game:
        if self.game is None:
            raise ModelError("no episode has started: call reset with seeds first")
        return self.game

    def _next(self, fresh: bool, asked: int | None) -> tuple[int, int]:
        """Return the next episode and game."""
        game = 0 if fresh else self.game_number
        t = 0 if fresh or self.game is None else self.episode + (self.step > 0)
        if asked is not None:
            if not 0 <= asked < self.task.episodes:
                wrong = f"options: episode_number must be in 0..{self.task.episodes - 1}, got {asked}"
                raise ModelError(wrong, option="episode_number")
            return asked, game
        return (t, game) if t < self.task.episodes else (0, game + 1)


def _checked_options(options: dict[str, Any] | None) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        wrong = f"options must be a dict, for example {{'episode_number': 0}}, got {options!r:.40}"
        raise ModelError(wrong, code="wrong-type", field="options")
    asked = dict(options or {})
    for key in asked:
        if key not in OPTIONS:
            wrong = f"options: unknown {key!r}; available: {', '.join(OPTIONS)}"
            raise ModelError(wrong, code="unknown-option", option=str(key))
    if "episode_number" in asked:
        asked["episode_number"] = as_integer(asked["episode_number"], "options: episode_number")
    return asked
