"""Periods, states, rewards and groups of a log: what is parse_moment, what is refused, and in which words."""

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rmab
from logs import HEADER, csv, problems, read, table
from rmab.logs.moments import parse_moment
from rmab.logs.periods import Periods

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
        (["03/12/2024"], "write dates as 2024-03-12"),
        (["31.02.2024"], "day is out of range"),
        (["1", "2024-W01", "2"], "mixes types: a week such as '2024-W01', where most are a number"),
        (["1.5"], "is not a period"),
        (["20240304", "20240311"], "look like dates; write 2024-03-12"),
        (["202452", "202501"], "look like year and week"),
        (["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-23"], "'2024-01-23' does not fit the step of 7 days"),
        (["2024-13"], "no such month"),
        (["9999-12-24", "9999-12-31"], "too far in the future"),
        (["9999-W40", "9999-W41"], "too far in the future"),
    ],
)
def test_periods_that_are_not(weeks: list[str], words: str) -> None:
    assert any(words in one for one in problems(read, table(*(("a", week, "x", 0) for week in weeks))))


def test_weeks_that_begin_again_every_year_are_explained() -> None:
    told = problems(read, table(*(("a", k % 52 + 1, "x", 0) for k in range(60))))
    assert any("write the year, too: 2024-W11" in one for one in told)


def test_labels_are_read_back_as_what_they_are() -> None:
    for kind, first in (("week", 105_570), ("month", 24_288), ("date", 738_000), ("number", 5)):
        periods = Periods(kind, first, 1, 10, "week")
        for k in range(10):
            moment = parse_moment(periods.label(k))
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
        "line 4: 1 record of 1 arm are missing just before these lines; gaps are not filled in"
    ]


def test_dates_with_dots_have_the_day_first(tmp_path: Path) -> None:
    log = read(csv(tmp_path, "A,02.12.2024,x,1", "A,09.12.2024,y,0", "A,16. 12. 2024,x,0"))
    assert (log.periods.label(0), log.periods.every, log.periods.count) == ("2024-12-02", "every week", 3)


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
    told = problems(read, csv(tmp_path, "A,1,-1,1", "A,2,high,0"), states={"low": 0, "ok": 3.5})
    assert sorted(told) == [
        "line 2: reading below 0, where the lowest state 'low' begins",
        "line 3: 'high' in column 'state' is not a number",
    ]


def test_decimal_commas_are_explained_and_read(tmp_path: Path) -> None:
    path = csv(tmp_path, "A;1;3,5;1", header="id;week;state;called")
    assert "say decimal=','" in problems(read, path, states={"low": 0, "ok": 3.5})[0]
    assert read(path, states={"low": 0, "ok": 3.5}, decimal=",").state.tolist() == [1]


def test_points_are_no_decimal_signs_where_commas_are(tmp_path: Path) -> None:
    path = csv(tmp_path, "A;1;1.200;1", "A;2;3,5;1", header="id;week;state;called")
    told = problems(read, path, states={"low": 0, "ok": 3.5}, decimal=",")
    assert told == [
        "line 2: '1.200' in column 'state' is not a number; the decimal sign is a comma here; if the point "
        "separates thousands, remove it"
    ]


def test_many_readings_are_not_taken_for_states() -> None:
    told = problems(read, table(*(("a", k, str(k / 7), 0) for k in range(100))))
    assert "cut numbers into states" in told[0]


def test_numbers_are_states_in_their_order() -> None:
    log = read(table(("a", 1, "10", 0), ("a", 2, "9", 0), ("a", 3, "2", 0)))
    assert log.state_names == ("2", "9", "10")
    assert log.ordered


def test_states_that_differ_in_capitals_are_refused_and_rare_ones_noted(tmp_path: Path) -> None:
    assert "differ only in capitals" in problems(read, csv(tmp_path, "A,1,Ok,1", "A,2,ok,1", "A,3,ok,1"))[0]
    log = read(csv(tmp_path, "A,1,lapsed,1", "A,2,lapsed,1", "A,3,laped,1"))
    assert any(str(one) == "line 4: the state 'laped' was seen only once; is it 'lapsed'?" for one in log.notes)


@pytest.mark.parametrize("states", ["lapsed", [], {}, ["a", "a"], {"a": 1, "b": 1}, {"a": "x"}, {"a": float("nan")}])
def test_wrong_states_are_refused(states: object) -> None:
    with pytest.raises(rmab.errors.ModelError, match="states"):
        read(table(("a", 1, "x", 0)), states=states)


def test_rewards_are_numbers_or_missing(tmp_path: Path) -> None:
    path = csv(tmp_path, "A,1,x,1,2.5", "A,2,x,0,", header=HEADER + ",pay")
    assert np.array_equal(read(path, reward="pay").reward, [2.5, np.nan], equal_nan=True)
    assert (
        "'lots' in column 'pay' is not a number"
        in problems(read, csv(tmp_path, "A,1,x,1,lots", header=HEADER + ",pay"), reward="pay")[0]
    )
    assert (
        "'inf' in column 'pay' is not a number"
        in problems(read, csv(tmp_path, "A,1,x,1,inf", header=HEADER + ",pay"), reward="pay")[0]
    )
    assert "infinite" in problems(read, table(("a", 1, "x", 0, np.inf), names=HEADER + ",pay"), reward="pay")[0]


def test_groups_are_kept_filled_in_and_labelled() -> None:
    rows = [("a", 1, "x", 0, "north", 30), ("a", 2, "x", 0, None, 30), ("b", 1, "x", 0, None, 7)]
    log = read(table(*rows, names=HEADER + ",district,age"), groups=["district", "age"])
    assert log.roster.labels == ("north, 30", "(unknown), 7")
    assert any("1 of 2 arms have no 'district'" in str(one) for one in log.notes)


@pytest.mark.slow
def test_a_date_that_is_far_off_is_a_slip_and_told_by_line(tmp_path: Path) -> None:
    weeks = [f"A,{week},x,0" for week in range(1, 40)]
    assert problems(read, csv(tmp_path, *weeks, "B,20240312,x,0")) == [
        "line 41: 39 and 20240312 are 20,240,273 weeks apart, with no record between; if that is a slip, correct it here"
    ]
    assert problems(read, csv(tmp_path, "B,-9000000,x,0", *weeks))[0].startswith("line 2: -9000000 and 1 are")
    minutes = pd.date_range("2024-01-01", periods=200_000, freq="min")
    frame = pd.DataFrame({"id": "a", "week": minutes, "state": "x", "called": 0})
    assert read(frame).periods.count == 200_000  # long, and no slip


def test_accepted_periods_and_what_to_do_are_told_once() -> None:
    told = problems(read, table(("a", "soon", "x", 0), ("a", "later", "x", 0)))
    assert ["accepted are whole numbers" in one for one in told] == [True, False]
    days = ["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-23", "2024-01-31"]
    told = problems(read, table(*(("a", day, "x", 0) for day in days)))
    assert ["write the week (2024-W11)" in one for one in told] == [True, False]


def test_an_ordered_categorical_keeps_its_order() -> None:
    state = pd.Categorical(["lo", "mid", "lo"], categories=["lo", "mid", "hi"], ordered=True)
    log = read(pd.DataFrame({"id": ["a", "a", "b"], "week": [1, 2, 1], "state": state, "called": [0, 1, 0]}))
    assert (log.state_names, log.ordered) == (("lo", "mid", "hi"), True)
    assert log.state.tolist() == [0, 1, 0]
    plain = read(pd.DataFrame({"id": ["a"], "week": [1], "state": pd.Categorical(["lo"]), "called": [0]}))
    assert not plain.ordered


def test_infinite_states_and_ids_of_a_frame_do_not_break_it() -> None:
    assert read(table(("a", 1, np.inf, 0), ("a", 2, 1.0, 0))).state_names == ("1", "inf")
    assert problems(read, table((np.inf, 1, "x", 0))) == ["row 0: an id cannot be 'inf'"]


def test_rewards_as_categories_and_views_are_numbers_too() -> None:
    made = table(("a", 1, "x", 0, "1.5"), ("a", 2, "x", 0, "2"), names=HEADER + ",pay")
    for kind in (pa.dictionary(pa.int32(), pa.string()), pa.string_view()):
        cast = made.set_column(4, "pay", made.column("pay").cast(kind))
        assert read(cast, reward="pay").reward.tolist() == [1.5, 2.0]


def test_a_group_that_is_not_known_is_filled_in_or_its_own() -> None:
    rows = [("a", 1, "x", 0, "NA"), ("a", 2, "x", 0, "north"), ("b", 1, "x", 0, "n/a")]
    assert read(table(*rows, names=HEADER + ",district"), groups=["district"]).roster.labels == ("north", "(unknown)")
