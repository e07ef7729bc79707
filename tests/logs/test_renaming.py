"""Values with other names, and files with semicolons, marks and decimal commas: read, and written alike."""

import re
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

import rmab
from logs import COLUMNS, problems, read, table
from rmab.common import Dialect, write_table
from rmab.errors import FileError, ModelError

ROWS = [("7", 1, "gut", "ja"), ("007", 2, "weg", "nein"), ("8", 1, "schlecht", "nein"), ("8", 2, "gut", "nein")]
NAMES = [("state", "gut", "good"), ("state", "schlecht", "bad"), ("state", "weg", ""), ("called", "ja", "yes"),
         ("called", "nein", "no"), ("id", "7", "007")]  # fmt: skip


def write_names(path: Path, rows: list[tuple[str, str, str]] = NAMES) -> Path:
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("column", "from", "to"))}
    write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_states_actions_ids_and_groups_get_other_names(tmp_path: Path, suffix: str) -> None:
    log = read(table(*ROWS), rename=write_names(tmp_path / f"names{suffix}"))
    assert log.arms == ("007", "8")
    assert log.state_names == ("bad", "good")
    assert log.state.tolist() == [1, -1, 0, 1]  # an empty new name is not known
    assert log.action.tolist() == [1, 0, 0, 0]
    by_dict = read(table(*ROWS), rename={"state": {"gut": "good", "schlecht": "bad", "weg": ""},
                                         "called": {"ja": "yes", "nein": "no"}, "id": {"7": "007"}})  # fmt: skip
    assert (by_dict.arms, by_dict.state.tolist()) == (log.arms, log.state.tolist())
    grouped = table(*((*row, "N") for row in ROWS[2:]), names="id,week,state,called,site")
    words = {"called": {"nein": "no"}, "site": {"N": "north"}}
    assert read(grouped, groups=["site"], rename=words).factors == {"site": ("north",)}


def test_numbers_and_dates_are_renamed_as_they_are_written() -> None:
    rows = [("a", 1, 1, 0), ("a", 2, 2, 9), ("b", 1, 2, 0)]
    log = read(table(*rows), rename={"called": {"9": "yes"}, "state": {"2": "3"}})
    assert log.state_names == ("1", "3")
    assert log.action.tolist() == [0, 1, 0]


def test_names_are_exchanged_at_once() -> None:
    rows = [("a", 1, "x", 0), ("a", 2, "y", 0), ("b", 1, "y", 0)]
    log = read(table(*rows), rename={"state": {"x": "y", "y": "x"}})
    assert [log.state_names[s] for s in log.state] == ["y", "x", "x"]


def test_what_is_wrong_with_the_mapping_has_its_line(tmp_path: Path) -> None:
    names = write_names(tmp_path / "n.csv", [("sttate", "gut", "good"), ("state", "", "bad")])
    assert problems(read, table(*ROWS), rename=names) == ["line 3: a line needs a column and a value to rename (from)"]
    names = write_names(tmp_path / "n.csv", [("called", "ja", "yes"), ("sttate", "gut", "good")])
    assert problems(read, table(*ROWS), rename=names) == ["line 3: the table has no column 'sttate' (did you mean 'state'?)"]
    names = write_names(tmp_path / "n.csv", [("state", "gut", "good"), ("state", "gut", "well")])
    assert problems(read, table(*ROWS), rename=names) == ["lines 2, 3: 'gut' in 'state' has two new names"]
    assert problems(read, table(*ROWS), rename=_write(tmp_path / "m.csv", b"column,from\n"))[0].startswith("unknown column")
    for wrong in (3, {"state": "good"}):
        with pytest.raises(ModelError, match="rename must be"):
            read(table(*ROWS), rename=wrong)


def test_values_that_the_log_does_not_have_are_noted(tmp_path: Path) -> None:
    names = write_names(tmp_path / "n.csv", [*NAMES, ("state", "Gut", "good"), ("called", "vielleicht", "")])
    notes = [str(one) for one in read(table(*ROWS), rename=names).notes]
    assert f"{names}: line 8: 'state' never is 'Gut': nothing to rename" in notes
    assert f"{names}: line 9: 'called' never is 'vielleicht': nothing to rename" in notes
    other = table(*((*row, "N") for row in ROWS), names="id,week,state,called,site")
    unread = [*NAMES, ("site", "N", "north")]  # a column that another command reads
    assert len(read(other, rename=write_names(tmp_path / "n.csv", unread)).notes) < len(notes)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def lines(delimiter: str, count: int = 40) -> str:
    rows = [("id", "week", "state", "called")]
    rows += [(f"Ö{k}", str(w), "ok" if (k + w) % 3 else "low", "yes" if (k + w) % 7 == 0 else "no")
             for k in range(count) for w in range(1, 6)]  # fmt: skip
    return "\n".join(delimiter.join(row) for row in rows) + "\n"


@pytest.mark.parametrize(
    ("delimiter", "encoding", "given", "expected"),
    [
        (",", "utf-8", {}, None),
        (";", "utf-8-sig", {}, Dialect(";", "utf-8-sig", ",")),
        ("\t", "utf-8", {}, Dialect("\t", "utf-8", ".")),
        (";", "cp1252", {"encoding": "cp1252"}, Dialect(";", "cp1252", ",")),
        (";", "utf-16", {}, Dialect(";", "utf-16", ",")),
    ],
)
def test_lists_are_written_as_the_log_was(
    tmp_path: Path, delimiter: str, encoding: str, given: dict[str, Any], expected: Dialect | None
) -> None:
    path = _write(tmp_path / "log.csv", lines(delimiter).encode(encoding))
    log = rmab.data.read_log(path, **COLUMNS, **given)
    assert log.dialect == expected
    fitted = rmab.data.fit(log, reward={"ok": 1})
    fitted.save(tmp_path / "m.npz")
    found = rmab.data.decide(rmab.data.Fit.load(tmp_path / "m.npz"), 10, random_share=0.3, period="5")
    found.save(tmp_path / "list.csv", upcoming=None)
    text = (tmp_path / "list.csv").read_bytes().decode(encoding)
    assert text.startswith(delimiter.join(f'"{one}"' for one in ("id", "period", "state", "action", "rank")))
    assert bool(re.search(r'"-?[0-9]+,[0-9]+"', text)) == (expected is not None and expected.decimal == ",")
    joined = rmab.data.join_lists(log, [tmp_path / "list.csv"], **given)
    assert joined.chance is not None
    assert joined.listed is not None
    chance = dict(zip(found.arms, found.probability, strict=True))
    for n, one in enumerate(log.arms):
        row = (joined.arm_of == n) & (joined.period == 4)
        assert joined.chance[row] == pytest.approx(chance[one], abs=1e-12)
        assert joined.listed[row] == (one in found.ids)


def test_points_in_the_log_s_numbers_stay_points(tmp_path: Path) -> None:
    head, *rows = lines(";").splitlines()
    text = "\n".join([f"{head};paid", *(f"{one};0.5" for one in rows)])
    log = rmab.data.read_log(_write(tmp_path / "l.csv", text.encode()), **COLUMNS, reward="paid")
    assert log.dialect == Dialect(";", "utf-8", ".")
    commas = text.replace("0.5", "0,5").encode()
    assert rmab.data.read_log(_write(tmp_path / "l.csv", commas), **COLUMNS, reward="paid", decimal=",").dialect == Dialect(
        ";", "utf-8", ","
    )


def test_letters_that_the_encoding_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="'ł' cannot be written in cp1252, the encoding of the log"):
        write_table(pa.table({"id": ["Pawła"]}), tmp_path / "l.csv", dialect=Dialect(";", "cp1252", ","))
    assert not (tmp_path / "l.csv").exists()
    with pytest.raises(ModelError, match="delimiter must be one character"):
        Dialect("", "utf-8", ".")
    with pytest.raises(ModelError, match="unknown encoding 'klingon'"):
        Dialect(";", "klingon", ".")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_chances_pasted_into_the_log_come_back(tmp_path: Path, suffix: str) -> None:
    """Columns chance and by of a list, in a log with semicolons and commas, or in a workbook."""
    rows = [("id", "week", "state", "called", "chance", "by")]
    rows += [
        (f"a{k}", 1, "low", "no", "0,25" if suffix == ".csv" else 0.25, "lot" if k % 4 == 0 else None) for k in range(8)
    ]
    rows += [(f"a{k}", 2, "ok", None, None, None) for k in range(8)]
    path = tmp_path / f"log{suffix}"
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        _write(path, "\n".join(";".join("" if one is None else str(one) for one in row) for row in rows).encode("utf-8-sig"))
    log = rmab.data.read_log(path, **COLUMNS, chance="chance", by="by")
    assert log.chance is not None
    assert log.listed is not None
    assert log.chance[log.period == 0].tolist() == [0.25] * 8
    assert log.listed[log.period == 0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert (log.listed[log.period == 1] == -1).all()
