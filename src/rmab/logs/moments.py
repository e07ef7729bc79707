"""One value of the period's column: what it means, or why it means nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

WEEK = re.compile(r"(\d{4})-?W(\d{1,2})", re.IGNORECASE)
WEEK_OF = re.compile(r"(?:KW|CW|W|Wk|Week|Woche)\.?\s*(\d{1,2})(?:\s*[/ -]\s*(\d{4}))?", re.IGNORECASE)  # KW 2, KW 2/2026
MONTH = re.compile(r"(\d{4})-(\d{1,2})")
WHOLE = re.compile(r"[+-]?\d{1,15}(\.0+)?")
DOTTED = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
LATEST = date(9000, 1, 1).toordinal()
LARGEST = 10**15  # of whole numbers


@dataclass(frozen=True)
class Moment:
    """One value of the period's column: its kind and its place in units of the kind; why it is none, where it is none."""

    kind: str
    at: int = 0
    local: datetime | None = None
    why: str = ""


def parse_moment(value: Any) -> Moment:
    """Return what a value of the period's column means.

    Examples
    --------
    >>> parse_moment("2024-W11").kind, parse_moment("12/03/2024").why
    ('week', 'write dates as 2024-03-12: this can be read in two ways')
    """
    if isinstance(value, str):
        return _plausible(_from_text(value.strip()))
    if isinstance(value, datetime):
        return _plausible(_time(value))
    if isinstance(value, date):
        return _plausible(Moment("date", value.toordinal()))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Moment("", why=f"a period cannot be {type(value).__name__}")
    return _plausible(Moment("number", int(value))) if value == value // 1 else Moment("", why="not whole")


def _from_text(text: str) -> Moment:
    if WHOLE.fullmatch(text):
        return Moment("number", int(float(text)))
    if found := WEEK.fullmatch(text):
        return _week(int(found[1]), int(found[2]))
    if found := MONTH.fullmatch(text):
        year, month = int(found[1]), int(found[2])
        return Moment("month", 12 * year + month - 1) if 1 <= month <= 12 and year else Moment("", why="no such month")
    if found := DOTTED.fullmatch(text):  # with dots the day comes first, wherever dates are written so
        return _date(int(found[3]), int(found[2]), int(found[1]))
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        slashed = re.fullmatch(r"\d{1,4}[./ -]\d{1,2}[./ -]\d{1,4}\.?", text)
        hint = "write dates as 2024-03-12: this can be read in two ways"
        iso = re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", text)
        if week := WEEK_OF.fullmatch(text):
            slashed, hint = week, f"write the year, too: {week[2] or date.today().year}-W{int(week[1]):02d}"
        return Moment("", why=str(error) if iso else hint if slashed else "")
    return Moment("date", when.date().toordinal()) if len(text) <= 10 else _time(when)


def _plausible(moment: Moment) -> Moment:
    """Return the moment, unless it is so late that the ones after it have no name, or too large to count with."""
    if moment.kind == "number" and abs(moment.at) >= LARGEST:
        return Moment("", why="too large")
    last = {"week": 7, "month": 30.5, "date": 1, "time": 1 / 86400, "time with a zone": 1 / 86400}
    days = moment.at * last.get(moment.kind, 0.0) + (719_163 if moment.kind.startswith("time") else 0)
    return Moment("", why="too far in the future") if days > LATEST else moment


def _week(year: int, week: int) -> Moment:
    try:
        return Moment("week", (date.fromisocalendar(year, week, 1).toordinal() - 1) // 7)
    except ValueError:
        return Moment("", why=f"{year} has no week {week}")


def _date(year: int, month: int, day: int) -> Moment:
    try:
        return Moment("date", date(year, month, day).toordinal())
    except ValueError as error:
        return Moment("", why=str(error))


def _time(when: datetime) -> Moment:
    zone = "time with a zone" if when.tzinfo is not None else "time"
    local = when.replace(tzinfo=None)
    try:
        since = (when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo is not None else local) - datetime(1970, 1, 1)
    except (OverflowError, ValueError):  # the year 1 or 9999
        return Moment("", why="too far from now")
    return Moment(zone, int(since.total_seconds() // 1), local)
