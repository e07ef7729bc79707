"""Recorded rewards as an adversary."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, IntArray, frozen
from rmab.errors import ModelError
from rmab.model.adversary import Adversary, checked_range, checked_tables, first_of
from rmab.model.time import place


@dataclass(frozen=True, eq=False)
class Trace(Adversary):
    """Uses given rewards (T, N, S, 2), or (T, N, K, S, 2) with phases."""

    rewards: FloatArray

    @classmethod
    def of(
        cls, rewards: ArrayLike, *, low: float | None = None, high: float | None = None, passive_zero: bool = False
    ) -> "Trace":
        """Build from rewards, after checking them against the declared range (by default their range) and declarations."""
        table = checked_tables(rewards, "rewards", "T", "episode")
        least, most = checked_range(table.min() if low is None else low, table.max() if high is None else high)
        for at in np.argwhere(~((table >= least) & (table <= most)))[:1]:
            raise ModelError(f"rewards: {_place(table, at)} is {table[tuple(at)]}, outside [{least}, {most}]")
        if not isinstance(passive_zero, bool):
            raise ModelError(f"passive_zero must be true or false, got {passive_zero!r}")
        for at in np.argwhere(passive_zero & (table[..., 0] != 0))[:1]:
            raise ModelError(f"rewards: passive rewards are declared zero, but {_place(table, at)} is not 0")
        return cls(len(table), least, most, passive_zero, frozen(table))

    @property
    def base(self) -> FloatArray:
        """Mean over all episodes."""
        return np.asarray(self.rewards.mean(axis=0))

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare each arm with the first arm of its group."""
        return np.array_equal(self.rewards, self.rewards[:, first_of(groups)])

    def repeated(self, times: int) -> "Trace":
        """Return the adversary with the same rewards for every copy of an arm."""
        return replace(self, rewards=frozen(np.repeat(self.rewards, times, axis=1)))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the recorded rewards."""
        return np.array(self.rewards[t])


def _place(table: FloatArray, at: IntArray) -> str:
    return place(at, table.ndim - 3, ("episode",))
