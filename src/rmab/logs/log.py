"""The log of a programme: who was in which state in which period, and who was acted on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import (
    BoolArray,
    Dialect,
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_indices,
    as_integer,
    as_table,
    cached_property,
    frozen,
)
from rmab.errors import ModelError, many
from rmab.logs.findings import Note, list_some
from rmab.logs.periods import MOST_EMPTY, Periods
from rmab.logs.roster import Roster
from rmab.logs.words import Words


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

    def where(self, rows: BoolArray) -> Transitions:
        """Return the transitions of these rows (M,)."""
        return Transitions(*(frozen(one[rows]) for one in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Log(ReadOnly):
    """A log, as `rmab.data.read_log` returns it: R records of N arms, in the order of arms and periods.

    It is checked on construction: ModelError where shapes, indices or the order of records are wrong.

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
    notes : tuple of Note
        What is worth knowing, with line numbers.
    chance : (R,) float array, optional
        The probability of being on the list that each arm had; NaN where it is not known.
    listed : (R,) int array, optional
        Who was on the list, 1 or 0; -1 where it is not known. Without it, `action` is what was decided.
    reached : (R,) int array, optional
        Whether an action reached the arm, 1 or 0; -1 if unknown. `action` is what was decided.
    dialect : Dialect, optional
        How its CSV file is written, where that is not with commas in UTF-8: lists are written alike.
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
    notes: tuple[Note, ...]
    chance: FloatArray | None = None
    listed: IntArray | None = None
    reached: IntArray | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        count, states, rows = len(self.arms), len(self.state_names), np.size(self.arm_of)
        if not 1 <= self.periods.count <= max(MOST_EMPTY, 100 * rows):
            raise ModelError(f"periods: {self.periods.count} periods do not fit {rows} records")
        try:
            self.periods.label(0), self.periods.label(self.periods.count)
        except (OverflowError, ValueError) as error:
            raise ModelError(f"periods: invalid time ({error})") from error
        limits = {"arm_of": (0, count), "period": (0, self.periods.count), "state": (-1, states), "action": (-1, 2)}
        for name, (start, stop) in limits.items():
            object.__setattr__(self, name, as_indices(getattr(self, name), name, (rows,), stop, start))
        object.__setattr__(self, "factor_of", self.roster.factor_of)
        later = np.diff(self.arm_of)
        if not ((later > 0) | ((later == 0) & (np.diff(self.period) > 0))).all():
            raise ModelError("records must be in the order of arms and periods, one for each arm and period")
        if self.reward is not None:
            paid = frozen(as_floats(self.reward, "reward"))
            if paid.shape != (rows,) or np.isinf(paid).any():
                raise ModelError(f"reward must be {rows} finite numbers, NaN if unknown")
            object.__setattr__(self, "reward", paid)
        if self.chance is not None:
            drawn = frozen(as_floats(self.chance, "chance"))
            as_table(np.where(np.isnan(drawn), 0.0, drawn), "chance", (rows,), 0.0, 1.0)
            object.__setattr__(self, "chance", drawn)
        for name in ("listed", "reached"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_indices(getattr(self, name), name, (rows,), 2, -1))

    def __repr__(self) -> str:
        size = f"{many(len(self.arms), 'arm')}, {many(self.periods.count, self.periods.unit)}"
        return f"Log({size}, {many(self.arm_of.size, 'record')}, states {list_some(self.state_names, 4)})"

    @cached_property
    def transitions(self) -> Transitions:
        """All pairs of records in periods that follow each other: a gap is never bridged."""
        follows = (np.diff(self.arm_of) == 0) & (np.diff(self.period) == 1)
        first = np.flatnonzero(follows)
        known = (self.state[first] >= 0) & (self.state[first + 1] >= 0) & (self.action[first] >= 0)
        first = first[known]
        earlier = np.concatenate([[False], follows])[first]
        before = np.where(earlier, self.state[first - 1], -1)
        now = (one[first] for one in (self.arm_of, self.period, self.state, self.action))
        return Transitions(*(frozen(np.ascontiguousarray(one)) for one in (*now, self.state[first + 1], before)))

    @property
    def words(self) -> Words:
        """What an action and a period are called."""
        return Words(self.word, self.periods.unit)

    @property
    def roster(self) -> Roster:
        """The arms and their groups."""
        return Roster(self.arms, self.factors, self.factor_of)

    def until(self, period: int) -> Log:
        """Return the log up to a period, counted from 0, itself left out; all arms, states and groups stay."""
        stop = as_integer(period, "period")
        if not 1 <= stop <= self.periods.count:
            raise ModelError(f"period must be in 1..{self.periods.count} of the log, got {stop}", field="period")
        early = self.period < stop
        names = ("arm_of", "period", "state", "action", "reward", "chance", "listed", "reached")
        rows = {name: getattr(self, name)[early] for name in names if getattr(self, name) is not None}
        return replace(self, **rows, periods=replace(self.periods, count=stop))
