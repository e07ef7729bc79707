"""Recorded rewards as an adversary."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray, frozen
from rmab.common.checks import as_floats
from rmab.errors import ModelError
from rmab.model.adversaries import Adversary, first_of
from rmab.model.rewards import checked_range


@dataclass(frozen=True, eq=False)
class Trace(Adversary):
    """Plays rewards (T, N, S, 2) that the user recorded or made up."""

    rewards: FloatArray

    @classmethod
    def of(
        cls,
        rewards: ArrayLike,
        *,
        low: float | None = None,
        high: float | None = None,
        passive_zero: bool = False,
    ) -> "Trace":
        """Check the rewards against the declared range (by default the range that they have) and declarations."""
        table = as_floats(rewards, "rewards")
        if table.ndim != 4 or table.shape[3] != 2 or 0 in table.shape:
            raise ModelError(f"rewards must have shape (T, N, S, 2), got {table.shape}")
        if not np.isfinite(table).all():
            t, n, s, a = np.argwhere(~np.isfinite(table))[0]
            raise ModelError(f"rewards: episode {t}, arm {n}, state {s}, action {a} is {table[t, n, s, a]}")
        least, most = checked_range(table.min() if low is None else low, table.max() if high is None else high)
        bad = ~((table >= least) & (table <= most))
        if bad.any():
            t, n, s, a = np.argwhere(bad)[0]
            value = table[t, n, s, a]
            raise ModelError(f"rewards: episode {t}, arm {n}, state {s}, action {a} is {value}, outside [{least}, {most}]")
        if not isinstance(passive_zero, bool):
            raise ModelError(f"passive_zero must be true or false, got {passive_zero!r}")
        if passive_zero and table[..., 0].any():
            t, n, s = np.argwhere(table[..., 0] != 0)[0]
            raise ModelError(f"rewards: passive rewards are declared zero, but episode {t}, arm {n}, state {s} pays")
        return cls(len(table), least, most, passive_zero, frozen(table))

    @property
    def base(self) -> FloatArray:
        """The mean over all episodes."""
        return np.asarray(self.rewards.mean(axis=0))

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare every arm with the first of its group."""
        return np.array_equal(self.rewards, self.rewards[:, first_of(groups)])

    def repeated(self, times: int) -> "Trace":
        """Return the same rewards for every copy of an arm."""
        return replace(self, rewards=frozen(np.repeat(self.rewards, times, axis=1)))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the recorded rewards."""
        return np.array(self.rewards[t])
