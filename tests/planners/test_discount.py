"""A discount counts rewards of step h discount ** h of themselves: the same as rewards that fall from step to step."""

import json
from pathlib import Path

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from timed import by_step, fluid_value, optimum, timed_problem

pytestmark = pytest.mark.compiled

DISCOUNTS = (0.99, 0.8, 0.3)


def discounted(problem: rmab.Problem, discount: float) -> rmab.Problem:
    """Return the problem with a discount."""
    given = (problem.arms, problem.start, problem.budget, problem.horizon, problem.phase_of)
    return rmab.Problem(*given, discount=discount)


def falling(problem: rmab.Problem, reward: FloatArray) -> tuple[rmab.Problem, FloatArray]:
    """Return the same problem without a discount: a phase for every step, whose rewards have fallen."""
    kernels, gains = by_step(problem, reward)
    arms = rmab.Arms(kernels, groups=problem.arms.groups)
    plain = rmab.Problem(arms, problem.start, problem.budget, problem.horizon, np.arange(problem.horizon))
    return plain, gains * problem.discounts[:, np.newaxis, np.newaxis]


@pytest.mark.parametrize("method", ["highs", "newton"])
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_bound_is_that_of_falling_rewards(discount: float, method: str) -> None:
    for seed in range(4):
        plain, reward = timed_problem(seed, 3, 2, 3, 6)
        problem = discounted(plain, discount)
        plan = rmab.solvers.solve_fluid(problem, reward, method=method)
        other, gains = falling(problem, reward)
        assert plan.value == pytest.approx(fluid_value(other, gains), rel=1e-5, abs=1e-6)
        mass = plan.occupancy
        np.testing.assert_allclose(mass.sum(axis=(2, 3)), 1.0, atol=1e-12)  # probabilities, not discounted
        assert (mass[..., 1].sum(axis=(0, 2)) <= problem.budgets + 1e-8).all()
        assert float((mass * gains).sum()) == pytest.approx(plan.value, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_no_policy_beats_the_bound(seed: int) -> None:
    plain, reward = timed_problem(seed, 2, 2, 2, 4)
    problem = discounted(plain, 0.7)
    best = optimum(*falling(problem, reward))
    assert best <= rmab.solvers.solve_fluid(problem, reward).bound + 1e-9


def test_prices_and_indices_are_in_rewards_of_their_own_step() -> None:
    plain, reward = timed_problem(1, 4, 2, 3, 6, budget=2)
    problem = discounted(plain, 0.8)
    other, gains = falling(problem, reward)
    one, two = (rmab.solvers.solve_fluid(p, r, method="highs") for p, r in ((problem, reward), (other, gains)))
    np.testing.assert_allclose(one.prices * problem.discounts, two.prices, atol=1e-8)
    mine, theirs = (
        rmab.planners.lagrangian_index(problem, reward, fluid=one),
        rmab.planners.lagrangian_index(other, gains, fluid=two),
    )
    np.testing.assert_allclose(mine.table * problem.discounts[:, np.newaxis], theirs.table, atol=1e-8)
    worth = problem.discounts[:, np.newaxis] * rmab.planners.myopic_index(problem, reward).table
    np.testing.assert_allclose(worth, rmab.planners.myopic_index(other, gains).table, atol=1e-12)


def test_the_finite_whittle_index_discounts_its_price_too() -> None:
    plain, reward = timed_problem(2, 1, 2, 3, 5, budget=1)
    problem = discounted(plain, 0.6)
    kernels, gains = by_step(problem, reward)
    index = rmab.planners.finite_whittle_index(problem, reward).index[0]
    for h, s in np.ndindex(5, 3):
        value = np.zeros(3)
        for step in reversed(range(h, 5)):
            worth = gains[0, step] - index[h, s] * np.array([0.0, 1.0]) + 0.6 * kernels[0, step] @ value
            value = worth.max(axis=1)
        assert worth[s, 1] == pytest.approx(worth[s, 0], abs=1e-9)


def test_simulated_rewards_are_discounted() -> None:
    plain, reward = timed_problem(3, 3, 2, 3, 6)
    problem, (other, gains) = discounted(plain, 0.9), falling(discounted(plain, 0.9), reward)
    for make in (rmab.planners.random_policy, lambda p: rmab.planners.LpUpdate(p, reward if p is problem else gains)):
        one = rmab.simulate(problem, make(problem), reward, np.random.default_rng(0))
        two = rmab.simulate(other, make(other), gains, np.random.default_rng(0))
        np.testing.assert_array_equal(one.states, two.states)
        assert one.reward == pytest.approx(two.reward, abs=1e-12)


def test_lp_update_earns_what_its_plan_for_the_rest_promises_on_average() -> None:
    plain, reward = timed_problem(4, 4, 1, 3, 8, budget=2)
    problem = discounted(plain, 0.5)
    batch = rmab.simulate_many(problem, rmab.planners.LpUpdate(problem, reward), reward, np.random.default_rng(0), 200)
    plan = rmab.solvers.solve_fluid(problem, reward)
    assert batch.mean <= plan.bound + 4 * batch.stderr
    assert batch.mean >= plan.bound - 0.25 * abs(plan.bound)


@pytest.mark.parametrize("learner", ["oracle", "random"])
def test_regret_is_discounted(learner: str) -> None:
    plain, reward = timed_problem(5, 4, 2, 3, 6, budget=2)
    problem = discounted(plain, 0.7)
    rewards = np.stack([reward, 0.5 * reward])
    run = rmab.run(rmab.Task.from_rewards(problem, rewards), learner, seed=1)
    other, _ = falling(problem, reward)
    fallen = np.stack([falling(problem, one)[1] for one in rewards])
    bounds = rmab.runs.Comparators(other, fallen)
    for which in ("O1", "O2", "O3"):
        np.testing.assert_allclose(run.comparators.per_episode(which), bounds.per_episode(which), rtol=2e-5)
    with pytest.raises(ModelError, match=r"ucmd does not support discounting, but the view has discount 0\.7"):
        rmab.run(rmab.Task.from_rewards(problem, rewards), "ucmd")


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_softened_plans_are_those_of_falling_rewards(discount: float) -> None:
    """Entropy falls with the rewards here, and not there: so they agree where there is little of it."""
    plain, reward = timed_problem(8, 3, 2, 3, 5, budget=1)
    problem = discounted(plain, discount)
    plan = rmab.solvers.soften(problem, reward, 3e4)
    assert plan.value == pytest.approx(rmab.solvers.solve_fluid(problem, reward).value, abs=2e-3)
    np.testing.assert_allclose(plan.occupancy.sum(axis=(2, 3)), 1.0, atol=1e-9)
    np.testing.assert_allclose(plan.occupancy[..., 1].sum(axis=(0, 2)), plan.use, atol=1e-6)
    assert (plan.use <= 1 + 1e-6).all()
    kernels, gains = by_step(problem, reward)
    value = np.zeros((3, 3))
    for h in reversed(range(5)):  # the softened recursion, in NumPy
        worth = (
            gains[:, h] - plan.prices[h] * np.array([0.0, 1.0]) + discount * np.einsum("nsay,ny->nsa", kernels[:, h], value)
        )
        blind = np.log([2 / 3, 1 / 3])
        value = np.logaddexp(3e4 * worth[..., 0] + blind[0], 3e4 * worth[..., 1] + blind[1]) / 3e4
        np.testing.assert_allclose(plan.values[:, h], value, atol=1e-8)


def test_files_keep_it(tmp_path: Path) -> None:
    plain, reward = timed_problem(6)
    problem = discounted(plain, 0.9)
    for name in ("one.npz", "one.json"):
        problem.save(tmp_path / name)
        assert rmab.Problem.load(tmp_path / name) == problem != plain
        rmab.Task.from_rewards(problem, reward[np.newaxis]).save(tmp_path / f"task-{name}")
        assert rmab.Task.load(tmp_path / f"task-{name}").problem == problem
    assert json.loads(_saved(plain, tmp_path)).get("discount", 1.0) == 1.0
    assert problem.from_step(1, 0).discount == 0.9
    assert rmab.Task.from_rewards(problem, reward[np.newaxis]).repeated(2).problem.discount == 0.9
    assert repr(problem).endswith(", discount 0.9)")
    state = rmab.make_learner("random").begin(rmab.Task.from_rewards(problem, reward[np.newaxis]).view())
    state.save(tmp_path / "state.npz")
    assert rmab.State.load(tmp_path / "state.npz").view.discount == 0.9


def _saved(problem: rmab.Problem, folder: Path) -> str:
    problem.save(folder / "plain.json")
    return (folder / "plain.json").read_text()


def test_steps_that_count_next_to_nothing() -> None:
    """Plans of steps that count less than rounding: no warning, no hang; a softened plan says how many it takes."""
    plain, reward = timed_problem(9, 3, 1, 2, 60, budget=1)
    reward = reward.reshape(3, 2, 2)
    for discount in (1e-6, 0.1):
        problem = discounted(plain, discount)
        assert rmab.solvers.solve_fluid(problem, reward).bound == pytest.approx(
            rmab.solvers.solve_fluid(rmab.Problem(plain.arms, plain.start, 1, 10, discount=discount), reward).bound, rel=1e-5
        )
        rmab.simulate(problem, rmab.planners.Rolling(problem, reward), reward, np.random.default_rng(0))
        with pytest.raises(
            ModelError, match=r"soften: rewards after \d+ steps count less than 1e-10; plan for at most \d+ steps"
        ):
            rmab.solvers.soften(problem, reward, 20.0)


@pytest.mark.parametrize("wrong", [0, -0.1, 1.1, np.nan, "half", None, True])
def test_a_discount_is_above_0_and_at_most_1(wrong: object) -> None:
    with pytest.raises(ModelError, match="discount"):
        rmab.Problem(rmab.Arms(np.ones((1, 1, 2, 1))), 0, 1, 2, discount=wrong)  # type: ignore[arg-type]


def test_an_infinite_horizon_index_takes_the_discount_of_its_problem() -> None:
    """The closed form of charging spots (Yu, Xu & Tong 2018) is that of the problem's own discount."""
    task = rmab.make_task("deadline", arms=2, budget=1, horizon=4, episodes=1)
    problem = discounted(task.problem, 0.9)
    closed = rmab.tasks.deadline.deadline_whittle(task.problem, discount=0.9).index
    found = rmab.planners.whittle_index(problem, task.base_reward)
    np.testing.assert_array_equal(
        found.index, rmab.planners.whittle_index(task.problem, task.base_reward, discount=0.9).index
    )
    np.testing.assert_array_equal(rmab.tasks.deadline.deadline_whittle(problem).index, closed)
    np.testing.assert_allclose(found.index, closed, atol=1e-7)


def test_a_long_horizon_of_a_steep_discount_is_its_beginning() -> None:
    plain, reward = timed_problem(7, 3, 1, 3, 400, budget=1)
    problem = discounted(plain, 0.5)
    short = rmab.Problem(plain.arms, plain.start, 1, 60, discount=0.5)
    for method in ("highs", "newton"):
        long = rmab.solvers.solve_fluid(problem, reward, method=method)
        assert long.bound == pytest.approx(rmab.solvers.solve_fluid(short, reward).bound, rel=3e-6)
