"""Tables as files: CSV, Parquet or .xlsx, written atomically."""

from __future__ import annotations

import codecs
import io
import os
import re
from dataclasses import dataclass
from typing import Any

from rmab.common.extras import require
from rmab.common.files import checked_suffix, write_atomically
from rmab.errors import FileError, ModelError

TABLE_SUFFIXES = (".csv", ".parquet", ".xlsx")
FORMULA = "\\A'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # for Python and Arrow; the last four are full-width characters
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Dialect:
    """Dialect of a CSV file: delimiter, encoding and decimal sign.

    Examples
    --------
    >>> Dialect(";", "utf-8-sig", ",")
    Dialect(delimiter=';', encoding='utf-8-sig', decimal=',')
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.decimal not in (".", ","):
            raise ModelError(
                f"delimiter must be one character, decimal . or a comma, got {self.delimiter!r:.20}, {self.decimal!r:.20}"
            )
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise ModelError(f"encoding: unknown encoding {self.encoding!r:.40}; for example utf-8 or cp1252") from error


PLAIN_DIALECT = Dialect()


def write_table(table: Any, path: str | os.PathLike[str], *, raw: bool = True, dialect: Dialect = PLAIN_DIALECT) -> None:
    """Write an Arrow table to a .csv, .parquet or .xlsx file; raise FileError if it cannot be written.

    If not raw, text in a .csv file that starts like a formula gets an apostrophe before it (OWASP, "CSV injection"), so
    that a spreadsheet does not execute it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rmab.common.tables import write_table
    >>> write_table(pa.table({"week": [1, 2]}), "weeks.txt")
    Traceback (most recent call last):
        ...
    rmab.errors.FileError: weeks.txt: the name must end in .csv, .parquet or .xlsx
    """
    suffix = checked_suffix(path, TABLE_SUFFIXES)
    try:
        content = table_bytes(table, suffix, raw=raw, dialect=dialect)
    except UnicodeEncodeError as error:
        letter, code = error.object[error.start], dialect.encoding
        raise FileError(f"{path}: {letter!r} cannot be written in {code}, the encoding of the log") from error
    except FileError as error:
        raise FileError(f"{path}: {error}", path=str(path)) from error
    write_atomically(path, content)


def table_bytes(table: Any, suffix: str, *, raw: bool = True, dialect: Dialect = PLAIN_DIALECT) -> bytes:
    """Return an Arrow table as the content of a file with this suffix."""
    stream = io.BytesIO()
    if suffix == ".csv":
        return _write_csv(table if raw else _without_formulas(table), stream, dialect).encode(dialect.encoding)
    if suffix == ".xlsx":
        _write_workbook(table, stream)
    else:
        from pyarrow import parquet  # noqa: PLC0415  (an extra, which every table needs)

        parquet.write_table(table, stream)
    return stream.getvalue()


def _write_csv(table: Any, stream: io.BytesIO, dialect: Dialect) -> str:
    from pyarrow import compute, csv, string, types  # noqa: PLC0415

    for place, column in enumerate(table.columns):
        if dialect.decimal != "." and types.is_floating(column.type):
            text = compute.replace_substring(compute.cast(column, string()), pattern=".", replacement=dialect.decimal)
            table = table.set_column(place, table.column_names[place], text)
    csv.write_csv(table, stream, csv.WriteOptions(delimiter=dialect.delimiter))
    return stream.getvalue().decode()


def _write_workbook(table: Any, stream: io.BytesIO) -> None:
    require("excel", "an .xlsx file")
    from openpyxl import Workbook  # noqa: PLC0415  (an extra)
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415

    rows = [table.column_names, *(list(one.values()) for one in table.to_pylist())]
    if bad := next((one for row in rows for one in row if isinstance(one, str) and NO_XML.search(one)), None):
        raise FileError(f"an .xlsx file cannot contain the control characters of {bad!a:.60}")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rmab")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return None if value != value else value  # noqa: PLR0124  (NaN is an empty cell)
        text = WriteOnlyCell(sheet, value)
        text.data_type = "s"  # text, even if it starts like a formula
        return text

    for row in rows:
        sheet.append([cell(one) for one in row])
    book.save(stream)


def plain_text(text: str) -> str:
    """Remove the apostrophe that `write_table` puts before text like a formula.

    Examples
    --------
    >>> plain_text("'=1+1"), plain_text("'s-Gravenhage")
    ('=1+1', "'s-Gravenhage")
    """
    return text[1:] if text.startswith("'") and re.match(FORMULA, text) else text


def _without_formulas(table: Any) -> Any:
    from pyarrow import compute, types  # noqa: PLC0415

    for place, column in enumerate(table.columns):
        if types.is_string(column.type):
            safe = compute.replace_substring_regex(column, pattern=FORMULA, replacement="'\\0")
            table = table.set_column(place, table.field(place), safe)
    return table.rename_columns([re.sub(FORMULA, r"'\g<0>", name) for name in table.column_names])
