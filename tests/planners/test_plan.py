"""The race of candidates, and the rolling plan among them."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, PolicyError
from rmab.planners.question import systematic
from rmab.planners.registry import CANDIDATES
from timed import by_step, optimum, timed_problem

pytestmark = pytest.mark.compiled


def small(seed: int = 0) -> tuple[rmab.Problem, FloatArray]:
    """Return ten like arms of three states, over eight steps."""
    rng = np.random.default_rng(seed)
    arms = rmab.Arms.identical(rng.dirichlet(np.ones(3), size=(3, 2)), 10)
    return rmab.Problem(arms, 0, 4, 8), np.tile(rng.uniform(size=(3, 2)), (10, 1, 1))


def test_the_best_is_told_apart_and_stands_first() -> None:
    problem, reward = small()
    best = rmab.plan(problem, reward, episodes=40)
    assert next(one.name for one in best.candidates if not one.why) == best.name
    assert {one.name for one in best.candidates} == set(CANDIDATES)
    played = [one for one in best.candidates if not one.why]
    assert all(one.episodes >= 10 and one.behind >= -3 * one.behind_stderr for one in played)
    assert played[0].behind == 0.0
    assert max(one.episodes for one in played) <= 40
    assert best.value <= best.bound + 4 * best.stderr
    assert best.short == pytest.approx((best.bound - best.value) / best.bound)


def test_the_same_seed_leads_to_the_same_answer() -> None:
    problem, reward = small(1)
    one, two = (rmab.plan(problem, reward, episodes=20, seed=3) for _ in range(2))
    assert (one.name, one.value) == (two.name, two.value)
    assert [c.mean for c in one.candidates if not c.why] == [c.mean for c in two.candidates if not c.why]
    assert rmab.plan(problem, reward, episodes=20, seed=4).value != one.value


def test_a_poor_candidate_drops_out_early() -> None:
    arms = rmab.Arms.identical([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]], 10)
    problem, reward = rmab.Problem(arms, 0, 4, 8), np.tile([[0.0, 0.0], [1.0, 1.0]], (10, 1, 1))
    idle = ("idle", lambda *_: rmab.IndexPolicy(np.zeros((10, 2)), 4, rule="at-most"))
    best = rmab.plan(problem, reward, candidates=[idle, "lagrangian"], episodes=100)
    assert best.name == "lagrangian"
    assert {one.name: one.episodes for one in best.candidates} == {"lagrangian": 10, "idle": 10}


def test_what_does_not_apply_says_why() -> None:
    problem, reward = timed_problem(0, 3, 2, 2, 4)
    why = {one.name: one.why for one in rmab.plan(problem, reward, episodes=4).candidates}
    assert "2 phases" in why["whittle"]
    assert "2 phases" in why["ftva"]
    assert not why["rolling"]
    with pytest.raises(rmab.errors.SolverError, match=r"no candidate applies \(.*2 phases"):
        rmab.plan(problem, reward, candidates=["whittle"])


@pytest.mark.parametrize("seed", range(3))
def test_no_candidate_beats_the_joint_optimum(seed: int) -> None:
    """Two arms, planned jointly by brute force: the exact best. The winner is close to it."""
    problem, reward = timed_problem(seed, 2, 2, 2, 4)
    exact = optimum(problem, reward)
    best = rmab.plan(problem, reward, episodes=400)
    assert best.value - 4 * best.stderr <= exact <= best.bound + 1e-6
    for one in best.candidates:
        assert one.why or one.mean - 5 * one.stderr <= exact
    assert best.value + 4 * best.stderr >= exact - 0.1 * abs(exact)


@pytest.mark.slow
def test_episodes_that_are_all_alike_prove_nothing_where_a_rare_one_pays_much() -> None:
    """One arm: stay and get .01 a step, or move once and get 100 with probability .01, which is worth 1."""
    kernel = np.zeros((1, 3, 2, 3))
    kernel[0, 0, 0, 0] = kernel[0, 1, :, 2] = kernel[0, 2, :, 2] = 1.0
    kernel[0, 0, 1] = [0.0, 0.01, 0.99]
    reward = np.zeros((1, 3, 2))
    reward[0, 0, 0], reward[0, 1] = 0.01, 100.0
    problem = rmab.Problem(rmab.Arms(kernel), 0, 1, 2)
    for seed in range(2):
        assert rmab.plan(problem, reward, episodes=1500, seed=seed).name in (
            "lagrangian",
            "whittle-finite",
            "occupancy",
            "rolling",
        )


def test_a_candidate_alone_plays_too_and_one_that_fails_is_out() -> None:
    problem, reward = small()
    (lone,) = rmab.plan(problem, reward, candidates=["lagrangian"], episodes=10).candidates
    assert (lone.episodes, lone.behind) == (10, 0.0)
    tiny = rmab.plan(problem, reward * 1e-300, episodes=4)
    assert [one.name for one in tiny.candidates if "failed in an episode" in one.why] == ["rolling"]


def test_a_bound_of_zero_has_no_relative_distance() -> None:
    stay = [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    problem = rmab.Problem(rmab.Arms([stay] * 2), [[0.5, 0.5]] * 2, 1, 1)
    best = rmab.plan(problem, np.array([[[0, -1], [-1, 0.0]]] * 2), episodes=10, candidates=["lagrangian"])
    assert best.bound == 0.0
    assert np.isnan(best.short)


def test_lines_tell_what_is_going_on() -> None:
    problem, reward = small()
    lines: list[str] = []
    rmab.plan(problem, reward, candidates=["lagrangian", "occupancy"], episodes=10, progress=lines.append)
    assert lines[0] == "solving the fluid plan"
    assert "planning lagrangian" in lines
    assert lines[-1].startswith("measuring ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"candidates": "lagrangian"}, "candidates must be a list of names and planners"),
        ({"candidates": ["best"]}, "unknown planner 'best'"),
        ({"candidates": []}, "must have at least one planner"),
        ({"episodes": 1}, "episodes must be at least 2, got 1"),
        ({"episodes": 2.5}, "episodes"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"candidates": [["a"]]}, r"a candidate is the name of a planner, a table of .*, got \['a'\]"),
        ({"candidates": 3}, "candidates must be a list of names and planners"),
        ({"progress": 3}, "progress must be a function of a line of text, got int"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    problem, reward = small()
    with pytest.raises(ModelError, match=message):
        rmab.plan(problem, reward, **given)


@pytest.mark.slow
@pytest.mark.parametrize("discount", [1.0, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_the_rolling_plan_is_near_the_exact_optimum(seed: int, discount: float) -> None:
    plain, reward = timed_problem(seed, 2, 2, 2, 5)
    problem = rmab.Problem(plain.arms, plain.start, plain.budget, 5, plain.phase_of, discount=discount)
    kernels, gains = by_step(problem, reward)
    arms = rmab.Arms(kernels)
    falling = rmab.Problem(arms, problem.start, problem.budget, 5, np.arange(5))
    exact = optimum(falling, gains * problem.discounts[:, np.newaxis, np.newaxis])
    for window in (2, 10):
        policy = rmab.planners.Rolling(problem, reward, window=window)
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 300)
        assert exact - 0.15 * abs(exact) - 4 * batch.stderr <= batch.mean <= exact + 4 * batch.stderr


def test_many_arms_bring_the_rolling_plan_to_the_bound() -> None:
    rng = np.random.default_rng(5)
    kernel, pay = rng.dirichlet(np.ones(3), size=(3, 2)), rng.uniform(size=(3, 2))
    short = []
    for arms in (20, 500):
        problem = rmab.Problem(rmab.Arms.identical(kernel, arms), 0, arms // 3, 12)
        reward = np.tile(pay, (arms, 1, 1))
        plan = rmab.solvers.solve_fluid(problem, reward)
        batch = rmab.simulate_many(
            problem, rmab.planners.Rolling(problem, reward, fluid=plan), reward, np.random.default_rng(0), 20
        )
        short.append((plan.bound - batch.mean) / plan.bound)
    assert short[1] < 0.01
    assert short[1] < short[0] + 0.003


def test_penalties_that_no_plan_pays_do_not_soften_the_rolling_plan() -> None:
    task = rmab.make_task("deadline", arms=20, budget=5, horizon=60)
    problem = rmab.Problem(task.problem.arms, task.problem.start, 5, 60, discount=0.99)
    reward = task.base_reward
    fluid = rmab.solvers.solve_fluid(problem, reward)
    index, rolling = rmab.planners.lagrangian_index(problem, reward, fluid=fluid), rmab.planners.Rolling(problem, reward)
    earned = [rmab.simulate_many(problem, one, reward, np.random.default_rng(1), 12).rewards for one in (index, rolling)]
    behind = earned[0] - earned[1]
    assert behind.mean() <= 3 * behind.std(ddof=1) / np.sqrt(12)  # softened by the range of all rewards: 47 of 218


def test_threads_and_copies_of_a_rolling_plan_decide_alike() -> None:
    problem, reward = small(2)
    policy = rmab.planners.Rolling(problem, reward)

    def played(seed: int) -> list[list[bool]]:
        return rmab.simulate(problem, policy, reward, np.random.default_rng(seed)).actions.tolist()  # type: ignore[no-any-return]

    alone = [played(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(played, range(8))) == alone
    again = pickle.loads(pickle.dumps(policy))
    assert rmab.simulate(problem, again, reward, np.random.default_rng(0)).actions.tolist() == alone[0]
    assert repr(again).endswith("window 10)")


@pytest.mark.parametrize("window", [0, -3, 1.5, "ten"])
def test_a_window_has_at_least_one_step(window: Any) -> None:
    problem, reward = small()
    with pytest.raises(ModelError, match="window"):
        rmab.planners.Rolling(problem, reward, window=window)


def test_a_rolling_plan_refuses_the_plan_of_another_problem_and_a_wrong_place() -> None:
    problem, reward = small()
    with pytest.raises(ModelError, match="belongs to another problem"):
        rmab.planners.Rolling(problem, reward, fluid=rmab.solvers.solve_fluid(problem, reward + np.arange(2.0)))
    with pytest.raises(PolicyError, match="step must be in"):
        rmab.planners.Rolling(problem, reward).act(8, np.zeros(10, dtype=int), np.random.default_rng(0))


@pytest.mark.parametrize("rich", [1.0, 1e9, 1e140])
def test_a_rolling_plan_decides_where_its_start_does_not_lead(rich: float) -> None:
    stay = np.tile(np.eye(2)[:, np.newaxis], (1, 2, 1))  # every state is absorbing
    problem = rmab.Problem(rmab.Arms([stay] * 4), 0, 1, 5)
    reward = np.tile([[0.0, 1e-3], [0.0, rich]], (4, 1, 1))
    reward[3, 1, 1] *= 3.0
    policy = rmab.planners.Rolling(problem, reward)
    for states in ([1, 1, 1, 1], [0, 0, 0, 1]):
        assert policy.act(1, np.array(states), np.random.default_rng(0)).tolist() == [False, False, False, True]


@pytest.mark.parametrize("seed", range(20))
def test_systematic_sampling_keeps_counts_and_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 4, size=30)
    share = rng.uniform(size=4)[place]
    drawn = np.array([systematic(share, place, 30, rng) for _ in range(2000)])
    for k in range(4):
        counts = drawn[:, place == k].sum(axis=1)
        wanted = share[place == k].sum()
        assert set(counts) <= {int(np.floor(wanted)), int(np.ceil(wanted))}
    np.testing.assert_allclose(drawn.mean(axis=0), share, atol=0.06)
    assert systematic(share, place, 5, rng).sum() <= 5


def test_a_budget_that_must_be_used_up_is_planned_for() -> None:
    """On the conveyor, activations to fill the budget push arms back, unless the plan expects them."""
    task = rmab.make_task("conveyor", arms=40, horizon=150)
    reward, earned = task.base_reward, {}
    for exact in (True, False):
        problem = rmab.Problem(task.problem.arms, np.full((40, 8), 1 / 8), 20, 150, exact=exact)
        policy = rmab.planners.lagrangian_index(problem, reward, rule="fill")
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 50)
        assert (batch.activations == 20 * 150).all()
        earned[exact] = batch.mean
    assert earned[True] > 1.5 * earned[False]


@pytest.mark.parametrize("seed", range(3))
def test_indices_of_a_used_up_budget_rank_as_the_programme_with_equality_does(seed: int) -> None:
    """Where every activation is worth something anyway, an exact budget has the usual index."""
    problem, reward = timed_problem(seed, 4, 1, 2, 3, budget=2)
    reward = reward.reshape(4, 2, 2)
    reward[..., 1] += 50.0
    obliged = rmab.Problem(problem.arms, problem.start, 2, problem.horizon, exact=True)
    usual, exact = (rmab.planners.lagrangian_index(one, reward).table for one in (problem, obliged))
    np.testing.assert_allclose(exact, usual, rtol=1e-3)


def test_the_optimum_is_reported_where_it_is_quick(tmp_path: Path) -> None:
    kernel = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5]]]
    reward = np.tile([[0.0, 0.0], [1.0, 1.0]], (6, 1, 1))
    problem = rmab.Problem(rmab.Arms.identical(kernel, 6), 0, 2, 4)
    best = rmab.plan(problem, reward, candidates=["lagrangian"], episodes=50)
    assert best.optimum == rmab.solvers.solve_exact(problem, reward).value
    assert best.value - 5 * best.stderr <= best.optimum <= best.bound + 1e-9
    best.save(tmp_path / "plan.npz")
    assert rmab.PlanResult.load(tmp_path / "plan.npz").optimum == best.optimum
    many = rmab.Problem(rmab.Arms.identical(kernel, 2000), 0, 20, 4)
    assert rmab.plan(many, np.tile(reward[:1], (2000, 1, 1)), candidates=["lagrangian"], episodes=2).optimum is None


def test_a_time_limit_leaves_the_first_candidate_and_says_who_did_not_play() -> None:
    task = rmab.make_task("cpap", arms=4, budget=2, horizon=5)
    best = rmab.plan(task.problem, task.base_reward, candidates=["myopic", "rolling", "random"], time_limit=0)
    assert (best.name, best.candidates[0].episodes) == ("myopic", 10)
    assert [one.why for one in best.candidates[1:]] == ["the time limit was reached before it could play"] * 2
    ample = rmab.plan(task.problem, task.base_reward, candidates=["myopic", "random"], episodes=10, time_limit=1e6)
    assert all(one.episodes == 10 and not one.why for one in ample.candidates)
    with pytest.raises(rmab.errors.ModelError, match="time_limit must be a finite number, 0 or more, got -1"):
        rmab.plan(task.problem, task.base_reward, time_limit=-1)
