"""What the list brought: by hand, unbiased, and with intervals that hold at all looks, in programmes with a known truth."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import rmab
from randomised import World
from rmab.common import FloatArray
from rmab.errors import ModelError
from rmab.estimation.measurement import Measurement
from rmab.estimation.sequences import margin, mixture_scale

COLUMNS = {"arm": "id", "period": "week", "state": "state", "action": "called", "chance": "chance"}


WORLDS = {
    "null": World(),
    "effect": World(effect=0.4),
    "few left out": World(effect=0.3, places=10, swapped=1),
    "null, few left out": World(places=8, swapped=1, arms=40),
    "rare outcomes": World(level=0.02, places=20, swapped=5),
    "no past": World(effect=0.2, before=0),
    "late effect": World(effect=0.4, late=True),
}


def simulate(world: World, times: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(times, T) the truth, and total, low and high of the measurement."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(times):
        log, truth = world.play(rng)
        found = rmab.data.measure(log, reward={"good": 1})
        assert not found.problems
        rows.append((truth, found.all.total, np.where(found.enough, found.all.low, -np.inf), found.all.high))
    return tuple(np.array([row[k] for row in rows]) for k in range(4))  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_no_bias_and_intervals_that_hold_at_all_of_26_looks(name: str) -> None:
    truth, total, low, high = simulate(WORLDS[name], 200, 1)
    error = (total - truth)[:, -1]
    assert abs(error.mean()) < 3.5 * error.std() / np.sqrt(error.size)
    missed = ((truth < low) | (truth > high)).any(axis=1).sum()
    assert missed <= 17  # of 200 with an error of 5%, fewer in 98 of 100 cases


def table_of(rows: list[tuple[Any, ...]], *more: str) -> pa.Table:
    """A log in a table: id, week, state, called, chance, and more."""
    names = ("id", "week", "state", "called", "chance", *more)
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)})


def measured(rows: list[tuple[Any, ...]], *more: str, **options: Any) -> Measurement:
    log = rmab.data.read_log(table_of(rows, *more), **COLUMNS, by="by" if "by" in more else None)
    return rmab.data.measure(log, reward={"good": 1}, **options)


def two_weeks(count: int, chance: float = 0.5) -> list[tuple[Any, ...]]:
    """Half of the arms are drawn, and three in four of them, but only one in four of the others, are good after it."""
    first = [(f"a{k}", 1, "bad", "yes" if k % 2 else "no", chance) for k in range(count)]
    good = [k % 8 in (1, 3, 5, 0) for k in range(count)]
    return first + [(f"a{k}", 2, "good" if good[k] else "bad", None, None) for k in range(count)]


def test_a_case_by_hand() -> None:
    """40 arms, half of them drawn: 15 of 20 are good with a place, 5 of 20 without."""
    found = measured(two_weeks(40))
    assert found.periods == ("1",)
    assert found.all.total[-1] == pytest.approx(15 - 5)
    spread = max(15 + 5, 40 * 1.0 * 20 / 40)  # all were bad before, so nobody is expected to be good: errors are outcomes
    width = margin(spread, mixture_scale(26 * 40 * 0.25))
    assert found.all.high[-1] - found.all.total[-1] == pytest.approx(float(width))
    assert found.all.places[-1] == 20
    assert (found.listed, found.left_out, found.certain, found.unrecorded) == (20, 20, 0, 0)
    assert found.effective == pytest.approx(20)
    assert found.chosen.places[-1] == 20
    assert found.others.places[-1] == 0


def test_arms_with_a_small_chance_count_little() -> None:
    """Ten of chance 0.5 are on the list; 20 of chance 0.5 or 0.01 are not: (10 + 10/99)^2 / (10 + 10/99^2), one of each."""
    chances = [0.5] * 20 + [0.01] * 10
    first = [(f"a{k}", 1, "bad", "yes" if k < 10 else "no", one) for k, one in enumerate(chances)]
    found = measured(first + [(f"a{k}", 2, "good", None, None) for k in range(30)])
    assert found.left_out == 20
    assert found.effective == pytest.approx((10 + 10 / 99) ** 2 / (10 + 10 / 99**2))
    few = measured([row for row in first if row[0] != "a10"] + [(f"a{k}", 2, "good", None, None) for k in range(30)])
    (said, *_) = few.sentences()
    assert "10 of arms with a place, and 19 of arms in the draw without one, which count as 9 " in said


def test_unequal_chances_are_weighted() -> None:
    """Two arms of chance 0.8, one on the list and good, one left out and good: 1 - 0.8 / 0.2 = -3."""
    rows = [("a", 1, "bad", 1, 0.8), ("b", 1, "bad", 0, 0.8), ("a", 2, "good", None, None), ("b", 2, "good", None, None)]
    assert measured(rows).all.total[-1] == pytest.approx(1 - 4)
    late = [*rows, ("c", 1, "bad", 0, 0.8)]  # without an outcome, it does not count
    assert measured(late).all.total[-1] == pytest.approx(1 - 4)
    assert measured(late).unrecorded == 1


def test_predictions_come_from_the_past_alone() -> None:
    """An outcome does not change what is measured in earlier weeks, and a later week is measured against earlier ones."""
    rng = np.random.default_rng(5)
    log, _ = World(effect=0.3, weeks=6, before=3).play(rng)
    whole = rmab.data.measure(log, reward={"good": 1})
    for end in range(6, log.periods.count):
        part = rmab.data.measure(log.until(end), reward={"good": 1})
        for name in ("total", "low", "high", "places"):
            np.testing.assert_allclose(getattr(part.all, name), getattr(whole.all, name)[: len(part.periods)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(4, 30))
def test_the_order_of_rows_does_not_matter(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    words = (("bad", "good"), ("no", "yes"), (0.2, 0.6))
    rows = [
        (f"a{k}", week, *(several[int(rng.integers(2))] for several in words))
        for k in range(count) for week in range(1, 5) if rng.random() < 0.9 or week == 1
    ]  # fmt: skip
    shuffled = [rows[k] for k in rng.permutation(len(rows))]
    one, other = measured(rows), measured(shuffled)
    assert one.periods == other.periods
    for name in ("total", "low", "high"):
        np.testing.assert_allclose(getattr(one.all, name), getattr(other.all, name), atol=1e-9)
    assert one.sentences() == other.sentences()


def test_arms_count_as_decided() -> None:
    """Who was on the list and was not called still counts as on the list."""
    rows = [(*row, "" if row[3] != "yes" else "lot") for row in two_weeks(40)]
    missed = [(*row[:3], "no" if row[1] == 1 else None, *row[4:]) for row in rows]
    assert measured(missed, "by").all.total[-1] == pytest.approx(10)
    assert measured(missed, "by").listed == 20


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (two_weeks(40, 1.0)[::2], "nobody was drawn: every chance is 0 or 1; make lists with random_share"),
        ([(*row[:4], None) for row in two_weeks(40)], "no chance is recorded; keep the column 'chance' of the lists"),
        (two_weeks(40)[:40] + two_weeks(40)[40:41], "too few outcomes: 0 of arms with a place, and 1 of"),
        (
            two_weeks(10),
            "too few outcomes: 5 of arms with a place, and 5 of arms in the draw without one, which count as 5 ",
        ),
    ],
)
def test_an_unknown_benefit_is_not_stated(rows: list[tuple[Any, ...]], words: str) -> None:
    found = measured([(*row[:3], "no" if row[4] == 1.0 else row[3], *row[4:]) for row in rows])
    assert found.verdict == "unknown"
    assert "known" in found.sentences()[0]
    assert words in found.sentences()[0]


def test_a_log_without_those_who_were_left_out_is_not_believed() -> None:
    rows = [row for row in two_weeks(200, 0.2) if row[3] == "yes" or int(row[0][1:]) % 10 == 0 or row[1] == 2]
    found = measured(rows)
    assert found.verdict == "unknown"
    words = (
        "problem: of 120 arms with a chance of less than one half, 100 have a place; by their chances, it would be about 24."
    )
    assert found.sentences()[0].startswith(words)
    assert "no estimate or interval is valid" in found.sentences()[1]
    assert not any("The interval is valid" in one or "for each of" in one for one in found.sentences())
    assert str(found).startswith("Measurement(unknown: problem: of 120")


def test_parts_are_named_by_their_chances_and_not_by_who_chose() -> None:
    """A place that a draw between equal arms gave has by = index, whatever its chance."""
    words = " ".join(measured(two_weeks(200, 0.45)).sentences())
    assert "where the chance of a place was less than one half (drawn, or tied for the last places)" in words
    assert "drawn from the others" not in words


def test_recording_that_depends_on_the_draw_is_a_problem() -> None:
    kept = [row for row in two_weeks(800) if row[1] == 1 or int(row[0][1:]) % 2 or int(row[0][1:]) % 4]
    found = measured(kept)
    assert found.verdict == "unknown"
    assert "a place makes it 50 points more likely that an outcome is recorded" in found.sentences()[0]


def test_rewards_of_the_same_period_are_an_outcome() -> None:
    rows = [(f"a{k}", 1, "bad", k % 2, 0.5, 3.0 * (k % 2)) for k in range(40)]
    log = rmab.data.read_log(table_of(rows, "earned"), **COLUMNS, reward="earned")
    assert rmab.data.measure(log, after=0).all.total[-1] == pytest.approx(60)
    assert not rmab.data.measure(log).periods  # one week later nothing is known yet


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reward": None}, "name the good state, for example reward={'good': 1} (--reward good=1)"),
        ({"after": 2}, "after must be 0 or 1, got 2"),
        ({"after": 0}, "after=0 needs rewards"),
        ({"reward": {"well": 1}}, "unknown state 'well'; available: bad, good"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    log = rmab.data.read_log(table_of(two_weeks(40)), **COLUMNS)
    with pytest.raises(ModelError) as error:
        rmab.data.measure(log, **{"reward": {"good": 1}} | change)
    assert words in str(error.value)


def test_a_log_without_chances_is_refused() -> None:
    columns = {name: one for name, one in COLUMNS.items() if name != "chance"}
    log = rmab.data.read_log(table_of(two_weeks(40)), **columns)
    with pytest.raises(ModelError, match="the log has no chances"):
        rmab.data.measure(log, reward={"good": 1})
    with pytest.raises(ModelError, match="by needs chance"):
        rmab.data.read_log(table_of(two_weeks(4)), **columns, by="chance")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("z", 1, "bad", "no", 1.2, ""), "column 'chance' must be in 0..1"),
        (("z", 1, "bad", "yes", 0.0, "index"), "column 'chance' is 0 for who is on the list"),
        (("z", 1, "bad", "yes", None, "index"), "on a list, but without its chance in column 'chance'"),
    ],
)
def test_chances_that_cannot_be_are_refused_with_their_line(row: tuple[Any, ...], words: str) -> None:
    rows = [*((*one, "lot" if one[3] == "yes" else "") for one in two_weeks(40)), row]
    with pytest.raises(rmab.errors.LogError, match=f"row 80: {words}"):
        rmab.data.read_log(table_of(rows, "by"), **COLUMNS, by="by")
