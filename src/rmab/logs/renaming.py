"""Values that are renamed as a log is read, by a small mapping: column, from, to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.errors import ModelError
from rmab.logs.columns import encode, plain_word
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.header import Source
from rmab.logs.source import open_source

NAMES = ["column", "from", "to"]
Renames = str | os.PathLike[str] | Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Rename:
    """One line of a mapping: in a column of the log, `old` is read as `new`; empty is not known. line: where, from 0."""

    column: str
    old: str
    new: str
    line: int


def rename_values(source: Source, given: Renames, log: Findings) -> Source:
    """Return a source whose values are renamed, all at once; LogError, with lines of the mapping, where it makes no sense.

    A mapping is a table {column: {from: to}}, or a file (.csv, .xlsx, .parquet) with the columns column, from and to.
    Columns that are not read are left alone. Values that the log does not have are noted.
    """
    several, findings = _read(given)
    known = source.there or tuple(source.columns)
    for one in several:
        if one.column not in known:
            near = get_close_matches(one.column, known, n=1)
            hint = f" (did you mean {quote(near[0])}?)" if near else ""
            findings.add(f"{source.name} has no column {quote(one.column)}{hint}", [one.line])
    findings.stop()
    columns = dict(source.columns)
    for name in dict.fromkeys(one.column for one in several if one.column in columns):
        mine = [one for one in several if one.column == name]
        columns[name], absent = _rename(columns[name], {one.old: one.new for one in mine})
        _refuse_spellings(mine, absent, _rename_words(source.columns[name]), findings)
        if unused := [one for one in mine if one.old in absent]:
            shown = list_some([quote(one.old) for one in unused], 5)
            findings.note(f"{quote(name)} never is {shown}: nothing to rename", [one.line for one in unused])
    findings.stop()
    for note in findings.notes:
        log.note(f"{findings.name}: {note}")
    return replace(source, columns=columns)


def _read(given: Renames) -> tuple[list[Rename], Findings]:
    """Return the lines of a mapping, and where to put what is wrong with them."""
    if isinstance(given, Mapping):
        several = []
        for column, table in given.items():
            if not isinstance(table, Mapping):
                raise ModelError(f"rename must be {{column: {{from: to}}}}, or a file, got {given!r:.60}", field="rename")
            several += [(str(column), str(old), "" if new is None else str(new)) for old, new in table.items()]
        findings = Findings("rename", "entry", lambda rows: rows + 1)
    elif isinstance(given, str | os.PathLike):
        source = open_source(given, NAMES, None)
        findings = Findings(source.name, source.unit, source.line_of)
        cells = []
        for name in NAMES:
            values, codes = encode(source.columns[name])
            cells.append(["" if k < 0 else plain_word(values[k]) for k in codes.tolist()])
        several = list(zip(*cells, strict=True))
    else:
        raise ModelError(f"rename must be {{column: {{from: to}}}}, or a file, got {given!r:.60}", field="rename")
    found = [Rename(*one, k) for k, one in enumerate(several) if any(one)]
    for one in found:
        if not one.column or not one.old:
            findings.add("a line needs a column and a value to rename (from)", [one.line])
    first: dict[tuple[str, str], Rename] = {}
    for one in found:
        before = first.setdefault((one.column, one.old), one)
        if before.new != one.new:
            findings.add(f"{quote(one.old)} in {quote(one.column)} has two new names", [before.line, one.line])
    findings.stop()
    return found, findings


def _rename_words(column: Any) -> list[str]:
    """Return the different values of a column as text."""
    return [plain_word(one) for one in encode(column)[0]]


def _refuse_spellings(lines: list[Rename], absent: set[str], words: list[str], findings: Findings) -> None:
    """Refuse lines whose value the log has in other capitals only, and that no other line renames."""
    named = {one.old for one in lines}
    spelled = {one.casefold(): one for one in words if one not in named}
    for one in lines:
        if one.old in absent and (near := spelled.get(one.old.casefold())):
            where = f"in column {quote(one.column)} of the log"
            findings.add(f"{quote(one.old)} is {quote(near)} {where}; write it in the same capitals", [one.line])


def _rename(column: Any, table: dict[str, str]) -> tuple[Any, set[str]]:
    """Return a column as text with values renamed, and those of the table that it does not have."""
    values, codes = encode(column)
    words = [plain_word(one) for one in values]
    absent = set(table) - set(words)
    if len(absent) == len(table):
        return column, absent
    named = [table.get(one, one) or None for one in words]
    codes = np.where(codes < 0, len(named), codes)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([*named, None], pa.string())).cast(pa.string()), absent
