"""Many rounds of a task as one vectorised Gymnasium environment, in compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, FloatArray, as_integer, as_seed, is_several
from rmab.errors import ModelError
from rmab.gym.env import Action, Observation, _TaskEnv, build_task, spaces_of
from rmab.gym.rounds import OverBudget, TaskRounds
from rmab.play import Feedback
from rmab.tasks.definition import Task


class RmabVectorEnv(_TaskEnv, VectorEnv[Observation, Action, NDArray[Any]]):
    """Many parallel rounds of a task, each like an `RmabEnv` with its own seed.

    All rounds have the same horizon, so all episodes end together; the next step starts the next episode of all
    (`AutoresetMode.NEXT_STEP`: its action is ignored, its reward is 0). Observations, rewards and information equal those
    of a `SyncVectorEnv` of as many `RmabEnv`, in a fraction of the time.

    Parameters
    ----------
    num_envs : int
        R, the number of rounds.
    task, adversary, over_budget, bound, **options
        As in `RmabEnv`.

    Examples
    --------
    >>> import gymnasium, rmab.gym
    >>> envs = gymnasium.make_vec("rmab/cpap-v0", num_envs=3, adversary="switching", arms=4, budget=2, horizon=6)
    >>> observations, infos = envs.reset(seed=0)  # seeds 0, 1 and 2
    >>> observations["states"].shape, infos["budget"]
    ((3, 4), array([2, 2, 2]))
    >>> observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    >>> rewards.shape, observations["step"]
    ((3,), array([1, 1, 1]))
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int,
        task: Task | str,
        *,
        adversary: str | None = None,
        over_budget: OverBudget = "draw",
        bound: bool | None = None,
        **options: Any,
    ) -> None:
        built = build_task(task, adversary, options)
        self._rounds = TaskRounds(built, num_envs, over_budget, bound)
        self.num_envs = len(self._rounds.states)
        self.single_observation_space, self.single_action_space = spaces_of(built)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in each round, as `RmabEnv.reset` does.

        Parameters
        ----------
        seed : int or sequence of int, optional
            One per round; a single number is that of the first round, and the others follow it.
        options : dict, optional
            As in `RmabEnv`, for all rounds.
        """
        info = self._rounds.reset(self._seeds(seed), options)
        return self._observe(), self._for_all(info)

    def step(self, actions: ArrayLike) -> tuple[Observation, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Advance each round by one step, actions (R, N); after the last step, start the next episode instead."""
        self._check_started()
        nobody = np.zeros(self.num_envs, dtype=bool)
        if self._rounds.over:
            started: dict[str, Any] = self._rounds.reset()
            return self._observe(), np.zeros(self.num_envs), nobody, nobody.copy(), self._for_all(started)
        earned, info = self._rounds.play(actions)
        return self._observe(), earned, np.full(self.num_envs, self._rounds.over), nobody, self._for_all(info)

    def top(self, scores: ArrayLike) -> BoolArray:
        """(R, N) arms with the highest scores (R, N) in each round, as many as the budget; ties are broken at random."""
        self._check_started()
        return self._rounds.top(scores)

    def feedback(self, r: int) -> Feedback:
        """Return the feedback of the finished episode of round r."""
        self._check_started()
        if not 0 <= (row := as_integer(r, "r")) < self.num_envs:
            raise ModelError(f"r must be in 0..{self.num_envs - 1}, got {row}")
        return self._rounds.feedback(row)

    def _check_started(self) -> None:
        if self._rounds.game is None:
            raise gymnasium.error.ResetNeeded("no episode has started: call reset() first")

    def _seeds(self, seed: int | Sequence[int] | None) -> list[int] | None:
        if seed is None and self._rounds.game is not None:
            return None
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else as_seed(seed, any_size=True))
            first = int(self.np_random_seed or 0)
            return [first + r for r in range(self.num_envs)]
        if isinstance(seed, Mapping) or not is_several(seed) or len(seeds := list(seed)) != self.num_envs:
            raise ModelError(f"seed must be a number, or one per round ({self.num_envs}), got {seed!r:.40}")
        return [as_seed(one, any_size=True) for one in seeds]

    def _observe(self) -> Observation:
        return {"states": self._rounds.states.copy(), "step": np.full(self.num_envs, self._rounds.step)}

    def _for_all(self, info: dict[str, Any]) -> dict[str, Any]:
        """Return the information as arrays with one entry per round, each with a mask that is always true."""
        arrays: dict[str, Any] = {}
        for name, value in info.items():
            several = np.ndim(value) > 0 and len(value) == self.num_envs
            arrays[name] = np.asarray(value) if several else np.full(self.num_envs, value)
            arrays[f"_{name}"] = np.ones(self.num_envs, dtype=bool)
        return arrays
