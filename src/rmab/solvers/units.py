"""Rewards in units of what is at stake: what decisions cannot change is left out, so that no tolerance is relative to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Units:
    """Rewards counted from the least of each cell, divided by the widest range of one cell: from 0 to 1.

    reward  (C * K, S, 2) in these units, 0 where it does not count; least  (C * K,) what is counted from; scale  the range,
    or 1.
    """

    reward: FloatArray
    least: FloatArray
    scale: float

    @classmethod
    def of(cls, reward: FloatArray, counts: BoolArray) -> Units:
        """Measure rewards (C * K, S, 2), by cell, where they count: (C * K, S), or (C * K, S, 2)."""
        where = np.broadcast_to(counts if counts.ndim == 3 else counts[..., np.newaxis], reward.shape)
        least = np.where(where, reward, np.inf).min(axis=(1, 2))
        least = np.where(np.isfinite(least), least, 0.0)
        above = np.where(where, reward - least[:, np.newaxis, np.newaxis], 0.0)
        scale = float(above.max()) or 1.0
        return cls(above / scale, least, scale)

    def gap(self, bound: float, value: float, most: float = 1.0) -> float:
        """Return (bound - value), both in these units, relative to the larger of the bound and `most`."""
        return (bound - value) / max(abs(bound), most)

    def whole(self, value: float, mass: FloatArray, phase_of: IntArray, discounts: FloatArray | None = None) -> float:
        """Return a value in these units as a reward again, where every block has this mass (C,), discounted at each step."""
        least = self.least.reshape(mass.size, -1)
        steps = np.bincount(phase_of, weights=discounts, minlength=least.shape[1])
        return self.scale * value + sum(float(many) * float(mass @ each) for many, each in zip(steps, least.T, strict=True))


def reachable(moves: BoolArray, start: BoolArray, phase_of: IntArray) -> BoolArray:
    """(C * K, S) where a block that starts in `start` (C, S) can be in the steps (H,) of each phase.

    moves (C * K, S, S) says how it can move.
    """
    if len(moves) == len(start):  # one phase: where it can be at all
        reach = start
        for _ in range(min(phase_of.size, start.shape[1]) - 1):
            reach = reach | (reach[..., np.newaxis] & moves).any(axis=1)
        return reach
    phases = len(moves) // len(start)
    found = np.zeros((len(start), phases, start.shape[1]), dtype=bool)
    for h, now in enumerate(steps_reached(moves, start, phase_of)):
        found[:, phase_of[h]] |= now
    return found.reshape(-1, start.shape[1])


def steps_reached(moves: BoolArray, start: BoolArray, phase_of: IntArray) -> Iterator[BoolArray]:
    """Yield (C, S), step by step: where a block that starts in `start` (C, S) can be; moves (C * K, S, S) by cell."""
    now, by_phase = start, moves.reshape(len(start), -1, *moves.shape[1:])
    for h in range(phase_of.size):
        if h > 0:
            now = np.asarray((now[..., np.newaxis] & by_phase[:, phase_of[h - 1]]).any(axis=1))
        yield now
