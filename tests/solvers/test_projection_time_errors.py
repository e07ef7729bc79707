"""Phases, starts and sets that do not fit are refused with one line that says what and where."""

from typing import Any

import numpy as np
import pytest

from instances import Instance, changed, random_instance, timed_instance, unsaid

BOX, BALL = timed_instance(0, (2, 5, 3), 3), timed_instance(0, (2, 5, 3), 3, radius=0.2)
BOTH = pytest.mark.parametrize("instance", [BOX, BALL], ids=["box", "ball"])


@BOTH
def test_phases_are_needed_unless_every_step_has_its_own(instance: Instance) -> None:
    assert not unsaid(instance.but(phase_of=None), "phase_of", "3 phases", "5 steps")


@BOTH
@pytest.mark.parametrize("phases", [[0, 1, 2, 0], [0] * 6, 0, [[0] * 5], []], ids=str)
def test_phases_of_another_length(instance: Instance, phases: Any) -> None:
    assert not unsaid(instance.but(phase_of=phases), "phase_of", "(5,)", str(np.shape(phases)))


@BOTH
@pytest.mark.parametrize("value", [-1, 3, 0.5, np.nan, np.inf])
def test_phases_that_there_are_not(instance: Instance, value: float) -> None:
    assert not unsaid(instance.but(phase_of=[0, 1, 2, value, 0]), "phase_of", "step 3", "0..2", f"{value:g}")


@pytest.mark.parametrize("phases", ["day", ["day"] * 5, {}, 1j, [[0], [0, 1]]], ids=str)
def test_phases_that_are_no_numbers(phases: Any) -> None:
    assert not unsaid(BOX.but(phase_of=phases), "phase_of")


@pytest.mark.parametrize("value", [-1, 0.5, np.nan])
def test_phases_are_looked_at_where_sets_have_but_one(value: float) -> None:
    assert not unsaid(random_instance(0, (2, 3, 3)).but(phase_of=[0, value, 0]), "phase_of", "step 1", "whole number")


@pytest.mark.parametrize("shape", [(3, 2, 3, 2, 3), (1, 6, 3, 2, 3), (6, 3, 2, 3), (4, 3, 2, 3), (2, 3, 4, 2, 4)], ids=str)
def test_sets_of_another_shape(shape: tuple[int, ...]) -> None:
    """Also where there are as many cells as there should be, of other arms."""
    assert not unsaid(
        BOX.but(low=np.zeros(shape), high=np.ones(shape)), "lower and upper", "(2, 3, 2, 3)", "(N, K, S, 2, S)"
    )
    centre = np.full(shape, 1 / shape[-1])
    assert not unsaid(BALL.but(low=centre, radius=np.ones(shape[:-1])), "centre", "(2, 3, 2, 3)", "(N, K, S, 2, S)")


@pytest.mark.parametrize("shape", [(2, 3, 2), (2, 1, 3, 2), (2, 3, 3), (3, 2, 3, 2), (2, 3, 3, 2, 3)], ids=str)
def test_radius_of_another_shape(shape: tuple[int, ...]) -> None:
    assert not unsaid(BALL.but(radius=np.ones(shape)), "radius", "(N, K, S, 2)", "(2, 3, 3, 2, 3)")


def test_radius_with_phases_where_the_centre_has_none() -> None:
    plain = random_instance(0, (2, 5, 3), radius=0.2)
    assert not unsaid(plain.but(radius=np.ones((2, 3, 3, 2))), "radius", "(N, S, 2)", "(2, 3, 3, 2)")


PLACE = ("arm 1", "phase 2", "state 0", "action 1")


def test_sets_that_are_none() -> None:
    assert not unsaid(BOX.but(low=changed(BOX.low, ((1, 2, 0, 1, 0), 1.5))), *PLACE, "next state 0", "not an interval")
    assert not unsaid(
        BOX.but(high=changed(BOX.high, ((1, 2, 0, 1), 0.0)), low=changed(BOX.low, ((1, 2, 0, 1), 0.0))), *PLACE, "sums to 0"
    )
    assert not unsaid(BALL.but(low=changed(BALL.low, ((1, 2, 0, 1, 0), 0.9))), *PLACE, "distribution")
    assert not unsaid(BALL.but(radius=changed(BALL.radius, ((1, 2, 0, 1), -1.0))), *PLACE, "radius")


@BOTH
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_reference_that_is_no_measure(instance: Instance, value: float) -> None:
    step = f"step 3 (phase {np.asarray(instance.phase_of)[3]})"
    wrong = instance.but(reference=changed(instance.reference, ((1, 3, 2, 1, 0), value)))
    assert not unsaid(wrong, "reference", "arm 1", step, "state 2", "action 1", "next state 0")


def test_a_centre_that_needs_what_the_reference_excludes_in_its_phase() -> None:
    steps = np.flatnonzero(np.asarray(BALL.phase_of) == 2)
    assert 0 < steps.size < 5
    table = np.array(BALL.reference)
    for h in steps:
        table[1, h, 0, 1, 2] = 0.0
    assert not unsaid(BALL.but(reference=table), *PLACE, "next state 2", "centre")


@BOTH
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (1, 3)], ids=str)
def test_start_probabilities_of_another_shape(instance: Instance, shape: tuple[int, int]) -> None:
    assert not unsaid(instance.but(start=np.full(shape, 1 / shape[1])), "start", "(N, S) = (2, 3)", str(shape))


@BOTH
@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_start_probabilities_that_are_none(instance: Instance, value: float) -> None:
    assert not unsaid(instance.but(start=[[0.5, 0.5, 0.0], [0.0, 1.0 - value, value]]), "start", "arm 1", "state")


@BOTH
def test_start_probabilities_that_do_not_sum_to_one(instance: Instance) -> None:
    assert not unsaid(instance.but(start=[[0.5, 0.5, 0.0], [0.2, 0.2, 0.2]]), "start", "arm 1", "0.6")


@pytest.mark.parametrize("start", [[[1.0], [0.5, 0.5]], [["a"]], 1j, np.ones((2, 3, 1))], ids=lambda one: str(one)[:20])
def test_starts_that_are_neither(start: Any) -> None:
    assert not unsaid(BOX.but(start=start), "start")
