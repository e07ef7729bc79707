"""A tariff: the price of energy by the time of day, from a CSV file.

The file has the header `time,price` and one line per change of the price:

    time,price
    00:00,0.10
    06:00,0.20
    17:00,0.35

Times are HH:MM, ascending, and start at 00:00; each price holds until the next line, the last one until 24:00. Prices are
plain numbers per unit of load, in the same currency as the pay: no currency sign, no unit, and a decimal point.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rmab.common import FloatArray, IntArray, frozen
from rmab.errors import FileError, ModelError

DAY = 24 * 60  # minutes
HEADER = ["time", "price"]
LISTED = 5  # maximum number of listed problems of a file
_TIME = re.compile(r"(\d\d):(\d\d)")
_PRICE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+")


@dataclass(frozen=True, eq=False)
class Tariff:
    """Prices of a day.

    Attributes
    ----------
    path : str
        Path of the file.
    lines : (M,) int array
        Line number of each price in the file.
    minutes : (M,) int array
        Start of each price, in minutes from 00:00; ascending, the first is 0.
    prices : (M,) float array
        Prices per unit of load.
    """

    path: str
    lines: IntArray
    minutes: IntArray
    prices: FloatArray

    def by_phase(self, phases: int, length: float) -> FloatArray:
        """(K,) price in each of K equal phases of an episode of this length in minutes, from 00:00.

        Raise ModelError if a price changes within a phase, or the episode is longer than a day.
        """
        if length > DAY * (1 + 1e-12):
            raise ModelError(
                f"{self.path}: a tariff covers one day, but the steps take {_clock(length)}; set minutes (per step)"
            )
        edges = np.arange(phases) * (length / phases)
        current = np.searchsorted(self.minutes, edges + 1e-9, side="right") - 1  # the price at the start of a phase
        for at in range(1, self.minutes.size):
            phase = int(np.searchsorted(edges, self.minutes[at] + 1e-9, side="right")) - 1
            inside = self.minutes[at] - edges[phase] > 1e-6 and self.minutes[at] < length - 1e-6
            if inside and self.prices[at] != self.prices[at - 1]:
                span = f"{_clock(edges[phase])} to {_clock(edges[phase] + length / phases)}"
                what = f"the price changes at {_clock(float(self.minutes[at]))}, within phase {phase} ({span})"
                raise ModelError(f"{self.path}: line {self.lines[at]}: {what}; choose phases that start at price changes")
        return self.prices[current]


def read_tariff(path: str) -> Tariff:
    r"""Read a tariff.

    Parameters
    ----------
    path : str
        A CSV file with the columns time and price.

    Returns
    -------
    Tariff

    Raises
    ------
    FileError
        If the file cannot be read.
    ModelError
        In one line, with the path, line numbers and problems.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rmab.tasks.tariff import read_tariff
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "tariff.csv"
    ...     _ = file.write_text("time,price\n00:00,0.1\n12:00,0.2\n")
    ...     read_tariff(str(file)).by_phase(4, 24 * 60)
    array([0.1, 0.1, 0.2, 0.2])
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not a text file in UTF-8 ({error.reason})") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise FileError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    lines = text.rstrip().split("\n")
    if [one.strip() for one in _fields(lines[0])] != HEADER:
        raise ModelError(f"{path}: line 1: the header must be time,price, got {lines[0]!r:.60}")
    return _parse_rows(path, [_fields(line) for line in lines[1:]])


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a field without end
        return [line]


def _parse_rows(path: str, rows: list[list[str]]) -> Tariff:
    """Return the tariff of these lines, which start at line 2, or raise ModelError with all problems."""
    problems: list[str] = []
    found: list[tuple[int, int, float]] = []
    last = None
    for line, row in enumerate(rows, start=2):
        problem, time, price = _read_row(row, last)
        last = time if time is not None else last
        if problem:
            problems.append(f"line {line}: {problem}")
        elif time is not None and price is not None:
            found.append((line, time, price))
    if not rows:
        problems.append("line 2: the price from 00:00 on is missing")
    if problems:
        more = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
        raise ModelError(f"{path}: {'; '.join(problems[:LISTED])}{more}")
    lines, minutes, prices = zip(*found, strict=True)
    return Tariff(path, frozen(np.array(lines)), frozen(np.array(minutes)), frozen(np.array(prices)))


def _read_row(row: list[str], last: int | None) -> tuple[str, int | None, float | None]:
    """Return the problem of a line, or an empty string, and its time and price; `last`: time of the previous line."""
    if not any(one.strip() for one in row):
        return "is empty", None, None
    if len(row) != 2:
        decimal = "; a decimal comma? write 0.12" if len(row) == 3 and row[2].strip().isdigit() else ""
        return f"has {len(row)} {'fields' if len(row) > 1 else 'field'}, not 2 (time,price){decimal}", _minutes(row[0]), None
    time, price = _minutes(row[0]), row[1].strip()
    if time is None:
        return f"the time must be HH:MM from 00:00 to 23:59, got {row[0].strip()!r:.30}", None, None
    if last is None and time != 0:
        return f"the first time must be 00:00, got {row[0].strip()}", time, None
    if last is not None and time <= last:
        return f"{row[0].strip()} is {'given twice' if time == last else f'not after {_clock(last)}'}", max(time, last), None
    return _price_problem(price), time, float(price) if _PRICE.fullmatch(price) else None


def _price_problem(price: str) -> str:
    if not price:
        return "the price is missing; gaps are not filled"
    if _COMMA.fullmatch(price):
        return f"the price {price!r} has a decimal comma; write {price.replace(',', '.')}"
    if not _PRICE.fullmatch(price) or not np.isfinite(float(price)):
        return f"the price must be a plain number per unit of load, without currency or unit, got {price!r:.30}"
    return ""


def _minutes(text: str) -> int | None:
    found = _TIME.fullmatch(text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        return None
    return 60 * int(found[1]) + int(found[2])


def _clock(minutes: float) -> str:
    """Format minutes from midnight as HH:MM, with seconds if there are any."""
    seconds = round(60 * minutes)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{clock}:{seconds % 60:02d}" if seconds % 60 else clock
