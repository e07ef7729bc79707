"""Learners that sample: kernels from a generator, and from the posterior; and whose luck is their own."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, kstest

import rmab
from rmab.errors import ModelError
from rmab.learning import Knowledge
from rmab.learning.algorithms.thompson import posterior_draw
from rmab.learning.components.counting import draw_counts
from rmab.learning.index_tables import lagrangian_table
from rmab.learning.pools import Pools, share_of
from small import played
from strategies import random_problem

# ---------------------------------------------------------------- from a generator


@pytest.mark.parametrize("name", ["rmab-ucrl", "r2mab-ucb"])
def test_the_generator_s_samples_are_all_it_knows_of_the_kernels(name: str) -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=4)
    learner: Any = rmab.make_learner(name, version="generator", samples=30)
    told = learner.inform(task.problem, task.reward(0))
    assert set(vars(told)) == {*learner.options, "_drawn"}
    np.testing.assert_array_equal(told._drawn, draw_counts(task.problem, 30, 0))
    np.testing.assert_array_equal(told._drawn.sum(axis=3), 30)
    for state in played(learner, task):
        np.testing.assert_array_equal(state.arrays["counts"], told._drawn)
    other = learner.inform(task.problem, 2 * task.reward(0))  # told no rewards
    np.testing.assert_array_equal(other.begin(task.view()).arrays["mass"], told.begin(task.view()).arrays["mass"])
    assert rmab.run(task, learner).privileged == "knows samples of every pair's next state"
    with pytest.raises(ModelError, match=f"{name}: must be informed of the problem first"):
        learner.begin(task.view())


@pytest.mark.parametrize("name", ["rmab-ucrl", "r2mab-ucb"])
def test_the_generator_s_luck_is_the_run_s(name: str) -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=2)
    one, two = (rmab.run(task, rmab.make_learner(name, version="generator"), seed).state.arrays["counts"] for seed in (1, 2))
    np.testing.assert_array_equal(one, draw_counts(task.problem, 200, 1))
    assert not np.array_equal(one, two)
    rows = task.problem.arms.kernels / task.problem.arms.kernels.sum(axis=3, keepdims=True)
    assert not np.array_equal(one, np.random.default_rng(1).multinomial(200, rows))  # a stream of its own


def test_the_width_of_samples_is_the_same_in_all_episodes() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=9)
    learner: Any = rmab.make_learner("rmab-ucrl", version="generator", samples=50)
    view, pools = task.view(), Pools.of(task.view())
    first, last = played(learner, task)[1], played(learner, task)[-1]
    boxes = [
        learner.optimistic(Knowledge(pools, view, state.episode, 0, view.episodes, state.arrays))[0]
        for state in (first, last)
    ]
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
        rmab.make_learner(name, version=version, samples=200)
    for made in (rmab.make_learner(name, version=version), rmab.make_learner(name, version="generator", samples=200)):
        assert rmab.make_learner(name, **made.options).options == made.options


def test_the_generator_draws_from_the_kernels() -> None:
    problem, _ = random_problem(0, count=2, states=3, horizon=2, budget=1)
    many = 200_000
    share = draw_counts(problem, many, 3) / many
    np.testing.assert_allclose(share, problem.arms.kernels, atol=5 * 0.5 / math.sqrt(many))
    assert not np.array_equal(draw_counts(problem, many, 4) / many, share)


def test_samples_of_another_task_are_refused() -> None:
    small = rmab.make_task("cpap", arms=4, budget=2)
    learner: Any = rmab.make_learner("rmab-ucrl", version="generator")
    with pytest.raises(ModelError, match=r"samples of shape \(4, 3, 2, 3\) for a task of \(6, 3, 2, 3\)"):
        learner.inform(small.problem, small.reward(0)).begin(rmab.make_task("cpap", arms=6, budget=2).view())


def test_many_samples_give_the_plan_of_the_true_kernels() -> None:
    problem, reward = random_problem(4, count=4, states=3, horizon=6, budget=2)
    task = rmab.Task.from_rewards(problem, np.repeat(reward[np.newaxis], 30, axis=0), feedback="full")
    learner = rmab.make_learner("r2mab-ucb", version="generator", samples=10**8, optimism=1e-3)  # rewards were seen less
    mass = played(learner, task)[-1].arrays["mass"]
    assert (mass * reward[:, np.newaxis]).sum() == pytest.approx(rmab.solvers.solve_fluid(problem, reward).value, rel=1e-3)


def test_r2mab_s_index_may_be_weighted_by_the_reward() -> None:
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=3)
    share, weighted = (played(rmab.make_learner("r2mab-ucb", index=index), task)[0] for index in ("share", "weighted"))
    paid = share.arrays["estimate"][:, np.newaxis, :, 1]
    np.testing.assert_allclose(weighted.arrays["table"], share.arrays["table"] * paid)
    later = played(rmab.make_learner("r2mab-ucb", index="weighted"), task)[2]
    mass, block_of = later.arrays["mass"], Pools.of(task.view()).block_of
    there = mass.sum(axis=3)[block_of] > 1e-9  # elsewhere the plan's advantage decides
    hand = share_of(mass)[block_of] * later.arrays["estimate"][:, np.newaxis, :, 1]
    np.testing.assert_allclose(later.arrays["table"][there], hand[there], atol=1e-6)


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
    task = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=6)
    pools = Pools.of(task.view())
    states = played(rmab.make_learner("thompson", prior=0.7), task, seed=5)
    arrays = states[4].arrays
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(101, 4)))
    draw = posterior_draw(arrays["counts"], pools.support, 0.7, rng)
    np.testing.assert_array_equal(arrays["table"], lagrangian_table(pools, draw, arrays["estimate"]))
    other = played(rmab.make_learner("thompson", prior=0.7), task, seed=6)
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

    bits = np.random.PCG64

    def recorded_bits(seed: Any) -> np.random.PCG64:
        made = bits(seed)
        starts.append(str(made.state["state"]))
        return made

    monkeypatch.setattr(np.random, "default_rng", recorded)
    monkeypatch.setattr(np.random, "PCG64", recorded_bits)  # the simulator's streams
    task = rmab.make_task("cpap@noisy", seed=3, arms=4, budget=2, horizon=5, episodes=3)
    of_task = set(starts)
    rmab.run(task, name, 3)
    assert len(of_task) == 2
    assert len(set(starts)) >= 2 + 3 + 3  # and one of the simulator's and one of the learner's every episode
    assert not of_task & set(starts[2:])


@pytest.mark.parametrize("name", ["thompson", "q-whittle", "colored-ucrl2", "uob-reps", "random"])
def test_negative_seeds_are_refused(name: str) -> None:
    view = rmab.make_task("cpap@noisy", arms=2, budget=1, horizon=5, episodes=3).view()
    with pytest.raises(ModelError, match=r"^seed must be 0 or more, got -3$"):
        rmab.make_learner(name).begin(view, -3)
