"""A decision: who is activated in a period, with index, rank, rule, probability and reason, and the runners-up."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rmab.common import (
    PLAIN_DIALECT,
    TABLE_SUFFIXES,
    BoolArray,
    Dialect,
    Fields,
    FloatArray,
    Format,
    IntArray,
    ReadOnly,
    Stored,
    as_amount,
    as_floats,
    as_indices,
    as_integer,
    as_table,
    checked_suffix,
    frozen,
    pack,
    unpack,
    write_table,
)
from rmab.decisions.changes import Changes
from rmab.decisions.fairness import Fairness
from rmab.decisions.spending import ROUNDING as COSTS_MISS, costs_of
from rmab.errors import ModelError, many
from rmab.logs.roster import Roster
from rmab.logs.words import Words

LEFT_OUT = "left out at random"  # start of the reason of an arm that the index chose and the draw left out
UNFIT = "does not fit"  # how the reason of an arm begins that costs more than what is left
ROUNDING = 1e-8  # relative to the largest index: closer indices may be ranked in any order


@dataclass(frozen=True)
class Row:
    """One line of a list."""

    id: str
    state: str
    action: str
    rank: int
    index: float
    by: str
    chance: float
    reason: str
    since: str = ""
    cost: float | None = None


@dataclass(frozen=True, eq=False)
class Decision(ReadOnly, Stored):
    """Who is activated in a period, as `rmab.data.decide` returns it; checked on construction.

    Attributes
    ----------
    period : str
        The period that it is for.
    budget : int or float
        How many places there were, or how much could be spent.
    arms, states : tuple of str
        (N,) the ids of all arms, and their states in words.
    index : (N,) float array
        Expected gain of acting on each arm now, in `words.unit`.
    rank : (N,) int array
        0 for the arm of the highest index.
    rule : tuple of str
        (N,) the rule that gave each arm its place: 'name', 'floor', 'index', 'lot', or a custom one; empty for no place.
    probability : (N,) float array
        The probability of being on the list that each arm had, over all seeds; NaN only in files of older versions.
    reasons : tuple of str
        (N,) why, in a sentence.
    prices : dict of str to float
        Price of each cap: the gain from one more place.
    fairness : tuple of Fairness
        Groups that get nearly all places, and the cost of a fairer list.
    notes : tuple of str
        What a reader should know.
    words : Words
        Names of an action, a period and the unit of the index.
    groups : dict of str to tuple of str, optional
        Columns of groups, each (N,).
    changes : Changes, optional
        What changed since the last list, if it was given.
    dialect : Dialect, optional
        Format of CSV files, if not comma-separated in UTF-8: that of the log.
    cost : (N,) float array, optional
        What acting on each arm costs, where that differs; the index is then per unit of cost.
    standing : str
        What the log shows of the effect, as in `Evaluation.standing`; empty if that is not known.

    Examples
    --------
    >>> import rmab
    >>> found = rmab.data.decide({"ann": 0.4, "bea": 0.1, "cleo": 0.3}, budget=2)
    >>> found
    Decision(2 of 3 arms)
    >>> [(row.id, row.reason) for row in found.rows()]
    [('ann', '1st of 3'), ('cleo', '2nd of 3')]
    """

    FORMAT = Format("rmab decision", 1, {"arms", "index", "rule"}, prefix="")

    period: str
    budget: float
    arms: tuple[str, ...]
    states: tuple[str, ...]
    index: FloatArray
    rank: IntArray
    rule: tuple[str, ...]
    probability: FloatArray
    reasons: tuple[str, ...]
    prices: dict[str, float]
    fairness: tuple[Fairness, ...]
    notes: tuple[str, ...]
    words: Words
    groups: dict[str, tuple[str, ...]] | None = None
    changes: Changes | None = None
    dialect: Dialect | None = None
    cost: FloatArray | None = None
    standing: str = ""

    def __post_init__(self) -> None:
        count = len(self.arms)
        object.__setattr__(self, "index", as_table(self.index, "index", (count,)))
        object.__setattr__(self, "rank", as_indices(self.rank, "rank", (count,), count))
        Roster.of(self.arms)  # all different
        order = np.argsort(self.rank)
        if np.unique(self.rank).size < count:
            raise ModelError("rank must be 0, 1, 2, ... of the arms, each once", field="rank")
        if (np.diff(self.index[order]) > np.abs(self.index).max(initial=0.0) * ROUNDING).any():
            raise ModelError("rank does not match index: the highest index has rank 0", field="rank")
        chance = as_floats(self.probability, "probability")
        as_table(np.where(np.isnan(chance), 0.0, chance), "probability", (count,), 0.0, 1.0)
        object.__setattr__(self, "probability", frozen(chance))
        several = {name: getattr(self, name) for name in ("states", "rule", "reasons")}
        for name, values in (several | ({} if self.changes is None else {"changes": self.changes.words})).items():
            if len(values) != count:
                raise ModelError(f"{name} must have {count} entries, one for each arm, got {len(values)}")
        for name, values in (self.groups or {}).items():
            if len(values) != count:
                raise ModelError(f"groups: {name} must have {count} entries, one for each arm, got {len(values)}")
        object.__setattr__(self, "cost", costs_of(self.cost, self.arms))
        if self.cost is not None:
            if self.spent > as_amount(self.budget, "budget") * (1.0 + COSTS_MISS):
                raise ModelError(f"budget must be at least {self.spent:g}, what the list costs, got {self.budget:g}")
        elif not self.spent <= as_integer(self.budget, "budget") <= count:
            raise ModelError(f"budget must be in {self.spent}..{count}, got {self.budget}")
        if (self.active & (chance == 0)).any():
            raise ModelError("probability is 0 for an arm that is on the list", field="probability")

    @property
    def active(self) -> BoolArray:
        """(N,) who is on the list."""
        return np.array([one != "" for one in self.rule], dtype=bool)

    @property
    def spent(self) -> float:
        """How much of the budget the list takes: how many are on it, or what they cost."""
        return int(self.active.sum()) if self.cost is None else float(self.cost[self.active].sum())

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids on the list, the best first."""
        return tuple(self.arms[n] for n in self._line(self.active))

    def _line(self, mask: BoolArray) -> IntArray:
        places = np.flatnonzero(mask)
        return np.asarray(places[np.argsort(self.rank[places], kind="stable")])

    def rows(self, upcoming: int | None = 0, *, first: int | None = None) -> list[Row]:
        """Return the list, the best first (of it no more than `first`), followed by `upcoming` runners-up.

        upcoming=None: everybody else. Arms that were dropped since the last list come at the end.
        """
        without = "no place" if upcoming is None else "next in line"
        return [self._row(int(n), without) for n in self._lines(upcoming, first)]

    def _lines(self, upcoming: int | None, first: int | None = None) -> IntArray:
        others = self._line(~self.active & (self.index > 0 if upcoming is not None else True))
        after = others if upcoming is None else others[: as_integer(upcoming, "upcoming")]
        if upcoming and self.changes is not None:
            dropped = self._line(np.array([one.startswith("dropped") for one in self.changes.words], dtype=bool))
            after = np.concatenate([after, dropped[~np.isin(dropped, after)]])
        most = None if first is None else max(as_integer(first, "first"), 0)
        return np.concatenate([self._line(self.active)[:most], after])

    def _row(self, n: int, without: str) -> Row:
        rule, reason = self.rule[n], self.reasons[n]
        numbers = (int(self.rank[n]) + 1, float(self.index[n]), rule, float(self.probability[n]))
        waits = not rule and self.index[n] > 0 and not reason.startswith((LEFT_OUT, UNFIT))
        shown = f"{without}: {reason}" if waits else reason
        since = "" if self.changes is None else self.changes.words[n]
        cost = None if self.cost is None else float(self.cost[n])
        return Row(self.arms[n], self.states[n], "yes" if rule else "no", *numbers, shown, since, cost)

    def to_table(self, upcoming: int | None = 10) -> pa.Table:
        """Return `rows(upcoming)` as an Arrow table, with the period and the groups; `.to_pandas()` makes a DataFrame."""
        rows, line = self.rows(upcoming), self._lines(upcoming)
        try:
            table = pa.table({name: [getattr(one, name) for one in rows] for name in SCHEMA.names}, schema=SCHEMA)
            table = table.add_column(1, "period", pa.array([self.period] * len(rows), pa.string()))
            if self.cost is not None:
                table = table.append_column("cost", pa.array([one.cost for one in rows], pa.float64()))
            if self.changes is not None:
                table = table.append_column("since", pa.array([one.since for one in rows], pa.string()))
            for name, values in (self.groups or {}).items():
                own = f"{name} (group)" if name in table.column_names else name
                table = table.append_column(own, pa.array([values[n] for n in line], pa.string()))
        except UnicodeEncodeError as error:
            raise ModelError(f"{error.object!a:.60} has half a character (a surrogate): cannot be written") from error
        return table

    def save(self, path: str | os.PathLike[str], upcoming: int | None = 10, *, raw: bool = False) -> None:
        """Write the decision to a file, by its suffix; FileError if it cannot be written.

        `.csv`, `.parquet` and `.xlsx` contain the list for people, and `upcoming` runners-up (None: everybody, as
        `rmab.data.measure` needs it); a CSV file is written as that of the log was. `.npz` and `.json` contain all,
        and `load` reads them. In a CSV file, text that a spreadsheet would read as a formula gets an apostrophe,
        unless `raw` is set, for programs.
        """
        if checked_suffix(path, (*TABLE_SUFFIXES, *self.FORMAT.suffixes)) in TABLE_SUFFIXES:
            write_table(self.to_table(upcoming), path, raw=raw, dialect=self.dialect or PLAIN_DIALECT)
        else:
            super().save(path)

    def to_fields(self) -> Fields:
        """Return the decision as plain arrays and text by name."""
        return pack(self)

    @classmethod
    def from_fields(cls, fields: Fields) -> Decision:
        """Build the decision from its fields, checked as on construction; ModelError if they are not valid."""
        return unpack(cls, {"standing": "", **fields})  # files of version 0.3.0 have no standing

    def __repr__(self) -> str:
        label = f", for {self.period}" if self.period else ""
        return f"Decision({int(self.active.sum())} of {many(len(self.arms), 'arm')}{label})"


SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "state", "action")),
        ("rank", pa.int64()),
        ("index", pa.float64()),
        ("by", pa.string()),
        ("chance", pa.float64()),
        ("reason", pa.string()),
    ]
)
