"""Learners of this library in an environment, with the same results as `rmab.run`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rmab.common import FloatArray, as_integer, as_seed, expect
from rmab.errors import ModelError
from rmab.gym.env import Observation, RmabEnv
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.registry import make_learner
from rmab.play import Feedback, decisions_of
from rmab.runs.running import inform, learn_episodes


def play(
    env: gymnasium.Env[Observation, Any], learner: Learner | str, seed: int = 0, *, episodes: int | None = None
) -> FloatArray:
    """Run a learner in an environment, from the first episode on.

    The learner gets what any agent gets: the view of the task, the observations, and the feedback of finished episodes.
    With the same seed it earns exactly the rewards of `rmab.run(task, learner, seed)`.

    Parameters
    ----------
    env : RmabEnv
        The environment; it may be wrapped, but must take zeros and ones.
    learner : Learner or str
        A learner, or a name as for `rmab.make_learner`.
    seed : int, default 0
        Random seed of the environment and of the learner.
    episodes : int, optional
        Number of episodes; all of the task by default.

    Returns
    -------
    ndarray, shape (T,)
        Reward of each episode.

    Raises
    ------
    ModelError
        If the environment is not of this library, or the learner needs other feedback than its task gives.

    Examples
    --------
    >>> import gymnasium, rmab, rmab.gym
    >>> env = gymnasium.make("rmab/cpap-v0", adversary="switching", episodes=3)
    >>> earned = rmab.gym.play(env, "random", seed=1)
    >>> bool((earned == rmab.run(env.unwrapped.task, "random", seed=1).reward).all())
    True
    """
    base = env.unwrapped
    if not isinstance(base, RmabEnv):
        raise ModelError(f"play needs an environment of rmab, got {type(base).__name__}")
    player = make_learner(learner) if isinstance(learner, str) else learner
    expect(player, Learner, "learner")
    number, most = as_seed(seed), base.task.episodes
    wanted = most if episodes is None else as_integer(episodes, "episodes")
    if not 1 <= wanted <= most:
        raise ModelError(f"episodes must be in 1..{most} (the episodes of the task), got {wanted}", field="episodes")
    earned = np.zeros(wanted)

    def play_episode(t: int, plan: EpisodePlan) -> Feedback:
        seen, _ = env.reset(seed=number if t == 0 else None, options={"policy": plan.policy})
        decide = decisions_of(plan.policy, seen["states"], base.policy_stream())
        over = False
        while not over:
            active = np.asarray(decide(int(seen["step"]), seen["states"]), dtype=bool)
            seen, reward, terminated, truncated, _ = env.step(active.astype(np.int8))
            earned[t] += float(reward)
            over = terminated or truncated
        return base.feedback()

    for _ in learn_episodes(inform(player, base.task, number), base.view, number, wanted, play_episode):
        pass
    return earned
