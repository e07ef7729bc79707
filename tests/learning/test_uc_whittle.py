"""UCWhittle: radius and price by hand, optimistic values, and the index without optimism."""

import math

import numpy as np
import pytest

import rmab
from episodes import view_of
from policy_iteration import advantage
from rmab.common.arrays import FloatArray
from rmab.errors import SolverError
from rmab.learning.algorithms.uc_whittle import clearing_price, optimistic_kernels, whittle_radius
from rmab.learning.pools import Pools
from rmab.solvers.whittle.index import arm_whittle
from small import played
from strategies import random_problem


def test_whittle_radius_by_hand() -> None:
    view = view_of(3, 2, 5)
    visits = np.array([[[0, 1], [50, 10**6]]])
    # Second episode: t = 2, ln(2 * 2 * 2 * 3 * 16 / .05) = ln 7680.
    log = math.log(7680.0)
    hand = [[[2.0, 2.0], [math.sqrt(4 * log / 50), math.sqrt(4 * log / 1e6)]]]
    np.testing.assert_allclose(whittle_radius(view, visits, 1, 0.05), hand)


def test_clearing_price_by_hand() -> None:
    table = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    states = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    # Second largest of (1, 2, 3), (5, 2, 3), (5, 6, 3).
    assert clearing_price(table, states, 2) == pytest.approx((2 + 3 + 5) / 3)
    assert clearing_price(table, states, 0) == 0.0


def true_values(kernel: FloatArray, reward: FloatArray, discount: float, price: float) -> FloatArray:
    """(S,) optimal values of reward - price * a."""
    active = advantage(kernel, reward, discount, price) > 0
    states, priced = np.arange(len(reward)), reward - price * np.array([0.0, 1.0])
    action = active.astype(int)
    return np.linalg.solve(np.eye(states.size) - discount * kernel[states, action], priced[states, action])


@pytest.mark.parametrize("seed", range(5))
def test_values_are_optimistic_where_the_balls_hold_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, reward = random_problem(seed, count=3, states=3, horizon=6, budget=1)
    kernels = problem.arms.kernels
    counts = rng.multinomial(25, kernels)
    pools = Pools.of(view_of(3, 3))
    needed = np.abs(counts / 25 - kernels).sum(axis=3)
    for price in (-0.5, 0.0, 0.4):
        truth = np.stack([true_values(kernels[n], reward[n], 0.9, price) for n in range(3)])
        rows, values = optimistic_kernels(pools, counts, reward, needed, price, 0.9)
        assert (values >= truth - 1e-7).all()
        assert (values > truth + 1e-3).any()
        assert (np.abs(rows - counts / 25).sum(axis=3) <= needed + 1e-12).all()
        own = np.stack([true_values(rows[n], reward[n], 0.9, price) for n in range(3)])
        np.testing.assert_allclose(own, values, atol=1e-6)
        exact, plain = optimistic_kernels(pools, counts, reward, np.zeros((3, 3, 2)), price, 0.9)
        np.testing.assert_array_equal(exact, counts / 25)
        empirical = np.stack([true_values(counts[n] / 25, reward[n], 0.9, price) for n in range(3)])
        np.testing.assert_allclose(plain, empirical, atol=1e-7)


def test_uc_whittle_without_optimism_ranks_by_the_empirical_whittle_index() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=6)
    state = played(rmab.make_learner("uc-whittle", optimism=0.0), task)[5]
    counts, means = state.arrays["counts"], state.arrays["estimate"]
    seen = (counts.sum(axis=3) > 0).all(axis=(1, 2))
    assert seen.any()
    for n in np.flatnonzero(seen):
        kernel = counts[n] / counts[n].sum(axis=2, keepdims=True)
        np.testing.assert_allclose(state.arrays["table"][n], arm_whittle(kernel, means[n], 0.9)[0], atol=1e-9)


def test_uc_whittle_s_price_is_that_of_the_last_episode() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=6)
    states = played(rmab.make_learner("uc-whittle"), task)
    assert states[0].arrays["price"] == 0.0
    trajectory = rmab.simulate(
        task.problem, rmab.make_learner("uc-whittle").plan(states[2]).policy, task.reward(2), np.random.default_rng((0, 2))
    )
    assert states[3].arrays["price"] == clearing_price(states[2].arrays["table"], trajectory.states[:-1], 2)


def test_values_that_do_not_settle_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmab.learning.algorithms.uc_whittle.ROUNDS", 1)
    pools = Pools.of(view_of(1, 2))
    with pytest.raises(SolverError, match=r"^uc-whittle: value iteration did not converge in 1 rounds$"):
        optimistic_kernels(pools, np.ones((1, 2, 2, 2), dtype=np.int64), np.ones((1, 2, 2)), np.ones((1, 2, 2)), 0.0, 0.9)
