"""The log of a programme: who was in which state in which period, and who was acted on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.forks import cached_property
from rmab.common.words import many
from rmab.logs.faults import Fault, listed
from rmab.logs.periods import Periods


@dataclass(frozen=True, eq=False)
class Transitions(ReadOnly):
    """Two records of an arm in periods that follow each other, both states and the action between them known.

    All (M,): the arm, the period and the state of the first record, the action, the state of the second, and the state
    before the first (-1 where it is not known).
    """

    arm: IntArray
    period: IntArray
    state: IntArray
    action: IntArray
    after: IntArray
    before: IntArray

    def where(self, chosen: BoolArray) -> Transitions:
        """Return some of them."""
        return Transitions(*(frozen(one[chosen]) for one in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Log(ReadOnly):
    """A checked log, as `rmab.data.read_log` returns it: R records of N arms, in the order of arms and periods.

    Attributes
    ----------
    arms : tuple of str
        The ids (N,), as they are written, in the order in which they first appear.
    state_names : tuple of str
        The S states.
    periods : Periods
        How periods are counted and written.
    arm_of, period, state, action : (R,) int arrays
        Of every record. State and action are -1 where they are not known.
    reward : (R,) float array or None
        What was earned; NaN where it is not known.
    factors : dict of str to tuple of str
        The values of every column of groups.
    factor_of : (N, F) int array
        The value of every arm.
    ordered : bool
        Whether the order of the states means something: they are numbers, or were given in order.
    word : str
        What an action is called: 'call', 'visit', 'action'.
    notes : tuple of Fault
        What is worth knowing, with line numbers.
    """

    arms: tuple[str, ...]
    state_names: tuple[str, ...]
    periods: Periods
    arm_of: IntArray
    period: IntArray
    state: IntArray
    action: IntArray
    reward: FloatArray | None
    factors: dict[str, tuple[str, ...]]
    factor_of: IntArray
    ordered: bool
    word: str
    notes: tuple[Fault, ...]

    def __repr__(self) -> str:
        size = f"{many(len(self.arms), 'arm')}, {many(self.periods.count, self.periods.unit)}"
        return f"Log({size}, {many(self.arm_of.size, 'record')}, states {listed(self.state_names, 4)})"

    @cached_property
    def transitions(self) -> Transitions:
        """All pairs of records in periods that follow each other: a gap is never bridged."""
        follows = (np.diff(self.arm_of) == 0) & (np.diff(self.period) == 1)
        first = np.flatnonzero(follows)
        known = (self.state[first] >= 0) & (self.state[first + 1] >= 0) & (self.action[first] >= 0)
        first = first[known]
        earlier = np.concatenate([[False], follows])[first]
        before = np.where(earlier, self.state[first - 1], -1)
        parts = (
            self.arm_of[first],
            self.period[first],
            self.state[first],
            self.action[first],
            self.state[first + 1],
            before,
        )
        return Transitions(*(frozen(np.ascontiguousarray(one)) for one in parts))

    @property
    def a_word(self) -> str:
        """What an action is called, with its article: 'a call', 'an action'."""
        return f"{'an' if self.word[0] in 'aeiou' else 'a'} {self.word}"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """(N,) the groups of every arm in words: '20-29, north'; empty where the log has none."""
        columns = [np.array(values)[self.factor_of[:, f]] for f, values in enumerate(self.factors.values())]
        return tuple(", ".join(row) for row in zip(*columns, strict=True)) if columns else ("",) * len(self.arms)

    def until(self, period: int) -> Log:
        """Return the log up to a period, itself left out; all arms, states and groups stay."""
        kept = self.period < period
        rows = {name: frozen(getattr(self, name)[kept]) for name in ("arm_of", "period", "state", "action")}
        reward = None if self.reward is None else frozen(self.reward[kept])
        fields = {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}
        periods = Periods(**{**vars(self.periods), "count": period})
        return Log(**{**fields, **rows, "reward": reward, "periods": periods})
