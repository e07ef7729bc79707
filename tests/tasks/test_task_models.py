"""Machines, queues, restarts and random models: their Whittle indices against renewal theory and product forms."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError

pytestmark = pytest.mark.compiled
SHARE = st.floats(0.05, 0.95)


def indices(name: str, **options: Any) -> FloatArray:
    task = rmab.make_task(name, arms=2, budget=1, **options)
    found = rmab.planners.whittle_index(task.problem, task.base_reward)
    assert found.indexable.all()
    return found.index[0]


def between(gains: FloatArray, rates: FloatArray) -> FloatArray:
    """(S,) the price at which thresholds x and x + 1 earn the same; rates: how often each of S + 1 thresholds activates."""
    return (gains[:-1] - gains[1:]) / (rates[:-1] - rates[1:])


def test_restart_has_the_indices_of_renewal_theory_which_are_nearly_the_published_ones() -> None:
    gains, rates = [], []
    for first in range(5):  # restarts from this state on: state k is met in a cycle with chance .9^k
        length = sum(0.9**k for k in range(first + 1))
        gains.append(sum(0.9**k * 0.9 ** (k + 1) for k in range(first)) / length)
        rates.append(0.9**first / length)
    passive = np.append(0.1 * 0.9 ** np.arange(4), 0.9**4)  # stationary, where it is never active
    wanted = between(np.array([*gains, passive @ 0.9 ** np.arange(1, 6)]), np.array([*rates, 0.0]))
    np.testing.assert_allclose(indices("restart"), wanted, atol=1e-12)
    np.testing.assert_allclose(wanted, [-0.9, -0.729, -0.50949, -0.2587869, 0.0098926], atol=1e-7)
    np.testing.assert_allclose(wanted, [-0.9, -0.73, -0.5, -0.26, -0.01], atol=0.02)  # as printed


@settings(max_examples=25)
@given(st.integers(2, 8), SHARE, SHARE, st.floats(0.1, 5), st.floats(0, 0.1))
def test_machine_has_the_indices_of_renewal_theory(
    states: int, wear: float, success: float, cost: float, fee: float
) -> None:
    running = -cost * (np.arange(states) / (states - 1)) ** 2
    gains, rates = [], []
    for first in range(states):
        length = first / wear + 1 / success
        gains.append((running[:first].sum() / wear - fee / success) / length)
        rates.append(1 / success / length)
    wanted = between(np.array([*gains, running[-1]]), np.array([*rates, 0.0]))
    assert (np.diff(wanted) > 0).all()  # so that thresholds are optimal
    found = indices("machine", states=states, wear=wear, success=success, cost=cost, fee=fee)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


def test_machine_moves_as_it_says() -> None:
    task = rmab.make_task("machine", states=3, wear=0.25, success=0.75, cost=4.0, fee=0.5)
    np.testing.assert_allclose(task.problem.arms.kernels[0, :, 0], [[0.75, 0.25, 0], [0, 0.75, 0.25], [0, 0, 1]])
    np.testing.assert_allclose(task.problem.arms.kernels[0, :, 1], [[1, 0, 0], [0.75, 0.25, 0], [0.75, 0, 0.25]])
    np.testing.assert_allclose(task.base_reward[7], [[0, -0.5], [-1, -0.5], [-4, -0.5]])


def test_swim_moves_and_pays_as_it_says() -> None:
    task = rmab.make_task("swim", seed=3, states=3, forward=0.5, drift=0.25, trap=0.01, arms=2, budget=1)
    for kernel in task.problem.arms.kernels:
        np.testing.assert_allclose(kernel[:, 0], [[1, 0, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]])
        up = kernel[0, 1, 1]
        assert 0.4 <= up <= 0.6
        np.testing.assert_allclose(kernel[:, 1], [[1 - up, up, 0], [0, 1 - up, up], [0, 0, 1]])
    first, second = task.problem.arms.kernels[:, 0, 1, 1]
    assert first != second
    assert task.problem.arms.groups is None  # nobody may pool them
    np.testing.assert_allclose(task.base_reward, [[[0.01, 0], [0, 0], [0, 1]]] * 2)


def test_swim_has_the_value_of_going_straight_up() -> None:
    # One arm that is always active: it is at the far end at step h if a binomial of h draws reaches S - 1.
    task = rmab.make_task("swim", arms=1, budget=1, horizon=12, states=4)
    up = task.problem.arms.kernels[0, 0, 1, 1]
    wanted = sum(1 - binom.cdf(2, h, up) for h in range(12))
    assert rmab.solvers.solve_fluid(task.problem, task.base_reward).value == pytest.approx(wanted, rel=1e-9)


def by_product_form(states: int, arrival: float, service: float, abandonment: float) -> FloatArray:
    """(S - 1,) the indices of 1..S-1 customers, which fall: those of thresholds, whose queues are birth-death chains."""
    waiting, active = [], []
    for last in range(states):  # served up to so many customers
        leave = abandonment * np.arange(1, states) + service * (np.arange(1, states) <= last)
        law = np.cumprod(np.append(1.0, arrival / leave))
        law /= law.sum()
        waiting.append(law @ np.arange(states))
        active.append(law[1 : last + 1].sum())
    return between(-np.array(waiting), np.array(active))


@pytest.mark.parametrize("options", [{}, {"arrival": 0.05}, {"arrival": 0.5, "service": 0.2, "abandonment": 0.03}])
def test_queue_has_the_indices_of_its_stationary_laws(options: dict[str, float]) -> None:
    rates = {"arrival": 0.2, "service": 0.3, "abandonment": 0.05, **options}
    found = indices("queue", **options)
    assert found[0] == pytest.approx(0, abs=1e-9)  # nobody is there to be served
    wanted = by_product_form(11, **rates)
    assert (np.diff(wanted) < 0).all()  # so that these thresholds are optimal
    np.testing.assert_allclose(found[1:], wanted, rtol=1e-6)


def test_a_long_queue_follows_the_c_mu_over_theta_rule() -> None:
    sizes = {"states": 31, "service": 0.3, "abandonment": 0.02, "cost": 2.0}
    for arrival in (0.02, 0.05, 0.1):
        found = indices("queue", arrival=arrival, **sizes)
        np.testing.assert_allclose(found[1:8], 2.0 * 0.3 / 0.02, rtol=1e-3)
        assert found[-1] < 29.5


def test_queue_moves_by_one_at_most() -> None:
    task = rmab.make_task("queue", states=4, arrival=0.1, service=0.4, abandonment=0.1)
    passive, active = task.problem.arms.kernels[0, :, 0], task.problem.arms.kernels[0, :, 1]
    np.testing.assert_allclose(passive, [[0.9, 0.1, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.2, 0.7, 0.1], [0, 0, 0.3, 0.7]])
    np.testing.assert_allclose(active, [[0.9, 0.1, 0, 0], [0.5, 0.4, 0.1, 0], [0, 0.6, 0.3, 0.1], [0, 0, 0.7, 0.3]])
    np.testing.assert_allclose(task.base_reward[3], [[0, 0], [-1, -1], [-2, -2], [-3, -3]])


DRAWN = ("random-dense", "random-sparse", "random-types")


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_models_follow_the_seed_and_nothing_else(name: str) -> None:
    one = rmab.make_task(name, seed=3)
    other = rmab.make_task(f"{name}@iid", seed=3, budget=1, horizon=4, episodes=2)
    assert one.problem.arms == other.problem.arms
    np.testing.assert_array_equal(one.base_reward, other.base_reward)
    assert one.problem.arms != rmab.make_task(name, seed=4).problem.arms
    assert not np.array_equal(one.base_reward, rmab.make_task(name, seed=4).base_reward)


def test_drawn_models_are_what_they_say() -> None:
    dense = rmab.make_task("random-dense", arms=200, states=3).problem.arms.kernels
    assert (dense > 0).all()
    assert len(np.unique(dense[:, 0, 0, 0])) == 200
    assert dense.mean(axis=(0, 1, 2)) == pytest.approx(np.full(3, 1 / 3), abs=0.03)
    sparse = rmab.make_task("random-sparse", arms=200, states=6, successors=2).problem.arms.kernels
    assert ((sparse > 0).sum(axis=3) == 2).all()
    assert (sparse > 0).mean(axis=(0, 1, 2)) == pytest.approx(np.full(6, 1 / 3), abs=0.05)
    types = rmab.make_task("random-types", arms=10, types=4, budget=3)
    assert np.bincount(types.problem.arms.group_of).tolist() == [3, 2, 3, 2]
    assert types.view().pooled_rewards
    assert len(np.unique(types.base_reward[:, 0, 0])) == 4


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("machine", {"states": 1}, "states: Input should be greater than or equal to 2 (got 1)"),
        ("machine", {"wear": 1.5}, "wear: Input should be less than or equal to 1 (got 1.5)"),
        ("machine", {"cost": 0, "fee": 0}, "cost and fee must not both be 0"),
        ("machine", {"fee": -1.0}, "fee: Input should be greater than or equal to 0 (got -1.0)"),
        ("queue", {"service": 0.9}, "(states - 1) * abandonment must be at most 1, as at most one event happens"),
        ("queue", {"cost": 0}, "cost: Input should be greater than 0 (got 0)"),
        ("queue", {"states": 1}, "states: Input should be greater than or equal to 2 (got 1)"),
        ("swim", {"states": 1}, "states: Input should be greater than or equal to 2 (got 1)"),
        ("swim", {"forward": 0.95}, "forward: Input should be less than or equal to 0.9 (got 0.95)"),
        ("swim", {"trap": 1.0}, "trap: Input should be less than 1 (got 1.0)"),
        ("swim", {"drift": -0.1}, "drift: Input should be greater than or equal to 0 (got -0.1)"),
        ("swim", {"arms": 10**9}, "a task of 1000000000 arms"),
        ("random-sparse", {"successors": 9}, "successors must be at most 8 (the number of states), got 9"),
        ("random-types", {"types": 61}, "types must be at most 60 (the number of arms), got 61"),
        ("random-dense", {"states": 0}, "states: Input should be greater than or equal to 1 (got 0)"),
        ("random-dense", {"arms": 10**9}, "a task of 1000000000 arms"),
        ("queue", {"arrival": "often"}, "arrival: Input should be a number (got 'often')"),
    ],
)
def test_what_cannot_be_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        rmab.make_task(name, **options)
