"""Lists: the best by their index, ties by waiting and lot, and reasons that are true."""

import re
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import rmab
from logs import HEADER, mothers, read, table
from rmab.data import Decision, Fit, decide
from rmab.decisions.candidates import Candidates
from rmab.decisions.randomness import Randomness
from rmab.decisions.reasons import ordinal
from rmab.logs.workbook import read_workbook


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return mothers(400, 30)


@pytest.fixture(scope="module")
def calls(fitted: Fit) -> Decision:
    return decide(fitted, 40)


def test_the_best_are_chosen_by_the_lagrangian_index(fitted: Fit, calls: Decision) -> None:
    problem = fitted.problem(40, 26)
    plan = rmab.solvers.solve_fluid(problem, fitted.reward)
    table = rmab.planners.lagrangian_index(problem, fitted.reward, fluid=plan).table[:, 0]
    expected = (fitted.situation.belief * table).sum(axis=1)
    assert np.allclose(calls.index, expected, atol=1e-6)
    assert calls.active.sum() == 40
    assert calls.index[calls.active].min() >= calls.index[~calls.active].max() - 1e-9
    assert len(calls.ids) == 40 == len(set(calls.ids))
    assert calls.period == "2024-W30"


def test_rows_have_ranks_reasons_and_who_is_next(fitted: Fit, calls: Decision) -> None:
    rows = calls.rows(5)
    assert [one.rank for one in rows] == list(range(1, 46))
    assert [one.action for one in rows] == ["yes"] * 40 + ["no"] * 5
    assert all(one.reason.startswith("next in line: ") for one in rows[40:])
    assert [one.index for one in rows] == sorted((one.index for one in rows), reverse=True)


def test_reasons_are_made_of_the_numbers_that_were_used(fitted: Fit, calls: Decision) -> None:
    names, log = {name: k for k, name in enumerate(fitted.ids)}, fitted.log
    checked = 0
    for row in calls.rows(200):
        n = names[row.id]
        group, belief = fitted.group_of[n], fitted.situation.belief[n]
        chances = [100 * float(belief @ fitted.kernels[group, :, a, 2]) for a in (0, 1)]
        found = re.search(r"engaged next week from ([\d.]+)% to ([\d.]+)%", row.reason)
        assert found, row.reason
        assert all(abs(float(one) - chance) <= 0.51 for one, chance in zip(found.groups(), chances, strict=True))
        assert row.reason.endswith(f"{ordinal(row.rank)} of 400")
        streak = re.match(r"(?:next in line: )?(\w+) for (\d+) weeks", row.reason)
        if streak:
            states = log.state[log.arm_of == n][-int(streak[2]) :]
            assert (states == log.state_names.index(streak[1])).all()
            checked += 1
    assert checked > 20


def test_lists_are_the_same_again_and_other_seeds_only_break_ties_otherwise(fitted: Fit, calls: Decision) -> None:
    assert decide(fitted, 40).rows(10) == calls.rows(10)
    other = decide(fitted, 40, seed=1)
    assert other.index[other.active].sum() == pytest.approx(calls.index[calls.active].sum())


def test_who_joins_does_not_reshuffle_the_others() -> None:
    ids = tuple(f"n{k}" for k in range(50))
    source = Randomness(3, "2024-W01")
    assert np.array_equal(source.numbers(ids, "ties"), source.numbers((*ids, "new"), "ties")[:50])
    assert not np.array_equal(source.numbers(ids, "ties"), Randomness(3, "2024-W02").numbers(ids, "ties"))
    assert not np.array_equal(source.numbers(ids, "ties"), source.numbers(ids, "draw"))
    draws = source.numbers(tuple(map(str, range(20_000))), "ties")
    assert abs(draws.mean() - 0.5) < 0.01
    assert np.unique(draws).size == 20_000


def test_of_equals_who_has_waited_longest_goes_first() -> None:
    several = Candidates.of([1.0, 1.0 + 1e-12, 2.0, 1.0], waited=[3, 9, 1, 5])
    assert several.rank(np.zeros(4)).tolist() == [2, 1, 3, 0]


def test_a_tie_at_the_end_of_the_list_is_told() -> None:
    fitted = mothers(200, 20, groups=())
    alike = np.flatnonzero(fitted.situation.belief[:, 1] == 1.0)
    index = decide(fitted, 3).index
    assert np.ptp(index[alike]) == 0
    told = decide(fitted, 3).notes
    assert any(
        one.startswith(f"{alike.size} were tied for 3 of the 3 places: those who have waited longest") for one in told
    )
    assert not any("tied" in one for one in decide(fitted, alike.size).notes)


def test_the_list_is_written_as_a_spreadsheet(calls: Decision, tmp_path: Path) -> None:
    calls.save(tmp_path / "next.csv", upcoming=3)
    read_back = pyarrow.csv.read_csv(tmp_path / "next.csv")
    names = ["id", "period", "state", "action", "rank", "index", "by", "chance", "reason", "age", "district"]
    assert read_back.column_names == names
    assert read_back.num_rows == 43
    assert tuple(read_back["id"].to_pylist()[:40]) == calls.ids
    calls.save(tmp_path / "next.parquet")
    with pytest.raises(rmab.errors.FileError, match=r"must end in \.csv, \.parquet, \.xlsx, \.npz or \.json"):
        calls.save(tmp_path / "next.ods")
    calls.save(tmp_path / "next.xlsx", upcoming=None)
    sheet = read_workbook("next.xlsx", (tmp_path / "next.xlsx").read_bytes())
    assert list(sheet) == names
    assert tuple(sheet["id"][:40]) == calls.ids


def test_floors_and_lots_are_told_in_the_reason(fitted: Fit) -> None:
    found = decide(fitted, 40, floor=12, random_share=0.1)
    by = {one.by: one for one in found.rows()}
    assert re.match(r"no call (yet|for \d+ weeks?): due by the floor; ", by["floor"].reason)
    assert by["lot"].reason.startswith("drawn at random; ")
    assert "floor" in found.rule


def test_arms_not_seen_lately_are_told_so() -> None:
    rows = [(f"n{k}", week, "xy"[int(week * k % 3 == 0)], int((week + k) % 4 == 0)) for k in range(20) for week in range(20)]
    rows = [row for row in rows if row[0] != "n3" or row[1] < 17]
    fitted = rmab.data.fit(read(table(*rows)), reward={"y": 1}, gone_after=8)
    found = decide(fitted, 5, must=["n3"])
    row = next(one for one in found.rows() if one.id == "n3")
    assert "when last seen 4 weeks ago" in row.reason
    assert row.state in ("x", "y")


def test_a_learned_reward_is_told_in_its_own_unit() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in range(40):
        state = 0
        for week in range(25):
            called = int(rng.random() < 0.4)
            rows.append((f"n{n}", week, f"s{state}", called, 2.0 * state))
            state = int(rng.random() < (0.7 if called else 0.2))
    fitted = rmab.data.fit(read(table(*rows, names=HEADER + ",pay"), reward="pay"))
    assert re.search(r"raises what next week is expected to bring from 0\.\d+ to 1\.\d+", decide(fitted, 5).rows()[0].reason)


def test_words_have_their_article_and_last_week_is_told_as_such() -> None:
    rows = [
        (f"n{n}", week, "xy"[(n * week + week) % 3 == 0], int((n + week) % 4 == 0)) for n in range(12) for week in range(9)
    ]
    for column, word in (("treated_by_us", "an action"), ("inspected", "an inspection"), ("called", "a call")):
        log = read(table(*rows, names=f"id,week,state,{column}"), action=column)
        assert log.words.an_action == word
        calls = decide(rmab.data.fit(log, reward={"y": 1}), 12, must=log.arms)
        told = [one.reason for one in calls.rows()]
        assert all(f"{word} " in one for one in told)
        assert all(("until last week" in one) or (" last week;" in one) for one in told)
        assert any("x for 2 weeks until last week" in one for one in told)


def test_ordinals() -> None:
    assert [ordinal(k) for k in (1, 2, 3, 10, 11, 12, 13, 21, 101, 111)] == [
        "1st", "2nd", "3rd", "10th", "11th", "12th", "13th", "21st", "101st", "111th",
    ]  # fmt: skip
