"""The periods of a log: whole numbers, ISO weeks, months, dates or times with a regular step.

Every period becomes a whole number of steps after the first. The step is the most common distance between two records of one
arm that follow each other; a period that is no whole number of steps away from the others is refused.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import numpy as np

from rmab.common import IntArray
from rmab.errors import ModelError
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.moments import Moment, parse_moment

ACCEPTED = "accepted are whole numbers, dates 2024-03-12, ISO weeks 2024-W11, months 2024-03, and times 2024-03-12T08:00"
UNITS = {"hour": 3600, "minute": 60, "second": 1}
NAMED = ("week", "day", "month", "year", "hour", "round", "visit", "quarter", "shift")
AHEAD = 100  # periods after the last that a list can be for
MOST_EMPTY = 100_000  # periods of which hardly any has a record: a slip, not a log
OFTEN = 4  # of so many distances one is no slip
EMPTY = 10  # steps without any record in all the log that are worth a note


@dataclass(frozen=True)
class Periods:
    """The periods 0..count-1 of a log, and how they are written.

    Attributes
    ----------
    kind : str
        'number', 'week', 'month', 'date' or 'time'.
    first, step : int
        The first period and the step between two, in units of the kind: 1, weeks, months, days or seconds.
    count : int
        From the first to the last, those without a record too.
    unit : str
        What one period is called: 'week', 'day', 'period'.
    offset : int, optional
        Of times with a zone: how many seconds its clocks are before UTC, at the end of the log.
    """

    kind: str
    first: int
    step: int
    count: int
    unit: str
    offset: int | None = None

    def label(self, period: int) -> str:
        """Return a period as the log writes it; one after the last as it would.

        Examples
        --------
        >>> Periods("week", 105_556, 1, 2, "week").label(1)
        '2024-W03'
        """
        at = self.first + self.step * int(period)
        if self.kind == "week":
            year, week, _ = date.fromordinal(7 * at + 1).isocalendar()
            return f"{year}-W{week:02d}"
        if self.kind == "month":
            return f"{at // 12}-{at % 12 + 1:02d}"
        if self.kind == "date":
            return date.fromordinal(at).isoformat()
        if self.kind == "time":
            zone = None if self.offset is None else timezone(timedelta(seconds=self.offset))
            when = datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=at + (self.offset or 0))
            return when.isoformat(timespec="seconds" if self.first % 60 or self.step % 60 else "minutes")
        return str(at)

    def find(self, label: str) -> int:
        """Return the period that is written like this: the last one, or one of the next hundred; ModelError otherwise."""
        last, text = self.count - 1, str(label).strip()
        given = self._of_kind(parse_moment(text))
        for period in range(last, last + AHEAD):
            own = self.label(period)
            if own == text or (given is not None and given == self._of_kind(parse_moment(own))):
                return period
        near = f"{self.label(last)}, the last of the log, {self.label(last + 1)}, or one after it"
        raise ModelError(f"period must be {near}, written like this or as in the log, got {quote(label)}", field="period")

    def _of_kind(self, moment: Moment) -> tuple[str, int] | None:
        """Return the kind and place of a moment, of times the date where that counts; None if it is none."""
        if self.kind in ("date", "month") and moment.local is not None:
            moment = Moment("date", moment.local.toordinal())
        if self.kind == "month" and moment.kind == "date":
            day = date.fromordinal(moment.at)
            return "month", 12 * day.year + day.month - 1
        return (moment.kind, moment.at) if moment.kind else None

    @property
    def every(self) -> str:
        """The step in words: 'every week', 'every 2 weeks'."""
        length = self.step if self.kind in ("week", "month", "number") else 1
        if self.kind == "date" and self.unit == "week":
            length = self.step // 7
        elif self.kind == "date":
            length = self.step
        elif self.kind == "time":
            length = self.step // UNITS.get(self.unit, 1)
        return f"every {self.unit}" if length == 1 else f"every {length} {self.unit}s"


def parse_periods(
    values: list[Any], codes: IntArray, arm_of: IntArray, column: str, findings: Findings
) -> tuple[Periods, IntArray] | None:
    """Return the periods, and that of every row, from the different values and the code of each row; None if wrong."""
    moments = [parse_moment(one) for one in values]
    kinds: Counter[str] = Counter()
    wrong: list[tuple[int, str]] = []
    sizes = np.bincount(codes[codes >= 0], minlength=len(values))
    for k, one in enumerate(moments):
        if one.kind:
            kinds[one.kind] += int(sizes[k])
        else:
            why = f" ({one.why})" if one.why else ""
            hint = "" if wrong else f"; {ACCEPTED}"
            wrong.append((k, f"{quote(values[k])} in column {quote(column)} is not a period{why}{hint}"))
    findings.add_each(codes, wrong)
    if not kinds or len(kinds) > 1 or not all(one.kind for one in moments):
        _refuse_kinds(kinds, moments, values, codes, column, findings)
        return None
    kind, at, offset = _unify(next(iter(kinds)), moments)
    if kind == "number" and not _plain(at, column, findings):
        return None
    place = np.where(codes >= 0, at[codes], -1)
    step = _step(place[codes >= 0], arm_of[codes >= 0], at)
    usual = Counter(((at - at.min()) % step).tolist()).most_common(1)[0][0]
    off = np.flatnonzero((at - at.min() - usual) % step)
    length = f"{step} {_plural(kind)}".strip()
    hint = "; where the day does not matter, write the week (2024-W11) or the month" if kind in ("date", "time") else ""
    hint = hint if offset is None else "; where clocks change between summer and winter, write times without a zone"
    what = f"does not fit the step of {length} between periods"
    several = [(int(k), f"{quote(values[k])} {what}{hint if k == off[0] else ''}") for k in off]
    findings.add_each(codes, several)
    if off.size:
        return None
    first = int(at.min())
    found = Periods(kind, first, step, int((at.max() - first) // step) + 1, _unit(kind, step, column), offset)
    seen = np.unique((at - first) // step)
    if found.count > MOST_EMPTY and found.count > 100 * seen.size:
        _refuse_far(found, seen, place, findings)
        return None
    _note_holes(found, seen, findings)
    return found, np.asarray((place - first) // step, dtype=np.int64)


def _refuse_kinds(
    kinds: Counter[str], moments: list[Moment], values: list[Any], codes: IntArray, column: str, findings: Findings
) -> None:
    """Name the rows whose periods are of another kind than most."""
    if len(kinds) < 2:
        return
    usual = kinds.most_common(1)[0][0]
    for other in (kind for kind in kinds if kind != usual):
        those = [k for k, one in enumerate(moments) if one.kind == other]
        what = f"column {quote(column)} mixes types: a {other} such as {quote(values[those[0]])}, where most are a {usual}"
        findings.add(what, np.flatnonzero(np.isin(codes, those)))


def _unify(kind: str, moments: list[Moment]) -> tuple[str, IntArray, int | None]:
    """Return the kind, the places, and the offset of a zone.

    Times of one hour of the day are dates, and dates of one day of the month are months.
    """
    if kind.startswith("time"):
        locals_ = [one.local for one in moments if one.local is not None]
        if len({one.time() for one in locals_}) == 1:  # summer time changes the hour of the world, not that of the clock
            moments = [Moment("date", one.toordinal()) for one in locals_]
            kind = "date"
        else:
            last = max(moments, key=lambda one: one.at)
            ahead = (last.local - datetime(1970, 1, 1)).total_seconds() // 1 - last.at if last.local else 0
            offset = None if kind == "time" else int(ahead)
            return "time", np.array([one.at for one in moments], dtype=np.int64), offset
    if kind == "date":
        days = [date.fromordinal(one.at) for one in moments]
        ends = all(one.day == monthrange(one.year, one.month)[1] for one in days)
        if len(days) > 1 and (len({one.day for one in days}) == 1 or ends) and _monthly(days):
            return "month", np.array([12 * one.year + one.month - 1 for one in days], dtype=np.int64), None
    return kind, np.array([one.at for one in moments], dtype=np.int64), None


def _monthly(days: list[date]) -> bool:
    """Return whether no two days are closer than a month."""
    ordered = np.sort([one.toordinal() for one in days])
    return bool((np.diff(ordered) >= 28).all()) and not bool((np.diff(ordered) % 28 == 0).all())


def _plain(at: IntArray, column: str, findings: Findings) -> bool:
    """Return whether whole numbers are counted on, not weeks or dates written without signs."""
    low, high = int(at.min()), int(at.max())
    if low >= 19_000_101 and high <= 21_001_231 and ((at // 100 % 100 <= 12) & (at % 100 <= 31)).all():
        findings.add(f"column {quote(column)} has numbers such as {low} that look like dates; write 2024-03-12")
        return False
    if low >= 190_001 and high <= 210_053 and (at % 100 <= 53).all() and low // 100 < high // 100:
        findings.add(
            f"column {quote(column)} has numbers such as {low} that look like year and week, or month, and jump at the "
            "end of a year; write 2024-W11, or 2024-03"
        )
        return False
    return True


def _step(place: IntArray, arm_of: IntArray, at: IntArray) -> int:
    """Return the most common distance of two records of an arm that follow each other; of two periods if there is none."""
    order = np.lexsort((place, arm_of))
    jumps = np.diff(place[order])[np.diff(arm_of[order]) == 0]
    jumps = jumps[jumps > 0]
    if jumps.size == 0:
        jumps = np.diff(np.unique(at))
    if jumps.size == 0:
        return 1
    lengths, times = np.unique(jumps, return_counts=True)
    usual, least = int(lengths[np.argmax(times)]), int(lengths[0])
    if (lengths % usual).any() and not (lengths % least).any() and OFTEN * times[0] >= jumps.size:
        return least  # many gaps: the shortest distance is no slip
    return usual


def _plural(kind: str) -> str:
    return {"week": "weeks", "month": "months", "date": "days", "time": "seconds"}.get(kind, "")


def _unit(kind: str, step: int, column: str) -> str:
    """Return what a period is called, by its kind and step, or by the name of the column."""
    if kind in ("week", "month"):
        return kind
    if kind == "date":
        return "week" if step % 7 == 0 else "day"
    if kind == "time":
        return next((name for name, length in UNITS.items() if step % length == 0), "second")
    words = re.findall(r"[a-z]+", column.lower())
    return next((name for name in NAMED for word in words if word in (name, f"{name}s")), "period")


def _refuse_far(found: Periods, seen: IntArray, place: IntArray, findings: Findings) -> None:
    """Name the rows beyond the longest stretch without any record, where the fewer are."""
    hole = int(np.diff(seen).argmax())
    late = place > found.first + found.step * int(seen[hole])
    few = late if late[place >= found.first].mean() < 0.5 else ~late & (place >= found.first)
    length = f"{int(seen[hole + 1] - seen[hole]):,} {found.unit}s"
    what = (
        f"{found.label(int(seen[hole]))} and {found.label(int(seen[hole + 1]))} are {length} apart, with no record between"
    )
    findings.add(f"{what}; if that is a slip, correct it here", np.flatnonzero(few))


def _note_holes(found: Periods, seen: IntArray, findings: Findings) -> None:
    """Note long stretches in which nobody has a record: a programme that paused, or a slip in a date."""
    seen = np.sort(seen)
    holes = [(int(a), int(b)) for a, b in pairwise(seen) if b - a > EMPTY]
    if holes:
        stretches = [f"between {found.label(a)} and {found.label(b)} ({b - a - 1} {found.unit}s)" for a, b in holes]
        findings.note(
            f"nobody has a record {list_some(stretches, 3)}; if that is a slip, correct it: the plan begins after the last"
        )
