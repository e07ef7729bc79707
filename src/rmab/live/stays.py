"""Who takes part when: the stays of arms, from the first period of each to the first without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from rmab.common import BoolArray, IntArray

ALWAYS = -(2**62)  # first period of arms that take part from the start
NEVER = 2**62  # the end of a stay that has none yet
KEPT = 64  # number of cached periods


def _none() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass
class Stays:
    """K stays of N arms: arm, first period, first period without it, and state of entry (-1 not known), each (K,).

    latest (N,): the last stay of every arm. entering: how many enter in a known state, by first period.
    """

    arm: IntArray = field(default_factory=_none)
    first: IntArray = field(default_factory=_none)
    end: IntArray = field(default_factory=_none)
    entry: IntArray = field(default_factory=_none)
    latest: IntArray = field(default_factory=_none)
    entering: Counter[int] = field(default_factory=Counter)
    _present: dict[tuple[int, int], BoolArray] = field(default_factory=dict)

    def begin(self, arms: IntArray, first: int, entry: IntArray, count: int) -> None:
        """Add a stay of each of these arms (M,), which enter in states (M,); count: how many arms there are now."""
        latest = np.full(count, -1, dtype=np.int64)
        latest[: self.latest.size] = self.latest
        latest[arms] = np.arange(self.arm.size, self.arm.size + arms.size)
        new = (arms, np.full(arms.size, first), np.full(arms.size, NEVER), entry)
        old = (self.arm, self.first, self.end, self.entry)
        self.arm, self.first, self.end, self.entry = (np.concatenate(pair) for pair in zip(old, new, strict=True))
        self.latest = latest
        self.entering[first] += int((entry >= 0).sum())
        self._present.clear()

    def finish(self, arms: IntArray, period: int) -> None:
        """Let the last stay of arms (M,) end: the period is the first without them."""
        self.end[self.latest[arms]] = period
        self._present.clear()

    def present(self, period: int, count: int) -> BoolArray:
        """(N,) who takes part in a period; read-only."""
        found = self._present.get((period, count))
        if found is None:
            found = np.zeros(count, dtype=bool)
            found[self.arm[(self.first <= period) & (period < self.end)]] = True
            found.flags.writeable = False
            if len(self._present) >= KEPT:
                self._present.clear()
            self._present[period, count] = found
        return found

    def entries(self, period: int, begin: int, count: int) -> IntArray:
        """(N,) the state of entry if this is the first period of a stay, otherwise -1; begin: the programme's first."""
        found = np.full(count, -1, dtype=np.int64)
        here = np.where(self.first == ALWAYS, begin, self.first) == period
        found[self.arm[here]] = self.entry[here]
        return found

    @property
    def last_first(self) -> int | None:
        """The latest start of a stay that was given; None if there is none."""
        named = self.first[self.first != ALWAYS]
        return int(named.max()) if named.size else None
