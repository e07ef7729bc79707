"""Actions as scores: the arms with the highest scores are active, as many as the budget."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import VectorActionWrapper, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rmab.errors import ModelError
from rmab.gym.env import Action, Observation, RmabEnv
from rmab.gym.vector import RmabVectorEnv

Scores = NDArray[np.floating[Any]]


class ScoreAction(gymnasium.ActionWrapper[Observation, Scores, Action], gymnasium.utils.RecordConstructorArgs):
    """Wrapper whose action is a score per arm, (N,): it activates the highest, as many as the budget, ties at random.

    The action space is a box from -1 to 1, but only the order of the scores matters, so any numbers are allowed.

    Parameters
    ----------
    env : RmabEnv
        The environment; it may be wrapped.

    Examples
    --------
    >>> import gymnasium, rmab.gym
    >>> env = rmab.gym.ScoreAction(gymnasium.make("rmab/cpap-v0", arms=4, budget=2, horizon=6))
    >>> env.action_space
    Box(-1.0, 1.0, (4,), float32)
    >>> _ = env.reset(seed=0)
    >>> env.step([0.1, 0.9, -0.5, 0.3])[-1]["active"]
    array([False,  True, False,  True])
    """

    def __init__(self, env: gymnasium.Env[Observation, Action]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)  # so that its spec can rebuild it
        gymnasium.ActionWrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, RmabEnv):
            raise ModelError(f"expected an environment of rmab, got {type(base).__name__}")
        self._base = base
        self.action_space = Box(-1.0, 1.0, (base.view.arms,), np.float32)

    def action(self, action: Scores) -> Action:
        """Return the active arms under these scores."""
        return self._base.top(action).astype(np.int8)


class VectorScoreAction(VectorActionWrapper):
    """The same for many rounds: scores (R, N).

    Parameters
    ----------
    env : RmabVectorEnv
        The environments; they may be wrapped.

    Examples
    --------
    >>> import gymnasium, rmab.gym
    >>> envs = gymnasium.make_vec("rmab/cpap-v0", num_envs=2, arms=4, budget=2, horizon=6)
    >>> scored = rmab.gym.VectorScoreAction(envs)
    >>> _ = scored.reset(seed=0)
    >>> scored.step([[0.1, 0.9, -0.5, 0.3], [4, 3, 2, 1]])[-1]["active"]
    array([[False,  True, False,  True],
           [ True,  True, False, False]])
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        base = env.unwrapped
        if not isinstance(base, RmabVectorEnv):
            raise ModelError(f"expected an environment of rmab, got {type(base).__name__}")
        self._base = base
        self.single_action_space = Box(-1.0, 1.0, (base.view.arms,), np.float32)
        self.action_space = batch_space(self.single_action_space, env.num_envs)

    def actions(self, actions: Scores) -> Action:
        """Return the active arms under these scores."""
        return self._base.top(actions).astype(np.int8)
