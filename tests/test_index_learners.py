"""Learners that make counts and means into indices: their parts by hand, and the property that defines each of them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta, kstest

import rmab
from episodes import view_of
from rmab.errors import ModelError
from rmab.kernels.balls import lifted_rows
from rmab.learning.confidence import Kernels
from rmab.learning.feedback import Feedback
from rmab.learning.generator import drawn
from rmab.learning.means import add_to_means, begin_means, mean_reward, times_seen
from rmab.learning.pools import Observed, Pools
from rmab.learning.q_whittle import Tables, fast_rate, slow_rate
from rmab.learning.restless_ucb import radius
from rmab.learning.tables import lagrangian_table, tightened, whittle_table
from rmab.learning.thompson import posterior_draw
from rmab.planners.whittle import arm_whittle
from rmab.testing import check_learner
from small import played
from strategies import random_problem
from test_contract import check_but_for_relabelling, small_task

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
    check_learner(rmab.learner(name, **options), small_task(**declared), episodes=2)


@pytest.mark.parametrize("declared", [DECLARED[0], DECLARED[2]], ids=str)
@pytest.mark.parametrize(("name", "options"), DRAWING)
def test_who_draws_at_random_breaks_relabelling_and_nothing_else(
    name: str, options: dict[str, Any], declared: dict[str, Any]
) -> None:
    check_but_for_relabelling(rmab.learner(name, **options), small_task(**declared), episodes=2)


@pytest.mark.parametrize("declared", [{"feedback": "full"}, {"passive_zero": True, "feedback": "active"}], ids=str)
def test_contract_of_colored_ucrl2(declared: dict[str, Any]) -> None:
    """Three arms of two sizes, two of them in one group."""
    rng = np.random.default_rng(2)
    kernels = [rng.dirichlet(np.ones(size), size=(size, 2)) for size in (2, 3)]
    problem = rmab.Problem(rmab.Arms.of_sizes([kernels[0], kernels[1], kernels[0]], groups=["a", "b", "a"]), 0, 1, 4)
    rewards = rng.uniform(0, 1, size=(3, 3, 3, 2)) * ([0.0, 1.0] if "passive_zero" in declared else 1.0)
    check_learner(
        rmab.learner("colored-ucrl2"), rmab.Task.from_rewards(problem, rewards, low=0, high=1, **declared), episodes=2
    )


@pytest.mark.parametrize(
    "name", ["rmab-ucrl", "restless-ucb", "r2mab-ucb", "colored-ucrl2", "uc-whittle", "thompson", "q-whittle"]
)
def test_every_learner_names_its_paper_and_its_presets(name: str) -> None:
    learner: Any = rmab.learner(name, preset="tuned")
    assert "20" in learner.paper
    assert learner.feedback == "bandit"
    for parameter, value in learner.settings.TUNED.items():
        assert learner.settings.chosen(parameter) == value
        assert rmab.learner(name).settings.chosen(parameter) == 1.0  # type: ignore[attr-defined]
        assert rmab.learner(name, preset="tuned", **{parameter: 0.7}).settings.chosen(parameter) == 0.7  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=f"learner {name}: preset: "):
        rmab.learner(name, preset="mine")


# ---------------------------------------------------------------- shared parts


def observed(values: list[float], visits: list[float]) -> Observed:
    """One kind, one state: values and visits of the two actions."""
    return Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[values]]), np.array([[visits]]))


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
            memory = add_to_means(memory, Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), values, visits), t)
        np.testing.assert_array_equal(times_seen(pools, memory), np.broadcast_to([300, 0], (kinds, 1, 2)))


@pytest.mark.parametrize(
    ("name", "options"), [("rmab-ucrl", {"version": "finite"}), ("restless-ucb", {}), ("colored-ucrl2", {})]
)
def test_optimism_about_a_reward_is_for_the_visits_that_showed_it(name: str, options: dict[str, Any]) -> None:
    """Two arms of one group that are not paid alike, one state: arm 0 is always active, and tells nothing of arm 1's pay."""
    problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1)), groups=[0, 0]), 0, 1, 50)
    rewards = np.broadcast_to([[[0.0, 0.2]], [[0.0, 0.4]]], (8, 2, 1, 2))
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1)
    view = task.view()
    assert not view.pooled_rewards
    learner = rmab.learner(name, optimism=0.5, **({"exploration": 0.1} if name == "restless-ucb" else {}), **options)
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
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=16)
    state = played(rmab.learner("rmab-ucrl", version="window", optimism=0.3), task)[-1]
    mean, visits = mean_reward(state.arrays), state.arrays["counts"].sum(axis=3)
    width = np.where(
        visits > 0, np.minimum(np.sqrt(np.log(4 * 3 * 2 * 4 * 15 * 10 / 0.05) / 2 / np.maximum(visits, 1)), 1), 1
    )
    known = ~Pools.of(task.view()).zero
    np.testing.assert_allclose(state.arrays["estimate"][known], np.minimum(mean + 0.3 * width, 1.0)[known], rtol=1e-12)
    assert (state.arrays["estimate"][known] < 1).any()


def test_tightened_sets() -> None:
    mean = np.array([[[[0.3, 0.7]]]])
    box = tightened(Kernels(mean - 0.2, mean + 0.2, None), mean, 0.5)
    np.testing.assert_allclose(box.low, mean - 0.1)
    np.testing.assert_allclose(box.high, mean + 0.1)
    wide = tightened(Kernels(mean - 0.2, mean + 0.2, None), mean, 10.0)
    np.testing.assert_array_equal([wide.low.min(), wide.high.max()], [0.0, 1.0])
    ball = tightened(Kernels(mean, mean, np.array([[[0.8]]])), mean, 0.5)
    np.testing.assert_array_equal(ball.radius, 0.4)


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
        whittle_table(pools, problem.arms.kernels, reward, 0.9), rmab.whittle(problem, reward, discount=0.9).index
    )
    table = lagrangian_table(view, pools, problem.arms.kernels, reward)
    np.testing.assert_allclose(table, rmab.lagrangian_index(problem, reward).table, atol=5e-3)


# ---------------------------------------------------------------- explore, then commit


@pytest.mark.parametrize(("name", "options"), [("restless-ucb", {}), ("r2mab-ucb", {"version": "explore"})])
def test_commits_after_its_exploration(name: str, options: dict[str, Any]) -> None:
    """27 episodes: 27^(2/3) = 9 of exploration, and what is paid afterwards changes nothing."""
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=27)
    learner = rmab.learner(name, **options)
    states = played(learner, task)
    assert [bool(state.arrays["committed"]) for state in states] == [False] * 9 + [True] * 18
    tables = [learner.plan(state).policy.table for state in states]  # type: ignore[attr-defined]
    assert not np.array_equal(tables[1], tables[2])
    assert all(np.array_equal(table, tables[9]) for table in tables[10:])
    assert states[26].arrays["counts"].sum() == 9 * 10 * 4


def test_exploration_activates_what_was_active_least() -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=27)
    states = played(rmab.learner("restless-ucb"), task)
    np.testing.assert_array_equal(states[3].arrays["table"], -states[3].arrays["counts"].sum(axis=3)[:, :, 1])


def test_exploration_ends_early_where_every_pair_was_seen_enough() -> None:
    """T H = 64 * 8: 64 transitions are enough. One state, both actions 4 times an episode for each of 8 arms: 32."""
    problem = rmab.Problem(rmab.Arms.identical(np.ones((1, 2, 1)), 8), 0, 4, 8)
    task = rmab.Task.from_rewards(problem, np.full((64, 8, 1, 2), 0.5), low=0, high=1)
    committed = [bool(state.arrays["committed"]) for state in played(rmab.learner("restless-ucb"), task)]
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


# ---------------------------------------------------------------- from a generator


@pytest.mark.parametrize("name", ["rmab-ucrl", "r2mab-ucb"])
def test_the_generator_s_samples_are_all_it_knows_of_the_kernels(name: str) -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=4)
    learner: Any = rmab.learner(name, version="generator", samples=30)
    told = learner.informed(task.problem, task.reward(0))
    assert set(vars(told)) == {"settings", "samples"}
    np.testing.assert_array_equal(told.samples, drawn(task.problem, 30, 0))
    np.testing.assert_array_equal(told.samples.sum(axis=3), 30)
    for state in played(learner, task):
        np.testing.assert_array_equal(state.arrays["counts"], told.samples)
    other = learner.informed(task.problem, 2 * task.reward(0))  # told no rewards
    np.testing.assert_array_equal(other.begin(task.view()).arrays["mass"], told.begin(task.view()).arrays["mass"])
    assert rmab.run(task, learner).privileged == "is told samples of every pair's next state"
    with pytest.raises(ModelError, match=f"{name}: the generator must be asked first"):
        learner.begin(task.view())


@pytest.mark.parametrize("name", ["rmab-ucrl", "r2mab-ucb"])
def test_the_generator_s_luck_is_the_run_s(name: str) -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=2)
    one, two = (rmab.run(task, rmab.learner(name, version="generator"), seed).state.arrays["counts"] for seed in (1, 2))
    np.testing.assert_array_equal(one, drawn(task.problem, 200, 1))
    assert not np.array_equal(one, two)
    rows = task.problem.arms.kernels / task.problem.arms.kernels.sum(axis=3, keepdims=True)
    assert not np.array_equal(one, np.random.default_rng(1).multinomial(200, rows))  # a stream of its own


def test_the_width_of_samples_is_the_same_in_all_episodes() -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=9)
    learner: Any = rmab.learner("rmab-ucrl", version="generator", samples=50)
    view, pools = task.view(), Pools.of(task.view())
    first, last = played(learner, task)[1], played(learner, task)[-1]
    boxes = [learner._model(view, pools, state.arrays, state.episode)[0] for state in (first, last)]
    np.testing.assert_array_equal(boxes[0].low, boxes[1].low)
    np.testing.assert_array_equal(boxes[0].high, boxes[1].high)
    reach = math.sqrt(math.log(4 * 3 * 2 * 4 * 9 * 10 / 0.05) / 100)
    mean = first.arrays["counts"] / 50
    np.testing.assert_allclose(boxes[0].high[mean > 0], np.minimum(mean + reach, 1)[mean > 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "version"), [("rmab-ucrl", "stationary"), ("rmab-ucrl", "window"), ("r2mab-ucb", "explore")]
)
def test_samples_are_of_the_generator_only(name: str, version: str) -> None:
    with pytest.raises(ModelError, match=f"samples are drawn by version 'generator' only, this is '{version}'"):
        rmab.learner(name, version=version, samples=200)
    for made in (rmab.learner(name, version=version), rmab.learner(name, version="generator", samples=200)):
        assert rmab.learner(name, **made.options).options == made.options


def test_the_generator_draws_from_the_kernels() -> None:
    problem, _ = random_problem(0, count=2, states=3, horizon=2, budget=1)
    many = 200_000
    share = drawn(problem, many, 3) / many
    np.testing.assert_allclose(share, problem.arms.kernels, atol=5 * 0.5 / math.sqrt(many))
    assert not np.array_equal(drawn(problem, many, 4) / many, share)


def test_samples_of_another_task_are_refused() -> None:
    small = rmab.task("cpap", arms=4, budget=2)
    learner: Any = rmab.learner("rmab-ucrl", version="generator")
    with pytest.raises(ModelError, match=r"samples of shape \(4, 3, 2, 3\) for a task of \(6, 3, 2, 3\)"):
        learner.informed(small.problem, small.reward(0)).begin(rmab.task("cpap", arms=6, budget=2).view())


def test_many_samples_give_the_plan_of_the_true_kernels() -> None:
    problem, reward = random_problem(4, count=4, states=3, horizon=6, budget=2)
    task = rmab.Task.from_rewards(problem, np.repeat(reward[np.newaxis], 30, axis=0), feedback="full")
    learner = rmab.learner("r2mab-ucb", version="generator", samples=10**8, optimism=1e-3)  # rewards were seen less
    mass = played(learner, task)[-1].arrays["mass"]
    assert (mass * reward[:, np.newaxis]).sum() == pytest.approx(rmab.fluid(problem, reward).value, rel=1e-3)


def test_r2mab_s_index_may_be_weighted_by_the_reward() -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=3)
    share, weighted = (played(rmab.learner("r2mab-ucb", index=index), task)[0] for index in ("share", "weighted"))
    paid = share.arrays["estimate"][:, np.newaxis, :, 1]
    np.testing.assert_allclose(weighted.arrays["table"], share.arrays["table"] * paid)
    later = played(rmab.learner("r2mab-ucb", index="weighted"), task)[2]
    share_then = Pools.of(task.view()).index_of(later.arrays["mass"])
    np.testing.assert_allclose(later.arrays["table"], share_then * later.arrays["estimate"][:, np.newaxis, :, 1])


# ---------------------------------------------------------------- thompson


def test_draws_are_dirichlet() -> None:
    """The share of one entry is Beta(own, rest), own and rest of prior + counts over what is possible."""
    counts = np.zeros((1, 2, 2, 3), dtype=np.int64)
    counts[0, 0, 1] = [4, 0, 7]
    support = np.ones(counts.shape, dtype=bool)
    support[0, 1, 0, 2] = False
    rng = np.random.default_rng(1)
    sample = np.stack([posterior_draw(counts, support, 0.5, rng) for _ in range(3000)])
    np.testing.assert_allclose(sample.sum(axis=4), 1.0)
    assert (sample[:, 0, 1, 0, 2] == 0).all()
    for (s, a, y), own, rest in (
        ((0, 1, 0), 4.5, 8.0),
        ((0, 1, 1), 0.5, 12.0),
        ((0, 1, 2), 7.5, 5.0),
        ((0, 0, 1), 0.5, 1.0),
        ((1, 0, 0), 0.5, 0.5),
    ):
        assert kstest(sample[:, 0, s, a, y], beta(own, rest).cdf).pvalue > 1e-3
    assert kstest(sample[:, 0, 0, 1, 0], beta(5.5, 8.0).cdf).pvalue < 1e-6  # the test can tell


def test_thompson_plans_for_its_draw() -> None:
    task = rmab.task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=6)
    view, pools = task.view(), Pools.of(task.view())
    states = played(rmab.learner("thompson", prior=0.7), task, seed=5)
    arrays = states[4].arrays
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(101, 4)))
    draw = posterior_draw(arrays["counts"], pools.support, 0.7, rng)
    np.testing.assert_array_equal(arrays["table"], lagrangian_table(view, pools, draw, arrays["estimate"]))
    other = played(rmab.learner("thompson", prior=0.7), task, seed=6)
    assert not np.array_equal(other[3].arrays["table"], states[3].arrays["table"])


# ---------------------------------------------------------------- luck of their own


@pytest.mark.parametrize("name", ["thompson", "q-whittle"])
def test_no_stream_is_one_that_made_the_task(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream that a run makes begins as one of the two that its task was made from, by the same seed."""
    starts: list[str] = []
    make = np.random.default_rng

    def recorded(seed: Any) -> np.random.Generator:
        made = make(seed)
        starts.append(str(made.bit_generator.state["state"]))
        return made

    monkeypatch.setattr(np.random, "default_rng", recorded)
    task = rmab.task("cpap@noisy", seed=3, arms=4, budget=2, horizon=5, episodes=3)
    of_task = set(starts)
    rmab.run(task, name, 3)
    assert len(of_task) == 2
    assert len(set(starts)) >= 2 + 3 + 3  # and one of the simulator's and one of the learner's every episode
    assert not of_task & set(starts[2:])


@pytest.mark.parametrize("name", ["thompson", "q-whittle", "colored-ucrl2", "uob-reps", "random"])
def test_negative_seeds_are_refused(name: str) -> None:
    view = rmab.task("cpap@noisy", arms=2, budget=1, horizon=5, episodes=3).view()
    with pytest.raises(ModelError, match=r"^seed must be 0 or more, got -3$"):
        rmab.learner(name).begin(view, -3)


# ---------------------------------------------------------------- q-whittle


def test_rates_by_hand() -> None:
    np.testing.assert_allclose(fast_rate(np.array([1.0, 500.0, 501.0, 1500.0]), 1.0), [0.1, 0.1, 0.05, 0.1 / 3])
    assert fast_rate(np.array([1.0]), 20.0) == 1.0
    assert slow_rate(1, 1.0) == pytest.approx(0.2)
    assert slow_rate(500, 2.0) == pytest.approx(0.4 / (1 + math.ceil(math.log(500))))
    far = np.array([1e6, 1e7])
    ratio = [slow_rate(int(n), 1.0) / fast_rate(np.array([n]), 1.0)[0] for n in far]
    assert 0 < ratio[1] < ratio[0] < 0.2  # the prices move on the slower scale


def test_one_step_by_hand() -> None:
    """Two arms of one kind meet the same pair (0, 1): one update with the mean of both targets."""
    quality = np.zeros((1, 2, 2, 2))
    quality[0, :, 1] = [[3.0, 1.0], [0.0, 5.0]]  # of state 1, by reference state: max 3 and 5
    tables = Tables(quality, np.array([[0.5, 0.2]]), np.zeros((1, 2, 2)), 0)
    kind, here, action, there = np.zeros(3, dtype=int), np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1, 0, 0])
    tables.step(kind, here, action, np.array([1.0, 0.4, np.nan]), there, (1.0, 1.0, 0.9))
    # Targets for x = 0: 1 - .5 + .9 * 3 and .4 - .5; for x = 1: 1 - .2 + .9 * 5 and .4 - .2. Rate 0.1.
    np.testing.assert_allclose(tables.quality[0, :, 0, 1], [0.1 * (3.2 - 0.1) / 2, 0.1 * (5.3 + 0.2) / 2])
    np.testing.assert_array_equal(tables.visits, [[[0, 1], [0, 0]]])
    np.testing.assert_array_equal(tables.quality[0, :, 1], quality[0, :, 1])  # nothing was shown there
    # Then the prices: Q_0(0,1) - Q_0(0,0) = .155, Q_1(1,1) - Q_1(1,0) = 5; rate .2.
    np.testing.assert_allclose(tables.index, [[0.5 + 0.2 * 0.155, 0.2 + 0.2 * 5.0]])


def test_prices_come_to_the_whittle_indices() -> None:
    """Sixteen copies of a tiny arm, actions at random."""
    kernel = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]])
    reward, discount, copies = np.array([[0.1, 0.6], [0.1, 0.3]]), 0.5, 16
    rng, kind = np.random.default_rng(0), np.zeros(copies, dtype=np.int64)
    tables = Tables(np.zeros((1, 2, 2, 2)), np.zeros((1, 2)), np.zeros((1, 2, 2)), 0)
    here = np.zeros(copies, dtype=np.int64)
    for _ in range(12_000):
        action = rng.integers(0, 2, size=copies)
        there = (rng.random(copies) >= kernel[here, action, 0]).astype(np.int64)
        tables.step(kind, here, action, reward[here, action], there, (2.0, 10.0, discount))
        here = there
    truth, _ = arm_whittle(kernel, reward, discount)
    np.testing.assert_allclose(tables.index[0], truth, atol=0.01)
    assert abs(truth[0] - truth[1]) > 0.1


def test_q_whittle_explores_at_some_steps() -> None:
    task = rmab.task("cpap@noisy", horizon=400, episodes=3)
    learner = rmab.learner("q-whittle")
    state = played(learner, task)[2]
    table = learner.plan(state).policy.table  # type: ignore[attr-defined]
    blind = (table == 0).all(axis=(0, 2))
    assert 0.05 < blind.mean() < 0.16
    np.testing.assert_array_equal(table[:, ~blind][:, 0], state.arrays["index"])
    greedy: Any = rmab.learner("q-whittle", exploration=0.0)
    assert not (greedy.plan(played(greedy, task)[2]).policy.table == 0).all(axis=(0, 2)).any()
