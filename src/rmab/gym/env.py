"""One round of a task as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, as_seed
from rmab.errors import ModelError
from rmab.gym.rounds import OverBudget, TaskRounds
from rmab.model import View
from rmab.play import Feedback
from rmab.tasks.definition import Task
from rmab.tasks.making import make_task

Observation = dict[str, Any]
Action = NDArray[np.int8]


def made_task(task: Task | str, adversary: str | None, options: dict[str, Any]) -> Task:
    """Return the task of an environment: one that is given, or one by name with its adversary and options."""
    if not isinstance(task, Task):
        return make_task(task if adversary is None else f"{task}@{adversary}", **options)
    if adversary is not None or options:
        extra = ", ".join(([] if adversary is None else ["adversary"]) + sorted(options))
        raise ModelError(f"task {task.name} is made already: leave out {extra}")
    return task


def spaces_of(task: Task) -> tuple[spaces.Dict, spaces.MultiBinary]:
    """Return the space of observations, and that of actions."""
    arms = task.problem.arms
    seen = {"states": spaces.MultiDiscrete(arms.real_states), "step": spaces.Discrete(task.problem.horizon + 1)}
    return spaces.Dict(seen), spaces.MultiBinary(arms.count)


class _Played:
    """What all environments have."""

    _rounds: TaskRounds

    @property
    def task(self) -> Task:
        """The task: all of it, also what no agent may know."""
        return self._rounds.task

    @property
    def view(self) -> View:
        """What an agent may know of the task beforehand."""
        return self._rounds.view


class RmabEnv(_Played, gymnasium.Env[Observation, Action]):
    """A task, an episode at a time: decide at every step which arms to activate.

    **Observation**: `states` (N,), the state of every arm, and `step`, the number of steps played; H at the end. **Action**:
    (N,) zeros and ones, who is to be active. **Reward**: what all arms pay at the step, discounted where the problem says
    so; the rewards of an episode add up to what `rmab.run` counts. An episode ends (`terminated`) after the problem's H
    steps, and is never truncated.

    **Time of the adversary**: rewards change from episode to episode. `reset(seed=...)` begins with episode 0, every
    further `reset()` with the next one, and after the last of T a new game begins. An episode of which no step was played
    is not over: `reset()` begins it again. `reset(options={"episode_number": t})` names the episode. The seed is that of
    `rmab.run`: the same decisions earn the same.

    **Information**, at a reset: `episode_number` and `game`, the adversary's time; `budget`, of the step to come. At a
    step: the new `budget` (0 at the end); `active` (N,), who was active; `dropped`, how many requests were dropped; `paid`
    (N,), what each arm paid, NaN where the task's feedback hides it. Nothing is revealed of pairs that were not visited, but
    one number at the end of an episode: `bound`, what no policy can beat on average with the rewards that it had.
    That is for keeping score: an agent that learns from it is privileged.

    Parameters
    ----------
    task : Task or str
        A task, or a name or file as `rmab.make_task` takes it.
    adversary : str, optional
        The same as `task@adversary`.
    over_budget : {'draw', 'error'}, default 'draw'
        What happens to a request for more arms than the budget. 'draw': a random set of them is active, all sets being
        equally likely, and `dropped` says how many are not. 'error': BudgetExceeded, and the step is not played.
    bound : bool, optional
        Whether to report the bound. It takes a solution of the fluid program for every episode number, and for every episode
        against an adversary that answers; so by default it is reported unless the adversary does.
    render_mode : {'ansi'}, optional
        `render()` returns a line of text.
    **options
        As `rmab.make_task` takes them: `seed` (of the model), `feedback`, `copies`, and what the task has.

    Raises
    ------
    ModelError
        If there is no such task, or an option is wrong.

    Examples
    --------
    >>> import gymnasium, rmab.gym
    >>> env = gymnasium.make("rmab/cpap-v0", adversary="switching", arms=4, budget=2, horizon=6)
    >>> observation, info = env.reset(seed=0)
    >>> observation["states"], info["budget"]
    (array([0, 0, 0, 0]), 2)
    >>> observation, reward, terminated, truncated, info = env.step([1, 0, 1, 0])
    >>> info["active"], int(observation["step"])
    (array([ True, False,  True, False]), 1)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        task: Task | str,
        *,
        adversary: str | None = None,
        over_budget: OverBudget = "draw",
        bound: bool | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        made = made_task(task, adversary, options)
        self._rounds, self._earned = TaskRounds(made, 1, over_budget, bound), 0.0
        self.observation_space, self.action_space = spaces_of(made)
        if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "ansi"):
            raise ModelError(f"render_mode must be 'ansi' or None, got {render_mode!r:.40}")
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: with a seed the first one, otherwise the next; see the class.

        Parameters
        ----------
        seed : int, optional
            0 or more. Without one, the first reset draws it, and `np_random_seed` has it.
        options : dict, optional
            `episode_number`: the number of the episode. `policy`: what will be played, which an adversary that foresees it
            must see.
        """
        super().reset(seed=None if seed is None else as_seed(seed, any_size=True))
        fresh = seed is not None or self._rounds.game is None
        info = self._rounds.reset([self._seed()] if fresh else None, options)
        self._earned = 0.0
        return self._observe(), info

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Activate arms and let all arms move; PolicyError if the action is not N zeros and ones."""
        self._check_playing()
        earned, info = self._rounds.play(cast(ArrayLike, [action]))  # not as an array: its mask would be lost
        reward = float(earned[0])
        self._earned += reward
        single = {name: value[0] if np.ndim(value) else value for name, value in info.items()}
        return self._observe(), reward, self._rounds.over, False, single

    def top(self, scores: ArrayLike) -> BoolArray:
        """(N,) the arms of the highest scores (N,), as many as the budget of the step; ties are broken at random."""
        self._check_playing()
        return np.asarray(self._rounds.top(cast(ArrayLike, [scores]))[0])

    def feedback(self) -> Feedback:
        """Return what a learner sees of the episode, once it is over."""
        return self._rounds.feedback()

    def policy_stream(self) -> NDArray[np.uint64]:
        """(4,) the random stream that `rmab.run` gives the policy of this episode."""
        return np.array(self._rounds.streams[0, 1])

    def bound(self) -> float:
        """Return what no policy can beat on average in the episode at hand: for keeping score, not for agents."""
        return self._rounds.bound()

    def render(self) -> str | None:
        """Return a line of text on where things stand; None unless made with `render_mode='ansi'`."""
        if self.render_mode is None:
            return None
        rounds, problem = self._rounds, self.task.problem
        names = problem.arms.state_names or tuple(map(str, range(problem.arms.states)))
        there = np.bincount(rounds.states[0], minlength=problem.arms.states)
        where = ", ".join(f"{count} in {name}" for name, count in zip(names, there, strict=True) if count)
        time = f"episode {rounds.episode}, step {rounds.step} of {problem.horizon}"
        return f"{self.task.name}, {time}: {where}; earned {self._earned:.6g}"

    def _seed(self) -> int:
        known = self.np_random_seed
        return int(self.np_random.integers(2**63)) if known is None or known < 0 else int(known)

    def _observe(self) -> Observation:
        return {"states": self._rounds.states[0].copy(), "step": np.int64(self._rounds.step)}

    def _check_playing(self) -> None:
        if self._rounds.game is None or self._rounds.over:
            raise gymnasium.error.ResetNeeded("the episode is over, or none has begun: call reset() first")
