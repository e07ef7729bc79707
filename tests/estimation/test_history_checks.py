"""Checks of what the log has of the past of an arm."""

from collections.abc import Callable

import numpy as np
import pytest

import rmab
from logs import read, table
from rmab.data import Check, Fit
from rmab.estimation.gate import check_effect
from rmab.estimation.history_checks import check_history


def lapsing(
    called: Callable[[int, int], float], seed: int = 0, effect: float = 0.0, arms: int = 200, weeks: int = 30
) -> Fit:
    """A log in which arms that have just lapsed often come back; called(state, before) is the chance of a call."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(arms):
        before, state = 0, int(rng.integers(2))
        for week in range(weeks):
            act = int(rng.random() < called(state, before))
            rows.append((f"n{n}", week, f"s{state}", act))
            before, state = state, int(rng.random() < 0.2 + 0.4 * state + 0.25 * before + effect * act)
    return rmab.data.fit(read(table(*rows)), reward={"s1": 1})


def just_lapsed(state: int, before: int) -> float:
    return 0.4 if before > state else 0.03


def test_calls_to_those_who_come_back_anyway_show_no_effect() -> None:
    for seed in range(3):
        fitted = lapsing(just_lapsed, seed)
        check = {one.name: one for one in check_history(fitted)}["effect by the state before"]
        assert check.verdict == "problem"
        assert check.value < -0.05
        assert not check_effect(fitted).is_open


def test_an_effect_on_those_who_have_just_lapsed_is_seen() -> None:
    assert check_effect(lapsing(just_lapsed, effect=0.15)).p < 0.001


@pytest.mark.slow
def test_calls_that_go_by_the_state_alone_are_no_problem() -> None:
    found = [check_history(lapsing(lambda state, before: 0.2 - 0.15 * state, seed, effect=0.15)) for seed in range(10)]
    assert not any(one.verdict == "problem" for several in found for one in several)


@pytest.mark.slow
def test_the_gate_holds_at_all_looks_if_calls_go_to_those_who_have_just_lapsed() -> None:
    """Eight looks at 20 programmes of a call that changes nothing: some look opens the gate in at most 5% of them."""
    opened = 0
    for seed in range(20):
        log = lapsing(just_lapsed, 100 + seed, arms=100, weeks=26).require_log()
        looks = (rmab.data.fit(log.until(end), reward={"s1": 1}) for end in range(5, 27, 3))
        opened += any(check_effect(one).is_open for one in looks)
    assert opened <= 3  # of 20 at 5%: more with probability 0.02


def levels(gain: float, seed: int, *, spread: float = 0.2) -> Fit:
    """A log of arms whose chances of the good state differ; a call adds 0.2 and, in arms that do badly, `gain` more."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(200):
        level, state = spread * (1 if n % 2 else -1), 0
        for week in range(25):
            act = int(rng.random() < 0.2)
            rows.append((f"n{n}", week, f"s{state}", act))
            state = int(rng.random() < 0.4 + level + act * (0.2 + (gain if level < 0 else -gain)))
    return rmab.data.fit(read(table(*rows)), reward={"s1": 1})


def by_level(fitted: Fit) -> Check:
    return {one.name: one for one in check_history(fitted)}["effect by level of the arm"]


def test_arms_that_do_badly_and_gain_more_are_found() -> None:
    found = by_level(levels(0.2, 0))
    assert found.verdict == "problem"
    assert found.value < -0.2
    assert found.advice


def test_effects_that_do_not_go_with_levels_are_fine() -> None:
    assert not any(by_level(levels(0.0, seed)).verdict == "problem" for seed in range(8))
