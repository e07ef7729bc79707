"""Messages about a log say what to do."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logs import csv, problems, read, table
from rmab.common import write_table
from rmab.errors import FileError, ModelError


def test_a_mapping_in_other_capitals_is_refused() -> None:
    rows = table(("a", 1, "x", "ja"), ("a", 2, "x", "nein"))
    told = problems(read, rows, rename={"called": {"Ja": "yes", "nein": "no"}})
    assert told == ["entry 1: 'Ja' is 'ja' in column 'called' of the log; write it in the same capitals"]
    both = {"called": {"Ja": "yes", "ja": "yes", "nein": "no"}}
    assert "never is 'Ja'" in str(read(rows, rename=both).notes[0])
    assert "(--rename)" in problems(read, rows)[0]


@pytest.mark.parametrize(
    ("week", "words"), [("KW 2/2026", "2026-W02"), ("W2 2026", "2026-W02"), ("KW 2", "-W02"), ("Woche 12", "-W12")]
)
def test_weeks_without_a_year_are_explained(week: str, words: str) -> None:
    told = problems(read, table(("a", week, "x", 0)))
    assert "write the year, too: 2" in told[0]
    assert words in told[0]


def test_copies_of_rows_are_named(tmp_path: Path) -> None:
    assert "copies" in problems(read, csv(tmp_path, "A,1,x,1", "A,1,x,1", "A,2,x,0"))[-1]
    assert not any("copies" in one for one in problems(read, csv(tmp_path, "A,1,x,1", "A,1,y,1", "A,2,x,0")))


def test_a_state_that_reads_as_nothing_is_noted(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "A,1,nan,1", "A,2,x,1", "A,3,,0", "A,4,nan,0"))
    assert str(log.notes[0]).startswith("lines 2, 5: 'nan' in column 'state' is read as: not seen")


@pytest.mark.parametrize("header", ["Programme 2026;;;", "Programme 2026"])
def test_a_title_above_the_header_is_explained(tmp_path: Path, header: str) -> None:
    path = csv(tmp_path, "id;week;state;called", "A;1;x;1", header=header)
    assert any("if there are rows above the header, delete them" in one for one in problems(read, path))


def test_workbooks_are_explained(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    rows: list[Any] = [("id", "week", "state", "called"), ("A", 1, "x", 1), ("A", 2, "x", 0)]
    book = openpyxl.Workbook()
    book.active.append(["Read me"])
    book.active.title = "About"
    sheet = book.create_sheet("Log")
    for one in rows:
        sheet.append(one)
    book.save(tmp_path / "second.xlsx")
    told = "only the first sheet, 'About', is read, and not 'Log'; move the log to the front"
    assert told in problems(read, tmp_path / "second.xlsx")[0]
    book["About"].append(["Nothing"])
    book.save(tmp_path / "second.xlsx")
    assert told in problems(read, tmp_path / "second.xlsx")[-1]
    title = openpyxl.Workbook()
    for one in [("Programme 2026",), *rows]:
        title.active.append(one)
    title.save(tmp_path / "title.xlsx")
    assert "if there are rows above the header, delete them" in problems(read, tmp_path / "title.xlsx")[0]
    write_table(pa.table({"id": ["A"]}), tmp_path / "x.xlsx")
    (tmp_path / "renamed.csv").write_bytes((tmp_path / "x.xlsx").read_bytes())
    with pytest.raises(FileError, match=r"this is an \.xlsx workbook; rename the file, so that its name ends in \.xlsx"):
        read(tmp_path / "renamed.csv")


@pytest.mark.parametrize(
    ("weeks", "given", "period"),
    [
        (("03.08.2026", "10.08.2026"), "17.08.2026", 2),
        (("03.08.2026", "10.08.2026"), "2026-08-10", 1),
        (("01.07.2026", "01.08.2026"), "01.09.2026", 2),
        (("2026-W02", "2026-W03"), "2026W4", 2),
        (("2026-08-03T08:00", "2026-08-10T08:00"), "2026-08-17T08:00", 2),
        (("1", "2"), "3", 2),
    ],
)
def test_a_period_may_be_written_as_in_the_log(weeks: tuple[str, ...], given: str, period: int) -> None:
    periods = read(table(*(("a", one, "x", 0) for one in weeks))).periods
    assert periods.find(given) == period
    with pytest.raises(ModelError, match="written like this or as in the log"):
        periods.find("1.2.1999")
