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


def build_task(task: Task | str, adversary: str | None, options: dict[str, Any]) -> Task:
    """Return the given task, or build it from its name, adversary and options."""
    if not isinstance(task, Task):
        return make_task(task if adversary is None else f"{task}@{adversary}", **options)
    if adversary is not None or options:
        extra = ", ".join(([] if adversary is None else ["adversary"]) + sorted(options))
        raise ModelError(f"task {task.name} is already built; leave out {extra}")
    return task


def spaces_of(task: Task) -> tuple[spaces.Dict, spaces.MultiBinary]:
    """Return the observation space and the action space."""
    arms = task.problem.arms
    seen = {"states": spaces.MultiDiscrete(arms.real_states), "step": spaces.Discrete(task.problem.horizon + 1)}
    return spaces.Dict(seen), spaces.MultiBinary(arms.count)


class _TaskEnv:
    """Base of all environments."""

    _rounds: TaskRounds

    @property
    def task(self) -> Task:
        """The whole task, including what no agent may know."""
        return self._rounds.task

    @property
    def view(self) -> View:
        """What an agent may know of the task in advance."""
        return self._rounds.view


class RmabEnv(_TaskEnv, gymnasium.Env[Observation, Action]):
    """A task as an environment: choose at each step which arms to activate.

    **Observation**: `states` (N,), the state of each arm, and `step`, the number of finished steps; H at the end.
    **Action**: (N,) zeros and ones; 1 activates the arm. **Reward**: the sum over all arms at the step, discounted if the
    problem has a discount; the rewards of an episode add up to that of `rmab.run`. An episode ends (`terminated`) after the
    problem's H steps, and is never truncated.

    **Episodes**: rewards change between episodes. `reset(seed=...)` starts with episode 0, each further `reset()` with the
    next one, and after the last of T episodes a new game starts. If no step was taken, `reset()` starts the same episode
    again. `reset(options={"episode_number": t})` chooses the episode. The seed is that of `rmab.run`: equal decisions earn
    equal rewards.

    **Information** at a reset: `episode_number` and `game`, the number of the game; `budget` of the next step. At a step:
    the new `budget` (0 at the end); `active` (N,), the arms that were active; `dropped`, the number of dropped requests;
    `paid` (N,), the reward of each arm, NaN if the task's feedback hides it. Rewards of unvisited pairs are not revealed,
    except for one number at the end of an episode: `bound`, which no policy exceeds on average with the rewards of the
    episode. It is meant for evaluation: an agent that learns from it is privileged.

    Parameters
    ----------
    task : Task or str
        A task, or a name or file as for `rmab.make_task`.
    adversary : str, optional
        The same as `task@adversary`.
    over_budget : {'draw', 'error'}, default 'draw'
        What happens to a request for more arms than the budget. 'draw': a random subset is active, all subsets equally
        likely, and `dropped` counts the others. 'error': raise BudgetExceeded before the step.
    bound : bool, optional
        Whether to report the bound. It needs a solution of the fluid program for each episode number, or for each episode
        if the adversary is adaptive; by default it is reported unless the adversary is adaptive.
    render_mode : {'ansi'}, optional
        `render()` returns a line of text.
    **options
        As for `rmab.make_task`: `seed` (of the model), `feedback`, `copies`, and options of the task.

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
        built = build_task(task, adversary, options)
        self._rounds, self._earned = TaskRounds(built, 1, over_budget, bound), 0.0
        self.observation_space, self.action_space = spaces_of(built)
        if render_mode is not None and not (isinstance(render_mode, str) and render_mode == "ansi"):
            raise ModelError(f"render_mode must be 'ansi' or None, got {render_mode!r:.40}")
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: the first one if a seed is given, otherwise the next; see the class.

        Parameters
        ----------
        seed : int, optional
            0 or more. Without one, the first reset draws it and stores it in `np_random_seed`.
        options : dict, optional
            `episode_number`: the number of the episode. `policy`: the policy of the episode, required by an adversary that
            foresees it.
        """
        super().reset(seed=None if seed is None else as_seed(seed, any_size=True))
        fresh = seed is not None or self._rounds.game is None
        info = self._rounds.reset([self._seed()] if fresh else None, options)
        self._earned = 0.0
        return self._observe(), info

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Activate arms and let all arms move; PolicyError if the action is not N zeros and ones."""
        self._check_playing()
        earned, info = self._rounds.play(cast(ArrayLike, [action]))  # an array would lose the mask of a masked action
        reward = float(earned[0])
        self._earned += reward
        single = {name: value[0] if np.ndim(value) else value for name, value in info.items()}
        return self._observe(), reward, self._rounds.over, False, single

    def top(self, scores: ArrayLike) -> BoolArray:
        """(N,) arms with the highest scores (N,), as many as the budget of the step; ties are broken at random."""
        self._check_playing()
        return np.asarray(self._rounds.top(cast(ArrayLike, [scores]))[0])

    def feedback(self) -> Feedback:
        """Return the feedback of the finished episode."""
        return self._rounds.feedback()

    def policy_stream(self) -> NDArray[np.uint64]:
        """(4,) random stream that `rmab.run` gives the policy of this episode."""
        return np.array(self._rounds.streams[0, 1])

    def bound(self) -> float:
        """Return the bound that no policy exceeds on average in this episode, for evaluation only."""
        return self._rounds.bound()

    def render(self) -> str | None:
        """Return a line of text with the current states; None unless built with `render_mode='ansi'`."""
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
            raise gymnasium.error.ResetNeeded("the episode is over, or none has started: call reset() first")
