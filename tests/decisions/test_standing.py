"""The standing of a list: what the log shows of the effect that the list rests on."""

from dataclasses import replace
from pathlib import Path

import pytest

from effect_logs import play
from rmab.data import Decision, Fit, Words, decide
from rmab.decisions.fairness import Fairness, write_warnings


@pytest.fixture(scope="module")
def useless() -> Fit:
    return play(0.0)


@pytest.fixture(scope="module")
def useful() -> Fit:
    return play(0.25)


def standing_of(found: Decision) -> str:
    return " ".join(one for one in found.notes if one.startswith("standing: "))


def test_a_list_says_that_the_log_shows_no_effect(useless: Fit) -> None:
    found = decide(useless, 10, caps={"group=c": 1})
    assert found.standing == "not shown"
    assert "the log does not show that a call helps (p = " in standing_of(found)
    assert not any("one more place" in one for one in found.notes)  # no price in a unit that is not shown
    assert all("the model estimates that a call" in one for one in found.reasons)


@pytest.mark.parametrize(
    ("problems", "randomised", "standing"),
    [((), False, "conditional"), ((), True, "promised"), (("memory",), True, "problem")],
)
def test_the_standing_of_a_list_is_that_of_its_evaluation(
    useful: Fit, problems: tuple[str, ...], randomised: bool, standing: str
) -> None:
    assert decide(useful, 10).standing == ""  # nobody made the checks
    found = decide(replace(useful, problems=problems, randomised=randomised), 10, caps={"group=a": 1})
    assert found.standing == standing
    assert standing_of(found).startswith(f"standing: {standing}; ")
    assert any("one more place" in one for one in found.notes) == (standing != "problem" and found.prices["group=a"] > 0)


def test_the_standing_is_stored_with_the_model_and_the_list(useful: Fit, tmp_path: Path) -> None:
    checked = replace(useful, problems=("memory",))
    checked.save(tmp_path / "model.npz")
    assert Fit.load(tmp_path / "model.npz").problems == ("memory",)
    decide(checked, 10).save(tmp_path / "list.npz")
    assert Decision.load(tmp_path / "list.npz").standing == "problem"


@pytest.mark.parametrize(
    ("cost", "priced", "words"),
    [
        (0.5, True, "it would get 5, and the list would bring 0.5 fewer weeks engaged (10% less)"),
        (6.79e-6, True, "it would get 5, at no cost"),
        (0.5, False, "it would get 5"),
    ],
)
def test_a_fairer_list_has_a_price_only_if_it_matters(cost: float, priced: bool, words: str) -> None:
    unfair = Fairness("district=north", 9, 10, 0.5, 5, cost, 5.0, 0.1)
    (found,) = write_warnings(Words("call", "week", "weeks engaged"), (unfair,), priced=priced)
    assert found.endswith(words)


def test_a_list_that_was_given_is_made() -> None:
    fitted = play(0.25)
    first = decide(replace(fitted, situation=fitted.situation), 10)
    log = fitted.require_log()
    last = log.periods.label(log.periods.count - 1)
    few = replace(fitted, log=replace(log, action=log.action * (log.period < log.periods.count - 1)))
    few = few.at(log.periods.label(log.periods.count))
    assert f"if the list of {last} is not made yet" in " ".join(decide(few, 10).notes)
    made = replace(first, period=last)
    assert "is not made yet" not in " ".join(decide(few, 10, since=made).notes)
