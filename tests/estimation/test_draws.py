"""Draws at random: recorded chances and declarations are compared with the actions; false alarms are rare."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from effect_logs import play
from rmab.data import Fit, run_checks
from rmab.estimation.draws import (
    compare_chances,
    compare_halves,
    explain_chances,
    find_contradiction,
    find_design,
    find_wrong_part,
)
from rmab.estimation.scores import Records


def with_chances(fitted: Fit, chance: object) -> Fit:
    log = fitted.require_log()
    return replace(fitted, log=replace(log, chance=np.broadcast_to(chance, log.period.shape).astype(np.float64)))


def chosen_by_state(low: float, high: float) -> Fit:
    """Calls of chance `low` in the first state and `high` in the others."""
    fitted, rng = play(0.25), np.random.default_rng(1)
    log = fitted.require_log()
    chance = np.where(log.state == 0, low, high)
    action = np.where(log.action >= 0, rng.random(chance.size) < chance, -1).astype(log.action.dtype)
    return replace(fitted, log=replace(log, action=action, chance=chance))


@pytest.mark.parametrize("chance", [0.5, 0.03])
def test_chances_that_the_actions_contradict_promise_nothing(chance: float) -> None:
    fitted = with_chances(play(0.25), chance)
    assert find_design(fitted) == ""
    (found,) = (one for one in run_checks(fitted, replicates=40) if one.name == "how calls were drawn")
    assert found.verdict == "problem"
    assert "recorded chances do not agree with what was done" in found.words
    assert "fit without the chances" in found.advice


def test_chances_that_are_right_on_average_only_are_found_by_state() -> None:
    right = chosen_by_state(0.1, 0.3)
    assert find_contradiction(right) == ""
    log = right.require_log()
    assert log.chance is not None
    wrong = with_chances(right, float(log.chance[log.action >= 0].mean()))
    assert "recorded chances do not agree" in find_contradiction(wrong)


def test_sure_places_that_were_not_given_contradict_the_chances() -> None:
    fitted = play(0.25)
    log = fitted.require_log()
    rows = np.flatnonzero(log.action == 1)[::20]
    chance = np.full(log.period.size, float(log.action[log.action >= 0].mean()))
    assert find_contradiction(with_chances(fitted, chance)) == ""
    chance[rows] = 0.0
    assert "have a recorded chance of 0" in find_contradiction(with_chances(fitted, chance))


def test_why_recorded_chances_do_not_promise_is_said() -> None:
    fitted = play(0.25)
    log = fitted.require_log()
    usual = float(log.action[log.action >= 0].mean())
    assert explain_chances(with_chances(fitted, usual)) == ""
    holes = np.where(np.random.default_rng(0).random(log.period.size) < 0.05, np.nan, usual)
    assert "have no chance" in explain_chances(with_chances(fitted, holes))
    certain = np.where(np.arange(log.period.size) % 2, usual, log.action == 1)
    assert "have a chance of 0 or 1" in explain_chances(with_chances(fitted, certain))
    mixed = np.where(np.arange(log.period.size) % 2, usual, usual / 2)
    assert "chances differ within group, state and week" in explain_chances(with_chances(fitted, mixed))


def test_a_declaration_that_the_records_contradict_is_a_problem() -> None:
    """Arms differ in how often they are called, in both halves of the log."""
    fitted, rng = replace(play(0.25), randomised=True), np.random.default_rng(2)
    assert find_design(fitted) == "declared"
    log = fitted.require_log()
    rate = rng.choice([0.05, 0.4], len(log.arms))[log.arm_of]
    action = np.where(log.action >= 0, rng.random(rate.size) < rate, -1).astype(log.action.dtype)
    chosen = replace(fitted, log=replace(log, action=action))
    assert "the draw of calls is declared, but arms that had more calls" in find_contradiction(chosen)
    assert find_design(chosen) == ""


def test_a_trial_may_be_declared() -> None:
    assert find_design(replace(play(0.25, assigned=True), randomised=True)) == "declared"


def draw(kind: str, rng: np.random.Generator, arms: int = 150, weeks: int = 20) -> tuple[np.ndarray, ...]:
    """Return actions, chances and arms of draws: one by one, so many a week, or once for all weeks."""
    arm = np.repeat(np.arange(arms), weeks)
    if kind == "once":
        chance = np.full(arm.size, 0.3)
        return np.repeat(rng.random(arms) < 0.3, weeks).astype(np.int64), chance, arm
    if kind == "lists":
        places = np.argsort(np.argsort(rng.random((weeks, arms)), axis=1), axis=1) < 6
        return places.T.reshape(-1).astype(np.int64), np.full(arm.size, 6 / arms), arm
    chance = rng.choice([0.01, 0.03, 0.3, 0.7], arm.size)
    return (rng.random(arm.size) < chance).astype(np.int64), chance, arm


@pytest.mark.parametrize("kind", ["each", "lists", "once"])
def test_false_alarms_are_below_one_in_a_hundred(kind: str) -> None:
    rng, alarms, times = np.random.default_rng(5), 0, 400
    for _ in range(times):
        action, chance, arm = draw(kind, rng)
        state, group = rng.integers(3, size=arm.size), arm % 9
        parts = {"": np.ones(arm.size, dtype=bool)} | {f"s{k}": state == k for k in range(3)}
        parts |= {f"g{k}": group == k for k in range(9)} | {f"c{c}": chance == c for c in np.unique(chance)}
        alarms += find_wrong_part(parts, action, chance, arm) is not None
    assert alarms <= 0.01 * times


def test_the_p_of_independent_draws_is_that_of_a_binomial() -> None:
    action, arm = np.repeat([1, 0], [30, 170]), np.arange(200)
    p, came, said, size = compare_chances(action, np.full(200, 0.25), arm)
    assert (came, said, size) == (30, 50.0, 200)
    assert p == pytest.approx(2 * binomtest(30, 200, 0.25, "less").pvalue)


@pytest.mark.parametrize("block", [1, 5])
def test_draws_that_are_kept_for_some_weeks_are_no_lasting_choice(block: int) -> None:
    rng, low = np.random.default_rng(3), 0
    arms, weeks = 120, 20
    arm, period = np.repeat(np.arange(arms), weeks), np.tile(np.arange(weeks), arms)
    nothing = np.zeros(arm.size, dtype=np.int64)
    for _ in range(200):
        action = (rng.random((arms, weeks // block)) < 0.15).repeat(block, axis=1).reshape(-1).astype(np.int64)
        records = Records(arm, nothing, nothing, period, action, nothing * 1.0, nothing, nothing, np.zeros((1, 1)), arms)
        low += compare_halves(records) < 0.01
    assert low <= 8
