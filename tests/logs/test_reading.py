"""Logs are read as they are written, from every kind of source, and everything wrong is told at once, with line numbers."""

import gzip
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rmab
from logs import COLUMNS, csv, problems, read, table

WORDS = " (yes/no, true/false, 1/0); translate other words with a mapping (--rename)"

GOOD = ("007,1,ok,yes", "007,2,low,no", "7,1,low,0", "7,2,ok,1")


def test_ids_stay_text(tmp_path: Path) -> None:
    log = read(csv(tmp_path, *GOOD))
    assert log.arms == ("007", "7")
    assert log.state_names == ("low", "ok")
    assert log.state.tolist() == [1, 0, 0, 1]
    assert log.action.tolist() == [1, 0, 0, 1]
    assert log.word == "call"


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path: Path, sign: str) -> None:
    path = csv(tmp_path, *(line.replace(",", sign) for line in GOOD), header="id,week,state,called".replace(",", sign))
    assert read(path).arms == ("007", "7")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_encodings_are_no_part_of_the_header(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("\r\n".join(["id,week,state,called", "Zoë,1,gut,ja", ""]).encode(encoding).replace(b"ja", b"no"))
    if encoding == "utf-16":
        path.write_bytes("id,week,state,called\r\nZoë,1,gut,no\r\n".encode(encoding))
    assert read(path).arms == ("Zoë",)


def test_other_encodings_are_told_by_line_and_read_when_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("id,week,state,called\nA,1,ok,no\nZoë,1,ok,no\n".encode("cp1252"))
    assert problems(read, path)[0].startswith("line 3: not in UTF-8")
    assert read(path, encoding="cp1252").arms == ("A", "Zoë")
    with pytest.raises(rmab.errors.ModelError, match="unknown encoding 'klingon'"):
        read(path, encoding="klingon")


def test_ragged_lines_of_another_encoding_are_told_without_noise(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("id,week,state,called\nA,1,ok,no\nZoë,1,ok,no,more\n".encode("cp1252"))
    assert problems(read, path)[0].startswith("line 3: not in UTF-8")
    assert problems(read, path, encoding="cp1252") == ["line 3: 5 fields, the header has 4"]
    assert capfd.readouterr() == ("", "")


def test_quoted_fields_may_hold_delimiters_and_lines(tmp_path: Path) -> None:
    path = csv(tmp_path, '"a, b",1,"o""k",yes,"two\nlines"', '"a, b",2,x,perhaps,""', header="id,week,state,called,note")
    assert problems(read, path) == [f"line 4: action 'perhaps' in column 'called' is neither yes nor no{WORDS}"]
    fine = csv(tmp_path, '"a, b",1,"o""k",yes,"two\nlines"', header="id,week,state,called,note")
    assert read(fine).arms == ("a, b",)
    assert read(fine).state_names == ('o"k',)


@pytest.mark.parametrize("yes", ["yes", "YES", "y", "True", "t", "1", "1.0", "on", " yes "])
def test_ways_to_say_yes(yes: str) -> None:
    assert read(table(("a", 1, "s", yes))).action.tolist() == [1]


@pytest.mark.parametrize("no", ["no", "No", "n", "FALSE", "f", "0", "0.0", "off"])
def test_ways_to_say_no(no: str) -> None:
    assert read(table(("a", 1, "s", no))).action.tolist() == [0]


@pytest.mark.parametrize("nothing", ["", "NA", "nan", "N/A", "null", None, "  "])
def test_ways_to_say_nothing(nothing: str | None) -> None:
    log = read(table(("a", 1, nothing, nothing), ("a", 2, "s", "yes")))
    assert log.action.tolist() == [-1, 1]
    assert log.state.tolist() == [-1, 0]


def test_all_kinds_of_source_give_the_same_log(tmp_path: Path) -> None:
    path = csv(tmp_path, *GOOD)
    frame = pd.read_csv(path, dtype={"id": str})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "log.parquet")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    expected = read(path)
    for source in (str(path), frame, pa.Table.from_pandas(frame), tmp_path / "log.parquet", tmp_path / "log.csv.gz"):
        log = read(source)
        assert log.arms == expected.arms
        for name in ("arm_of", "period", "state", "action"):
            assert np.array_equal(getattr(log, name), getattr(expected, name)), (source, name)


def test_everything_wrong_is_told_at_once_with_lines(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        "A,1,ok,yes,north",
        "A,1,ok,yes,north",
        ",2,ok,no,north",
        "A,soon,ok,no,north",
        "B,1,okay,no,south",
        "B,2,ok,maybe,south",
        "B,3,ok,no,north",
        "C,,ok,no,south",
        "D,12/03/2024,ok,no,south",
        header="id,week,state,called,district",
    )
    told = problems(read, path, states=["low", "ok"], groups=["district"])
    assert [one.partition(":")[0] for one in told] == [
        "lines 2, 3", "line 4", "line 5", "line 6", "line 7", "line 8", "line 9", "line 10",
    ]  # fmt: skip
    for words in (
        "more than one row",
        "no id",
        "'soon' in column 'week' is not a period",
        "unknown state 'okay' (did you mean 'ok'?)",
    ):
        assert any(words in one for one in told), words
    for words in ("'maybe'", "arm 'B' changes 'district' from 'south' to 'north'", "no period in", "two ways"):
        assert any(words in one for one in told), words


def test_rows_of_tables_are_counted_from_0() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "week": [1, 1], "state": ["x", "x"], "called": ["yes", "hm"]})
    assert problems(read, frame) == [f"row 1: action 'hm' in column 'called' is neither yes nor no{WORDS}"]


def test_missing_and_doubled_columns_are_told_with_those_that_there_are(tmp_path: Path) -> None:
    told = problems(read, csv(tmp_path, "A,1,ok,yes,2", header="id,Week,state,called,called"))
    assert told == [
        "unknown column 'week' (did you mean 'Week'?)",
        "2 columns are called 'called'; keep one, or rename the others",
        "available: id, Week, state, called, called",
    ]


def test_unused_columns_may_stand_twice_or_have_no_name(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "A,1,ok,yes,,,", header="id,week,state,called,note,note,")).arms == ("A",)


def test_wide_tables_are_explained(tmp_path: Path) -> None:
    told = problems(read, csv(tmp_path, "A,x,x,x", header="id,week1,week2,week3"))
    assert any("look like one column per period" in one and "melt" in one for one in told)


def test_ragged_lines_are_told(tmp_path: Path) -> None:
    told = problems(read, csv(tmp_path, "A,1,ok,yes", "A,2,ok", "A,3,ok,no", "A,4,ok,no,extra", "A,5,ok"))
    assert sorted(told) == ["line 5: 5 fields, the header has 4", "lines 3, 6: 3 fields, the header has 4"]


def test_an_open_quotation_mark_is_told(tmp_path: Path) -> None:
    told = problems(read, csv(tmp_path, "A,1,ok,yes", 'A,2,"ok,no', "A,3,ok,no"))
    assert told[0].startswith("line 3: ")
    assert "a quotation mark is missing, or there is an extra one" in told


def test_lines_are_right_below_blank_lines(tmp_path: Path) -> None:
    told = problems(read, csv(tmp_path, "A,1,ok,yes", "", "A,2,ok,what", ",,,", "A,3,ok,hm"))
    assert [one.partition(":")[0] for one in told] == ["line 4", "line 6"]


def test_blank_rows_of_a_spreadsheet_are_left_out_and_noted(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "A,1,ok,yes", ",,,", " , ,,"))
    assert log.arm_of.size == 1
    assert str(log.notes[0]) == "lines 3, 4: blank rows are left out"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"id,week,state,called\n", "the file has a header, but no rows"),
        (b"PK\x03\x04rest", "save the sheet as .xlsx or CSV"),
        (b"\x1f\x8bbroken", "not a whole gzip file"),
        (b"PAR1broken", "not a readable Parquet file"),
        (b"id week state called\nA 1 ok yes\n", "the first line must contain the names of the columns"),
        (b"id,week,state,called\nA,1,o\0k,yes\n", "line 2: NUL characters$"),
        ("id,week\nA,1\n".encode("utf-16-le"), "looks like UTF-16"),
        (b"id,week,state,called\n,,,\n", "all rows are blank"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises((rmab.errors.LogError, rmab.errors.FileError), match=words):
        read(path)


def test_no_file_and_no_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rmab.errors.FileError, match="cannot be read"):
        read(tmp_path / "none.csv")
    with pytest.raises(rmab.errors.ModelError, match="a log is a path"):
        read([1, 2, 3])


def test_mixed_types_of_a_frame_are_told_by_row() -> None:
    frame = pd.DataFrame({"id": ["a", 7, "b"], "week": [1, 1, 1], "state": ["x"] * 3, "called": [0, 0, 1]})
    assert problems(read, frame) == ["row 1: column 'id' mixes types: str in most rows, int here"]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([10**30, 2, 3], f"row 0: column 'id' contains int, which is not a 64-bit number, text or date: {10**30}"),
        ([2**64, 2**65, 2**66], f"column 'id' contains int, which is not a 64-bit number, text or date: {2**64}"),
        (["a", "\ud800", "b"], r"row 1: column 'id' contains str, which is not a 64-bit number, text or date: '\ud800'"),
        ([1j, 2j, 3j], "column 'id' contains complex, which is not a 64-bit number, text or date: 1j"),
        ([Decimal("1e70"), Decimal("1e-70"), Decimal(3)], "column 'id' contains Decimal of different sizes"),
    ],
)
def test_values_of_a_frame_that_no_column_can_hold_are_told_by_row(ids: list[object], said: str) -> None:
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "week": 1, "state": "x", "called": [0, 0, 1]})
    assert problems(read, frame) == [said]


def test_sparse_columns_of_a_frame_are_read() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "week": 1, "state": "x", "called": pd.arrays.SparseArray([1, 0])})
    dense = frame.assign(called=[1, 0])
    assert read(frame).arms == read(dense).arms
    np.testing.assert_array_equal(read(frame).action, read(dense).action)


def test_ids_of_numbers_and_what_cannot_be_an_id() -> None:
    assert read(table((7, 1, "x", 0))).arms == ("7",)
    assert read(table((7.0, 1, "x", 0))).arms == ("7",)
    assert "an id cannot be '7.5'" in problems(read, table((7.5, 1, "x", 0)))[0]
    assert "an id cannot be 'True'" in problems(read, table((True, 1, "x", 0)))[0]


def test_roles_are_checked() -> None:
    good = table(("a", 1, "x", 0))
    with pytest.raises(rmab.errors.ModelError, match="column 'id' cannot be both arm and period"):
        read(good, period="id")
    with pytest.raises(rmab.errors.ModelError, match="groups must be the name of a column, got 3"):
        read(good, groups=[3])
    with pytest.raises(rmab.errors.ModelError, match="decimal must be"):
        read(good, decimal=";")


def test_a_broken_file_with_very_many_faults_is_told_quickly() -> None:
    rows = [(f"a{k}", 1, "x", f"no idea {k}") for k in range(3000)]
    told = problems(read, table(*rows))
    assert len(told) == 6
    assert "2,995 more values of this kind" in told[-1]


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(rmab.errors.LogError("log.csv", ["line 2: x"])))
    assert str(error) == "log.csv: line 2: x"


def test_the_usual_columns_are_those_of_the_example() -> None:
    made = rmab.data.example_log("mothers", arms=50, weeks=8)
    log = rmab.data.read_log(made, **COLUMNS, groups=["age", "district"])
    assert log.arms[0] == "M01"
    assert (log.action[log.period == 7] == -1).all()
    assert rmab.data.example_log("mothers", arms=50, weeks=8).equals(made)
    assert not rmab.data.example_log("mothers", arms=50, weeks=8, seed=1).equals(made)
    with pytest.raises(rmab.errors.ModelError, match="unknown example"):
        rmab.data.example_log("fathers")


def test_a_line_that_names_the_delimiter_is_no_header(tmp_path: Path) -> None:
    path = csv(tmp_path, "id;week;state;called", "A,1;1;ok;yes", "A,1;2;ok;perhaps", header="sep=;")
    assert problems(read, path)[0].startswith("line 4: action 'perhaps'")
    assert read(csv(tmp_path, "id;week;state;called", "A,1;1;ok;yes", header="sep=;")).arms == ("A,1",)


def test_columns_of_lists_and_columns_in_the_index_are_told() -> None:
    lists = pa.table({"id": [["a"]], "week": [1], "state": ["x"], "called": [0]})
    told = "column 'id' contains list<item: string>, not single values"
    assert problems(read, lists) == problems(read, lists.to_pandas()) == [told]
    frame = table(*(("a", week, "x", 0) for week in (1, 2))).to_pandas().set_index("id")
    assert problems(read, frame)[-1] == "'id' is in the index: pass frame.reset_index()"
