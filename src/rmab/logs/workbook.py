"""Workbooks (.xlsx) that people fill in: the columns of the first sheet."""

from __future__ import annotations

import io
from typing import Any
from zipfile import ZipFile

from rmab.common import check_memory, in_words, require
from rmab.errors import FileError, LogError, ModelError
from rmab.logs.findings import Note, list_some, quote
from rmab.logs.header import TITLES

PIECE, RATIO = 1 << 26, 200  # bytes; a log in an archive unpacks to fewer times its size
TIMES = 4  # memory that reading takes, in sizes of the text


def read_workbook(name: str, content: bytes) -> dict[str, list[Any]]:
    """Return the columns of the first sheet of a workbook; FileError or LogError where it is none."""
    rows = _rows(name, content)
    unknown = _find_uncalculated(content, rows) if _has_formulas(content) else []
    if unknown:
        what = "a formula without a stored result; open the file in a spreadsheet program, save it, and try again"
        raise LogError(name, [Note(f"{list_some(unknown)}: {what}")])
    while rows and all(one is None for one in rows[-1]):
        rows.pop()
    if len(rows) < 2:
        others = describe_sheets(content)
        raise LogError(name, [Note(f"the first sheet has no rows below a header{f'; {others}' if others else ''}")])
    header = {k: str(one).strip() for k, one in enumerate(rows[0]) if one is not None}
    wide = [n for n, row in enumerate(rows[1:], 2) if any(one is not None and k not in header for k, one in enumerate(row))]
    if wide or len(set(header.values())) < len(header):
        unnamed = f"a cell in a column without a name in the first line; {TITLES}"
        what = unnamed if wide else "two columns have the same name"
        raise LogError(name, [Note(what, tuple(wide))])
    return {one: [row[k] if k < len(row) else None for row in rows[1:]] for k, one in header.items()}


def describe_sheets(content: bytes) -> str:
    """Return which sheet of a workbook is read, if it has several, for a hint."""
    from openpyxl import load_workbook  # noqa: PLC0415  (an extra)

    first, *others = load_workbook(io.BytesIO(content), read_only=True).sheetnames
    shown = list_some([quote(one) for one in others], 3)
    return f"only the first sheet, {quote(first)}, is read, and not {shown}; move the log to the front" if others else ""


def read_workbook_header(name: str, content: bytes) -> tuple[str, ...]:
    """Return the texts of the first line of the first sheet; FileError where it is no workbook."""
    rows = _rows(name, content, most=1)
    return tuple(str(one).strip() for one in rows[0] if one is not None) if rows else ()


def _rows(name: str, content: bytes, most: int | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of the first sheet, of them no more than `most`."""
    require("excel", "an .xlsx file")
    from openpyxl import load_workbook  # noqa: PLC0415  (an extra)

    try:
        with ZipFile(io.BytesIO(content)) as packed:
            check_unpacked(name, len(content), sum(one.file_size for one in packed.infolist()))
        sheet = load_workbook(io.BytesIO(content), read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()  # the declared size may be wrong, or include a stray cell far away
        return list(sheet.iter_rows(values_only=True, max_row=most))
    except (FileError, ModelError):
        raise
    except Exception as error:  # whatever openpyxl raises on what is no workbook
        raise FileError(f"{name}: not readable as .xlsx ({error!s:.200})", path=name) from error


def _has_formulas(content: bytes) -> bool:
    """Return whether any sheet has a formula: those have to be read a second time."""
    with ZipFile(io.BytesIO(content)) as packed:
        for one in packed.namelist():
            if one.startswith("xl/worksheets/"):
                text = packed.read(one)
                if b"<f>" in text or b"<f " in text or b"<f/>" in text:
                    return True
    return False


def _find_uncalculated(content: bytes, rows: list[tuple[Any, ...]]) -> list[str]:
    """Return the cells of the first sheet that have a formula, and no result of it."""
    from openpyxl import load_workbook  # noqa: PLC0415  (an extra)

    sheet = load_workbook(io.BytesIO(content), read_only=True).worksheets[0]
    sheet.reset_dimensions()
    found = [one for row in sheet.iter_rows() for one in row if one.data_type == "f"]
    return [f"{one.coordinate}" for one in found if rows[one.row - 1][one.column - 1] is None]


def check_unpacked(name: str, packed: int, size: int) -> None:
    """Raise FileError where an archive unpacks to much more than a log does; ModelError where there is no memory for it."""
    if size > PIECE and size > RATIO * packed:
        what = f"unpacks to over {in_words(size)}, more than {RATIO} times its size, which no log does"
        raise FileError(f"{name}: {what}; if it is right, unpack it first", code="too-large", path=name)
    check_memory(f"{name}: its text", float(TIMES * size))
