"""Tables as files: CSV, Parquet or .xlsx, written atomically."""

from __future__ import annotations

import io
import os
import re
from typing import Any

from rmab.common.extras import require
from rmab.common.files import check_suffix, write_atomically
from rmab.errors import FileError

TABLE_SUFFIXES = (".csv", ".parquet", ".xlsx")
FORMULA = "\\A'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # for Python and Arrow; the last four are wide
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_table(table: Any, path: str | os.PathLike[str], *, raw: bool = True) -> None:
    """Write an Arrow table to a .csv, .parquet or .xlsx file; FileError if it cannot be written.

    Not raw: in a .csv file for people, text that begins as a formula does gets an apostrophe before it (OWASP, "CSV
    injection"), so that no spreadsheet computes what somebody wrote into a name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rmab.common.tables import write_table
    >>> write_table(pa.table({"week": [1, 2]}), "weeks.txt")
    Traceback (most recent call last):
        ...
    rmab.errors.FileError: weeks.txt: the name must end in .csv, .parquet or .xlsx
    """
    suffix = check_suffix(path, TABLE_SUFFIXES)
    from pyarrow import csv, parquet  # noqa: PLC0415  (of an extra: whoever has a table has it)

    if suffix == ".csv" and not raw:
        table = _without_formulas(table)
    stream = io.BytesIO()
    if suffix == ".xlsx":
        _write_workbook(table, stream, path)
    else:
        (csv.write_csv if suffix == ".csv" else parquet.write_table)(table, stream)
    write_atomically(path, stream.getvalue())


def _write_workbook(table: Any, stream: io.BytesIO, path: str | os.PathLike[str]) -> None:
    require("excel", "an .xlsx file")
    from openpyxl import Workbook  # noqa: PLC0415  (an extra)
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415

    rows = [table.column_names, *(list(one.values()) for one in table.to_pylist())]
    if bad := next((one for row in rows for one in row if isinstance(one, str) and NO_XML.search(one)), None):
        raise FileError(f"{path}: an .xlsx file cannot hold the control characters of {bad!a:.60}", path=str(path))
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rmab")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return None if value != value else value  # noqa: PLR0124  (NaN is an empty cell)
        made = WriteOnlyCell(sheet, value)
        made.data_type = "s"  # text, also where it begins as a formula does
        return made

    for row in rows:
        sheet.append([cell(one) for one in row])
    book.save(stream)


def plain_text(text: str) -> str:
    """Return text as it was before `write_table` put an apostrophe before it.

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
