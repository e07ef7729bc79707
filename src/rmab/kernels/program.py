"""The arrays of one projection, together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Program"]


class Program(NamedTuple):
    """What is projected onto what.

    reference (N,H,S,2,S). The confidence sets are boxes low..high (N,S,2,S) where radius is None, and otherwise L1 balls of
    radius (N,S,2) around low. successors (N,S,2,S): the possible next states, in the first counts (N,S,2) places. reach
    (N,H,S): whether mass can get there. idle (H,): nobody may be active at step h. start (N,), weights (N,).
    """

    reference: FloatArray
    low: FloatArray
    high: FloatArray
    radius: FloatArray | None
    successors: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    reach: BoolArray
    idle: BoolArray
    start: IntArray
    weights: FloatArray

    @property
    def ball(self) -> bool:
        """Whether the sets are balls."""
        return self.radius is not None
