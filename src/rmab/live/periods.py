"""The periods of a live programme: labels with an order and a declared rhythm.

A label is a whole number, a date, an ISO week, a month or a time with a zone. Inside, a period is a whole number that counts
the steps of the rhythm, so that the next period is always one more. Times are elapsed seconds of UTC: a change to
or from summer time neither repeats nor loses a period.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field

from rmab.errors import ModelError
from rmab.logs.moments import parse_moment
from rmab.logs.periods import Periods

Kind = Literal["number", "date", "week", "month", "time"]
UNITS: dict[str, tuple[Kind, int]] = {
    "number": ("number", 1),
    "day": ("date", 1),
    "week": ("week", 1),
    "month": ("month", 1),
    "hour": ("time", 3600),
    "minute": ("time", 60),
    "second": ("time", 1),
}
EVERY = re.compile(r"(?:(\d{1,6})\s+)?([a-z]+?)s?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = {
    "number": "a whole number such as 12",
    "date": "a date such as 2026-11-16",
    "week": "an ISO week such as 2026-W47",
    "month": "a month such as 2026-11",
    "time": "a time such as 2026-11-16T08:00+01:00",
}


class Rhythm(BaseModel):
    """How the periods of a programme follow each other.

    Attributes
    ----------
    kind : str
        'number', 'date', 'week', 'month' or 'time'.
    step : int
        Units between two periods: 1, days, weeks, months or seconds.
    first : int
        Origin of the steps, in the same unit.
    zone : str
        Of times: the zone in which labels are written, for example 'Europe/Berlin'.

    Examples
    --------
    >>> weeks = Rhythm.of("week")
    >>> weeks.label(weeks.number("2026-W53") + 1)
    '2027-W01'
    >>> quarter = Rhythm.of("15 minutes", zone="Europe/Berlin")
    >>> [quarter.label(quarter.number("2026-10-25T02:45+02:00") + k) for k in (0, 1)]
    ['2026-10-25T02:45+02:00', '2026-10-25T02:00+01:00']
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Kind
    step: int = Field(default=1, ge=1)
    first: int = 0
    zone: str = ""

    @classmethod
    def of(cls, every: str = "week", *, start: object = None, zone: str = "") -> Self:
        """Return the rhythm of words such as 'week', '2 weeks', 'day', 'number' or '5 minutes'.

        Parameters
        ----------
        every : str
            The step from one period to the next.
        start : label, optional
            A period to count from; required if the step is more than one unit ('2 weeks').
        zone : str, optional
            For times, the zone of the labels; UTC by default.
        """
        found = EVERY.fullmatch(every.strip().lower()) if isinstance(every, str) else None
        if found is None or found[2] not in UNITS:
            raise ModelError(f"every must be one of {', '.join(UNITS)}, or several such as '5 minutes', got {every!r:.40}")
        kind, unit = UNITS[found[2]]
        step = unit * int(found[1] or 1)
        if step < 1:
            raise ModelError(f"every: the step must be at least 1, got {every!r}")
        if zone and kind != "time":
            raise ModelError(f"zone is only for times; leave it out for periods of a {found[2]}")
        if kind == "time":
            zone = zone or "UTC"
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise ModelError(f"unknown zone {zone!r:.40}; use for example Europe/Berlin") from error
        plain = cls(kind=kind, step=1, zone=zone)
        if start is None:
            if step > 1 and kind != "time":
                raise ModelError(f"start is missing; '{every}' needs a first period, {WRITTEN[kind]}")
            return cls(kind=kind, step=step, zone=zone)
        return cls(kind=kind, step=step, first=plain.number(start) % step, zone=zone)

    def number(self, label: object) -> int:
        """Return the number of a period, or raise ModelError if the label does not fit the rhythm."""
        at = self._place(label)
        number, rest = divmod(at - self.first, self.step)
        if rest:
            near = f"{self.label(number)} and {self.label(number + 1)}"
            raise ModelError(f"period {_quote_label(label)} is between {near}", code="bad-period", period=str(label))
        return number

    def _place(self, label: object) -> int:
        given = label
        if self.kind == "time":
            given = self._localise(label)
        moment = parse_moment(given)
        kind = "time" if moment.kind == "time with a zone" else moment.kind
        if kind != self.kind:
            why = f" ({moment.why})" if moment.why else ""
            wanted = WRITTEN[self.kind]
            raise ModelError(f"period {_quote_label(label)} must be {wanted}{why}", code="bad-period", period=str(label))
        return moment.at

    def _localise(self, label: object) -> object:
        """Return a time with a zone; a time without one is in the zone of the rhythm, where it must be unique."""
        try:
            when = datetime.fromisoformat(label.strip()) if isinstance(label, str) else label
        except ValueError:
            return label
        if not isinstance(when, datetime) or when.tzinfo is not None:
            return when
        early, late = (when.replace(tzinfo=ZoneInfo(self.zone), fold=fold) for fold in (0, 1))
        if early.utcoffset() != late.utcoffset():
            hint = f"write {early.isoformat(timespec='minutes')} or {late.isoformat(timespec='minutes')}"
            twice = "is ambiguous or does not exist, as clocks change"
            raise ModelError(f"period {_quote_label(label)} {twice}; {hint}", code="bad-period", period=str(label))
        return early

    def label(self, number: int) -> str:
        """Return the label of a period."""
        at = self.first + self.step * int(number)
        if self.kind != "time":
            return Periods(self.kind, at, 1, 1, "period").label(0)
        when = (EPOCH + timedelta(seconds=at)).astimezone(ZoneInfo(self.zone))
        return when.isoformat(timespec="seconds" if when.second else "minutes")

    def current(self) -> int | None:
        """Return the number of the period that it is now; None if periods are plain numbers.

        Weeks, days and months follow the local date of this machine.
        """
        now = datetime.now().astimezone()
        year, week, _ = now.isocalendar()
        labels = {"date": f"{now:%Y-%m-%d}", "month": f"{now:%Y-%m}", "week": f"{year}-W{week:02d}"}
        if self.kind == "number":
            return None
        place = int(now.timestamp()) if self.kind == "time" else self._place(labels[self.kind])
        return (place - self.first) // self.step

    @property
    def unit(self) -> str:
        """The name of one period: 'week', 'day', 'period'."""
        return {"week": "week", "date": "day", "month": "month"}.get(self.kind, "period") if self.step == 1 else "period"


def _quote_label(label: Any) -> str:
    return f"{str(label)!r:.60}"
