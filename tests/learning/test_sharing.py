"""What others pay, fits in proportion, and replays of plans: against twins in plain Python and cases by hand."""

from typing import Any

import numpy as np
import pytest

import rmab
from episodes import ended, view_of
from literal import fit_by_hand
from rmab.learning import Forecast, Observations, Pools
from rmab.learning.compiled.forecasting import added
from rmab.learning.compiled.patterns import add_others, in_proportion
from rmab.learning.components.execution import gain_of_drawing


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_in_proportion_is_that_of_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, number, mean = rng.random((5, 4)), rng.integers(0, 4, (5, 4)), rng.random(4)
    fit, sure = np.empty((5, 4)), np.empty(5)
    in_proportion(value, number, mean, fit, sure)
    expected, certain = fit_by_hand(value, number, mean)
    np.testing.assert_allclose(fit, expected, rtol=1e-12)
    np.testing.assert_allclose(sure, certain, rtol=1e-12)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 128, 129, 255, 1000])
def test_sums_are_added_as_numpy_does(size: int) -> None:
    values = np.random.default_rng(size).random(size + 3)
    assert added(values, 3, size) == np.add.reduce(values[3:])


def test_what_was_never_seen_of_an_arm_is_as_others_pay_in_proportion() -> None:
    """Six arms pay 1, 2 and 3 units in three pairs; of the last one, one pair is unknown, and its unit is half as much."""
    pays = np.outer([0.2, 0.2, 0.2, 0.2, 0.2, 0.1], [1.0, 2.0, 3.0, 1.0])
    times = np.full((6, 2, 2), 20)
    times[5, 1, 0] = 0
    likely, zero = pays.reshape(6, 2, 2).copy(), np.zeros((6, 2, 2), dtype=bool)
    likely[5, 1, 0] = mean = float(np.mean([0.1, 0.2, 0.1]))
    ahead = likely.copy()
    ahead[5, 1, 0] = hope = mean + (1 - mean) / 4
    before = likely.copy()
    add_others(likely.reshape(6, 4), ahead.reshape(6, 4), times.reshape(6, 4), zero.reshape(6, 4))
    assert likely[5, 1, 0] == pytest.approx(0.3, abs=0.02)
    assert 0 <= ahead[5, 1, 0] - likely[5, 1, 0] < 0.3 * (hope - mean)
    known = times > 0
    np.testing.assert_array_equal(likely[known], before[known])


def test_arms_that_have_shown_nothing_keep_their_hope() -> None:
    """A chain: the near end pays nothing to anybody, the far end of one arm was never seen."""
    likely, times = np.zeros((5, 2, 2)), np.full((5, 2, 2), 20)
    likely[:4, 1, 1], times[4, 1] = [0.2, 0.9, 0.4, 0.7], 0
    ahead = likely.copy()
    ahead[4, 1] = 1 / 3
    zero = np.zeros((5, 4), dtype=bool)
    add_others(likely.reshape(5, 4), ahead.reshape(5, 4), times.reshape(5, 4), zero)
    assert ahead[4, 1, 1] - likely[4, 1, 1] == pytest.approx(1 / 3)


@pytest.mark.compiled
def test_forecasts_do_not_depend_on_units_or_labels() -> None:
    """Values mapped from another range, and rows in another order, give the same forecasts."""
    rng, order = np.random.default_rng(1), np.array([3, 1, 0, 2])
    pools, part = Pools.of(view_of(4, 2, 5)), Forecast()
    memory: Any = [part.begin(pools), part.begin(pools)]
    for t in range(12):
        values = np.where(rng.random((4, 2, 2)) < 0.5, rng.random((4, 2, 2)), np.nan)
        found = []
        for i, rows in enumerate((np.arange(4), order)):
            seen = Observations(np.zeros(pools.support.shape, dtype=np.int64), values[rows], np.ones(values.shape))
            found.append(part.learn(memory[i], ended(pools, seen, t)))
            memory[i] = found[i].memory
        np.testing.assert_allclose(found[0].ahead[order], found[1].ahead, atol=1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-300.0, 700.0)])
def test_a_run_does_not_depend_on_the_units_of_its_rewards(low: float, high: float) -> None:
    """Scale and offset of all rewards, declared: the same decisions."""
    rng = np.random.default_rng(2)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(3), (6, 3, 2))), 0, 2, 10)
    rewards = np.round(rng.random((8, 6, 3, 2)) * 1024) / 1024
    runs = [
        rmab.run(rmab.Task.from_rewards(problem, a + (b - a) * rewards, low=a, high=b), "ucmd", seed=3)
        for a, b in ((0.0, 1.0), (low, high))
    ]
    np.testing.assert_allclose((runs[1].reward - low * 60) / (high - low), runs[0].reward, rtol=1e-9)


@pytest.mark.compiled
def test_replays_say_which_execution_earns_more() -> None:
    """Two arms of one state, budget 1. The higher share is that of an arm that paid nothing; drawn, the other gets .4."""
    pools = Pools.of(view_of(2, 1, 400, budget=1))
    share = np.broadcast_to(np.array([0.6, 0.4])[:, None, None], (2, 400, 1)).copy()
    kernels, paid = np.ones((2, 1, 2, 1)), np.zeros((2, 1, 2))
    paid[1, 0, 1] = 1.0
    assert gain_of_drawing(pools, share, None, kernels, paid, (0, 1)) == pytest.approx(0.4 * 400, abs=50)
    assert gain_of_drawing(pools, share, None, kernels, paid[::-1].copy(), (0, 1)) == pytest.approx(-0.4 * 400, abs=50)
    resting = np.full(400, 0.7)  # nobody is worth it: the highest shares rest, drawn ones do not
    assert gain_of_drawing(pools, share, resting, kernels, -paid, (0, 1)) == pytest.approx(-0.4 * 400, abs=50)
