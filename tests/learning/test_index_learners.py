"""Learners that make counts and means into indices: their parts by hand, and the property that defines each of them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import rmab
from episodes import view_of
from rmab.errors import ModelError
from rmab.learning import Hoeffding
from rmab.learning.algorithms.restless_ucb import radius
from rmab.learning.components.counting import add_to_means, begin_means, mean_reward, times_seen
from rmab.learning.index_tables import lagrangian_table, whittle_table
from rmab.learning.pools import Observations, Pools
from rmab.learning.registry import LEARNERS
from rmab.play.feedback import Feedback
from rmab.solvers.compiled.balls import lifted_rows
from rmab.testing import check_learner
from small import played
from small_tasks import small_task
from strategies import random_problem

OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("restless-ucb", {}),
    ("r2mab-ucb", {}),
    ("r2mab-ucb", {"version": "explore"}),
    ("uc-whittle", {"preset": "tuned"}),
    ("q-whittle", {"preset": "tuned"}),
]
DRAWING: list[tuple[str, dict[str, Any]]] = [
    ("rmab-ucrl", {"version": "generator"}),
    ("r2mab-ucb", {"version": "generator"}),
    ("thompson", {}),
]
DECLARED: list[dict[str, Any]] = [
    {"passive_zero": True, "feedback": "active"},
    {"pooled": False, "feedback": "full"},
    {"sizes": True, "budget": 1},
    {"budget": 0},
    {"budget": 6},
]


# ---------------------------------------------------------------- contract


@pytest.mark.parametrize("declared", DECLARED, ids=str)
@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_contract_on_other_tasks(name: str, options: dict[str, Any], declared: dict[str, Any]) -> None:
    check_learner(rmab.make_learner(name, **options), small_task(**declared), episodes=2)


@pytest.mark.parametrize("declared", [DECLARED[0], DECLARED[2]], ids=str)
@pytest.mark.parametrize(("name", "options"), DRAWING)
def test_who_draws_at_random_breaks_relabelling_and_nothing_else(
    name: str, options: dict[str, Any], declared: dict[str, Any]
) -> None:
    check_learner(rmab.make_learner(name, **options), small_task(**declared), episodes=2)


@pytest.mark.parametrize("declared", [{"feedback": "full"}, {"passive_zero": True, "feedback": "active"}], ids=str)
def test_contract_of_colored_ucrl2(declared: dict[str, Any]) -> None:
    """Three arms of two sizes, two of them in one group."""
    rng = np.random.default_rng(2)
    kernels = [rng.dirichlet(np.ones(size), size=(size, 2)) for size in (2, 3)]
    problem = rmab.Problem(rmab.Arms.of_sizes([kernels[0], kernels[1], kernels[0]], groups=["a", "b", "a"]), 0, 1, 4)
    rewards = rng.uniform(0, 1, size=(3, 3, 3, 2)) * ([0.0, 1.0] if "passive_zero" in declared else 1.0)
    check_learner(
        rmab.make_learner("colored-ucrl2"), rmab.Task.from_rewards(problem, rewards, low=0, high=1, **declared), episodes=2
    )


@pytest.mark.parametrize(
    "name", ["rmab-ucrl", "restless-ucb", "r2mab-ucb", "colored-ucrl2", "uc-whittle", "thompson", "q-whittle"]
)
def test_every_learner_names_its_paper_and_its_presets(name: str) -> None:
    learner: Any = rmab.make_learner(name, preset="tuned")
    assert "20" in LEARNERS[learner.name].paper
    assert learner.feedback == "bandit"
    for parameter, value in learner.TUNED.items():
        assert learner.parameter(parameter) == value
        assert rmab.make_learner(name).parameter(parameter) == 1.0  # type: ignore[attr-defined]
        assert rmab.make_learner(name, preset="tuned", **{parameter: 0.7}).parameter(parameter) == 0.7  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=f"learner {name}: preset: "):
        rmab.make_learner(name, preset="mine")


# ---------------------------------------------------------------- shared parts


def observed(values: list[float], visits: list[float]) -> Observations:
    """One kind, one state: values and visits of the two actions."""
    return Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[values]]), np.array([[visits]]))


def test_means_by_hand() -> None:
    pools = Pools.of(view_of(1, 1))
    memory: Any = begin_means(pools)
    np.testing.assert_array_equal(mean_reward(memory), 1.0)
    memory = add_to_means(memory, observed([0.5, np.nan], [2.0, 0.0]), 0)
    memory = add_to_means(memory, observed([0.2, np.nan], [1.0, 4.0]), 1)
    np.testing.assert_allclose(mean_reward(memory), [[[(2 * 0.5 + 0.2) / 3, 1.0]]])


def test_means_of_a_window_forget() -> None:
    memory: Any = begin_means(Pools.of(view_of(1, 1)), 2)
    for t, paid in enumerate((0.9, 0.4, 0.1)):
        memory = add_to_means(memory, observed([paid, np.nan], [t + 1.0, 0.0]), t, 2)
    np.testing.assert_allclose(mean_reward(memory), [[[(2 * 0.4 + 3 * 0.1) / 5, 1.0]]])


def test_times_seen_are_whole_numbers_of_all_arms() -> None:
    """Seven arms alike, paid alike or not; three visits per episode, a hundred episodes."""
    for pooled in (True, False):
        pools = Pools.of(view_of(7, 1, groups=np.zeros(7, dtype=np.int64), pooled_rewards=pooled))
        memory: Any = begin_means(pools)
        kinds = len(pools.zero)
        values, visits = np.tile([0.5, np.nan], (kinds, 1, 1)), np.full((kinds, 1, 2), 3 / 7 if pooled else 3.0)
        for t in range(100):
            memory = add_to_means(memory, Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), values, visits), t)
        np.testing.assert_array_equal(times_seen(pools, memory), np.broadcast_to([300, 0], (kinds, 1, 2)))


@pytest.mark.parametrize(
    ("name", "options"),
    [("rmab-ucrl", {"version": "finite", "rewards": "optimistic"}), ("restless-ucb", {}), ("colored-ucrl2", {})],
)
def test_optimism_about_a_reward_is_for_the_visits_that_showed_it(name: str, options: dict[str, Any]) -> None:
    """Two arms of one group that are not paid alike, one state: arm 0 is always active, and tells nothing of arm 1's pay."""
    problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1)), groups=[0, 0]), 0, 1, 50)
    rewards = np.broadcast_to([[[0.0, 0.2]], [[0.0, 0.4]]], (8, 2, 1, 2))
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1)
    view = task.view()
    assert not view.pooled_rewards
    learner = rmab.make_learner(name, optimism=0.5, **({"exploration": 0.1} if name == "restless-ucb" else {}), **options)
    states = np.zeros((51, 2), dtype=np.int64)
    shown = np.array([[[np.nan, 0.2]], [[0.0, np.nan]]])
    feedback = Feedback(0, states, np.tile([True, False], (50, 1)), shown)
    estimate = learner.learn(learner.begin(view), feedback).arrays["estimate"]
    assert 0.2 < estimate[0, 0, 1] < 0.6
    assert 0.0 < estimate[1, 0, 0] < 0.4
    assert estimate[1, 0, 1] == estimate[0, 0, 0] == 1.0
    twice = learner.learn(
        learner.begin(view), Feedback(0, states, np.tile([[True, False], [False, True]], (25, 1)), rewards[0])
    )
    # Seen half as often: the width is sqrt(2) times what it was.
    assert twice.arrays["estimate"][0, 0, 1] - 0.2 == pytest.approx(math.sqrt(2) * (estimate[0, 0, 1] - 0.2), rel=1e-12)


def test_the_width_of_a_window_is_that_of_all_visits() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=16)
    state = played(rmab.make_learner("rmab-ucrl", version="window", optimism=0.3, rewards="optimistic"), task)[-1]
    mean, visits = mean_reward(state.arrays), state.arrays["counts"].sum(axis=3)
    width = np.where(
        visits > 0, np.minimum(np.sqrt(np.log(4 * 3 * 2 * 4 * 15 * 10 / 0.05) / 2 / np.maximum(visits, 1)), 1), 1
    )
    known = ~Pools.of(task.view()).zero
    np.testing.assert_allclose(state.arrays["estimate"][known], np.minimum(mean + 0.3 * width, 1.0)[known], rtol=1e-12)
    assert (state.arrays["estimate"][known] < 1).any()


def test_tightened_sets() -> None:
    pools = Pools.of(view_of(1, 2))
    counts = np.array([[[[30, 70], [50, 50]], [[80, 20], [1, 99]]]])
    mean, whole = counts / 100, Hoeffding(epsilon=0.9).around(pools, counts, 3)
    half, wide = (Hoeffding(epsilon=0.9, scale=scale).around(pools, counts, 3) for scale in (0.5, 100.0))
    np.testing.assert_allclose(half.low - mean, (whole.low - mean) / 2, rtol=1e-12)
    np.testing.assert_allclose(half.high - mean, (whole.high - mean) / 2, rtol=1e-12)
    assert (half.high > half.low).all()
    np.testing.assert_array_equal([wide.low.max(), wide.high.min()], [0.0, 1.0])


@pytest.mark.parametrize("seed", range(30))
def test_lifted_rows_solve_their_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = int(rng.integers(1, 6))
    allowed = rng.random(states) < 0.7
    allowed[rng.integers(states)] = True
    mean = rng.dirichlet(np.ones(states)) * allowed
    mean /= mean.sum()
    wide, worth = float(rng.uniform(0, 2.2)), rng.integers(0, 4, size=states).astype(float)
    shape = (1, states, 2, states)
    rows = lifted_rows(
        np.broadcast_to(mean, shape).copy(),
        np.full(shape[:3], wide),
        np.broadcast_to(allowed, shape).copy(),
        worth[np.newaxis],
    )
    # Variables p and |p - mean|.
    eye, none = np.eye(states), np.zeros((states, states))
    limits = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, states)), np.ones((1, states))]])
    bounds = [(0, 1 if ok else 0) for ok in allowed] + [(0, 2)] * states
    answer = linprog(
        -np.concatenate([worth, np.zeros(states)]),
        limits,
        np.concatenate([mean, -mean, [wide]]),
        np.concatenate([np.ones(states), none[0]])[np.newaxis],
        [1.0],
        bounds,
    )
    for row in rows.reshape(-1, states):
        assert row.sum() == pytest.approx(1.0)
        assert (row >= 0).all()
        assert (row[~allowed] == 0).all()
        assert np.abs(row - mean).sum() <= wide + 1e-12
        assert row @ worth == pytest.approx(-answer.fun, abs=1e-9)


def test_tables_are_those_of_the_planners() -> None:
    problem, reward = random_problem(4, count=4, states=3, horizon=6, budget=2)
    view = rmab.Task.from_rewards(problem, reward[np.newaxis]).view()
    pools = Pools.of(view)
    np.testing.assert_allclose(
        whittle_table(pools, problem.arms.kernels, reward, 0.9),
        rmab.planners.whittle_index(problem, reward, discount=0.9).index,
    )
    table = lagrangian_table(pools, problem.arms.kernels, reward)
    np.testing.assert_allclose(table, rmab.planners.lagrangian_index(problem, reward).table, atol=5e-3)


# ---------------------------------------------------------------- explore, then commit


@pytest.mark.parametrize(("name", "options"), [("restless-ucb", {}), ("r2mab-ucb", {"version": "explore"})])
def test_commits_after_its_exploration(name: str, options: dict[str, Any]) -> None:
    """27 episodes: 27^(2/3) = 9 of exploration, and what is paid afterwards changes nothing."""
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=27)
    learner = rmab.make_learner(name, **options)
    states = played(learner, task)
    assert [bool(state.arrays["committed"]) for state in states] == [False] * 9 + [True] * 18
    tables = [learner.plan(state).policy.table for state in states]  # type: ignore[attr-defined]
    assert not np.array_equal(tables[1], tables[2])
    assert all(np.array_equal(table, tables[9]) for table in tables[10:])
    assert states[26].arrays["counts"].sum() == 9 * 10 * 4


def test_exploration_activates_what_was_active_least() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=27)
    states = played(rmab.make_learner("restless-ucb"), task)
    np.testing.assert_array_equal(states[3].arrays["table"], -states[3].arrays["counts"].sum(axis=3)[:, :, 1])


def test_exploration_ends_early_where_every_pair_was_seen_enough() -> None:
    """T H = 64 * 8: 64 transitions are enough. One state, both actions 4 times an episode for each of 8 arms: 32."""
    problem = rmab.Problem(rmab.Arms.identical(np.ones((1, 2, 1)), 8), 0, 4, 8)
    task = rmab.Task.from_rewards(problem, np.full((64, 8, 1, 2), 0.5), low=0, high=1)
    committed = [bool(state.arrays["committed"]) for state in played(rmab.make_learner("restless-ucb"), task)]
    assert committed == [False] * 2 + [True] * 62


def test_restless_ucb_s_radius_and_instance_by_hand() -> None:
    view = view_of(1, 2, 25, episodes=4)  # ln(T H) = ln 100
    visits = np.array([[[0, 1], [8, 200]]])
    hand = [[[1.0, 1.0], [math.sqrt(math.log(100) / 16), math.sqrt(math.log(100) / 400)]]]
    np.testing.assert_allclose(radius(view, visits), hand)
    # Half a row moves: from (.8, .2) to (.3, .7) if state 1 pays more.
    mean = np.broadcast_to([0.8, 0.2], (1, 2, 2, 2)).copy()
    rows = lifted_rows(mean, np.ones((1, 2, 2)), np.ones((1, 2, 2, 2), dtype=bool), np.array([[0.1, 0.9]]))
    np.testing.assert_allclose(rows, np.broadcast_to([0.3, 0.7], rows.shape))
