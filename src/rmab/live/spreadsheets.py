"""Files that people fill in: reports and arms from .csv and .xlsx files, lists and exports to them.

A file is accepted as a whole, or rejected with all wrong lines. Its key is its period and the hash of its bytes, so that the
same file twice is one event; a file whose event no longer counts is a new one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.common.files import read_file
from rmab.common.tables import plain_text
from rmab.errors import FileError, LogError, ModelError
from rmab.live.observing import count_uncounted
from rmab.live.programme import Programme
from rmab.live.rows import COLUMNS, LineOf, as_text, relocate, state_codes
from rmab.logs.delimited import CsvText
from rmab.logs.findings import Findings, Note, quote
from rmab.logs.workbook import read_workbook

LIST = ("was", "action", "rank", "index", "probability", "by", "reason")  # other columns of a filled-in list
SUFFIXES = (".csv", ".xlsx")


@dataclass(frozen=True)
class Sheet:
    """The columns of a file as text, the line of every row, and the hash of its bytes."""

    path: str
    columns: dict[str, list[Any]]
    line_of: LineOf
    digest: str


def find_uncounted(p: Programme, period: object, ids: Iterable[Any]) -> dict[str, int]:
    """Return how many of these arms are reported in a period without being counted yet, by what is unknown."""
    with p.ledger() as ledger:
        return count_uncounted(ledger, ledger.declared.rhythm.number(period), map(as_text, ids))


def read_sheet(path: str | os.PathLike[str]) -> Sheet:
    """Return the columns of a .csv or .xlsx file; FileError or LogError if it cannot be read."""
    return parse_sheet(str(path), read_file(path))


def parse_sheet(name: str, content: bytes) -> Sheet:
    """Return the columns of the content of a file of this name."""
    digest = hashlib.sha256(content).hexdigest()
    if Path(name).suffix.lower() == ".xlsx":
        return Sheet(name, read_workbook(name, content), lambda rows: rows + 2, digest)
    if Path(name).suffix.lower() != ".csv":
        raise FileError(f"{name}: the name must end in {' or '.join(SUFFIXES)}", path=name)
    text = CsvText(Path(name), content.removeprefix(b"\xef\xbb\xbf"))
    source = text.source(list(dict.fromkeys(text.header)))
    columns = {
        one: [plain_text(text) if isinstance(text, str) else text for text in column.to_pylist()]
        for one, column in source.columns.items()
    }
    return Sheet(name, columns, source.line_of, digest)


def tell_file(
    p: Programme,
    period: object,
    path: str | os.PathLike[str],
    *,
    reason: str | None = None,
    dry_run: bool = False,
    skip: bool = False,
) -> tuple[int, int]:
    """Report a file (as a correction if a reason is given); return the number of rows and of the event, 0 for a dry run.

    Columns are those of `Programme.tell`. A list that `ask` wrote and somebody filled in is accepted: its other columns are
    ignored.
    """
    return tell_sheet(p, period, read_sheet(path), reason=reason, dry_run=dry_run, skip=skip)


def tell_sheet(
    p: Programme,
    period: object,
    sheet: Sheet,
    *,
    reason: str | None = None,
    dry_run: bool = False,
    skip: bool = False,
    key: str | None = None,
) -> tuple[int, int]:
    """Like `tell_file`, for a file that was already read; key: idempotency key, by default the hash of the file."""
    columns = {name: values for name, values in sheet.columns.items() if name not in LIST}
    misplaced = _other_periods(sheet, period, columns.pop("period", []))
    filled_rows = [
        k
        for k in range(len(next(iter(columns.values()), [])))
        if any(_is_filled(columns[one][k]) for one in columns if one != "arm")
    ]
    if not filled_rows and columns:
        nothing = Note(f"no row reports anything; fill in {', '.join(COLUMNS[1:])}")
        raise LogError(sheet.path, [*misplaced, nothing])
    rows = {name: [values[k] for k in filled_rows] for name, values in columns.items()}
    places = pa.array(filled_rows, pa.int64()).to_numpy()

    def line_of(found: Any) -> Any:
        return sheet.line_of(places[found])

    given = key
    try:
        key = key or _file_key(p, "tell" if reason is None else "correct", period, sheet)
        event = p.record(period, rows, reason=reason, key=key, dry_run=dry_run or bool(misplaced), skip=skip)
    except LogError as error:
        found = relocate(error, sheet.path, "line", line_of)
        raise LogError(sheet.path, [*misplaced, *found.problems]) from error
    except ModelError as error:
        if error.code != "key-reused":
            raise
        what, cure = "this file was already used with another reason", "use the same reason"
        if given is not None:
            what, cure = f"the key {given!r:.60} was already used for another request", "use a new key"
        what = f"{what} (event {error.location['event']}); {cure}"
        raise ModelError(f"{sheet.path}: {what}", code=error.code, event=error.location["event"]) from error
    if misplaced:
        raise LogError(sheet.path, misplaced)
    return len(filled_rows), event


def _other_periods(sheet: Sheet, period: object, given: list[Any]) -> list[Note]:
    """Return the lines of a file whose column `period` names another one."""
    findings, texts = Findings(sheet.path, "line", sheet.line_of), [as_text(one) for one in given]
    for other in dict.fromkeys(one for one in texts if one not in ("", str(period))):
        lines = [k for k, one in enumerate(texts) if one == other]
        findings.add(f"column 'period' has {quote(other)}, not {quote(period)}", lines)
    return findings.errors


def join_file(p: Programme, path: str | os.PathLike[str], period: object = None) -> tuple[int, int]:
    """Add the arms of a file: columns arm, group and state; return their number, and the number of the event."""
    return join_sheet(p, read_sheet(path), period)


def join_sheet(p: Programme, sheet: Sheet, period: object = None, *, key: str | None = None) -> tuple[int, int]:
    """Like `join_file`, for a file that was already read."""
    unknown = sorted(set(sheet.columns) - {"arm", "group", "state"})
    if unknown or "arm" not in sheet.columns:
        what = f"column {quote('arm')} is missing" if "arm" not in sheet.columns else f"unknown column {quote(unknown[0])}"
        raise LogError(sheet.path, [Note(f"{what}; available: arm, group, state")])
    ids = [as_text(one) for one in sheet.columns["arm"]]
    texts = {name: [as_text(one) for one in sheet.columns.get(name, [""] * len(ids))] for name in ("group", "state")}
    findings = Findings(sheet.path, "line", sheet.line_of)
    blank = [k for k, one in enumerate(ids) if not one]
    if blank:
        findings.add("an id is missing", blank)
    known, codes = p.config.states, state_codes(p.config.states)
    for name in dict.fromkeys(one for one in texts["state"] if one and not {one, one.casefold()} & codes.keys()):
        lines = [k for k, one in enumerate(texts["state"]) if one == name]
        findings.add(f"{quote(name)} is not a state; available: {', '.join(known)}", lines)
    states = [one if {one, one.casefold()} & codes.keys() else None for one in texts["state"]]
    there = np.array([k for k, one in enumerate(ids) if one], dtype=np.int64)
    named, groups, entries = ([column[k] for k in there] for column in (ids, texts["group"], states))
    event = 0
    try:
        if not findings.errors:
            key = key or _file_key(p, "join", period, sheet)
            event = p.join(named, group=groups, state=entries, period=period, key=key)
        elif there.size:  # with all conflicts of these arms with the journal
            with p.ledger() as ledger:
                ledger.check(p.make_join(named, groups, entries, period))
    except LogError as error:
        located = relocate(error, sheet.path, "line", lambda found: sheet.line_of(there[found]))
        findings.errors += located.problems
    findings.stop()
    return len(ids), event


def _file_key(p: Programme, kind: str, period: object, sheet: Sheet) -> str:
    """Return the key of a file: that of its event, or a new one if that was undone, or corrected again since."""
    label = "" if period is None else p.config.rhythm.label(p.config.rhythm.number(period))
    plain = " ".join(filter(None, (kind, label, sheet.digest)))
    keys = (plain if copy == 1 else f"{plain} {copy}" for copy in count(1))
    return next(key for key in keys if not p.is_superseded(key))


def _is_filled(value: Any) -> bool:
    return value is not None and str(value).strip() != ""
