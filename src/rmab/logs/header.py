"""Columns by name with the lines that they stand on, and what to say where a column is not there."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rmab.common import PLAIN_DIALECT, Dialect, IntArray
from rmab.errors import LogError
from rmab.logs.findings import Note, list_some, quote

TITLES = "if there are rows above the header, delete them"
ALIKE = 3  # columns that differ by a number only, such as week1, week2, week3, look like a wide table


@dataclass(frozen=True)
class Source:
    """Columns by name, what to call where they come from, and the line of every row.

    there: the names of all columns, also of those that were not wanted. dialect: how the file is written.
    """

    name: str
    unit: str
    columns: dict[str, Any]
    line_of: Callable[[IntArray], IntArray]
    there: tuple[str, ...] = ()
    dialect: Dialect = PLAIN_DIALECT


def check_columns(name: str, there: list[str], wanted: list[str], hint: str = "") -> None:
    """Raise LogError that lists all columns that are missing or stand twice, and those that there are, with a hint."""
    wrong = []
    for column in wanted:
        count = there.count(column)
        if count == 0:
            close = difflib.get_close_matches(column.casefold(), [one.casefold() for one in there], n=1, cutoff=0.7)
            near = [one for one in there if close and one.casefold() == close[0]]
            wrong.append(f"unknown column {quote(column)}" + (f" (did you mean {quote(near[0])}?)" if near else ""))
        elif count > 1:
            wrong.append(f"{count} columns are called {quote(column)}; keep one, or rename the others")
    if not wrong:
        return
    if there.count("") > len(there) / 2:
        wrong.append(TITLES)
    wrong.append(f"available: {list_some([one for one in there if one], 30)}" if there else "the file has no columns")
    if hint:
        wrong.append(hint)
    if wide := _wide(there):
        wrong.append(
            f"columns such as {list_some(wide, 3)} look like one column per period; rmab reads one row per arm and period "
            "(in pandas: frame.melt(id_vars=[...], var_name='week', value_name='state'); docs/log.md shows how)"
        )
    raise LogError(name, [Note(one) for one in wrong])


def _wide(there: list[str]) -> list[str]:
    """Return columns whose names differ only by a number, where there are several."""
    stems = Counter(re.sub(r"\d+", "#", one) for one in there if re.search(r"\d", one))
    stem, count = max(stems.items(), key=lambda one: one[1], default=("", 0))
    return [one for one in there if re.sub(r"\d+", "#", one) == stem] if count >= ALIKE else []
