"""Who may get a place: ids with an index, and everything else that a decision can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    BoolArray,
    Dialect,
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_indices,
    as_table,
    expect,
    frozen,
    is_several,
)
from rmab.decisions.spending import Costs, costs_of
from rmab.errors import ModelError
from rmab.logs.roster import Roster
from rmab.logs.words import PLAIN_WORDS, Words

DIGITS = 9  # of the largest index: relative differences below this count as ties
FAMILIAR = 7  # the largest degree of familiarity
LONGEST = 2**31  # periods that can be counted


@dataclass(frozen=True, eq=False)
class Candidates(ReadOnly):
    """N arms that may get a place, checked on construction: all that a decision needs.

    Attributes
    ----------
    roster : Roster
        Their ids, and the columns of groups that caps and fairness use.
    index : (N,) float array
        Expected gain of acting on each arm now, in `words.unit`.
    states : tuple of str
        (N,) the state of each in words; empty if unknown.
    waited : (N,) int array
        Periods since the arm was last acted on. Ties go to the arm that has waited longest; floors use it.
    never : (N,) bool array
        Whether the arm was never acted on.
    details : tuple of str
        (N,) text that explains the index, used in the reasons; may be empty.
    period : str
        The period that is decided, in words.
    words : Words
        Names of an action, a period and the unit of the index.
    least : float
        Smallest index that earns a place: 0, or minus infinity to fill all places.
    unseen : tuple of str
        States in which no action was ever recorded, so its effect is unknown.
    gone : tuple of str
        Ids of arms that have left.
    done : tuple of str
        Ids of arms that were already acted on in this period: they get a place only if `must` names them.
    why : str
        Explains why the list is for this period.
    unmade : str
        The last period of the log, if its list may be outstanding; empty otherwise.
    dialect : Dialect, optional
        How the log's CSV file is written.
    seen : (N,) int array, optional
        Number of recorded actions in the arm's group. Random places prefer arms of groups with few records.
    cost : (N,) float array, optional
        Cost of acting on each arm, if costs differ; the index is then per unit of cost.

    Examples
    --------
    >>> Candidates.of({"ann": 0.4, "bea": 0.1}).roster.ids
    ('ann', 'bea')
    """

    roster: Roster
    index: FloatArray
    states: tuple[str, ...]
    waited: IntArray
    never: BoolArray
    details: tuple[str, ...]
    period: str = ""
    words: Words = PLAIN_WORDS
    least: float = 0.0
    unseen: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    why: str = ""
    dialect: Dialect | None = None
    seen: IntArray | None = None
    cost: FloatArray | None = None
    unmade: str = ""

    def __post_init__(self) -> None:
        count = len(self.roster.ids)
        object.__setattr__(self, "index", as_table(self.index, "index", (count,)))
        object.__setattr__(self, "waited", as_indices(self.waited, "waited", (count,), LONGEST, -1))
        object.__setattr__(self, "never", frozen(as_indices(self.never, "never", (count,), 2) == 1))
        seen = np.zeros(count, dtype=np.int64) if self.seen is None else self.seen
        object.__setattr__(self, "seen", as_indices(seen, "seen", (count,), LONGEST))
        object.__setattr__(self, "cost", costs_of(self.cost, self.roster.ids))
        for name in ("states", "details"):
            if len(getattr(self, name)) != count:
                raise ModelError(f"{name} must have {count} entries, one for each arm, got {len(getattr(self, name))}")

    @classmethod
    def of(
        cls,
        index: Mapping[str, float] | ArrayLike,
        *,
        ids: Sequence[object] | None = None,
        groups: Mapping[str, Sequence[object]] | None = None,
        states: Sequence[object] | None = None,
        waited: ArrayLike | None = None,
        period: str = "",
        words: Words = PLAIN_WORDS,
        least: float = 0.0,
        cost: Costs | None = None,
    ) -> Candidates:
        """Return candidates from indices (N,), or from a dictionary of ids and indices; everything else is optional.

        Parameters
        ----------
        index : array_like of float, shape (N,), or dict of str to float
            Expected gain of acting on each arm.
        ids : sequence, optional
            (N,) the ids; by default '0', '1', ...
        groups : dict of str to sequence of str, optional
            Columns of groups, each (N,): ``{"district": ["north", ...]}``.
        states : sequence of str, optional
            (N,) the state of each arm in words.
        waited : array_like of int, shape (N,), optional
            Periods since each arm was last acted on; 0 by default.
        period, words, least
            As in `Candidates`.
        cost : float, array_like (N,), dict of str to float, or path, optional
            What acting on each arm costs; a file has the columns id and cost. The index is then per unit of cost.
        """
        expect(words, Words, "words", "; for example Words(action='call', period='week')")
        expect(period, str, "period")
        for name, given in (("ids", ids), ("states", states)):
            if given is not None and not is_several(given):
                raise ModelError(f"{name} must be one for each arm, got {given!r:.40}", field=name)
        if isinstance(index, Mapping):
            ids, index = list(index), list(index.values())
        values = as_floats(index, "index")
        if values.ndim != 1:
            raise ModelError(f"index must be one number for each arm, got shape {values.shape}")
        none = ("",) * values.size
        roster = Roster.of(range(values.size) if ids is None else ids, groups)
        seen = none if states is None else tuple(str(one) for one in states)
        times = as_floats(np.zeros(values.size) if waited is None else waited, "waited")
        since, never = as_indices(times, "waited", times.shape, LONGEST, -1), np.zeros(values.size, dtype=bool)
        spent = costs_of(cost, roster.ids)
        return cls(roster, values, seen, since, never, none, period, words, least, cost=spent)

    @property
    def scale(self) -> float:
        """The largest index in size, the scale of ties."""
        return max(float(np.abs(self.index).max(initial=0.0)), 1e-300)

    @property
    def level(self) -> FloatArray:
        """(N,) the index relative to the largest, rounded: arms of the same level are tied."""
        return np.asarray(np.round(self.index / self.scale, DIGITS)) + 0.0

    @property
    def helped(self) -> BoolArray:
        """(N,) whose index earns a place."""
        return np.asarray(
            self.level > (np.round(self.least / self.scale, DIGITS) if np.isfinite(self.least) else self.least)
        )

    @property
    def familiarity(self) -> IntArray:
        """(N,) 0 if no action was recorded in the arm's group, 1 for up to 2, 2 for up to 6, ..., 7 from 127 on."""
        assert self.seen is not None
        return np.asarray(np.minimum(np.log2(self.seen + 1.0), FAMILIAR).astype(np.int64))

    def rank(self, draws: FloatArray) -> IntArray:
        """Return the arms, the highest index first; ties go to the longest waiting, then by random draws (N,).

        With costs, the more expensive go before the draws, as they are harder to fit.
        """
        cost = np.zeros(draws.size) if self.cost is None else self.cost
        return np.asarray(np.lexsort((draws, -cost, -self.waited, -self.level)))
