"""Eight numbers at a time (`rmab.solvers.compiled.lanes`): compiled against NumPy in extended precision, lane by lane."""

import numba
import numpy as np
import pytest

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled
from rmab.solvers.compiled import lanes
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import exp, least, load, log, most, root, select, size, some, spread, store, summed

pytestmark = pytest.mark.compiled

ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.0, 1.0, 2.2250738585072014e-308, 1.7976931348623157e308])


@compiled
def exps(x: FloatArray, y: FloatArray) -> None:
    for i in range(x.shape[0]):
        store(y, exp(load(x, i)), i)


@compiled
def logs(x: FloatArray, y: FloatArray) -> None:
    for i in range(x.shape[0]):
        store(y, log(load(x, i)), i)


def units_off(found: FloatArray, exact: np.ndarray) -> float:
    """Return the largest error in units of the last place."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(exact.astype(float)))))


def in_lanes(values: FloatArray) -> FloatArray:
    return np.resize(values, (-(-values.size // WIDTH), WIDTH))


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.7), (-1.0, 1.0), (-1e-8, 1e-8), (-40.0, 0.0)])
def test_exp_is_right_to_two_units_over_its_range(low: float, high: float) -> None:
    x = np.random.default_rng(0).uniform(low, high, size=(20_000, WIDTH))
    y = np.empty_like(x)
    exps(x, y)
    assert units_off(y, np.exp(x.astype(np.longdouble))) <= 2.0


def test_exp_of_numbers_whose_result_is_subnormal() -> None:
    x = np.random.default_rng(1).uniform(-745.1, -708.4, size=(5_000, WIDTH))
    y = np.empty_like(x)
    exps(x, y)
    assert np.abs(y - np.exp(x.astype(np.longdouble))).max() <= 5e-324


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.0), (-0.7, 0.7), (-1e-6, 1e-6), (-744.0, -708.0)])
def test_log_is_right_to_two_units_over_its_range(low: float, high: float) -> None:
    x = np.exp(np.random.default_rng(2).uniform(low, high, size=(20_000, WIDTH)))
    y = np.empty_like(x)
    logs(x, y)
    exact = np.log(x.astype(np.longdouble))
    assert units_off(y[x != 1.0], exact[x != 1.0]) <= 2.0
    assert (y[x == 1.0] == 0.0).all()


def test_infinities_and_what_is_no_number() -> None:
    x = in_lanes(np.concatenate([ODD, [709.9, -745.2, 1e6, -1e6]]))
    y = np.empty_like(x)
    with np.errstate(all="ignore"):
        exps(x, y)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-15)
        logs(x, y)
        np.testing.assert_allclose(y, np.log(x), rtol=1e-15)


@compiled
def mixture(x: FloatArray, y: FloatArray, out: FloatArray) -> tuple[float, bool]:
    total, any_negative = 0.0, False
    for i in range(x.shape[0]):
        a, b = load(x, i), load(y, i)
        both = (a > 0.0) & ~(b <= 1.0) | (a == b)
        c = select(both, root(size(a)) / 2 - b, least(a, 0.5) * most(b, -0.25) + spread(3.0))
        store(out, -c, i)
        total += summed(c)
        any_negative = any_negative | some(c < 0.0)
    return total, any_negative


def test_operators_are_those_of_single_numbers() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, WIDTH)), rng.normal(size=(50, WIDTH))
    y[::7] = x[::7]
    out, plain = np.empty_like(x), np.empty_like(x)
    total, negative = mixture(x, y, out)
    for place, (a, b) in enumerate(zip(x.ravel(), y.ravel(), strict=True)):
        both = (a > 0 and not b <= 1) or a == b
        plain.ravel()[place] = np.sqrt(abs(a)) / 2 - b if both else min(a, 0.5) * max(b, -0.25) + 3.0
    np.testing.assert_allclose(out, -plain, rtol=1e-15)
    np.testing.assert_allclose(total, plain.sum(), rtol=1e-13)
    assert negative == (plain < 0).any()


def test_without_compilation_the_same_functions_take_arrays() -> None:
    x = np.linspace(-1.0, 2.0, WIDTH)
    out = np.empty((1, WIDTH))
    lanes.store(out, lanes.select(x > 0, lanes.exp(x), 0.0), 0)
    np.testing.assert_array_equal(lanes.load(out, 0), np.where(x > 0, np.exp(x), 0.0))
    np.testing.assert_array_equal(lanes.least(x, np.nan), np.full(WIDTH, np.nan))
    np.testing.assert_allclose(lanes.summed(x), x.sum(), rtol=1e-15)
    assert lanes.some(x > 1.9)
    assert not lanes.some(x > 2.1)
    np.testing.assert_array_equal(lanes.size(x), lanes.root(x * x))
    np.testing.assert_array_equal(lanes.most(x, lanes.spread(0.0)), np.maximum(x, 0.0))
    np.testing.assert_array_equal(lanes.log(lanes.exp(x)), np.log(np.exp(x)))


@compiled
def beyond(x: FloatArray, place: int) -> float:
    return summed(load(x, place))


def test_bounds_are_checked_where_that_is_asked_for() -> None:
    x = np.ones((2, WIDTH))
    assert beyond(x, 1) == WIDTH
    if numba.config.BOUNDSCHECK:
        with pytest.raises(IndexError):
            beyond(x, 2)
