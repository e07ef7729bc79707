"""Exact budgets and costs: every solver and policy against an LP by SciPy and against induction over joint states."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import rmab
from rmab.common import BoolArray, FloatArray
from rmab.errors import BudgetExceeded, ModelError, PolicyError
from rmab.planners.joint import joint_visits
from rmab.planners.question import draw_within

PLANNERS = ("lagrangian", "rolling", "occupancy", "whittle-finite", "myopic", "random", "lp-update")


def draw_case(seed: int) -> tuple[rmab.Problem, FloatArray]:
    """Draw a small problem: exact, with costs, or plain; with phases, a discount, and a budget for every step."""
    rng = np.random.default_rng(seed)
    arms, states, horizon, phases = (int(rng.integers(*size)) for size in ((2, 5), (2, 4), (1, 6), (1, 3)))
    kernels = rng.dirichlet(np.full(states, 0.5), size=(arms, phases, states, 2))
    reward = rng.normal(size=(arms, phases, states, 2))
    phase_of = np.append(phases - 1, rng.integers(0, phases, horizon - 1)) if phases > 1 else None
    given: dict[str, object] = {"discount": float(rng.choice([1.0, 0.8]))}
    budget: FloatArray = rng.integers(0, arms + 1, horizon).astype(float)
    if seed % 3 == 0:
        given["exact"] = True
    elif seed % 3 == 1:
        given["cost"], budget = rng.uniform(0.5, 3, arms).round(1), rng.uniform(0, 5, horizon).round(1)
    if phases == 1:
        kernels, reward = kernels[:, 0], reward[:, 0]
    return rmab.Problem(rmab.Arms(kernels), rng.integers(0, states, arms), budget, horizon, phase_of, **given), reward  # type: ignore[arg-type]


def lp_value(problem: rmab.Problem, reward: FloatArray) -> float:
    """Solve the fluid LP of every arm by itself, written out, by SciPy."""
    arms, states, horizon, phases = problem.arms.count, problem.arms.states, problem.horizon, problem.phases
    kernels = problem.arms.kernels.reshape(arms, phases, states, 2, states)
    paid = np.asarray(reward).reshape(arms, phases, states, 2)
    place = np.arange(arms * horizon * states * 2).reshape(arms, horizon, states, 2)
    worth, rows, right = np.zeros(place.size), [], []
    for n, h, s in itertools.product(range(arms), range(horizon), range(states)):
        row = np.zeros(place.size)
        row[place[n, h, s]] = 1.0
        worth[place[n, h, s]] = -paid[n, problem.phase_of[h], s] * problem.discount**h
        if h:
            row[place[n, h - 1]] -= kernels[n, problem.phase_of[h - 1], :, :, s]
        rows.append(row)
        right.append(0.0 if h else problem.start_masses[n, s])
    costs = np.ones(arms) if problem.cost is None else problem.cost
    budget, most = np.zeros((horizon, place.size)), np.full(place.size, np.inf)
    for n, h in itertools.product(range(arms), range(horizon)):
        budget[h, place[n, h, :, 1]] = costs[n]
        if costs[n] > problem.budgets[h]:  # never active there
            most[place[n, h, :, 1]] = 0.0
    bounds = np.column_stack([np.zeros(place.size), most])
    if problem.exact:
        found = linprog(worth, A_eq=np.vstack([rows, budget]), b_eq=[*right, *problem.budgets])
    else:
        found = linprog(worth, A_ub=budget, b_ub=problem.budgets, A_eq=np.array(rows), b_eq=right, bounds=bounds)
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_and_optima_agree_with_independent_ones(seed: int) -> None:
    problem, reward = draw_case(seed)
    wanted = lp_value(problem, reward)
    costs = np.ones(problem.arms.count) if problem.cost is None else problem.cost
    for method in ("highs", "newton"):
        plan = rmab.solvers.solve_fluid(problem, reward, method=method)  # type: ignore[arg-type]
        assert plan.bound == pytest.approx(wanted, rel=3e-5, abs=3e-5)
        used = np.einsum("nhs,n->h", plan.occupancy[..., 1], costs)
        if problem.exact:
            np.testing.assert_allclose(used, problem.budgets, atol=1e-6)
        assert (used <= problem.budgets + 1e-6).all()
    optimum = float((joint_visits(problem, reward) * reward).sum())
    assert optimum <= wanted + 1e-7
    assert rmab.solvers.solve_exact(problem, reward).value == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    soft = rmab.solvers.soften(problem, reward, 2000.0)
    assert soft.gap <= 1e-6
    assert wanted - 0.05 * max(1.0, abs(wanted)) < soft.bound < wanted + 1e-3


@pytest.mark.parametrize("seed", range(9))
def test_every_planner_keeps_the_budget_and_earns_no_more_than_the_optimum(seed: int) -> None:
    problem, reward = draw_case(seed)
    optimum = float((joint_visits(problem, reward) * reward).sum())
    for name in PLANNERS:
        policy = rmab.make_planner(name)(problem, reward)
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(1), 100)
        assert batch.rewards.mean() <= optimum + 5 * batch.rewards.std() / 10 + 1e-9, name
        if problem.exact:
            assert (batch.activations == problem.budgets.sum()).all(), name


def test_a_constant_for_being_active_changes_nothing_under_an_exact_budget() -> None:
    problem, reward = draw_case(3)
    assert problem.exact
    more = 7.0 * float((problem.budgets * problem.discounts).sum())
    for solve in (rmab.solvers.solve_fluid, lambda *case: rmab.solvers.soften(*case, 20.0)):
        here, there = solve(problem, reward), solve(problem, reward + np.array([0.0, 7.0]))  # type: ignore[operator]
        assert there.bound == pytest.approx(here.bound + more, rel=1e-5)
    infinite, pays = draw_case(6)
    assert (infinite.exact, infinite.phases) == (True, 1)
    infinite = rmab.Problem(infinite.arms, 0, 1, 4, exact=True)
    one, other = (rmab.solvers.solve_average_fluid(infinite, pay).bound for pay in (pays, pays + np.array([0.0, 7.0])))
    assert other == pytest.approx(one + 7.0)


def test_costs_and_budget_scaled_together_change_nothing() -> None:
    problem, reward = draw_case(4)
    assert problem.cost is not None
    rest = (problem.horizon, problem.phase_of)
    other = rmab.Problem(
        problem.arms, problem.start, 4 * problem.budgets, *rest, discount=problem.discount, cost=4 * problem.cost
    )
    assert rmab.solvers.solve_fluid(other, reward).bound == pytest.approx(rmab.solvers.solve_fluid(problem, reward).bound)
    policies = [rmab.planners.lagrangian_index(one, reward) for one in (problem, other)]
    played = [
        rmab.simulate_many(one, policy, reward, np.random.default_rng(0), 20).rewards
        for one, policy in zip((problem, other), policies, strict=True)
    ]
    np.testing.assert_array_equal(*played)


def test_equal_costs_are_the_model_without_costs_to_the_byte() -> None:
    task = rmab.make_task("cpap")
    plain, reward = task.problem, task.base_reward
    alike = rmab.Problem(plain.arms, plain.start, 22.0 * 10 + 21.9, plain.horizon, cost=22.0)
    assert alike.slots[0] == 10
    for name in ("lagrangian", "whittle", "random"):
        one, other = (
            rmab.simulate_many(problem, rmab.make_planner(name)(problem, reward), reward, np.random.default_rng(0), 5)
            for problem in (plain, alike)
        )
        np.testing.assert_array_equal(one.rewards, other.rewards)
    assert rmab.solvers.solve_fluid(plain, reward).bound == rmab.solvers.solve_fluid(alike, reward).bound


def with_cost(problem: rmab.Problem, unit: float) -> rmab.Problem:
    """Return the problem with this cost of each activation, and budgets to match."""
    rest = {"discount": problem.discount, "exact": problem.exact}
    sizes = (unit * problem.budgets, problem.horizon, problem.phase_of)
    return rmab.Problem(problem.arms, problem.start, *sizes, cost=unit, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 3, 6, 9])
def test_an_exact_budget_with_equal_costs_is_one_without_costs_to_the_byte(seed: int) -> None:
    plain, reward = draw_case(seed)
    alike = with_cost(plain, 2.3)
    assert (plain.exact, alike.exact, alike.weights) == (True, True, None)
    np.testing.assert_array_equal(plain.slots, alike.slots)
    solvers = rmab.solvers
    for solve in (solvers.solve_fluid, lambda *case: solvers.soften(*case, 30.0), solvers.solve_exact):
        assert repr(solve(plain, reward)) == repr(solve(alike, reward))  # type: ignore[operator]
    np.testing.assert_array_equal(joint_visits(plain, reward), joint_visits(alike, reward))
    for name in PLANNERS:
        one, other = (
            rmab.simulate_many(problem, rmab.make_planner(name)(problem, reward), reward, np.random.default_rng(1), 10)
            for problem in (plain, alike)
        )
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(other.activations, plain.budgets.sum())


def test_infinite_horizon_policies_learners_and_comparators_take_an_exact_budget_with_equal_costs() -> None:
    task = rmab.make_task("dirichlet-355", arms=20, horizon=12, episodes=3)
    alike = replace(task, problem=with_cost(task.problem, 22.0))
    one, other = (rmab.solvers.solve_average_fluid(each.problem, task.base_reward) for each in (task, alike))
    assert (one.bound, one.price) == (other.bound, other.price)
    for make in (rmab.planners.IdPolicy, rmab.planners.Ftva, rmab.planners.SetExpansion):
        played = [
            rmab.simulate(each.problem, make(each.problem, task.base_reward), task.base_reward, np.random.default_rng(0))
            for each in (task, alike)
        ]
        np.testing.assert_array_equal(played[0].actions, played[1].actions)
    for learner in ("ucmd", "thompson", "rmab-ucrl", "random"):
        runs = [rmab.run(each, learner, seed=0) for each in (task, alike)]
        np.testing.assert_array_equal(runs[0].reward, runs[1].reward)
        assert {name: runs[0].summary()[name] for name in ("regret", "relative_to_random", "budget_use")} == {
            name: runs[1].summary()[name] for name in ("regret", "relative_to_random", "budget_use")
        }
    lazy = rmab.IndexPolicy(np.zeros((20, task.problem.arms.states)), 20, rule="at-most")
    with pytest.raises(PolicyError, match="activates 0 arms, the budget is exactly 13; use rule 'fill'"):
        rmab.simulate(alike.problem, lazy, task.base_reward, np.random.default_rng(0))


def test_the_average_bound_of_an_exact_budget_may_have_a_negative_price() -> None:
    """One state, activating costs 1: nine of ten arms must be active, and pay for it."""
    arms = rmab.Arms.identical([[[1.0], [1.0]]], 10)
    problem, reward = rmab.Problem(arms, 0, 9, 5, exact=True), np.broadcast_to([[0.0, -1.0]], (10, 1, 2))
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    assert (plan.bound, plan.price) == pytest.approx((-9.0, -1.0))
    assert rmab.solvers.solve_exact_average(problem, reward).value == pytest.approx(-9.0)
    everybody = rmab.Problem(arms, 0, 10, 5, exact=True)
    plan = rmab.solvers.solve_average_fluid(everybody, reward)
    assert plan.bound == pytest.approx(-10.0)
    np.testing.assert_allclose(plan.share, 1.0)
    np.testing.assert_allclose(plan.mass[0, 0], [0.0, 1.0])


def test_an_exact_budget_that_is_not_spent_is_refused() -> None:
    task = rmab.make_task("cpap")
    problem = rmab.Problem(task.problem.arms, 0, 10, 50, exact=True)
    lazy = rmab.IndexPolicy(np.zeros((20, 3)), 10, rule="at-most")
    with pytest.raises(PolicyError, match="activates 0 arms, the budget is exactly 10; use rule 'fill'") as caught:
        rmab.simulate(problem, lazy, task.base_reward, np.random.default_rng(0))
    assert caught.value.code == "budget-unused"

    class Nobody:
        def act(self, h: int, states: FloatArray, rng: np.random.Generator) -> BoolArray:
            return np.zeros(len(states), dtype=bool)

    with pytest.raises(PolicyError, match="the budget is exactly 10"):
        rmab.simulate(problem, Nobody(), task.base_reward, np.random.default_rng(0))  # type: ignore[arg-type]


def test_costs_beyond_the_budget_are_refused() -> None:
    arms = rmab.Arms.identical([[[1.0], [1.0]]], 3)
    problem, reward = rmab.Problem(arms, 0, 100.0, 2, cost=[22, 50, 50]), np.ones((3, 1, 2))
    with pytest.raises(BudgetExceeded, match="step 0: the policy activates arms that cost 122, the budget is 100"):
        rmab.simulate(problem, rmab.IndexPolicy(np.ones((3, 1)), 3), reward, np.random.default_rng(0))
    policy = rmab.IndexPolicy.of(problem, [[1.0], [3.0], [2.0]])
    np.testing.assert_array_equal(policy.act(0, np.zeros(3, int), np.random.default_rng(0)), [False, True, True])
    np.testing.assert_array_equal(
        policy.act(0, np.zeros(3, int), np.random.default_rng(0), budget=80), [True, True, False]
    )  # what does not fit is left out, and the next one is tried
    np.testing.assert_array_equal(
        policy.act(0, np.zeros(3, int), np.random.default_rng(0), available=[True, False, True]), [True, False, True]
    )


@pytest.mark.parametrize("seed", range(5))
def test_rounding_under_costs_keeps_the_limit_and_all_probabilities_but_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share, cost = rng.uniform(size=8), rng.uniform(1, 5, 8)
    limit = 0.7 * float(share @ cost)
    drawn = np.array([draw_within(share, cost, limit, rng) for _ in range(4000)])
    assert (drawn @ cost <= limit * (1 + 1e-9)).all()
    lost = 0.7 * share - drawn.mean(axis=0)
    assert (np.abs(drawn.mean(axis=0) - 0.7 * share) - np.maximum(lost, 0) < 0.04).all()  # nobody gains
    assert 0 <= lost @ cost <= cost.max() + 0.3  # in all, at most what one arm costs
    whole = draw_within(np.array([1.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0]), 4.0, rng)
    np.testing.assert_array_equal(whole, [True, False, True])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cost": [1, 2]}, r"cost must be a number or have shape \(N,\) = \(3,\)"),
        ({"cost": [1, 0, 2]}, "cost: arm 1 must be a finite number above 0"),
        ({"cost": [1, np.inf, 2]}, "cost: arm 1 must be a finite number above 0, got inf"),
        ({"exact": 1}, "exact must be True or False, got 1"),
        ({"exact": True, "cost": [1, 2, 3]}, "exact: costs that differ seldom sum to exactly the budget"),
        ({"exact": True, "cost": 22.0, "budget": 50}, "budget must be the cost of 0 to 3 arms at 22 each"),
        ({"exact": True, "cost": 22.0, "budget": [44, 88]}, "budget: step 1 must be the cost of 0 to 3 arms"),
        ({"cost": [1, 2, 3], "budget": -1}, "budget must be a finite number, 0 or more"),
        ({"cost": [1, 2, 3], "budget": [1, -1]}, "budget: step 1 must be 0 or more, and finite, got -1"),
        ({"budget": 2.5}, "budget must be a whole number"),
    ],
)
def test_malformed_budgets_are_refused(given: dict[str, object], message: str) -> None:
    arms = rmab.Arms.identical([[[1.0], [1.0]]], 3)
    with pytest.raises(ModelError, match=message):
        rmab.Problem(arms, 0, **{"budget": 1, "horizon": 2, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"exact": True}, {"cost": [1.0, 2.0, 2.5], "budget": 2.5}])
@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_problems_views_and_policies_keep_their_budget_in_files(
    tmp_path: Path, given: dict[str, object], suffix: str
) -> None:
    arms = rmab.Arms.identical([[[0.5, 0.5], [0.5, 0.5]]] * 2, 3)
    problem = rmab.Problem(arms, 0, **{"budget": 1, "horizon": 2, **given})  # type: ignore[arg-type]
    problem.save(tmp_path / f"problem{suffix}")
    assert rmab.Problem.load(tmp_path / f"problem{suffix}") == problem
    assert problem != rmab.Problem(arms, 0, 1, 2)
    task = rmab.Task.from_rewards(problem, np.ones((2, 3, 2, 2)), low=0, high=1)
    view = rmab.View.from_bytes(task.view().to_bytes(suffix))
    assert (view.exact, view.budget) == (problem.exact, problem.budget)
    np.testing.assert_array_equal(view.slots, problem.slots)
    policy = rmab.IndexPolicy.from_bytes(rmab.planners.random_policy(problem).to_bytes(suffix))
    assert np.array_equal(policy.cost, problem.cost)  # type: ignore[arg-type]
    assert rmab.IndexPolicy.of(problem, np.ones((3, 2)), rule="auto").rule == ("fill" if problem.exact else "auto")
    assert problem.window(1, 3).exact == problem.exact


@pytest.mark.parametrize("unit", [1e-5, 1e6])
def test_the_unit_of_the_costs_has_no_effect(unit: float) -> None:
    rng = np.random.default_rng(4)
    arms, reward = rmab.Arms(rng.dirichlet(np.ones(2), size=(3, 2, 2))), 1e3 * rng.normal(size=(3, 2, 2))
    cost = np.array([0.8, 2.4, 1.7])
    one, other = (rmab.Problem(arms, 0, 2.2 * each, 2, cost=each * cost) for each in (1.0, unit))
    for solve in (
        lambda problem: rmab.solvers.solve_fluid(problem, reward, method="newton"),
        lambda problem: rmab.solvers.soften(problem, reward, 0.01),
        lambda problem: rmab.solvers.solve_average_fluid(problem, reward),
    ):
        assert solve(other).bound == pytest.approx(solve(one).bound, rel=1e-5)


def test_an_arm_that_costs_more_than_the_budget_of_a_step_is_planned_as_passive() -> None:
    """The dear arm earns 9 when active, which only the second step pays for; a fraction of it would earn 9 x 3 / 5 more."""
    arms = rmab.Arms([[[[1.0], [1.0]]]] * 2)
    reward = np.array([[[0.0, 9.0]], [[0.0, 1.0]]])
    problem = rmab.Problem(arms, 0, [3.0, 6.0], 2, cost=[5.0, 1.0])
    for method in ("highs", "newton"):
        plan = rmab.solvers.solve_fluid(problem, reward, method=method)  # type: ignore[arg-type]
        assert plan.bound == pytest.approx(1.0 + 10.0)
        np.testing.assert_allclose(plan.share[0, :, 0], [0.0, 1.0], atol=1e-6)
    infinite = rmab.solvers.solve_average_fluid(rmab.Problem(arms, 0, 3.0, 2, cost=[5.0, 1.0]), reward)
    assert infinite.bound == pytest.approx(1.0)
    np.testing.assert_allclose(infinite.mass[:, 0], [[1.0, 0.0], [0.0, 1.0]], atol=1e-6)
    assert rmab.solvers.solve_exact(problem, reward).value == pytest.approx(11.0)
