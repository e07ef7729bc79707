"""What is wrong with a log, and what is worth knowing: collected first, then reported all at once, with line numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import IntArray
from rmab.errors import LogError, escape

SHOWN = 5  # line numbers that a note shows
MANY, FIRST = 10, 5  # values that are reported one by one, and of more than these so many
LONGEST = 60  # characters of a value that are quote


@dataclass(frozen=True)
class Note:
    """Something about a log, and where it stands.

    Attributes
    ----------
    what : str
        What it is, in words.
    at : tuple of int
        All lines of the file (the header is line 1), or rows of a table (from 0); empty where it concerns the whole.
    unit : str
        'line' or 'row'.
    code : str
        A short name of the problem for programs, where one is needed; empty elsewhere.
    """

    what: str
    at: tuple[int, ...] = ()
    unit: str = "line"
    code: str = ""

    def __str__(self) -> str:
        if not self.at:
            return self.what
        shown = ", ".join(f"{one:,}" for one in self.at[:SHOWN])
        rest = f" and {len(self.at) - SHOWN:,} more" if len(self.at) > SHOWN else ""
        return f"{self.unit}{'s' if len(self.at) > 1 else ''} {shown}{rest}: {self.what}"


class Findings:
    """A collection while a log is read: `errors` stop it in the end, `notes` do not."""

    def __init__(self, name: str, unit: str, line_of: Callable[[IntArray], IntArray]) -> None:
        self.name, self.unit, self.line_of = name, unit, line_of
        self.errors: list[Note] = []
        self.notes: list[Note] = []

    def add(self, what: str, rows: ArrayLike = (), code: str = "") -> None:
        """Add what is wrong, in rows counted from 0."""
        self.errors.append(self._locate(what, rows, code))

    def add_each(self, codes: IntArray, wrong: Sequence[tuple[int, str]], code: str = "") -> None:
        """Add values that are wrong, each with the rows that have its code; those after the first few in one line."""
        shown = MANY if len(wrong) <= MANY else FIRST
        for k, what in wrong[:shown]:
            self.add(what, np.flatnonzero(codes == k), code)
        if rest := wrong[shown:]:
            those = np.flatnonzero(np.isin(codes, [k for k, _ in rest]))
            self.add(f"{len(rest):,} more values of this kind, such as: {rest[0][1]}", those, code)

    def note(self, what: str, rows: ArrayLike = ()) -> None:
        """Add what is worth knowing."""
        self.notes.append(self._locate(what, rows))

    def _locate(self, what: str, rows: ArrayLike, code: str = "") -> Note:
        places = np.sort(np.asarray(rows, dtype=np.int64).reshape(-1))
        return Note(what, tuple(int(one) for one in self.line_of(places)), self.unit, code)

    def stop(self) -> None:
        """Raise LogError with all that is wrong, in the order of the lines, then of the whole; do nothing if nothing is."""
        if self.errors:
            ordered: list[Note] = sorted(self.errors, key=lambda one: (not one.at, one.at[:1]))
            raise LogError(self.name, ordered)


def quote(value: object) -> str:
    """Return a value of a log as it may be shown: short, in quotation marks, without control characters."""
    text = str(value)
    return f"'{escape(text if len(text) <= LONGEST else text[:LONGEST] + '...')}'"


def list_some(values: Sequence[object], most: int = 8) -> str:
    """Return values with commas between, the first few where there are many.

    Examples
    --------
    >>> list_some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(escape(str(one)[:LONGEST]) for one in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most:,} more"
