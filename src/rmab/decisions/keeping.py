"""Lists that were written before: the random draws in them, without which their benefit cannot be measured."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.common.tables import plain_text
from rmab.errors import LogError
from rmab.logs.columns import empty_cells, encode, find_decimal, parse_numbers, plain_word
from rmab.logs.findings import Findings
from rmab.logs.lists import COLUMNS
from rmab.logs.source import open_source

DIGITS = 9  # of chances that are equal
Draws = dict[tuple[str, str], tuple[float, bool]]


def find_lost_draws(path: str | os.PathLike[str], table: pa.Table, encoding: str | None = None) -> str:
    """Return the period of a list in a file whose random draws a new table does not repeat; empty if none is lost.

    Drawn are the rows with a chance strictly between 0 and 1. The new table repeats them if it has the same ids and periods
    with the same chances and places. encoding: of the file, if it is not UTF-8.
    """
    try:
        columns = open_source(path, COLUMNS, encoding).columns
    except LogError:
        try:
            columns = open_source(path, COLUMNS, "latin-1").columns  # periods and chances are readable in any encoding
        except LogError:  # no rows, or no list with chances
            return ""
    new = _draws(dict(zip(table.column_names, table.columns, strict=True)))
    return next((key[0] for key, one in _draws(columns).items() if new.get(key) != one), "")


def _draws(columns: dict[str, Any]) -> Draws:
    """Return the chance of every drawn row and whether it has a place, by period and id."""
    findings = Findings("", "", lambda rows: rows)  # a chance that is no number is no draw
    chance = parse_numbers(columns["chance"], "chance", find_decimal(columns["chance"]), findings)
    on = ~empty_cells(columns["by"])
    words = {}
    for name in ("period", "id"):
        values, codes = encode(columns[name])
        known = [*(plain_text(plain_word(one)) for one in values), ""]
        words[name] = [known[k] for k in codes]
    drawn = np.flatnonzero((chance > 0) & (chance < 1))
    return {(words["period"][k], words["id"][k]): (round(float(chance[k]), DIGITS), bool(on[k])) for k in drawn}
