"""CSV files: their delimiter, their header, and the line of every record."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from rmab.common import Dialect, IntArray
from rmab.errors import FileError, LogError
from rmab.logs.findings import Note
from rmab.logs.header import TITLES, Source, check_columns

DELIMITERS = ",;\t|"
LINE_END = re.compile(rb"\r\n|\n|\r")
LONGEST_HEADER = 100_000  # bytes; csv refuses a field of 128 kB


class CsvText:
    """The text of a CSV file: its header, its delimiter, and the line of every record."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content
        self._refuse_nothings()
        self._refuse_letters()
        marker = re.match(rb"sep=[^\r\n]\r?\n", content)  # a line of Excel's that names the delimiter
        begin = marker.end() if marker else 0
        first = self._header_end(begin)
        if not content.strip():
            raise LogError(str(path), [Note("the file is empty")])
        self.skipped = _count_lines(content[:first]) or 1
        head = content[begin:first].decode("utf-8", errors="replace").strip("\r\n")
        self.delimiter = max(DELIMITERS, key=lambda one: _fields(head, one))
        self.header = [one.strip() for one in next(csv.reader(io.StringIO(head, newline=""), delimiter=self.delimiter))]
        self.body, self.plain = content[first:], False

    def _header_end(self, begin: int) -> int:
        """Return where the first record that is not blank ends: at a line end outside of quotation marks."""
        at, start, marks = begin, -1, 0
        for end in LINE_END.finditer(self.content, begin):
            line = self.content[at : end.end()]
            start, at = at if start < 0 and line.strip() else start, end.end()
            marks += line.count(b'"')
            if start >= 0 and (marks % 2 == 0 or at - start > LONGEST_HEADER):
                break
        else:
            start, at = start if start >= 0 else at, len(self.content)
        if at - start > LONGEST_HEADER:
            what = f"the header is longer than {LONGEST_HEADER:,} bytes; check for an extra quotation mark"
            raise LogError(str(self.path), [Note(what, (_count_lines(self.content[:start]) + 1,))])
        return at

    def source(self, wanted: list[str]) -> Source:
        """Return the wanted columns, as text."""
        few = "the first line must contain the names of the columns, separated by commas, semicolons, tabs or |; "
        few += TITLES
        check_columns(str(self.path), self.header, wanted, few if len(self.header) < 3 else "")
        names = [str(k) for k in range(len(self.header))]
        places = {one: names[self.header.index(one)] for one in wanted}
        ragged: list[int] = []

        def unequal(row: Any) -> str:
            ragged.append(row.actual_columns)
            return "skip"

        table = self._parse(names, list(places.values()), unequal) if self.body.strip() else None
        if ragged:
            self._refuse_ragged()
        self.plain = table is not None and self._is_plain(table.num_rows)
        if table is None or table.num_rows == 0:
            raise LogError(str(self.path), [Note("the file has a header, but no rows")])
        columns = {one: table.column(places[one]) for one in wanted}
        return Source(str(self.path), "line", columns, self.line_of, tuple(self.header), Dialect(self.delimiter))

    def _is_plain(self, rows: int) -> bool:
        """Return whether every record is one line, and every line one record: then lines need no counting."""
        lines = self.body.count(b"\n") + (not self.body.endswith(b"\n"))
        return lines == rows and self.body.count(b"\r") in (0, self.body.count(b"\r\n"))

    def _parse(self, names: list[str], included: list[str], unequal: Callable[[Any], str]) -> Any:
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
            raise FileError(f"{self.path}: not readable as CSV ({error!s:.200})") from error

    def _refuse_nothings(self) -> None:
        """Raise LogError with the lines that contain a NUL."""
        if b"\0" in self.content:
            bad = [number for number, line in enumerate(LINE_END.split(self.content), start=1) if b"\0" in line]
            many = self.content.count(b"\0") > len(self.content) // 4
            hint = "; the file looks like UTF-16; use encoding='utf-16-le' (--encoding)" if many else ""
            raise LogError(str(self.path), [Note(f"NUL characters{hint}", tuple(bad))])

    def _refuse_letters(self) -> None:
        """Raise LogError with the lines that are not UTF-8; do nothing if all are."""
        try:
            if self.content.isascii() or self.content.decode():
                return
        except UnicodeDecodeError:
            bad = [number for number, line in enumerate(LINE_END.split(self.content), start=1) if not _readable(line)]
        hint = "not in UTF-8; save the file as 'CSV UTF-8', or give its encoding, often encoding='cp1252' (--encoding)"
        raise LogError(str(self.path), [Note(hint, tuple(bad))])

    def _refuse_ragged(self) -> None:
        """Raise LogError with the lines that have more or fewer fields than the header."""
        found: dict[int, list[int]] = {}
        for line, fields in self._records():
            if fields != len(self.header):
                found.setdefault(fields, []).append(line)
        wrong = [
            Note(f"{fields} fields, the header has {len(self.header)}", tuple(lines)) for fields, lines in found.items()
        ]
        if self.body.count(b'"') % 2:
            wrong.append(Note("a quotation mark is missing, or there is an extra one"))
        raise LogError(str(self.path), wrong or [Note("records differ in their number of fields")])

    def _records(self) -> list[tuple[int, int]]:
        """Return the first line of every record that is not blank, and its number of fields."""
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


def _count_lines(text: bytes) -> int:
    """Return the number of line ends, of whatever kind."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _fields(head: str, delimiter: str) -> int:
    return len(next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), []))


def _readable(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
