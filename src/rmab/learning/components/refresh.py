"""When the sets are made anew: before every episode, or when the count of some pair has doubled."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rmab.common.arrays import IntArray
from rmab.learning.components.base import Component
from rmab.learning.kept import Declared, whole
from rmab.learning.options import configured
from rmab.learning.pools import Pools
from rmab.learning.state import Memory


class Refresh(Component, ABC):
    """A part that says which of the counts the sets are made of. Override all three methods."""

    anywhere = True

    @abstractmethod
    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        """Return the memory, given all counts (G, S, 2, S) so far; at the beginning, memory is empty and counts are 0."""

    @abstractmethod
    def basis(self, memory: Memory, counts: IntArray) -> IntArray:
        """(G, S, 2, S) the counts that the sets are made of."""

    @abstractmethod
    def until(self, pools: Pools, episode: int) -> int:
        """Return the last episode in which sets that are made for this one must hold."""


@configured
class EveryEpisode(Refresh):
    """New sets before every episode, of all that was counted."""

    def learn(self, memory: Memory, counts: IntArray) -> Memory:  # noqa: ARG002
        """Keep nothing."""
        return {}

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:  # noqa: ARG002
        """All counts."""
        return counts

    def until(self, pools: Pools, episode: int) -> int:  # noqa: ARG002
        """Only in the episode that they are made for."""
        return episode


@configured
class Doubling(Refresh):
    """New sets, and a new epoch, when some pair was counted twice as often as when the epoch began (UCRL2)."""

    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        """Keep the counts with which the epoch began."""
        if not memory or doubled(memory["epoch"].sum(axis=3), counts.sum(axis=3)):
            return {"epoch": counts}
        return memory

    def kept(self, pools: Pools) -> Declared:
        """Declare the counts of the epoch."""
        return {"epoch": whole(*pools.support.shape)}

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:  # noqa: ARG002
        """The counts of the epoch."""
        return memory["epoch"]

    def until(self, pools: Pools, episode: int) -> int:  # noqa: ARG002
        """To the end: nobody knows how long an epoch will be."""
        return pools.view.episodes - 1


def doubled(epoch: IntArray, visits: IntArray) -> bool:
    """Whether some pair has been visited (G, S, 2) twice as often as when the epoch began."""
    return bool((visits >= np.maximum(2 * epoch, 1)).any())
