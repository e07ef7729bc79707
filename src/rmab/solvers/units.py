"""Rewards in units of what is at stake: what decisions cannot change is left out, so that no tolerance is relative to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Units:
    """Rewards counted from the least of each block, divided by the widest range of one block: from 0 to 1.

    reward  (C, S, 2) in these units, 0 where it does not count; least  (C,) what is counted from; scale  the range, or 1.
    """

    reward: FloatArray
    least: FloatArray
    scale: float

    @classmethod
    def of(cls, reward: FloatArray, counts: BoolArray) -> Units:
        """Measure rewards (C, S, 2) where they count: (C, S), or (C, S, 2)."""
        where = np.broadcast_to(counts if counts.ndim == 3 else counts[..., np.newaxis], reward.shape)
        least = np.where(where, reward, np.inf).min(axis=(1, 2))
        least = np.where(np.isfinite(least), least, 0.0)
        above = np.where(where, reward - least[:, np.newaxis, np.newaxis], 0.0)
        scale = float(above.max()) or 1.0
        return cls(above / scale, least, scale)

    def gap(self, bound: float, value: float, most: float = 1.0) -> float:
        """Return (bound - value), both in these units, relative to the larger of the bound and `most`."""
        return (bound - value) / max(abs(bound), most)

    def whole(self, value: float, mass: FloatArray, steps: int) -> float:
        """Return a value in these units as a reward again, where every block has this mass (C,) at each of the steps."""
        return self.scale * value + steps * float(mass @ self.least)


def reachable(moves: BoolArray, start: BoolArray, horizon: int) -> BoolArray:
    """(C, S) where a block that starts in `start` (C, S) can be within an episode, if it can move as moves (C, S, S) say."""
    reach = start
    for _ in range(min(horizon, start.shape[1]) - 1):
        reach = reach | (reach[..., np.newaxis] & moves).any(axis=1)
    return reach
