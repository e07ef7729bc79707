"""Whatever cannot be projected is refused with one line that says where; never a quiet approximate answer."""

from typing import Any

import numpy as np
import pytest

import rmab
from instances import Instance, changed, random_instance, unsaid
from rmab.errors import ModelError, SolverError

BOX = random_instance(0, (2, 3, 3), support=0.7)
BALL = random_instance(0, (2, 3, 3), support=0.7, radius=0.2)
IMPOSSIBLE = tuple(int(i) for i in np.argwhere(BOX.high == 0)[0])


def one(instance: Instance, field: str, place: Any, value: float) -> Instance:
    """Return the instance with one entry of one field changed."""
    return instance.but(**{field: changed(getattr(instance, field), (place, value))})


ROW = (1, 2, 1, slice(None))
ENTRY = (1, 2, 1, int(np.flatnonzero(BOX.high[1, 2, 1])[0]))
PLACE = ("arm 1", "state 2", "action 1")


def test_what_the_tests_below_change_is_fine_before() -> None:
    assert BOX.solve().residual <= 1e-8
    assert BALL.solve().residual <= 1e-8


def test_lower_above_upper() -> None:
    assert not unsaid(one(BOX, "low", ENTRY, float(BOX.high[ENTRY]) + 1e-6), *PLACE, f"next state {ENTRY[3]}")


@pytest.mark.parametrize("value", [-1e-6, 1.0 + 1e-6, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["low", "high"])
def test_bounds_outside_the_unit_interval(field: str, value: float) -> None:
    assert not unsaid(one(BOX, field, ENTRY, value), *PLACE, f"next state {ENTRY[3]}")


def test_empty_boxes() -> None:
    assert not unsaid(one(BOX, "high", ROW, 0.2).but(low=changed(BOX.low, (ROW, 0.0))), *PLACE, "no distribution", "0.6")
    assert not unsaid(one(BOX, "low", ROW, 0.5).but(high=changed(BOX.high, (ROW, 1.0))), *PLACE, "no distribution", "1.5")
    assert not unsaid(one(BOX, "high", ROW, 0.0).but(low=changed(BOX.low, (ROW, 0.0))), *PLACE)


def test_a_box_that_is_empty_by_rounding_only_is_not_empty() -> None:
    third = np.full_like(BOX.low, 1 / 3)
    table = np.ones_like(BOX.reference)
    for off in (1e-13, -1e-13):
        answer = BOX.but(reference=table, low=third + off, high=third + off).solve()
        np.testing.assert_allclose(answer.kernel, 1 / 3, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("instance", [BOX, BALL], ids=["box", "ball"])
def test_reference_that_is_not_positive_where_allowed(
    request: pytest.FixtureRequest, instance: Instance, value: float
) -> None:
    assert not unsaid(
        one(instance, "reference", (1, 2, *ENTRY[1:]), value), *PLACE, "step 2", f"next state {ENTRY[3]}", "reference"
    )


@pytest.mark.parametrize("value", [-1.0, np.nan])
@pytest.mark.parametrize("instance", [BOX, BALL], ids=["box", "ball"])
def test_reference_that_is_no_measure_where_a_transition_is_impossible(instance: Instance, value: float) -> None:
    """Either it is refused, or it does not reach the answer."""
    n, s, a, y = IMPOSSIBLE
    bad = one(instance, "reference", (n, 1, s, a, y), value)
    try:
        answer = bad.solve()
    except ModelError as error:
        assert f"arm {n}" in str(error)  # noqa: PT017
    else:
        assert answer.value == instance.solve().value


def test_centre_that_needs_what_the_reference_excludes() -> None:
    assert not unsaid(one(BALL, "reference", (1, slice(None), *ENTRY[1:]), 0.0), *PLACE, f"next state {ENTRY[3]}", "centre")


@pytest.mark.parametrize("instance", [BOX, BALL], ids=["box", "ball"])
@pytest.mark.parametrize("shape", [(2, 3, 3, 2), (2, 3, 3, 3, 3), (2, 3, 3, 2, 4), (2, 0, 3, 2, 3), (0, 3, 3, 2, 3), (5,)])
def test_reference_of_another_shape(instance: Instance, shape: tuple[int, ...]) -> None:
    assert not unsaid(instance.but(reference=np.ones(shape)), "reference", str(shape))


@pytest.mark.parametrize("shape", [(3, 3, 2, 3), (2, 3, 2), (2, 4, 2, 4), (2, 3, 1, 3)])
def test_sets_of_another_shape(shape: tuple[int, ...]) -> None:
    assert not unsaid(BOX.but(low=np.zeros(shape)), "lower", str(shape))
    assert not unsaid(BOX.but(high=np.ones(shape)), "upper", str(shape))
    assert not unsaid(BOX.but(low=np.zeros(shape), high=np.ones(shape)), str(shape))
    assert not unsaid(BALL.but(low=np.ones(shape)), "centre", str(shape))
    assert not unsaid(BALL.but(radius=np.ones(shape[:2])), "radius", str(shape[:2]))


@pytest.mark.parametrize("field", ["low", "high", "start", "budget", "weights", "reference"])
@pytest.mark.parametrize("value", ["x", [["a"]], {}, 1j, [[1.0], [1.0, 2.0]]], ids=str)
def test_what_is_not_numbers(request: pytest.FixtureRequest, field: str, value: Any) -> None:
    words = {"low": "lower", "high": "upper"}
    assert not unsaid(BOX.but(**{field: value}), words.get(field, field))


@pytest.mark.parametrize("value", [-1, 3, 1.5, np.nan])
def test_start_out_of_range(value: float) -> None:
    assert not unsaid(BOX.but(start=[0, value]), "start", "1", "0..2")
    assert not unsaid(BALL.but(start=[value, 0]), "start", "0", "0..2")


@pytest.mark.parametrize("start", [0, [0], [0, 0, 0], [[0, 0]]], ids=str)
def test_start_of_another_shape(start: Any) -> None:
    assert not unsaid(BOX.but(start=start), "start", "(2,)")


@pytest.mark.parametrize("value", [-1e-9, -np.inf, np.nan, np.inf])
def test_budgets_that_nothing_can_meet(value: float) -> None:
    assert not unsaid(BOX.but(budget=value), "budget", "step 0")
    assert not unsaid(BALL.but(budget=[1.0, 0.0, value]), "budget", "step 2")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_budget_that_is_no_number_is_called_so(value: float) -> None:
    assert not unsaid(BOX.but(budget=value), str(value))


@pytest.mark.parametrize("budget", [[1.0, 1.0], [1.0] * 4, [[1.0] * 3], []], ids=str)
def test_budget_of_another_shape(budget: Any) -> None:
    assert not unsaid(BOX.but(budget=budget), "budget", "(3,)")


@pytest.mark.parametrize(
    "weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [np.nan, 1.0], [1.0, np.inf], 1.0, [[1.0, 1.0]]], ids=str
)
def test_bad_weights(weights: Any) -> None:
    assert not unsaid(BOX.but(weights=weights), "weights")
    assert not unsaid(BALL.but(weights=weights), "weights")


@pytest.mark.parametrize("shape", [(1, 3, 3), (2, 4, 3), (2, 3, 2)])
def test_warm_start_of_another_shape(shape: tuple[int, int, int]) -> None:
    assert not unsaid(BOX, "warm", str((*shape, 2)), "(2, 3, 3, 2)", warm=random_instance(0, shape).solve())


@pytest.mark.parametrize(
    "warm", [1, "cold", np.zeros((2, 3, 3)), np.zeros((2, 3, 3, 2)).astype(object), np.zeros((2, 3, 3, 2)) + 0j]
)
def test_warm_start_that_is_no_projection(warm: Any) -> None:
    assert not unsaid(BOX, "warm", warm=warm)


def test_centre_that_is_no_distribution() -> None:
    assert not unsaid(one(BALL, "low", ENTRY, float(BALL.low[ENTRY]) + 1e-6), *PLACE, "centre", "distribution")
    assert not unsaid(one(BALL, "low", ENTRY, np.nan), *PLACE, "centre")
    moved = changed(BALL.low, ((1, 2, 1, 0), -0.1), ((1, 2, 1, 1), 0.1), ((1, 2, 1, 2), 1.0))
    assert not unsaid(BALL.but(low=moved), *PLACE, "centre")


@pytest.mark.parametrize("value", [-1e-12, np.nan])
def test_bad_radius(value: float) -> None:
    assert not unsaid(one(BALL, "radius", (1, 2, 1), value), *PLACE, "radius")


def test_radius_may_be_infinite() -> None:
    everything = BALL.but(radius=np.full_like(BALL.radius, np.inf)).solve()
    np.testing.assert_allclose(everything.z, BALL.but(radius=np.full_like(BALL.radius, 2.0)).solve().z, atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-30, 5e-324])
def test_a_tolerance_out_of_reach(tolerance: float) -> None:
    with pytest.raises(SolverError, match=r"residual \d\.\d\de-1\d") as caught:
        BOX.solve(tolerance=tolerance)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tolerance", [-1.0, np.nan, "small", None], ids=str)
def test_a_tolerance_that_is_none(tolerance: Any) -> None:
    assert not unsaid(BOX, "tolerance", tolerance=tolerance)


def test_too_few_iterations_are_said_with_the_residual_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmab.solvers.projection.newton.ITERATIONS", 1)
    monkeypatch.setattr("rmab.solvers.projection.newton.tempered", lambda *_: None)
    with pytest.raises(SolverError, match=r"residual \d\.\d\de-0\d after 1 iterations") as caught:
        BOX.solve()
    reached = float(str(caught.value).split("residual ")[1].split()[0])
    assert 1e-8 < reached < 1
    loose = BOX.solve(tolerance=1.0)
    assert loose.iterations <= 1


def test_errors_are_those_of_the_library() -> None:
    with pytest.raises(rmab.RmabError):
        BOX.but(budget=-1).solve()
    with pytest.raises(ValueError, match="budget"):
        BOX.but(budget=-1).solve()
    with pytest.raises(RuntimeError, match="residual"):
        BOX.solve(tolerance=1e-30)


def test_a_looser_tolerance_is_still_feasible_and_says_how_far_it_is() -> None:
    from instances import infeasibility

    rough, fine = BOX.solve(tolerance=1e-2), BOX.solve()
    assert infeasibility(BOX, rough) <= 1e-12
    assert rough.iterations <= fine.iterations
    assert fine.residual <= 1e-8
    assert rough.residual <= 1e-2
    assert rough.value - rough.gap <= fine.value + 1e-9
    assert rough.value >= fine.value - 1e-9
