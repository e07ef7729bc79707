"""What people do wrong without noticing it: each is refused where it is surely wrong, and noted otherwise."""

import gzip
import re
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rmab
from logs import HEADER, csv, problems, read, table
from rmab.logs import source, workbook
from rmab.logs.slips import fold, near_typo


def records(arms: int, weeks: int, **cells: dict[tuple[int, int], object]) -> list[tuple[object, ...]]:
    """Rows of arms and weeks, with some cells replaced by column and (arm, week)."""
    rows = []
    for n in range(arms):
        for week in range(weeks):
            row = {
                "id": f"n{n}",
                "week": week,
                "state": ["lapsed", "engaged"][(n * week) % 2],
                "called": (n + week) % 3 // 2,
            }
            row |= {name: values[n, week] for name, values in cells.items() if (n, week) in values}
            rows.append(tuple(row.values()))
    return rows


def notes(log: rmab.data.Log) -> str:
    return "\n".join(map(str, log.notes))


def test_lost_leading_zeros_are_refused_with_examples() -> None:
    early = [(f"{n:04d}", week, "ab"[week % 2], 0) for n in range(1, 6) for week in range(4)]
    late = [(str(n), week, "ab"[week % 2], 0) for n in range(1, 6) for week in range(4, 8)]
    told = problems(read, table(*early, *late))
    assert len(told) == 1
    assert "ids in column 'id' differ only in leading zeros, a final .0, capitals, spaces or Unicode form" in told[0]
    assert "5 pairs of them never have a record together: '0001' and '1'" in told[0]


@pytest.mark.parametrize(("one", "other"), [("ann", "Ann"), ("café", "cafe\u0301"), ("a b", "ab"), ("007", "7"),
    ("7", "7.0"), ("007", "7.0"), ("a-1", "a\u20131"), ("a1", "a\u200b1")])  # fmt: skip
def test_ids_in_two_spellings_are_noted(one: str, other: str) -> None:
    log = read(table((one, 1, "x", 0), (one, 2, "y", 1), (other, 2, "x", 0), ("z", 1, "x", 0)))
    assert "differ only in leading zeros" in notes(log)
    assert len(log.arms) == 3
    assert fold(one) == fold(other)


def test_spellings_that_have_records_together_are_different_arms() -> None:
    rows = [(name, week, "xy"[week % 2], 0) for n in range(1, 8) for name in (f"0{n}", str(n)) for week in range(4)]
    assert "taken for different arms" in notes(read(table(*rows)))


def test_a_typo_of_a_state_is_refused_with_the_suggestion_unless_it_is_named() -> None:
    rows = records(4, 6, state={(1, 3): "engagd"})
    told = problems(read, table(*rows))
    assert told == [
        "row 9: the state 'engagd' was seen only once; is it 'engaged'? If not, name all states: states=[...] (--states)"
    ]
    assert read(table(*rows), states=["lapsed", "engagd", "engaged"]).state_names[1] == "engagd"
    twice = problems(read, table(*records(4, 6, state={(1, 3): "lasped", (2, 2): "lasped"})))
    assert "was seen only twice; is it 'lapsed'?" in twice[0]


def test_a_typo_that_is_made_often_is_noted() -> None:
    slips: dict[tuple[int, int], object] = {(n, 3): "engagd" for n in range(1, 12, 2)}
    log = read(table(*records(40, 12, state=slips)))
    assert "the state 'engagd' was seen 6 times; is it 'engaged'?" in notes(log)
    assert "is it" not in notes(read(table(*records(40, 12))))


def test_a_rare_group_that_looks_like_another_is_noted() -> None:
    rows = [(*row, {"n0": "Norht", "n1": "south", "n2": "south"}.get(str(row[0]), "north")) for row in records(12, 4)]
    columns = pa.table(dict(zip([*HEADER.split(","), "side"], map(list, zip(*rows, strict=True)), strict=True)))
    assert "the group 'Norht' in column 'side' has 1 arm only; is it 'north'?" in notes(read(columns, groups=["side"]))


def test_a_state_that_ends_where_another_begins_is_noted() -> None:
    renamed: dict[tuple[int, int], object] = {(n, t): "gone" for n in range(8) for t in range(6, 12) if (n * t) % 2 == 0}
    log = read(table(*records(8, 12, state=renamed)))
    assert "the state 'lapsed' is last seen in 5, 'gone' first after it; if it was renamed, write one name" in notes(log)
    assert "renamed" not in notes(read(table(*records(8, 12))))


@pytest.mark.parametrize("more", [[], [("n0", 15, "lapsed", None)]])
def test_a_list_says_where_the_last_period_is_only_partly_entered(more: list[tuple[object, ...]]) -> None:
    rows = [row for row in records(20, 12) if row[1] != 11 or row[0] in ("n0", "n1")]
    model = rmab.data.fit(read(table(*rows, *more)), reward={"engaged": 1}, gone_after=9)
    assert "states of " in rmab.data.decide(model, 3).notes[0]
    whole = rmab.data.fit(read(table(*records(20, 12))), reward={"engaged": 1})
    assert "states of " not in rmab.data.decide(whole, 3).notes[0]


def test_many_gaps_do_not_double_the_step() -> None:
    weeks = {"a": (1, 2, 3), "b": (1, 3), "c": (1, 3), "d": (1, 3)}
    log = read(table(*((name, week, "xy"[week % 2], 0) for name, those in weeks.items() for week in those)))
    assert (log.periods.step, log.periods.count) == (1, 3)
    slip = [(n, week, "xy"[week // 2 % 2], 0) for n in "abcd" for week in (2, 4, 6 if n != "d" else 5, 8)]
    assert problems(read, table(*slip)) == ["row 14: '5' does not fit the step of 2 between periods"]


def test_states_that_are_near_but_no_typos_are_read() -> None:
    assert near_typo("10", ["100", "1"]) is None
    assert near_typo("on", ["no", "in"]) is None
    assert near_typo("wavreing", ["wavering"]) == "wavering"
    assert read(table(*records(4, 6, state={(1, 3): "stage 2", (0, 0): "stage 1"}))).state_names


def test_a_renamed_group_is_one_line_for_the_pair() -> None:
    rows = [(*row, "north" if row[1] < 3 else "North district") for row in records(30, 6)]
    told = problems(read, table(*rows, names=HEADER + ",district"), groups=["district"])
    assert len(told) == 1
    assert "30 arms change 'district' from 'north' to 'North district'; if the group was renamed, write one name" in told[0]
    rows = [(*row, "north" if row[0] < "n2" else "North") for row in records(30, 6)]
    assert "groups in column 'district' differ only in spelling: 'north' and 'North'" in notes(
        read(table(*rows, names=HEADER + ",district"), groups=["district"])
    )


def test_a_column_that_only_says_yes_does_not_mean_no_where_it_is_empty() -> None:
    blank = [(a, week, state, "yes" if called else "") for a, week, state, called in records(6, 6)]
    told = problems(read, table(*blank))
    assert "column 'called' says yes, and never no, but is empty here" in told[0]
    only_last = [(a, week, state, "yes" if week < 5 else "") for a, week, state, _ in blank]
    assert read(table(*only_last)).arms  # everybody always, and the last week is still open


def test_a_week_whose_actions_were_not_entered_is_noted_in_the_log_and_in_the_list() -> None:
    rows = [(a, week, state, called if week < 8 else "") for a, week, state, called in records(12, 10)]
    log = read(table(*[(a, w, s, str(c)) for a, w, s, c in rows]))
    assert "hardly any action is known in 8; if a list was used then, enter who was acted on" in notes(log)
    found = rmab.data.decide(rmab.data.fit(log, reward={"engaged": 1}), 3)
    assert found.notes[0].startswith("for 9, the last week of the log: no action is entered in it yet")
    assert "who was acted on in 8 is not entered, so its list may be repeated" in found.notes[0]


def test_a_list_says_for_which_period_it_is_and_another_can_be_set() -> None:
    early = [(a, w, s, str(c) if w < 9 else "yes" if a in ("n1", "n2") else "") for a, w, s, c in records(12, 10)]
    fitted = rmab.data.fit(read(table(*early)), reward={"engaged": 1})
    found = rmab.data.decide(fitted, 6)
    assert found.period == "10"
    assert found.notes[0].startswith("for 10: 9, the last week of the log, has 2 yes, 0 no and 10 empty")
    assert (
        "--for 9"
        in rmab.data.decide(
            rmab.data.fit(read(table(*[r if r[1] < 9 else (*r[:3], "no") for r in early])), reward={"engaged": 1}), 6
        ).notes[0]
    )
    now = rmab.data.decide(fitted, 10, period="9")
    assert now.period == "9"
    assert not {"n1", "n2"} & set(now.ids)  # they had their call already
    assert "'n1', 'n2' had a call in 9 already: not on the list, and use no place" in now.notes
    assert "n1" in rmab.data.decide(fitted, 10, period="9", must=["n1"]).ids
    assert rmab.data.decide(fitted, 6, period="12").period == "12"
    for wrong in ("8", "week 9", "9999999"):
        with pytest.raises(rmab.errors.ModelError, match="period must be 9, the last of the log, 10, or"):
            rmab.data.decide(fitted, 6, period=wrong)


def test_whoever_was_acted_on_in_the_period_of_a_list_takes_no_place() -> None:
    rows = [(*row[:3], 1 if row[0] == "n3" else None) if row[1] == 11 else row for row in records(8, 12)]
    model = rmab.data.fit(read(table(*rows)), reward={"engaged": 1})
    found = rmab.data.decide(model, 8, period="11", random_share=1.0)
    assert dict(zip(found.arms, found.probability > 0, strict=True)) == {f"n{n}": n != 3 for n in range(8)}
    assert "'n3' had a call in 11 already: not on the list, and use no place" in found.notes
    assert "n3" in rmab.data.decide(model, 8, period="11", must=["n3"]).ids


def test_somebody_who_has_left_may_be_named_in_must_not() -> None:
    rows = [row for row in records(12, 20) if row[0] != "n3" or row[1] < 5]
    fitted = rmab.data.fit(read(table(*rows)), reward={"engaged": 1}, gone_after=8)
    found = rmab.data.decide(fitted, 3, must_not=["n3", "n1"])
    assert "must_not: 'n3' have left anyway (gone_after)" in found.notes
    assert not {"n1", "n3"} & set(found.ids)
    with pytest.raises(rmab.errors.ModelError, match="must: unknown arm 'n3'; some of them are taken to have left"):
        rmab.data.decide(fitted, 3, must=["n3"])
    with pytest.raises(rmab.errors.ModelError, match="must_not: unknown arm 'nobody'"):
        rmab.data.decide(fitted, 3, must_not=["nobody"])


@pytest.mark.parametrize(
    ("zone", "shown"), [("+05:30", "2024-01-01T20:00+05:30"), ("Z", "2024-01-01T20:00+00:00"), ("", "2024-01-01T20:00")]
)
def test_times_are_shown_with_their_zone(zone: str, shown: str) -> None:
    rows = [("a", f"2024-01-01T{hour:02d}:00{zone}", "xy"[hour % 8 == 0], 0) for hour in range(8, 17, 4)]
    log = read(table(*rows))
    assert log.periods.label(3) == shown
    assert log.periods.label(0).startswith("2024-01-01T08:00")
    assert log.periods.find(shown) == 3


def test_summer_time_is_shown_as_at_the_end_of_the_log() -> None:
    hours = pd.date_range("2024-03-30T20:00", periods=20, freq="h", tz="Europe/Paris")
    frame = pd.DataFrame({"id": "a", "week": hours, "state": list("xy") * 10, "called": 0})
    log = read(frame)
    assert log.periods.label(19) == hours[-1].isoformat(timespec="minutes")
    assert log.periods.label(0) == "2024-03-30T21:00+02:00"  # the same time, on the clocks of now


def test_times_of_a_clock_that_changes_are_refused_with_what_to_do() -> None:
    days = [f"2024-03-{day}T{hour}:00+0{1 + (day == 31)}:00" for day in (29, 30, 31) for hour in ("08", "20")]
    told = problems(read, table(*(("a", one, "xy"[k % 2], 0) for k, one in enumerate(days))))
    assert "where clocks change between summer and winter, write times without a zone" in told[0]
    bare = [one[:16] for one in days]
    assert read(table(*(("a", one, "xy"[k % 2], 0) for k, one in enumerate(bare)))).periods.every == "every 12 hours"


def test_times_with_seconds_have_different_names() -> None:
    rows = [("a", f"2024-01-01T08:00:{second:02d}", "xy"[second == 0], 0) for second in (0, 20, 40)]
    log = read(table(*rows))
    assert [log.periods.label(k) for k in (0, 1)] == ["2024-01-01T08:00:00", "2024-01-01T08:00:20"]


def test_a_quotation_mark_too_many_in_the_header_is_found_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,"week,state,called\n' + "a,1,x,0\n" * 100_000, encoding="utf-8")
    told = problems(read, path)
    assert told == ["line 1: the header is longer than 100,000 bytes; check for an extra quotation mark"]
    path.write_text("\n" * 300_000 + f"{HEADER}\na,1,x,0\na,2,y,1\n", encoding="utf-8")
    assert read(path).arms == ("a",)
    path.write_text('"' * 50_000 + "\n" * 200_000, encoding="utf-8")
    assert problems(read, path)


@pytest.mark.parametrize("begin", ["", "\n" * 3, "\r" * 3])
@pytest.mark.parametrize("names", [",".join(f"c{k}" for k in range(50_000)), "x" * 300_000, "," * 200_000])
def test_a_header_that_is_too_long_is_refused(tmp_path: Path, begin: str, names: str) -> None:
    path = tmp_path / "log.csv"
    for text in (f"{begin}{names}\na,1,x,0\n", f"{begin}{names}"):
        path.write_text(text, encoding="utf-8", newline="")
        assert problems(read, path) == [
            f"line {len(begin) + 1}: the header is longer than 100,000 bytes; check for an extra quotation mark"
        ]


@pytest.mark.parametrize(("cell", "words"), [("\0", "NUL"), ("\xe9", "not in UTF-8"), ("maybe", "is neither yes nor no")])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_counted_by_whatever_ends_them(tmp_path: Path, end: str, cell: str, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(end.join(["", "", HEADER, "a,1,x,0", f"a,2,y,{cell}", ""]).encode("latin-1"))
    (told,) = problems(read, path)
    assert told.startswith("line 5: ")
    assert words in told


def test_a_mark_of_utf_32_is_not_taken_for_one_of_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for encoding in ("utf-32", "utf-16", "utf-8-sig"):
        path.write_text(f"{HEADER}\na,1,x,0\na,2,y,1\n", encoding=encoding)
        assert read(path).arms == ("a",)


def test_a_file_that_unpacks_to_far_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (source, workbook):
        monkeypatch.setattr(module, "PIECE", 1 << 16)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "\n" + "a,1,x,0\n" * 200_000).encode()))
    with pytest.raises(rmab.errors.FileError, match=r"unpacks to over .* more than 200 times its size, which no log does"):
        read(path)


def test_a_parquet_file_of_more_rows_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(table(("a", 1, "x", 0), ("a", 2, "y", 1)), path)
    monkeypatch.setattr(source, "TIMES", 1e14)
    with pytest.raises(rmab.errors.ModelError, match="2 rows would need"):
        read(path)


def test_a_parquet_file_of_few_words_that_are_long_is_refused(tmp_path: Path) -> None:
    path, rows = tmp_path / "log.parquet", 200_000
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    every = {"id": word, "week": pa.array(np.ones(rows)), "state": word, "called": pa.array(np.ones(rows))}
    pq.write_table(pa.table(every), path, store_schema=False)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(rmab.errors.ModelError, match="its text would need 800 GB"):
        read(path)


def test_damaged_gzip_files_are_refused_in_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    packed = gzip.compress((HEADER + "\n" + "".join(f"n{k},{k % 9},x,0\n" for k in range(2000))).encode())
    for _ in range(200):
        broken = bytearray(packed)
        broken[int(rng.integers(10, len(packed)))] ^= int(rng.integers(1, 256))
        path = tmp_path / "log.csv.gz"
        path.write_bytes(bytes(broken))
        with pytest.raises(rmab.errors.RmabError) as error:
            read(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "encoding", ["idna", "punycode", "undefined", "unicode_escape", "rot13", "hex", "no such", "a\0b", "utf-32"]
)
def test_odd_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    path = csv(tmp_path, "a,1,\\ud800,0", "a,2,y,1")
    with pytest.raises(rmab.errors.RmabError, match="encoding"):
        read(path, encoding=encoding)


@pytest.mark.parametrize(
    ("week", "words"),
    [
        (["0001-01-01T00:00+14:00", "0001-01-01T05:00+14:00"], "too far from now"),
        (["9999-12-31T23:00-12:00", "9999-12-31T20:00-12:00"], "too far"),
        (["9999-12-30", "9999-12-31"], "too far in the future"),
        ([2**62, -(2**62)], "too large"),
        ([1e300, 2e300], "too large"),
        ([10**15, 10**15 + 1], "too large"),
    ],
)
def test_periods_that_cannot_be_counted_are_refused(week: list[object], words: str) -> None:
    told = problems(read, pa.table({"id": ["a", "a"], "week": week, "state": ["x", "y"], "called": [0, 1]}))
    assert words in told[0]


def test_the_first_year_is_read() -> None:
    log = read(table(("a", "0001-01-01", "x", 0), ("a", "0001-01-02", "y", 1)))
    assert log.periods.label(0) == "0001-01-01"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.timestamp("s", "Mars/Phobos")),
        pa.array([2**60, 2**61], pa.timestamp("s")),
        pa.array([-(2**50), 3], pa.timestamp("us")),
        pa.array([b"\xff", b"b"]),
        pa.array([1, 2], pa.duration("ns")),
        pa.array([1, 2], pa.time64("ns")),
        pa.array([2**64 - 1, 0], pa.uint64()),
    ],
)
@pytest.mark.parametrize("name", ["id", "week", "state", "called", "pay", "district"])
def test_columns_of_odd_types_are_read_or_refused_in_one_line(column: pa.Array, name: str) -> None:
    columns = {
        "id": ["a", "b"],
        "week": [1, 2],
        "state": ["x", "y"],
        "called": [0, 1],
        "pay": [1.0, 2.0],
        "district": ["n", "m"],
    }
    try:
        read(pa.table({**columns, name: column}), reward="pay", groups=["district"])
    except rmab.errors.RmabError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_uuids_are_ids() -> None:
    ids = [uuid.UUID(int=k) for k in (1, 1, 2)]
    frame = pd.DataFrame({"id": ids, "week": [1, 2, 1], "state": ["x", "y", "x"], "called": [0, 1, 0]})
    assert read(frame).arms == (str(ids[0]), str(ids[2]))
    if hasattr(pa, "uuid"):
        column = pa.array([one.bytes for one in ids], pa.uuid())
        assert (
            read(pa.table({**{name: frame[name] for name in ("week", "state", "called")}, "id": column})).arms
            == read(frame).arms
        )


@pytest.mark.parametrize(
    "options",
    [{"groups": None}, {"groups": 3}, {"groups": [3]}, {"encoding": 3}, {"decimal": None}, {"decimal": 3}, {"states": 3},
     {"arm": None}, {"reward": 3}, {"states": [None, 3]}, {"states": {"a": None}}],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_one_line(options: dict[str, object]) -> None:
    with pytest.raises(rmab.errors.ModelError) as error:
        read(table(("a", 1, "x", 0), ("a", 2, "y", 1)), **options)
    assert re.match(r"[^\n]+$", str(error.value))
