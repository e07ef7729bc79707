"""Logs in .xlsx files."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

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
