"""What the planners choose from: blocks of like arms whose kernels are known, or lie in boxes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray
from rmab.solvers.fluid.blocks import Blocks

__all__ = ["Boxes"]

Rows = tuple[FloatArray, FloatArray, FloatArray, NDArray[np.uint32], NDArray[np.uint32]]


@dataclass(frozen=True, eq=False)
class Boxes:
    """C blocks: kernels in boxes low..high (C,S,2,S), equal where they are known; reward (C,S,2); start masses (C,S)."""

    low: FloatArray
    high: FloatArray
    reward: FloatArray
    start: FloatArray

    @classmethod
    def known(cls, blocks: Blocks) -> "Boxes":
        """Boxes that hold nothing but the kernels of the blocks."""
        kernels = blocks.kernels.copy()
        return cls(kernels, kernels, blocks.reward, blocks.start)

    @cached_property
    def rows(self) -> Rows:
        """What the kernels want: low, high, what is spare (C,S,2), the possible successors (C,S,2,S) and their number."""
        allowed = self.high > 0
        order = np.argsort(~allowed, axis=3, kind="stable").astype(np.uint32)
        spare = np.maximum(1.0 - self.low.sum(axis=3), 0.0)
        spare[spare < 1e-12] = 0.0  # a known kernel, up to rounding
        return self.low, self.high, spare, order, allowed.sum(axis=3).astype(np.uint32)

    def kernels(self, horizon: int) -> FloatArray:
        """Some kernel of every row's box: (C,1,S,2,S) where there is nothing to choose, else (C,H,S,2,S)."""
        if not self.rows[2].any():
            return self.low[:, np.newaxis].copy()
        room, spare = self.high - self.low, self.rows[2][..., np.newaxis]
        some = self.low + room * (spare / np.maximum(room.sum(axis=3, keepdims=True), 1e-300))
        return np.repeat(some[:, np.newaxis], horizon, axis=1)
