"""Logs in .xlsx files."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pytest

import rmab

COLUMNS = {"arm": "id", "period": "week", "state": "state", "action": "called"}


def save(path: Path, rows: Any) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_like_a_table(tmp_path: Path) -> None:
    days = [datetime(2024, 1, 1) + timedelta(weeks=k) for k in range(3)]
    rows = [[arm, day, "ok", "yes"] for arm in ("007", 8) for day in days]
    log = rmab.data.read_log(save(tmp_path / "log.xlsx", [["id", "week", "state", "called"], *rows]), **COLUMNS)
    assert log.arms == ("007", "8")
    assert (log.periods.label(2), log.periods.every) == ("2024-01-15", "every week")


def test_what_is_wrong_has_its_line(tmp_path: Path) -> None:
    rows = [["id", "week", "state", "called"], ["a", 1, "ok", "yes"], ["a", 2, "ok", "maybe"]]
    with pytest.raises(rmab.errors.LogError, match="line 3: action 'maybe'"):
        rmab.data.read_log(save(tmp_path / "log.xlsx", rows), **COLUMNS)
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(rmab.errors.FileError, match="not readable as"):
        rmab.data.read_log(tmp_path / "bad.xlsx", **COLUMNS)


def test_a_cell_far_away_costs_nothing(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["id", "week", "state", "called"], ["a", 1, "ok", "yes"], ["a", 2, "low", "no"]):
        book.active.append(row)
    book.active["XFD200000"] = "stray"
    book.save(tmp_path / "log.xlsx")
    with pytest.raises(rmab.errors.LogError, match="line 200,000: a cell in a column without a name"):
        rmab.data.read_log(tmp_path / "log.xlsx", **COLUMNS)


def test_rows_beyond_the_stated_size_are_read(tmp_path: Path) -> None:
    rows = [["id", "week", "state", "called"], *(["a", week, "ok", "yes"] for week in range(1, 9))]
    whole = save(tmp_path / "whole.xlsx", rows)
    with ZipFile(whole) as old, ZipFile(tmp_path / "log.xlsx", "w") as new:
        for one in old.namelist():
            new.writestr(one, old.read(one).replace(b'ref="A1:D9"', b'ref="A1:D3"'))
    assert rmab.data.read_log(tmp_path / "log.xlsx", **COLUMNS).arm_of.size == 8


def test_a_column_without_a_name_moves_no_other(tmp_path: Path) -> None:
    rows = [["id", None, "week", "state", "called", "note"], ["a", None, 1, "ok", "yes"], ["a", None, 2, "low", "no"]]
    assert rmab.data.read_log(save(tmp_path / "log.xlsx", rows), **COLUMNS).state_names == ("low", "ok")
    with pytest.raises(rmab.errors.LogError, match="line 3: a cell in a column without a name"):
        rmab.data.read_log(save(tmp_path / "log.xlsx", [*rows[:2], ["a", 7, 2, "low", "no"]]), **COLUMNS)


def test_a_workbook_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "log.xlsx", [["id", "week", "state", "called"]])
    with ZipFile(path, "a", ZIP_DEFLATED) as packed:
        packed.writestr("xl/more.xml", b" " * 100_000_000)
    with pytest.raises(rmab.errors.FileError, match=r"unpacks to over 100 MB, more than 200 times its size"):
        rmab.data.read_log(path, **COLUMNS)


def test_a_formula_without_a_result_is_refused(tmp_path: Path) -> None:
    """A program that wrote the file did not calculate: the cell looks empty, and is not."""
    rows = [["id", "week", "state", "called"], ["a", 1, "ok", "yes"], ["a", "=B2+1", "ok", "yes"], ["a", 3, "ok", "=D2"]]
    with pytest.raises(rmab.errors.LogError, match="B3, D4: a formula without a stored result; open the file"):
        rmab.data.read_log(save(tmp_path / "log.xlsx", rows), **COLUMNS)
    source, target = tmp_path / "log.xlsx", tmp_path / "saved.xlsx"
    with ZipFile(source) as old, ZipFile(target, "w", ZIP_DEFLATED) as new:
        for one in old.namelist():
            text = (
                old.read(one)
                .replace(b"<f>B2+1</f><v />", b"<f>B2+1</f><v>2</v>")
                .replace(b"<f>B2+1</f><v/>", b"<f>B2+1</f><v>2</v>")
            )
            text = text.replace(b' r="D4"><f>D2</f><v />', b' r="D4" t="str"><f>D2</f><v>yes</v>')
            new.writestr(one, text.replace(b' r="D4"><f>D2</f><v/>', b' r="D4" t="str"><f>D2</f><v>yes</v>'))
    assert rmab.data.read_log(target, **COLUMNS).periods.count == 3
