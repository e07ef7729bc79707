"""Learners of this library in an environment: they see what any agent sees, and earn what `rmab.run` says."""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.checks import as_integer, expect
from rmab.errors import ModelError
from rmab.gym.env import Observation, RmabEnv
from rmab.learning.base import Learner
from rmab.learning.registry import make_learner
from rmab.play.compiled.selection import select
from rmab.play.policy import IndexPolicy, Policy, for_episode
from rmab.play.simulation import streams_of
from rmab.runs.luck import SIMULATOR, luck_of
from rmab.runs.running import told


def play(
    env: gymnasium.Env[Observation, Any],
    learner: Learner | str,
    seed: int = 0,
    *,
    episodes: int | None = None,
) -> FloatArray:
    """Let a learner play an environment from the first episode on.

    The learner gets the view of the task, the observations, and the feedback of finished episodes: what any agent gets.
    With the same seed it earns what `rmab.run(task, learner, seed)` says, to the last bit.

    Parameters
    ----------
    env : RmabEnv
        The environment, which may be wrapped, but takes zeros and ones.
    learner : Learner or str
        A learner, or a name as `rmab.make_learner` takes it.
    seed : int, default 0
        Of the environment and of the learner.
    episodes : int, optional
        How many, all of the task by default.

    Returns
    -------
    ndarray, shape (T,)
        What was earned in each episode.

    Raises
    ------
    ModelError
        If it is no environment of this library, or the learner needs other feedback than its task gives.

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
    number, most = as_integer(seed, "seed"), base.task.episodes
    wanted = most if episodes is None else as_integer(episodes, "episodes")
    if not 1 <= wanted <= most:
        raise ModelError(f"episodes must be in 1..{most} (those of the task), got {wanted}")
    player = told(player, base.task, number)
    state, earned = player.begin(base.view, number), np.zeros(wanted)
    for t in range(wanted):
        policy = player.plan(state).policy
        begun = {"options": {"policy": policy}} | ({"seed": number} if t == 0 else {})
        observation, _ = env.reset(**begun)  # type: ignore[arg-type]
        earned[t] = _episode(env, observation, _Player(policy, luck_of(number, SIMULATOR, t)))
        state = player.learn(state, base.feedback())
    return earned


def _episode(env: gymnasium.Env[Observation, Any], observation: Observation, player: _Player) -> float:
    total, over = 0.0, False
    while not over:
        action = player.act(int(observation["step"]), observation["states"])
        observation, reward, terminated, truncated, _ = env.step(action.astype(np.int8))
        total += float(reward)
        over = terminated or truncated
    return total


class _Player:
    """A policy in an episode, with the luck that the simulator gives it: of the two streams, the second is the policy's."""

    def __init__(self, policy: Policy, luck: np.random.Generator) -> None:
        self.policy, self.stream = policy, streams_of(luck, 1)[0, 1]
        self.rng = np.random.default_rng(self.stream)
        self.player: Policy | None = None

    def act(self, h: int, states: IntArray) -> BoolArray:
        if type(self.policy) is IndexPolicy:
            return _ranked(self.policy, h, states, self.stream)
        if self.player is None:
            self.player = for_episode(self.policy, states.copy(), self.rng)
        return np.asarray(self.player.act(h, states.copy(), self.rng), dtype=bool)


def _ranked(policy: IndexPolicy, h: int, states: IntArray, stream: NDArray[np.uint64]) -> BoolArray:
    """(N,) decide as compiled code does: `IndexPolicy.act` takes new luck at every step, the simulator's goes on."""
    arms = np.arange(states.size)
    index = policy.table[arms, states] if policy.table.ndim == 2 else policy.table[arms, h, states]
    limit = int(policy.budget[h]) if isinstance(policy.budget, np.ndarray) else policy.budget
    active, dependent = np.empty(arms.size, dtype=bool), policy.rounding == "dependent"
    select(index, limit, policy.floor, dependent, stream, active, np.empty(arms.size), np.empty_like(arms))
    return cast(BoolArray, active)
