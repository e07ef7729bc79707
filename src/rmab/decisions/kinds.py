"""Arms that are alike for every rule, counted by kind: of them the draw decides, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap


@dataclass(frozen=True, eq=False)
class Kinds(ReadOnly):
    """K kinds of arms: those of a kind have the same index, have waited equally long, and are under the same caps.

    Attributes
    ----------
    kind_of : (N,) int array
        The kind of every arm.
    level, waited : (K,) arrays
        The index in parts of the largest, and the periods since the last action.
    helped : (K,) bool array
        Whether the index is worth a place.
    member : (C, K) bool array
        Which kinds are under which cap.
    cell : (K,) int array
        Kinds of the same cell are under the same caps.
    scale : float
        The largest index in size.
    """

    kind_of: IntArray
    level: FloatArray
    waited: IntArray
    helped: BoolArray
    member: BoolArray
    cell: IntArray
    scale: float

    @classmethod
    def of(cls, candidates: Candidates, caps: tuple[Cap, ...]) -> Kinds:
        """Return the kinds of candidates under caps."""
        columns = [candidates.level, candidates.waited, *(cap.members for cap in caps)]
        codes = [np.unique(one, return_inverse=True)[1].reshape(-1) for one in columns]
        code = codes[0]
        for one in codes[1:]:  # numbered again column by column, so that no product of sizes overflows
            code = np.unique(code * (one.max(initial=0) + 1) + one, return_inverse=True)[1].reshape(-1)
        first = np.unique(code, return_index=True)[1]
        member = np.array([cap.members[first] for cap in caps], dtype=bool).reshape(len(caps), first.size)
        cell = np.unique(member, axis=1, return_inverse=True)[1] if caps else np.zeros(first.size, dtype=np.int64)
        own = (candidates.level[first], candidates.waited[first], candidates.helped[first])
        return cls(code, *own, member, np.reshape(cell, -1), candidates.scale)

    def count(self, arms: BoolArray) -> IntArray:
        """(K,) how many of some arms (N,) are of every kind."""
        return np.bincount(self.kind_of[arms], minlength=self.level.size)

    def by_index(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """Return some kinds (K,), the highest index first, of equals who has waited longest; and blocks of equals."""
        return self._line(chosen, self.level, self.waited)

    def by_waiting(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """Return some kinds (K,), the longest waiting first, of equals the highest index; and blocks of equals."""
        return self._line(chosen, self.waited, self.level)

    def _line(
        self, chosen: BoolArray, first: FloatArray | IntArray, second: FloatArray | IntArray
    ) -> tuple[IntArray, IntArray]:
        line = np.lexsort((-second, -first))
        line = line[chosen[line]]
        other = (np.diff(first[line]) != 0) | (np.diff(second[line]) != 0)
        return line, np.concatenate([[0], np.cumsum(other)])[: line.size]


def pick_arms(group_of: IntArray, counts: IntArray, draws: FloatArray, among: BoolArray) -> IntArray:
    """Return the arms with the lowest draws (N,): of every group as many as counts (K,) say, among some arms (N,)."""
    arms = np.flatnonzero(among)
    arms = arms[np.lexsort((draws[arms], group_of[arms]))]
    group = group_of[arms]
    return np.asarray(arms[np.arange(arms.size) - np.searchsorted(group, group) < counts[group]])
