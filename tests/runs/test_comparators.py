"""RandomLearner and the exact optimum, against closed forms, enumeration and simulation."""

import numpy as np
import pytest

import rmab
from reference import optimal_value
from rmab.planners.joint import few_joint_states, joint_visits
from rmab.runs.comparators import Comparators
from strategies import random_problem


@pytest.mark.parametrize("size", [(1, 3, 4, 1), (2, 3, 3, 1), (3, 2, 5, 2), (3, 3, 2, 0), (4, 2, 3, 4)])
def test_the_joint_optimum_is_that_of_enumeration(size: tuple[int, int, int, int]) -> None:
    problem, reward = random_problem(7, *size)
    visits = joint_visits(problem, reward)
    assert float((visits * reward).sum()) == pytest.approx(optimal_value(problem, reward), rel=1e-12)
    np.testing.assert_allclose(visits.sum(axis=(1, 2)), problem.horizon)
    assert visits[..., 1].sum() <= problem.budget * problem.horizon + 1e-9


def test_o2_is_exact_where_joint_states_are_few_and_simulated_elsewhere() -> None:
    small = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=4)
    assert few_joint_states(small.problem)
    rewards = np.stack([small.reward(t) for t in range(4)])
    found = Comparators(small.problem, rewards)
    assert found.o2().sum() == pytest.approx(optimal_value(small.problem, rewards.sum(axis=0)), rel=1e-12)
    assert found.random().sum() < found.o2().sum() < found.o1().sum()
    large = rmab.make_task("cpap")
    assert not few_joint_states(large.problem)
    with pytest.raises(rmab.errors.ModelError, match="more than 50,000 pairs"):
        joint_visits(large.problem, large.base_reward)


def test_the_optimum_with_phases_budgets_by_step_and_drawn_starts() -> None:
    """Nothing simulated exceeds it by more than luck; one arm by itself is a plain decision problem."""
    rng = np.random.default_rng(3)
    kernels, start = rng.dirichlet(np.ones(2), size=(2, 3, 2, 2)), rng.dirichlet(np.ones(2), size=2)
    problem = rmab.Problem(rmab.Arms(kernels), start, [1, 0, 2, 1], 4, [0, 2, 1, 0])
    reward = rng.random((2, 3, 2, 2))
    best = float((joint_visits(problem, reward) * reward).sum())
    plan = rmab.solvers.solve_fluid(problem, reward)
    batch = rmab.simulate_many(
        problem, rmab.planners.lagrangian_index(problem, reward), reward, np.random.default_rng(1), 4000
    )
    assert best <= plan.bound + 1e-6
    assert batch.mean < best + 4 * batch.stderr
    assert batch.mean > 0.9 * best


@pytest.mark.parametrize("name", ["cpap@noisy", "deadline", "random-types@switching"])
def test_chance_is_what_the_random_learner_earns_on_average(name: str) -> None:
    game = rmab.make_task(name, episodes=60, horizon=10)
    run = rmab.run(game, "random")
    expected = run.comparators.random()
    off = run.reward - expected
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(60)


def test_chance_by_hand() -> None:
    """Two arms, one active at a step: each pays half of the time."""
    run = rmab.run(rmab.make_task("turns", episodes=4, horizon=6), "random")
    np.testing.assert_allclose(run.comparators.random(), 3.0)
    assert run.random_regret("O3") == pytest.approx(4 * 3.0)
    assert run.relative_to_random("O3") == pytest.approx((24 - run.reward.sum()) / 12)
    assert np.isnan(run.relative_to_random("O1"))  # no fixed policy earns more than chance
    assert run.summary()["relative_to_random"]["O3"] == run.relative_to_random("O3")
    np.testing.assert_array_equal(run.to_table()["random"], run.comparators.random())


def test_chance_with_costs_is_what_fits_at_random() -> None:
    """Arms that cost 1 and 2 below 2: either one is active, whichever comes first. At a cost of 2 each, one of them."""
    arms, pays = rmab.Arms.identical([[[1.0], [1.0]]], 2), np.tile([[[0.0, 1.0]]], (2, 1, 1))
    for cost in ([1.0, 2.0], 2.0):
        problem = rmab.Problem(arms, 0, 2.0, 5, cost=cost)
        run = rmab.run(rmab.Task.from_rewards(problem, pays[np.newaxis], low=0, high=1), "random")
        np.testing.assert_allclose(run.comparators.random(), 5.0)
        assert run.summary()["budget_use"] == pytest.approx(1.0 if cost == 2.0 else np.nan, nan_ok=True)


def test_shared_comparators_are_those_of_the_same_budget() -> None:
    """Problems that differ in nothing but `exact` or `cost` have other comparators."""
    arms, pays = rmab.Arms.identical([[[1.0], [1.0]]], 3), np.tile([[[0.0, -1.0]]], (3, 1, 1))[np.newaxis]
    budgets: list[dict[str, object]] = [{}, {"exact": True}, {"exact": True, "cost": 2.0}]
    found = [Comparators.of(rmab.Problem(arms, 0, 2, 5, **given), pays).o1()[0] for given in budgets]  # type: ignore[arg-type]
    assert found == pytest.approx([0.0, -10.0, -5.0], abs=1e-6)


def test_chance_of_a_budget_for_all_is_what_everybody_active_earns() -> None:
    problem, reward = random_problem(2, 3, 2, 4, 3)
    found = Comparators(problem, reward[np.newaxis])
    every = rmab.simulate_many(problem, rmab.IndexPolicy(np.ones((3, 2)), 3), reward, np.random.default_rng(0), 4000)
    assert abs(every.mean - found.random()[0]) < 4 * every.stderr
