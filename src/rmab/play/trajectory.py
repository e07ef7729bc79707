"""What simulated episodes return: a trajectory, or the rewards of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly
from rmab.errors import many


@dataclass(frozen=True, eq=False)
class Trajectory(ReadOnly):
    """Trajectory of one episode.

    Parameters
    ----------
    states : array of int, shape (H+1, N)
        State of each arm before each step, and after the last one.
    actions : array of bool, shape (H, N)
        Which arms were active at each step.
    reward : float
        Total reward of the episode.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> rmab.Trajectory(np.zeros((4, 2), dtype=np.int32), np.ones((3, 2), dtype=bool), 1.5)
    Trajectory(3 steps, 2 arms, reward 1.5)
    """

    states: NDArray[np.int32]
    actions: BoolArray
    reward: float

    def __repr__(self) -> str:
        steps, arms = self.actions.shape
        return f"Trajectory({many(steps, 'step')}, {many(arms, 'arm')}, reward {self.reward:.6g})"


def pairs_of(states: NDArray[np.integer], actions: BoolArray, sizes: tuple[int, int], phase_of: IntArray) -> IntArray:
    """(..., H, N) position of each visited pair in a flat table (N, [K,] S, 2): one number per step and arm.

    states (..., H+1, N), actions (..., H, N), sizes (K, S), phase_of (H,) or longer.
    """
    phases, number = sizes
    cell = np.arange(actions.shape[-1]) * phases
    if phases > 1:
        cell = cell + phase_of[: actions.shape[-2], np.newaxis]
    return np.asarray((cell * number + states[..., :-1, :]) * 2 + actions)


@dataclass(frozen=True, eq=False)
class Batch(ReadOnly):
    """Results of R simulated episodes.

    Parameters
    ----------
    rewards : array of float, shape (R,)
        Total reward of each episode.
    activations : array of int, shape (R,)
        Number of activations in each episode.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> rmab.Batch(np.array([1.0, 3.0]), np.array([4, 4]))
    Batch(2 episodes, mean reward 2, standard error 1)
    """

    rewards: FloatArray
    activations: IntArray

    @property
    def mean(self) -> float:
        """Average reward per episode."""
        return float(self.rewards.mean())

    @property
    def stderr(self) -> float:
        """Standard error of the mean; infinite for a single episode."""
        rounds = self.rewards.size
        return float(self.rewards.std(ddof=1) / np.sqrt(rounds)) if rounds > 1 else float("inf")

    def __repr__(self) -> str:
        size = many(self.rewards.size, "episode")
        return f"Batch({size}, mean reward {self.mean:.6g}, standard error {self.stderr:.2g})"
