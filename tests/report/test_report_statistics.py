"""The report's statistics against SciPy, closed forms and hand computations."""

import numpy as np
import pytest
from scipy import stats

from rmab.report.statistics import band, compare_pair, holm, interval, power, ratio

RNG = np.random.default_rng(5)
A = RNG.normal(10, 2, 12)
B = A - RNG.normal(1.0, 1, 12)


def test_the_interval_is_student_s() -> None:
    found = interval(A)
    low, high = stats.t.interval(0.95, 11, A.mean(), stats.sem(A))
    assert (found.mean, found.low, found.high) == pytest.approx((A.mean(), low, high))
    assert (found.count, found.half) == (12, pytest.approx((high - low) / 2))
    by_hand = interval(np.array([1.0, 3.0]))  # t(0.975, 1) = 12.706, standard error 1
    assert (by_hand.low, by_hand.high) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)


def test_one_round_has_no_interval_and_none_has_no_mean() -> None:
    assert interval(np.array([4.0])).mean == 4
    assert np.isnan(interval(np.array([4.0])).half)
    assert np.isnan(interval(np.array([])).mean)


def test_bands_are_intervals_point_by_point() -> None:
    mean, half = band(np.stack([A, B], axis=1))
    assert mean == pytest.approx([A.mean(), B.mean()])
    assert half == pytest.approx([interval(A).half, interval(B).half])


def test_pairs_are_tested_by_their_differences() -> None:
    found = compare_pair("a", "b", A, B)
    assert found.p == pytest.approx(stats.ttest_rel(A, B).pvalue)
    assert found.difference.mean == pytest.approx((A - B).mean())
    assert found.ahead == (A > B).sum()
    assert found.p < stats.ttest_ind(A, B).pvalue / 2  # what rounds share has gone


def test_differences_without_any_spread() -> None:
    same, more = compare_pair("a", "b", A, A), compare_pair("a", "b", np.array([3.0, 3.0]), np.array([1.0, 1.0]))
    assert (same.p, same.ahead, same.is_significant) == (1.0, 0, False)
    assert (more.p, more.ahead, more.is_significant) == (0.0, 2, True)
    assert compare_pair("a", "b", A[:1], B[:1]).p == 1.0


def test_the_ratio_covers_the_truth_as_often_as_it_says() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        below = rng.normal(10, 2, 15)
        found = ratio(below * 0.2 + rng.normal(0, 1, 15), below)
        assert found is not None
        hits += found.low <= 0.2 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_the_ratio_by_hand() -> None:
    exact = ratio(np.array([1.0, 1.1, 1.2]), np.array([-2.0, -2.2, -2.4]))
    assert exact is not None  # top is always half of bottom's size: no spread is left
    assert (exact.mean, exact.low, exact.high) == pytest.approx((0.5, 0.5, 0.5))
    assert ratio(np.array([1.0, 2.0]), np.array([-1.0, 1.0])) is None


def test_holm_by_hand() -> None:
    """p = .01, .04, .03 of three: .03, then max(.03, 2 x .03) = .06, then max(.06, .04) = .06."""
    pairs = [compare_pair("a", "b", A, B) for _ in range(3)]
    pairs = [type(one)(**{**vars(one), "p": p}) for one, p in zip(pairs, (0.01, 0.04, 0.03), strict=True)]
    assert [one.adjusted for one in holm(pairs)] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.is_significant for one in holm(pairs)] == [True, False, False]
    assert holm([]) == []


def test_an_exact_power_is_found() -> None:
    sizes = np.array([25.0, 50, 100, 200])
    found = power(sizes, np.outer(3 * sizes**0.7, np.ones(5)))
    assert found is not None
    assert (found.exponent.mean, found.exponent.low, found.exponent.high) == pytest.approx((0.7, 0.7, 0.7))
    assert found.factor == pytest.approx(3.0)


def test_the_power_of_two_sizes_by_hand() -> None:
    """Sizes 1 and e: the slope is ln(4 / 2), one number per round is v2 / 4 - v1 / 2: 1/4, -1/4, 0; t(0.975, 2) = 4.3027."""
    found = power(np.array([1.0, np.e]), np.array([[1.0, 3, 2], [3, 5, 4]]))
    assert found is not None
    half = 4.30265 * 0.25 / np.sqrt(3)
    ends = (found.exponent.mean, found.exponent.low, found.exponent.high)
    assert ends == pytest.approx((np.log(2), np.log(2) - half, np.log(2) + half), abs=1e-5)


@pytest.mark.parametrize("rounds", [2, 3, 4, 10])
def test_the_exponent_covers_the_truth_as_often_as_it_says(rounds: int) -> None:
    rng, sizes, hits = np.random.default_rng(rounds), np.array([25.0, 50, 100, 200]), 0
    for _ in range(400):
        luck = 1 + rng.normal(0, 0.1, rounds) + rng.normal(0, 0.2, (4, rounds))  # of the round, and of the round and size
        found = power(sizes, 3 * sizes[:, np.newaxis] ** 0.5 * luck)
        assert found is not None
        hits += found.exponent.low <= 0.5 <= found.exponent.high
    assert 0.92 <= hits / 400 <= 0.985


def test_no_power_where_the_mean_is_not_positive_and_no_interval_near_zero() -> None:
    sizes = np.array([1.0, 2, 4])
    assert power(sizes, np.array([[1.0, 1], [2, 2], [-3, 1]])) is None
    assert power(sizes[:1], np.ones((1, 4))) is None
    near = power(sizes, np.array([[1.0, 1, 1], [1, 1, 1], [-3, 1, 4]]))
    assert near is not None
    assert np.isnan(near.exponent.half)
