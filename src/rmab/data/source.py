"""Where a log comes from: a CSV or Parquet file, or a table in memory, as Arrow columns with the lines that they stand on.

Columns of a CSV are read as text, so that '007' stays what it is; what they mean is decided later, in one place for all.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from rmab.common.arrays import IntArray
from rmab.data.faults import Fault, listed, quoted
from rmab.errors import FileError, LogError, ModelError

DELIMITERS = ",;\t|"
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx and .ods, and .xls
ALIKE = 3  # columns that differ by a number only, such as week1, week2, week3, look like a wide table


@dataclass(frozen=True)
class Source:
    """Columns by name, what to call where they come from, and the line of every row."""

    name: str
    unit: str
    columns: dict[str, Any]
    line_of: Callable[[IntArray], IntArray]


def opened(given: object, wanted: list[str], encoding: str | None) -> Source:
    """Return the wanted columns of a path, a DataFrame or an Arrow table; LogError where there are none such."""
    if isinstance(given, str | os.PathLike):
        return _from_file(Path(given), wanted, encoding)
    if isinstance(given, pa.Table | pa.RecordBatch):
        return _from_arrow(given, "the table", wanted)
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        return _from_pandas(given, wanted)
    if hasattr(given, "__arrow_c_stream__"):
        return _from_arrow(pa.table(given), "the table", wanted)
    raise ModelError(f"a log is a path (.csv, .csv.gz, .parquet), a DataFrame or an Arrow table, not {type(given).__name__}")


def check_columns(name: str, there: list[str], wanted: list[str]) -> None:
    """Raise LogError that lists all columns that are missing or stand twice, and those that there are."""
    wrong = []
    for column in wanted:
        count = there.count(column)
        if count == 0:
            close = difflib.get_close_matches(column.casefold(), [one.casefold() for one in there], n=1, cutoff=0.7)
            near = [one for one in there if close and one.casefold() == close[0]]
            wrong.append(f"there is no column {quoted(column)}" + (f" (did you mean {quoted(near[0])}?)" if near else ""))
        elif count > 1:
            wrong.append(f"{count} columns are called {quoted(column)}; keep one, or rename the others")
    if not wrong:
        return
    wrong.append(f"the columns are: {listed(there, 30)}" if there else "there are no columns")
    if len(there) == 1:
        wrong.append("columns are parted by commas, semicolons, tabs or |")
    if wide := _wide(there):
        wrong.append(
            f"columns such as {listed(wide, 3)} look like one column per period; rmab reads one row per arm and period "
            "(in pandas: frame.melt(id_vars=[...], var_name='week', value_name='state'); docs/log.md shows how)"
        )
    raise LogError(name, [Fault(one) for one in wrong])


def _wide(there: list[str]) -> list[str]:
    """Return columns whose names differ only by a number, where there are several."""
    stems = Counter(re.sub(r"\d+", "#", one) for one in there if re.search(r"\d", one))
    stem, count = max(stems.items(), key=lambda one: one[1], default=("", 0))
    return [one for one in there if re.sub(r"\d+", "#", one) == stem] if count >= ALIKE else []


def _same(rows: IntArray) -> IntArray:
    return rows


def _from_arrow(table: Any, name: str, wanted: list[str]) -> Source:
    there = list(table.schema.names)
    check_columns(name, there, wanted)
    return Source(name, "row", {one: table.column(there.index(one)) for one in wanted}, _same)


def _from_pandas(frame: Any, wanted: list[str]) -> Source:
    name = "the DataFrame"
    there = [str(one) for one in frame.columns]
    check_columns(name, there, wanted)
    columns, wrong = {}, []
    for one in wanted:
        series = frame.iloc[:, there.index(one)]
        if type(series.dtype).__name__ == "PeriodDtype":
            series = series.dt.start_time
        try:
            columns[one] = pa.array(series, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            wrong.append(_mixed(one, series.tolist()))
    if wrong:
        raise LogError(name, wrong)
    return Source(name, "row", columns, _same)


def _mixed(column: str, values: list[Any]) -> Fault:
    """Say which rows of a column are of another type than most."""
    kinds = [type(one).__name__ for one in values]
    known = Counter(kind for kind, one in zip(kinds, values, strict=True) if one is not None and one == one)  # noqa: PLR0124
    usual = known.most_common(1)[0][0] if known else "nothing"
    other = [kind for kind in known if kind != usual]
    rows = tuple(k for k, kind in enumerate(kinds) if kind in other)
    return Fault(f"column {quoted(column)} mixes types: {usual} in most rows, {listed(other)} here", rows, "row")


def _from_file(path: Path, wanted: list[str], encoding: str | None) -> Source:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # a name that no file can have
        raise FileError(f"{path!s:.60}: cannot be read ({error})") from error
    if content.startswith(b"PAR1"):
        return _from_parquet(path, content, wanted)
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise FileError(f"{path}: not a whole gzip file ({error})") from error
    if content.startswith(SPREADSHEETS):
        raise FileError(f"{path}: a spreadsheet's own format is not read; save the sheet as CSV (UTF-8)")
    return _Csv(path, _in_utf8(path, content, encoding)).source(wanted)


def _from_parquet(path: Path, content: bytes, wanted: list[str]) -> Source:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        there = [str(one) for one in file.schema_arrow.names]
        check_columns(str(path), there, wanted)
        return _from_arrow(file.read(columns=wanted), str(path), wanted)
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"{path}: not a readable Parquet file ({error!s:.200})") from error


def _in_utf8(path: Path, content: bytes, encoding: str | None) -> bytes:
    """Return the text of a file in UTF-8 without a mark; lines that are not in the encoding are refused by number."""
    mark, named = next(((mark, name) for mark, name in MARKS if content.startswith(mark)), (b"", encoding or "utf-8"))
    try:
        known = codecs.lookup(named).name
        if known == "utf-8":
            return content[len(mark) :]  # checked when it is parsed
        return content.decode(named).removeprefix("\ufeff").encode()
    except LookupError as error:
        raise ModelError(f"encoding: there is none called {quoted(named)}; for instance 'utf-8' or 'cp1252'") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not in the encoding {named} ({error.reason} at byte {error.start:,})") from error


class _Csv:
    """The text of a CSV file: its header, its delimiter, and the line of every record."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content
        first = self._header_end()
        if not content.strip():
            raise LogError(str(path), [Fault("the file is empty")])
        self.skipped = content[:first].count(b"\n") or 1
        head = content[:first].decode("utf-8", errors="replace").strip("\r\n")
        self.delimiter = max(DELIMITERS, key=lambda one: _fields(head, one))
        self.header = [one.strip() for one in next(csv.reader(io.StringIO(head, newline=""), delimiter=self.delimiter))]
        self.body, self.plain = content[first:], False

    def _header_end(self) -> int:
        """Return where the first record that is not blank ends: at a line end outside of quotation marks."""
        at = 0
        while True:
            ends = [k for k in (self.content.find(b"\n", at), self.content.find(b"\r", at)) if k >= 0]
            if not ends:
                return len(self.content)
            at = min(ends) + 1
            if self.content[at - 1 : at + 1] == b"\r\n":
                at += 1
            head = self.content[:at]
            if head.strip() and head.count(b'"') % 2 == 0:
                return at

    def source(self, wanted: list[str]) -> Source:
        check_columns(str(self.path), self.header, wanted)
        names = [str(k) for k in range(len(self.header))]
        places = {one: names[self.header.index(one)] for one in wanted}
        ragged: list[int] = []

        def unequal(row: Any) -> str:
            ragged.append(row.actual_columns)
            return "skip"

        table = self._parsed(names, list(places.values()), unequal) if self.body.strip() else None
        if ragged:
            self._refuse_ragged()
        self.plain = table is not None and self._is_plain(table.num_rows)
        if table is None or table.num_rows == 0:
            raise LogError(str(self.path), [Fault("there is a header, but no row")])
        return Source(str(self.path), "line", {one: table.column(places[one]) for one in wanted}, self.line_of)

    def _is_plain(self, rows: int) -> bool:
        """Return whether every record is one line, and every line one record: then lines need no counting."""
        lines = self.body.count(b"\n") + (not self.body.endswith(b"\n"))
        return lines == rows and self.body.count(b"\r") in (0, self.body.count(b"\r\n"))

    def _parsed(self, names: list[str], included: list[str], unequal: Callable[[Any], str]) -> Any:
        parse = pacsv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=b'"' in self.body, invalid_row_handler=unequal
        )
        convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(included, pa.string()), include_columns=included, strings_can_be_null=False
        )
        read = pacsv.ReadOptions(column_names=names, block_size=1 << 24)
        try:
            return pacsv.read_csv(
                pa.BufferReader(self.body), read_options=read, parse_options=parse, convert_options=convert
            )
        except pa.ArrowInvalid as error:
            self._refuse_letters()
            raise FileError(f"{self.path}: not readable as CSV ({error!s:.200})") from error

    def _refuse_letters(self) -> None:
        """Raise LogError with the lines that are not UTF-8; do nothing if all are."""
        bad = []
        for number, line in enumerate(self.content.split(b"\n"), start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                bad.append(number)
        if bad:
            hint = "not in UTF-8; save the file as 'CSV UTF-8', or say which encoding it has (often encoding='cp1252')"
            raise LogError(str(self.path), [Fault(hint, tuple(bad))])

    def _refuse_ragged(self) -> None:
        """Raise LogError with the lines that have more or fewer fields than the header."""
        found: dict[int, list[int]] = {}
        for line, fields in self._records():
            if fields != len(self.header):
                found.setdefault(fields, []).append(line)
        wrong = [
            Fault(f"{fields} fields, the header has {len(self.header)}", tuple(lines)) for fields, lines in found.items()
        ]
        if self.body.count(b'"') % 2:
            wrong.append(Fault("there is a quotation mark too many, or one too few"))
        raise LogError(str(self.path), wrong or [Fault("records differ in their number of fields")])

    def _records(self) -> list[tuple[int, int]]:
        """Return the first line of every record that is not blank, and its number of fields: only where lines are told."""
        found, line = [], self.skipped + 1
        csv.field_size_limit(max(csv.field_size_limit(), len(self.body) + 1))
        reader = csv.reader(io.StringIO(self.body.decode(errors="replace"), newline=""), delimiter=self.delimiter)
        for record in reader:
            if record:
                found.append((line, len(record)))
            line = self.skipped + 1 + reader.line_num
        return found

    def line_of(self, rows: IntArray) -> IntArray:
        """Return the lines of rows (from 0)."""
        if rows.size == 0:
            return rows
        if self.plain:
            return np.asarray(rows + self.skipped + 1)
        if not hasattr(self, "lines"):
            self.lines = np.array([line for line, _ in self._records()], dtype=np.int64)
        return np.asarray(self.lines[rows])


def _fields(head: str, delimiter: str) -> int:
    return len(next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), []))
