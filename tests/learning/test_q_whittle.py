"""Whittle indices by Q-learning: steps by hand, and the indices that are learned against the true ones."""

import math
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.learning.algorithms.q_whittle import TABLES, Tables, fast_rate, slow_rate
from rmab.learning.state import Arrays
from rmab.solvers.whittle.index import arm_whittle
from small import played

pytestmark = pytest.mark.compiled
ONE = np.zeros(1, dtype=np.int64)


def empty(states: int = 2, **given: Any) -> Arrays:
    shapes = {"quality": (1, states, states, 2), "index": (1, states), "moves": (1, states)}
    arrays = {name: np.zeros(shapes.get(name, (1, states, 2))) for name in TABLES}
    return {**arrays, "steps": np.array(0), **given}


def all_real(states: int = 2) -> Any:
    return np.ones((1, states), dtype=bool)


def test_rates_by_hand() -> None:
    np.testing.assert_allclose(fast_rate(np.array([1.0, 500.0, 501.0, 1500.0]), 1.0), [0.1, 0.1, 0.05, 0.1 / 3])
    assert fast_rate(np.array([1.0]), 20.0) == 1.0
    wanted = [1.0, 1 / 2, 1 / (1 + math.ceil(math.log(500)))]
    np.testing.assert_allclose(slow_rate(np.array([1.0, 2.0, 500.0]), 1.0), wanted)
    np.testing.assert_allclose(slow_rate(np.array([500.0]), 3.0), 3 * wanted[2])
    far = np.array([1e6, 1e9, 1e12])
    ratio = slow_rate(far, 1.0) / fast_rate(far, 1.0)
    assert (np.diff(ratio) < 0).all()  # the prices move on the slower scale


def test_one_step_by_hand() -> None:
    """Two arms of one kind meet the same pair (0, 1): one update with the mean of both targets."""
    quality = np.zeros((1, 2, 2, 2))
    quality[0, :, 1] = [[3.0, 1.0], [0.0, 5.0]]  # of state 1, by reference state: max 3 and 5
    tables = Tables(empty(quality=quality, index=np.array([[0.5, 0.2]])), all_real())
    kind, here, action, there = np.zeros(3, dtype=int), np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1, 0, 0])
    tables.step(kind, here, action, np.array([1.0, 0.4, np.nan]), there, 1.0)
    # The means of Q are 1 and 5/4. Targets for x = 0: 1 - .5 + 3 - 1 and .4 - .5 - 1; for x = 1: 1 - .2 + 5 - 1.25 and
    # .4 - .2 - 1.25. Rate 0.1.
    np.testing.assert_allclose(tables.quality[0, :, 0, 1], [0.1 * (2.5 - 1.1) / 2, 0.1 * (4.55 - 1.05) / 2])
    np.testing.assert_array_equal(tables.visits, [[[0, 1], [0, 0]]])
    np.testing.assert_array_equal(tables.quality[0, :, 1], quality[0, :, 1])  # nothing was shown there
    assert tables.steps == 1


def test_padding_is_not_in_the_mean() -> None:
    quality = np.zeros((1, 3, 3, 2))
    quality[0, :, :2] = 2.0
    tables = Tables(empty(3, quality=quality), np.array([[True, True, False]]))
    tables.step(ONE, ONE, ONE, np.array([1.0]), ONE, 10.0)  # rate 1: r + max Q - mean Q
    np.testing.assert_allclose(tables.quality[0, :, 0, 0], 1.0)


def test_prices_move_where_both_actions_were_met_since_they_moved_last() -> None:
    quality = np.zeros((1, 2, 2, 2))
    quality[0, 0, 0], quality[0, 1, 1] = [1.0, 3.0], [0.0, 5.0]
    visits = np.array([[[2.0, 1.0], [7.0, 4.0]]])
    met = np.array([[[1.0, 0.0], [6.0, 4.0]]])  # (1, 1) was not met since
    given = empty(quality=quality, visits=visits, met=met, moves=np.array([[9.0, 3.0]]))
    tables = Tables(given, all_real())
    tables.move_prices(50, 1.0, 100.0)
    np.testing.assert_allclose(tables.index, [[2.0 / (1 + math.ceil(math.log(500))), 0.0]])
    np.testing.assert_array_equal(tables.moves, [[10, 3]])
    np.testing.assert_array_equal(tables.met, [[[2, 1], [6, 4]]])
    tables.move_prices(50, 1.0, 100.0)
    np.testing.assert_array_equal(tables.moves, [[10, 3]])  # none is due
    bounded = Tables(given, all_real())
    bounded.move_prices(50, 1e4, 100.0)
    assert bounded.index[0, 0] == 100.0
    assert given["moves"][0, 0] == 9.0  # what was given is not changed


def test_prices_come_to_the_whittle_indices() -> None:
    """Sixteen copies of a tiny arm, actions at random."""
    kernel = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]])
    reward, copies = np.array([[0.1, 0.6], [0.1, 0.3]]), 16
    rng, kind = np.random.default_rng(0), np.zeros(copies, dtype=np.int64)
    tables = Tables(empty(), all_real())
    here = np.zeros(copies, dtype=np.int64)
    for _ in range(12_000):
        action = rng.integers(0, 2, size=copies)
        there = (rng.random(copies) >= kernel[here, action, 0]).astype(np.int64)
        tables.step(kind, here, action, reward[here, action], there, 2.0)
        if tables.steps % copies == 0:
            tables.move_prices(copies, 2.0, 10.0)
        here = there
    truth, _ = arm_whittle(kernel, reward, 1.0)
    np.testing.assert_allclose(tables.index[0], truth, atol=0.01)
    assert abs(truth[0] - truth[1]) > 0.1


def steady(name: str, arms: int, episodes: int) -> rmab.Task:
    """Return a published example whose rewards do not change."""
    task = rmab.make_task(name, arms=arms, horizon=100, episodes=episodes)
    rewards = np.broadcast_to(task.base_reward, (episodes, *task.base_reward.shape))
    return rmab.Task.from_rewards(task.problem, rewards, low=task.adversary.low, high=task.adversary.high)


def learned(task: rmab.Task, seed: int, **options: Any) -> FloatArray:
    """(S,) the indices that like arms have learned together, as the rewards are."""
    state = rmab.run(task, rmab.make_learner("q-whittle", **options), seed=seed).state
    assert len(state.arrays["index"]) == 1
    return np.asarray(state.arrays["index"][0] * (task.adversary.high - task.adversary.low))


# The authors' own examples, a hundred arms of which twenty are active, by steps of an episode: 6,000 steps.
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "slow", "distance"), [("circulant", 1.0, 0.1), ("restart", 1.0, 0.25), ("restart", 5.0, 0.1)]
)
def test_the_authors_examples_are_learned(name: str, slow: float, distance: float, seed: int) -> None:
    task = steady(name, 100, 60)
    truth = rmab.planners.whittle_index(task.problem, task.base_reward).index[0]
    found = learned(task, seed, slow=slow)
    np.testing.assert_array_equal(np.argsort(found), np.argsort(truth))
    np.testing.assert_allclose(found, truth, atol=distance)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["circulant", "restart"])
def test_few_like_arms_learn_the_order(name: str, seed: int) -> None:
    task = steady(name, 10, 60)
    truth = rmab.planners.whittle_index(task.problem, task.base_reward).index[0]
    found = learned(task, seed)
    np.testing.assert_array_equal(np.argsort(found), np.argsort(truth))
    np.testing.assert_allclose(found, truth, atol=0.35)


def test_no_rates_make_prices_or_values_run_away() -> None:
    """Arms that learn alone, with every action rare, and rates as large as they may be."""
    for fast, slow in ((1.0, 1.0), (1.0, 1e4), (1e4, 1e4)):
        task = rmab.make_task("random-sparse@switching", arms=6, budget=1, horizon=20, episodes=60)
        arrays = rmab.run(task, rmab.make_learner("q-whittle", fast=fast, slow=slow), seed=1).state.arrays
        assert np.abs(arrays["index"]).max() <= 20
        assert np.abs(arrays["quality"]).max() < 10 * 20


def test_it_explores_at_some_steps() -> None:
    task = rmab.make_task("cpap@noisy", horizon=400, episodes=3)
    learner = rmab.make_learner("q-whittle")
    state = played(learner, task)[2]
    table = learner.plan(state).policy.table  # type: ignore[attr-defined]
    blind = (table == 0).all(axis=(0, 2))
    assert 0.05 < blind.mean() < 0.16
    np.testing.assert_array_equal(table[:, ~blind][:, 0], state.arrays["index"])
    greedy: Any = rmab.make_learner("q-whittle", exploration=0.0)
    assert not (greedy.plan(played(greedy, task)[2]).policy.table == 0).all(axis=(0, 2)).any()
