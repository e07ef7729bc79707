"""Where a log comes from: a CSV or Parquet file, or a table in memory, as Arrow columns with the lines that they stand on.

Columns of a CSV are read as text, so that '007' stays what it is; what they mean is decided later, in one place for all.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections import Counter
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rmab.common import IntArray, check_memory
from rmab.common.files import read_file
from rmab.errors import FileError, LogError, ModelError
from rmab.logs.delimited import CsvText
from rmab.logs.findings import Note, list_some, quote
from rmab.logs.header import Source, check_columns
from rmab.logs.workbook import PIECE, TIMES, check_unpacked, describe_sheets, read_workbook, read_workbook_header

MARKS = (  # that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
UNREADABLE = (pa.ArrowException, OverflowError, UnicodeEncodeError)  # what Arrow raises for values it has no type for
MOST = 160  # letters of a note that shows a value as Python writes it
NO_TEXT = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}  # codecs that no file is written in
SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .ods, and .xls


def open_source(given: object, wanted: list[str], encoding: str | None) -> Source:
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


def read_header(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a file, also if it has no rows; LogError or FileError where it is no table."""
    content = read_file(path)
    if content.startswith(b"PAR1"):
        try:
            return tuple(pq.read_schema(pa.BufferReader(content)).names)
        except (pa.ArrowException, OSError) as error:
            raise FileError(f"{path}: not a readable Parquet file ({error!s:.200})") from error
    if content.startswith(SPREADSHEETS[0]):
        return read_workbook_header(str(path), content)
    text, _ = _in_utf8(path, content, None)
    return tuple(CsvText(path, text.decode("utf-8", "replace").encode()).header)


def _same(rows: IntArray) -> IntArray:
    return rows


def _from_arrow(table: Any, name: str, wanted: list[str]) -> Source:
    there = list(table.schema.names)
    check_columns(name, there, wanted)
    columns = {one: table.column(there.index(one)) for one in wanted}
    nested = [
        f"column {quote(one)} contains {each.type}, not single values" for one, each in columns.items() if _is_nested(each)
    ]
    if nested:
        raise LogError(name, [Note(one) for one in nested])
    return Source(name, "row", columns, _same, tuple(there))


def _is_nested(column: Any) -> bool:
    return bool(pa.types.is_nested(column.type))


def _from_pandas(frame: Any, wanted: list[str]) -> Source:
    name = "the DataFrame"
    there, index = [str(one) for one in frame.columns], [one for one in wanted if one in frame.index.names]
    hint = f"{list_some([quote(one) for one in index])} is in the index: pass frame.reset_index()" if index else ""
    check_columns(name, there, wanted, hint)
    columns, wrong = {}, []
    for one in wanted:
        series = frame.iloc[:, there.index(one)]
        match type(series.dtype).__name__:
            case "PeriodDtype":
                series = series.dt.start_time
            case "SparseDtype":
                series = series.sparse.to_dense()
        try:
            if series.dtype == object and any(isinstance(each, UUID) for each in series[:1]):
                series = series.map(str, na_action="ignore")
            columns[one] = pa.array(series, from_pandas=True)
            if _is_nested(columns[one]):
                wrong.append(Note(f"column {quote(one)} contains {columns[one].type}, not single values"))
        except UNREADABLE:
            wrong.append(_unreadable(one, series.tolist()))
    if wrong:
        raise LogError(name, wrong)
    return Source(name, "row", columns, _same, tuple(there))


def _unreadable(column: str, values: list[Any]) -> Note:
    """Say which values of a column cannot be read, or which rows are of another type than most."""
    kinds, alone = [type(one).__name__ for one in values], [k for k, one in enumerate(values) if not _readable(one)]
    if alone:
        those = list_some(sorted({kinds[k] for k in alone}))
        what = f"column {quote(column)} contains {those}, which is not a 64-bit number, text or date: {values[alone[0]]!a}"
        return Note(what[:MOST], () if len(alone) == len(values) else tuple(alone), "row")
    known = Counter(kind for kind, one in zip(kinds, values, strict=True) if one is not None and one == one)  # noqa: PLR0124
    usual, *other = (kind for kind, _ in known.most_common())
    if not other:
        return Note(f"column {quote(column)} contains {usual} of different sizes")
    rows = tuple(k for k, kind in enumerate(kinds) if kind in other)
    return Note(f"column {quote(column)} mixes types: {usual} in most rows, {list_some(other)} here", rows, "row")


def _readable(value: Any) -> bool:
    """Return whether Arrow has a type for a value."""
    try:
        pa.array([value], from_pandas=True)
    except UNREADABLE:
        return False
    return True


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
        content = _unpack(path, content)
    check_memory(f"{path}: its text", TIMES * len(content))
    if content.startswith(SPREADSHEETS[0]) and path.suffix.lower() == ".xlsx":
        return _from_workbook(path, content, wanted)
    if content.startswith(SPREADSHEETS[0]) and b"xl/workbook" in content:
        raise FileError(f"{path}: this is an .xlsx workbook; rename the file, so that its name ends in .xlsx")
    if content.startswith(SPREADSHEETS):
        raise FileError(f"{path}: this spreadsheet format is not supported; save the sheet as .xlsx or CSV (UTF-8)")
    text, written = _in_utf8(path, content, encoding)
    found = CsvText(path, text).source(wanted)
    return replace(found, dialect=replace(found.dialect, encoding=written))


def _from_workbook(path: Path, content: bytes, wanted: list[str]) -> Source:
    """Return columns of the first sheet; a column of several types is text, and midnight is a date."""
    sheet = read_workbook(str(path), content)
    check_columns(str(path), list(sheet), wanted, describe_sheets(content))
    columns = {}
    for name in wanted:
        values = [one.date() if isinstance(one, datetime) and one.time() == time() else one for one in sheet[name]]
        same = len({type(one) for one in values if one is not None}) <= 1
        columns[name] = pa.array(values if same else [None if one is None else str(one) for one in values])
    return Source(str(path), "line", columns, lambda rows: rows + 2, tuple(sheet))


def _unpack(path: Path, packed: bytes) -> bytes:
    """Return the content of a gzip file; FileError where it is damaged, or unpacks to much more than a log does."""
    pieces, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            while piece := stream.read(PIECE):
                pieces.append(piece)
                size += len(piece)
                check_unpacked(str(path), len(packed), size)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path}: not a whole gzip file ({error})", path=str(path)) from error
    return b"".join(pieces)


def _from_parquet(path: Path, content: bytes, wanted: list[str]) -> Source:
    try:
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=wanted)
        there = [str(one) for one in file.schema_arrow.names]
        check_columns(str(path), there, wanted)
        check_memory(f"{path}: {file.metadata.num_rows:,} rows", 8.0 * TIMES * file.metadata.num_rows * len(wanted))
        table = file.read(columns=wanted)
        return _from_arrow(pa.table({one: _decode(str(path), table.column(one)) for one in wanted}), str(path), wanted)
    except (pa.ArrowException, OSError) as error:
        raise FileError(f"{path}: not a readable Parquet file ({error!s:.200})") from error


def _decode(name: str, column: Any) -> Any:
    """Return a column of text without a dictionary, whose values may be much longer than the file: there must be memory."""
    if not (pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)):
        return column
    sizes = (pc.sum(pc.binary_length(one.dictionary).take(one.indices)).as_py() for one in column.chunks)
    check_memory(f"{name}: its text", float(TIMES * sum(size or 0 for size in sizes)))
    return column.cast(column.type.value_type)


def _in_utf8(path: Path, content: bytes, encoding: str | None) -> tuple[bytes, str]:
    """Return the text of a file in UTF-8 without a mark, and its encoding; other encodings are refused by line."""
    mark, named = next(((mark, name) for mark, name in MARKS if content.startswith(mark)), (b"", encoding or "utf-8"))
    try:
        known = codecs.lookup(named).name
        if known == "utf-8":
            return content[len(mark) :], "utf-8-sig" if mark else "utf-8"  # checked when it is parsed
        if known in NO_TEXT:
            raise LookupError(named)
        return content.decode(named).removeprefix("\ufeff").encode(), known
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not in the encoding {named} ({error.reason} at byte {error.start:,})") from error
    except (LookupError, ValueError) as error:  # a ValueError: a name that no encoding can have, or half a letter
        raise ModelError(f"encoding: unknown encoding {quote(named)}; for example 'utf-8' or 'cp1252'") from error
