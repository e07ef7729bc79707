"""Arms that are alike for every rule, counted by kind: only a random draw decides between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap


@dataclass(frozen=True, eq=False)
class Kinds(ReadOnly):
    """K kinds of arms: those of a kind have the same index, waited equally long, are equally familiar, under the same caps.

    Attributes
    ----------
    kind_of : (N,) int array
        The kind of every arm.
    level, waited : (K,) arrays
        Index relative to the largest, and periods since the last action.
    helped : (K,) bool array
        Whether the index earns a place.
    member : (C, K) bool array
        Which kinds are under which cap.
    cell : (K,) int array
        Kinds of the same cell are under the same caps, and equally familiar.
    familiarity : (K,) int array
        How much is known about arms of the same group (`Candidates.familiarity`).
    scale : float
        The largest index in size.
    cost : (K,) float array, optional
        What acting on an arm costs, where that differs; kinds of the same cell then cost the same, too.
    """

    kind_of: IntArray
    level: FloatArray
    waited: IntArray
    helped: BoolArray
    member: BoolArray
    cell: IntArray
    familiarity: IntArray
    scale: float
    cost: FloatArray | None = None

    @classmethod
    def of(cls, candidates: Candidates, caps: tuple[Cap, ...]) -> Kinds:
        """Return the kinds of candidates under caps."""
        members: list[Any] = [cap.members for cap in caps]
        costs = [] if candidates.cost is None else [candidates.cost]
        code = _join([candidates.level, candidates.waited, candidates.familiarity, *members, *costs])
        first = np.unique(code, return_index=True)[1]
        cell = _join([one[first] for one in (candidates.familiarity, *members, *costs)])
        member = np.array([one[first] for one in members], dtype=bool).reshape(len(caps), first.size)
        own = (candidates.level[first], candidates.waited[first], candidates.helped[first])
        known = candidates.familiarity[first].astype(np.int64)
        return cls(code, *own, member, cell, known, candidates.scale, *(one[first] for one in costs))

    def count(self, arms: BoolArray) -> IntArray:
        """(K,) how many of some arms (N,) are of every kind."""
        return np.bincount(self.kind_of[arms], minlength=self.level.size)

    def spent(self, arms: BoolArray) -> float:
        """Return what some arms (N,) cost; how many they are, where all cost the same."""
        return float(np.count_nonzero(arms) if self.cost is None else self.cost[self.kind_of[arms]].sum())

    def by_index(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """Return some kinds (K,), the highest index first, then the longest waiting; and blocks of ties."""
        return self._line(chosen, self.level, self.waited)

    def by_waiting(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """Return some kinds (K,), the longest waiting first, then the highest index; and blocks of ties."""
        return self._line(chosen, self.waited, self.level)

    def _line(
        self, chosen: BoolArray, first: FloatArray | IntArray, second: FloatArray | IntArray
    ) -> tuple[IntArray, IntArray]:
        cost = np.zeros(first.size) if self.cost is None else self.cost
        line = np.lexsort((-cost, -second, -first))
        line = line[chosen[line]]
        other = (np.diff(first[line]) != 0) | (np.diff(second[line]) != 0) | (np.diff(cost[line]) != 0)
        return line, np.concatenate([[0], np.cumsum(other)])[: line.size]


def pick_arms(group_of: IntArray, counts: IntArray, draws: FloatArray, among: BoolArray) -> IntArray:
    """Return the arms with the lowest draws (N,): counts (K,) of every group, among some arms (N,)."""
    arms = np.flatnonzero(among)
    arms = arms[np.lexsort((draws[arms], group_of[arms]))]
    group = group_of[arms]
    return np.asarray(arms[np.arange(arms.size) - np.searchsorted(group, group) < counts[group]])


def _join(columns: list[Any]) -> IntArray:
    """(N,) numbers of the combinations of values that occur in columns (N,), in the order of these values.

    They are numbered again column by column, so that no product of sizes overflows.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1].reshape(-1)
        code = np.unique(code * (own.max(initial=0) + 1) + own, return_inverse=True)[1].reshape(-1)
    return code
