"""Workbooks (.xlsx) that people fill in: the columns of the first sheet."""

from __future__ import annotations

import io
from typing import Any

from rmab.common import require
from rmab.errors import FileError, LogError
from rmab.logs.findings import Note


def read_workbook(name: str, content: bytes) -> dict[str, list[Any]]:
    """Return the columns of the first sheet of a workbook; FileError or LogError where it is none."""
    require("excel", "an .xlsx file")
    from openpyxl import load_workbook  # noqa: PLC0415  (an extra)

    try:
        sheet = load_workbook(io.BytesIO(content), read_only=True, data_only=True).worksheets[0]
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    except Exception as error:  # whatever openpyxl raises on what is no workbook
        raise FileError(f"{name}: not readable as .xlsx ({error!s:.200})", path=name) from error
    while rows and all(one is None for one in rows[-1]):
        rows.pop()
    if len(rows) < 2:
        raise LogError(name, [Note("there is no row below a header in the first sheet")])
    header = [str(one).strip() for one in rows[0] if one is not None]
    width = len(header)
    wide = [k + 2 for k, row in enumerate(rows[1:]) if any(one is not None for one in row[width:])]
    if wide or len(set(header)) < width:
        what = "more cells than the header has" if wide else "two columns have the same name"
        raise LogError(name, [Note(what, tuple(wide))])
    return {one: [row[k] if k < len(row) else None for row in rows[1:]] for k, one in enumerate(header)}
