"""Logs are read as they are written, from every kind of source, and everything wrong is told at once, with line numbers."""

import gzip
import pickle
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rmab
from logs import COLUMNS, HEADER, csv, faults, read, table
from rmab.data.periods import Periods, understood

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
    assert faults(read, path)[0].startswith("line 3: not in UTF-8")
    assert read(path, encoding="cp1252").arms == ("A", "Zoë")
    with pytest.raises(rmab.ModelError, match="there is none called 'klingon'"):
        read(path, encoding="klingon")


def test_quoted_fields_may_hold_delimiters_and_lines(tmp_path: Path) -> None:
    path = csv(tmp_path, '"a, b",1,"o""k",yes,"two\nlines"', '"a, b",2,x,perhaps,""', header="id,week,state,called,note")
    assert faults(read, path) == [
        "line 4: action 'perhaps' in column 'called' is neither yes nor no (yes/no, true/false, 1/0)"
    ]
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
    told = faults(read, path, states=["low", "ok"], groups=["district"])
    assert [one.partition(":")[0] for one in told] == [
        "lines 2, 3", "line 4", "line 5", "line 6", "line 7", "line 8", "line 9", "line 10",
    ]  # fmt: skip
    for words in (
        "more than once",
        "no id",
        "'soon' in column 'week' is no period",
        "unknown state 'okay' (did you mean 'ok'?)",
    ):
        assert any(words in one for one in told), words
    for words in ("'maybe'", "arm 'B' changes 'district' from 'south' to 'north'", "no period in", "two ways"):
        assert any(words in one for one in told), words


def test_rows_of_tables_are_counted_from_0() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "week": [1, 1], "state": ["x", "x"], "called": ["yes", "hm"]})
    assert faults(read, frame) == ["row 1: action 'hm' in column 'called' is neither yes nor no (yes/no, true/false, 1/0)"]


def test_missing_and_doubled_columns_are_told_with_those_that_there_are(tmp_path: Path) -> None:
    told = faults(read, csv(tmp_path, "A,1,ok,yes,2", header="id,Week,state,called,called"))
    assert told == [
        "there is no column 'week' (did you mean 'Week'?)",
        "2 columns are called 'called'; keep one, or rename the others",
        "the columns are: id, Week, state, called, called",
    ]


def test_unused_columns_may_stand_twice_or_have_no_name(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "A,1,ok,yes,,,", header="id,week,state,called,note,note,")).arms == ("A",)


def test_wide_tables_are_explained(tmp_path: Path) -> None:
    told = faults(read, csv(tmp_path, "A,x,x,x", header="id,week1,week2,week3"))
    assert any("look like one column per period" in one and "melt" in one for one in told)


def test_ragged_lines_are_told(tmp_path: Path) -> None:
    told = faults(read, csv(tmp_path, "A,1,ok,yes", "A,2,ok", "A,3,ok,no", "A,4,ok,no,extra", "A,5,ok"))
    assert sorted(told) == ["line 5: 5 fields, the header has 4", "lines 3, 6: 3 fields, the header has 4"]


def test_an_open_quotation_mark_is_told(tmp_path: Path) -> None:
    told = faults(read, csv(tmp_path, "A,1,ok,yes", 'A,2,"ok,no', "A,3,ok,no"))
    assert told[0].startswith("line 3: ")
    assert "there is a quotation mark too many, or one too few" in told


def test_lines_are_right_below_blank_lines(tmp_path: Path) -> None:
    told = faults(read, csv(tmp_path, "A,1,ok,yes", "", "A,2,ok,what", ",,,", "A,3,ok,hm"))
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
        (b"id,week,state,called\n", "there is a header, but no row"),
        (b"PK\x03\x04rest", "save the sheet as CSV"),
        (b"\x1f\x8bbroken", "not a whole gzip file"),
        (b"PAR1broken", "not a readable Parquet file"),
        (b"id week state called\nA 1 ok yes\n", "columns are parted by"),
        (b"id,week,state,called\n,,,\n", "all rows are blank"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises((rmab.LogError, rmab.FileError), match=words):
        read(path)


def test_no_file_and_no_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rmab.FileError, match="cannot be read"):
        read(tmp_path / "none.csv")
    with pytest.raises(rmab.ModelError, match="a log is a path"):
        read([1, 2, 3])


def test_mixed_types_of_a_frame_are_told_by_row() -> None:
    frame = pd.DataFrame({"id": ["a", 7, "b"], "week": [1, 1, 1], "state": ["x"] * 3, "called": [0, 0, 1]})
    assert faults(read, frame) == ["row 1: column 'id' mixes types: str in most rows, int here"]


def test_ids_of_numbers_and_what_cannot_be_an_id() -> None:
    assert read(table((7, 1, "x", 0))).arms == ("7",)
    assert read(table((7.0, 1, "x", 0))).arms == ("7",)
    assert "an id cannot be '7.5'" in faults(read, table((7.5, 1, "x", 0)))[0]
    assert "an id cannot be 'True'" in faults(read, table((True, 1, "x", 0)))[0]


def test_roles_are_checked() -> None:
    good = table(("a", 1, "x", 0))
    with pytest.raises(rmab.ModelError, match="column 'id' cannot be both arm and period"):
        read(good, period="id")
    with pytest.raises(rmab.ModelError, match="groups must be the name of a column, got 3"):
        read(good, groups=[3])
    with pytest.raises(rmab.ModelError, match="decimal must be"):
        read(good, decimal=";")


# --- periods


@pytest.mark.parametrize(
    ("weeks", "unit", "every", "following"),
    [
        (["1", "2", "3"], "week", "every week", "4"),
        (["2024-W51", "2024-W52", "2025-W01"], "week", "every week", "2025-W02"),
        (["2020W52", "2020W53", "2021W01"], "week", "every week", "2021-W02"),
        (["2024-02-26", "2024-03-04", "2024-03-11"], "week", "every week", "2024-03-18"),
        (["2024-02-28", "2024-02-29", "2024-03-01"], "day", "every day", "2024-03-02"),
        (["2024-11", "2024-12", "2025-01"], "month", "every month", "2025-02"),
        (["2024-01-31", "2024-02-29", "2024-03-31"], "month", "every month", "2024-04"),
        (["2024-01-01", "2024-02-01", "2024-03-01"], "month", "every month", "2024-04"),
        (["2024-03-01T08:00", "2024-03-01T08:05", "2024-03-01T08:10"], "minute", "every 5 minutes", "2024-03-01T08:15"),
        (["2024-03-25T08:00+01:00", "2024-04-01T08:00+02:00", "2024-04-08T08:00+02:00"], "week", "every week", "2024-04-15"),
        (["0", "2", "4"], "week", "every 2 weeks", "6"),
    ],
)
def test_periods_that_are_understood(weeks: list[str], unit: str, every: str, following: str) -> None:
    log = read(table(*(("a", week, "x", 0) for week in weeks)))
    assert log.period.tolist() == [0, 1, 2]
    assert (log.periods.unit, log.periods.every, log.periods.label(3)) == (unit, every, following)
    assert log.transitions.arm.size == 2


def test_dates_and_times_of_frames() -> None:
    for values in (
        pd.to_datetime(["2024-03-04", "2024-03-11"]),
        pd.to_datetime(["2024-03-25 08:00", "2024-04-01 08:00"]).tz_localize("Europe/Berlin"),
        pd.PeriodIndex(["2024-03-04", "2024-03-11"], freq="W"),
        [date(2024, 3, 4), date(2024, 3, 11)],
        [datetime(2024, 3, 4, 7), datetime(2024, 3, 11, 7)],
    ):
        frame = pd.DataFrame({"id": ["a", "a"], "week": values, "state": ["x", "x"], "called": [0, 1]})
        log = read(frame)
        assert (log.periods.kind, log.periods.unit, log.periods.count) == ("date", "week", 2), values


@pytest.mark.parametrize(
    ("weeks", "words"),
    [
        (["2024-W60"], "2024 has no week 60"),
        (["2023-02-29", "2023-03-01"], "day is out of range"),
        (["03.12.2024"], "write dates as 2024-03-12"),
        (["1", "2024-W01", "2"], "mixes types: a week such as '2024-W01', where most are a number"),
        (["1.5"], "is no period"),
        (["20240304", "20240311"], "look like dates; write 2024-03-12"),
        (["202452", "202501"], "look like year and week"),
        (["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-23"], "'2024-01-23' does not fit the step of 7 days"),
        (["2024-13"], "no such month"),
        (["9999-12-24", "9999-12-31"], "too far in the future"),
        (["9999-W40", "9999-W41"], "too far in the future"),
    ],
)
def test_periods_that_are_not(weeks: list[str], words: str) -> None:
    assert any(words in one for one in faults(read, table(*(("a", week, "x", 0) for week in weeks))))


def test_weeks_that_begin_again_every_year_are_explained() -> None:
    told = faults(read, table(*(("a", k % 52 + 1, "x", 0) for k in range(60))))
    assert any("write the year, too: 2024-W11" in one for one in told)


def test_labels_are_read_back_as_what_they_are() -> None:
    for kind, first in (("week", 105_570), ("month", 24_288), ("date", 738_000), ("number", 5)):
        periods = Periods(kind, first, 1, 10, "week")
        for k in range(10):
            moment = understood(periods.label(k))
            assert (moment.kind, moment.at) == (kind, first + k)


def test_gaps_are_kept_not_bridged(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "A,1,x,1", "A,2,y,0", "A,4,x,0", "A,5,y,", "A,6,x,1", "A,7,,0", "A,8,x,0", "A,9,y,1"))
    moves = log.transitions
    assert [
        (log.state_names[s], a, log.state_names[y]) for s, a, y in zip(moves.state, moves.action, moves.after, strict=True)
    ] == [
        ("x", 1, "y"),  # 1 to 2; 2 to 4 is a gap
        ("x", 0, "y"),  # 4 to 5; the action of 5 is not known, nor the state of 7
        ("x", 0, "y"),  # 8 to 9
    ]
    assert moves.before.tolist() == [-1, -1, -1]
    assert [str(one) for one in log.notes] == [
        "line 4: 1 record of 1 arm are missing before these; gaps are kept, not bridged"
    ]


def test_periods_out_of_order_are_sorted_and_noted(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "A,2,x,1", "A,1,y,0", "B,1,x,1"))
    assert log.period.tolist() == [0, 1, 0]
    assert any(str(one).startswith("line 2: periods are out of order") for one in log.notes)


def test_long_pauses_of_all_are_noted() -> None:
    log = read(table(("a", 1, "x", 0), ("a", 2, "x", 0), ("a", 3, "x", 0), ("a", 900, "x", 0)))
    assert any("nobody has a record between 3 and 900" in str(one) for one in log.notes)


# --- states and rewards


def test_readings_are_cut_into_states(tmp_path: Path) -> None:
    path = csv(tmp_path, "A,1,0,1", "A,2,3.49,1", "A,3,3.5,0", "A,4,,0", "A,5,1e3,0")
    log = read(path, states={"ok": 3.5, "low": 0})
    assert log.state_names == ("low", "ok")
    assert log.state.tolist() == [0, 0, 1, -1, 1]
    told = faults(read, csv(tmp_path, "A,1,-1,1", "A,2,high,0"), states={"low": 0, "ok": 3.5})
    assert sorted(told) == [
        "line 2: reading below 0, where the lowest state 'low' begins",
        "line 3: 'high' in column 'state' is not a number",
    ]


def test_decimal_commas_are_explained_and_read(tmp_path: Path) -> None:
    path = csv(tmp_path, "A;1;3,5;1", header="id;week;state;called")
    assert "say decimal=','" in faults(read, path, states={"low": 0, "ok": 3.5})[0]
    assert read(path, states={"low": 0, "ok": 3.5}, decimal=",").state.tolist() == [1]


def test_many_readings_are_not_taken_for_states() -> None:
    told = faults(read, table(*(("a", k, str(k / 7), 0) for k in range(100))))
    assert "cut numbers into states" in told[0]


def test_numbers_are_states_in_their_order() -> None:
    log = read(table(("a", 1, "10", 0), ("a", 2, "9", 0), ("a", 3, "2", 0)))
    assert log.state_names == ("2", "9", "10")
    assert log.ordered


def test_states_that_differ_in_capitals_are_refused_and_rare_ones_noted(tmp_path: Path) -> None:
    assert "differ only in capitals" in faults(read, csv(tmp_path, "A,1,Ok,1", "A,2,ok,1", "A,3,ok,1"))[0]
    log = read(csv(tmp_path, "A,1,lapsed,1", "A,2,lapsed,1", "A,3,laped,1"))
    assert any(str(one) == "line 4: the state 'laped' was seen only once; is it 'lapsed'?" for one in log.notes)


@pytest.mark.parametrize("states", ["lapsed", [], {}, ["a", "a"], {"a": 1, "b": 1}, {"a": "x"}, {"a": float("nan")}])
def test_wrong_states_are_refused(states: object) -> None:
    with pytest.raises(rmab.ModelError, match="states"):
        read(table(("a", 1, "x", 0)), states=states)


def test_rewards_are_numbers_or_missing(tmp_path: Path) -> None:
    path = csv(tmp_path, "A,1,x,1,2.5", "A,2,x,0,", header=HEADER + ",pay")
    assert np.array_equal(read(path, reward="pay").reward, [2.5, np.nan], equal_nan=True)
    assert (
        "'lots' in column 'pay' is not a number"
        in faults(read, csv(tmp_path, "A,1,x,1,lots", header=HEADER + ",pay"), reward="pay")[0]
    )
    assert (
        "'inf' in column 'pay' is not a number"
        in faults(read, csv(tmp_path, "A,1,x,1,inf", header=HEADER + ",pay"), reward="pay")[0]
    )
    assert "infinite" in faults(read, table(("a", 1, "x", 0, np.inf), names=HEADER + ",pay"), reward="pay")[0]


def test_groups_are_kept_filled_in_and_labelled() -> None:
    rows = [("a", 1, "x", 0, "north", 30), ("a", 2, "x", 0, None, 30), ("b", 1, "x", 0, None, 7)]
    log = read(table(*rows, names=HEADER + ",district,age"), groups=["district", "age"])
    assert log.labels == ("north, 30", "(unknown), 7")
    assert any("1 of 2 arms have no 'district'" in str(one) for one in log.notes)


def test_a_broken_file_with_very_many_faults_is_told_quickly() -> None:
    rows = [(f"a{k}", 1, "x", f"no idea {k}") for k in range(3000)]
    told = faults(read, table(*rows))
    assert len(told) == 21
    assert "2,980 more values of this kind" in told[-1]


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(rmab.LogError("log.csv", ["line 2: x"])))
    assert str(error) == "log.csv: line 2: x"


def test_the_usual_columns_are_those_of_the_example() -> None:
    made = rmab.data.example_log("mothers", arms=50, weeks=8)
    log = rmab.data.read_log(made, **COLUMNS, groups=["age", "district"])
    assert log.arms[0] == "M01"
    assert (log.action[log.period == 7] == -1).all()
    assert rmab.data.example_log("mothers", arms=50, weeks=8).equals(made)
    assert not rmab.data.example_log("mothers", arms=50, weeks=8, seed=1).equals(made)
    with pytest.raises(rmab.ModelError, match="there is no example called"):
        rmab.data.example_log("fathers")
