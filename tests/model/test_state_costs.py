"""Costs that depend on the state and the phase: solvers and policies against an LP by SciPy and joint induction by hand."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import rmab
from rmab.common import FloatArray
from rmab.errors import BudgetExceeded, ModelError
from rmab.gym.rounds import TaskRounds
from rmab.planners.joint import joint_visits

PLANNERS = ("lagrangian", "rolling", "occupancy", "myopic", "random", "lp-update")


def draw_case(seed: int) -> tuple[rmab.Problem, FloatArray]:
    """Draw a small problem whose costs depend on the state, and with odd seeds on the phase."""
    rng = np.random.default_rng(seed)
    arms, states, horizon = (int(rng.integers(*size)) for size in ((2, 4), (2, 4), (1, 6)))
    phases = 2 if seed % 2 else 1
    kernels = rng.dirichlet(np.full(states, 0.5), size=(arms, phases, states, 2))
    reward = 3 * rng.normal(size=(arms, phases, states, 2)) - 5.0
    phase_of = np.append(1, rng.integers(0, 2, horizon - 1)) if phases > 1 else None
    cost = np.exp(rng.normal(0, 1, (arms, phases, states))).round(2) + 0.05
    discount, budget = float(rng.choice([1.0, 0.8])), rng.uniform(0, 5, horizon).round(1)
    if phases == 1:
        kernels, reward, cost = kernels[:, 0], reward[:, 0], cost[:, 0]
    start: FloatArray = rng.dirichlet(np.ones(states), size=arms) if seed % 3 else rng.integers(0, states, arms)
    return rmab.Problem(rmab.Arms(kernels), start, budget, horizon, phase_of, discount=discount, cost=cost), reward


def cost_table(problem: rmab.Problem) -> FloatArray:
    """(N, K, S) the costs, whatever shape the problem keeps them in."""
    given = np.asarray(problem.cost)
    given = given[:, np.newaxis] if given.ndim == 2 else given
    return np.broadcast_to(given, (problem.arms.count, problem.phases, problem.arms.states))


def lp_value(problem: rmab.Problem, reward: FloatArray) -> float:
    """Solve the fluid LP of every arm by itself, written out, by SciPy."""
    arms, states, horizon, phases = problem.arms.count, problem.arms.states, problem.horizon, problem.phases
    kernels = problem.arms.kernels.reshape(arms, phases, states, 2, states)
    paid, costs = np.asarray(reward).reshape(arms, phases, states, 2), cost_table(problem)
    place = np.arange(arms * horizon * states * 2).reshape(arms, horizon, states, 2)
    worth, rows, right = np.zeros(place.size), [], []
    budget, most = np.zeros((horizon, place.size)), np.full(place.size, np.inf)
    for n, h, s in itertools.product(range(arms), range(horizon), range(states)):
        row, phase = np.zeros(place.size), problem.phase_of[h]
        row[place[n, h, s]] = 1.0
        worth[place[n, h, s]] = -paid[n, phase, s] * problem.discount**h
        if h:
            row[place[n, h - 1]] -= kernels[n, problem.phase_of[h - 1], :, :, s]
        rows.append(row)
        right.append(0.0 if h else problem.start_masses[n, s])
        budget[h, place[n, h, s, 1]] = costs[n, phase, s]
        if costs[n, phase, s] > problem.budgets[h]:  # never active there
            most[place[n, h, s, 1]] = 0.0
    bounds = np.column_stack([np.zeros(place.size), most])
    found = linprog(worth, A_ub=budget, b_ub=problem.budgets, A_eq=np.array(rows), b_eq=right, bounds=bounds)
    assert found.status == 0
    return float(-found.fun)


def joint_value(problem: rmab.Problem, reward: FloatArray) -> float:
    """Return the optimum by induction over joint states, one by one."""
    arms, states, phases = problem.arms.count, problem.arms.states, problem.phases
    kernels = problem.arms.kernels.reshape(arms, phases, states, 2, states)
    paid, costs = np.asarray(reward).reshape(arms, phases, states, 2), cost_table(problem)
    joint = list(itertools.product(range(states), repeat=arms))
    sets = list(itertools.product((0, 1), repeat=arms))
    value = dict.fromkeys(joint, 0.0)
    for h in range(problem.horizon - 1, -1, -1):
        k, best = problem.phase_of[h], {}
        for here in joint:
            best[here] = -np.inf
            for active in sets:
                spent = sum(costs[n, k, s] for n, s in enumerate(here) if active[n])
                if spent > problem.budgets[h] * (1 + 1e-9):
                    continue
                chance = [kernels[n, k, s, active[n]] for n, s in enumerate(here)]
                after = sum(value[to] * np.prod([chance[n][y] for n, y in enumerate(to)]) for to in joint)
                pay = sum(paid[n, k, s, active[n]] for n, s in enumerate(here))
                best[here] = max(best[here], pay + problem.discount * after)
        value = best
    masses = problem.start_masses
    return float(sum(value[one] * np.prod([masses[n, s] for n, s in enumerate(one)]) for one in joint))


@pytest.mark.parametrize("seed", range(16))
def test_bounds_and_optima_agree_with_independent_ones(seed: int) -> None:
    problem, reward = draw_case(seed)
    wanted, optimum = lp_value(problem, reward), joint_value(problem, reward)
    for method in ("highs", "newton"):
        plan = rmab.solvers.solve_fluid(problem, reward, method=method)  # type: ignore[arg-type]
        assert plan.bound == pytest.approx(wanted, rel=3e-6, abs=3e-5)
        assert plan.value == pytest.approx(wanted, rel=3e-6, abs=3e-5)
        used = np.einsum("nhs,nhs->h", plan.occupancy[..., 1], cost_table(problem)[:, problem.phase_of])
        assert (used <= problem.budgets + 1e-6).all()
    assert optimum <= wanted + 1e-7
    assert float((joint_visits(problem, reward) * reward).sum()) == pytest.approx(optimum)
    assert rmab.solvers.solve_exact(problem, reward).value == pytest.approx(optimum)
    soft = rmab.solvers.soften(problem, reward, 2000.0)
    assert soft.gap <= 1e-6
    assert wanted - 0.05 * max(1.0, abs(wanted)) < soft.bound < wanted + 1e-3
    np.testing.assert_allclose(soft.occupancy.sum(axis=(2, 3)), 1.0)
    worth = (soft.values[soft.blocks.block_of, 0] * cost_table(problem)[:, problem.phase_of[0]] * problem.start_masses).sum()
    assert worth + problem.budgets * problem.discounts @ soft.prices == pytest.approx(soft.bound, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_every_planner_keeps_the_budget_and_earns_no_more_than_the_optimum(seed: int) -> None:
    problem, reward = draw_case(seed)
    optimum = joint_value(problem, reward)
    for name in PLANNERS:
        policy = rmab.make_planner(name)(problem, reward)
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(1), 100)
        assert batch.rewards.mean() <= optimum + 5 * batch.rewards.std() / 10 + 1e-9, name


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_the_average_bound_agrees_with_an_lp(seed: int) -> None:
    drawn, reward = draw_case(seed)
    limit = max(float(drawn.budgets.mean()), 0.3)
    problem = rmab.Problem(drawn.arms, 0, limit, 5, cost=drawn.cost)
    arms, states = problem.arms.count, problem.arms.states
    costs = cost_table(problem)[:, 0]
    place = np.arange(arms * states * 2).reshape(arms, states, 2)
    rows, right, budget = [], [], np.zeros(place.size)
    for n in range(arms):
        for s in range(states):
            row = np.zeros(place.size)
            row[place[n, s]] += 1.0
            row[place[n]] -= problem.arms.kernels[n, :, :, s]
            rows.append(row)
            right.append(0.0)
        rows.append(np.isin(np.arange(place.size), place[n]).astype(float))
        right.append(1.0)
        budget[place[n, :, 1]] = costs[n]
    dear = np.isin(np.arange(place.size), place[:, :, 1][costs > limit])
    bounds = np.column_stack([np.zeros(place.size), np.where(dear, 0.0, np.inf)])
    found = linprog(-reward.reshape(-1), A_ub=[budget], b_ub=[limit], A_eq=rows, b_eq=right, bounds=bounds)
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    assert plan.bound == pytest.approx(-found.fun, rel=1e-7)
    assert plan.price == pytest.approx(-found.ineqlin.marginals[0], rel=1e-5, abs=1e-7)
    assert (plan.occupancy[..., 1] * costs).sum() <= limit * (1 + 1e-8)
    policy = rmab.planners.stationary_index(problem, reward)
    rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 20)


def test_costs_alike_in_all_states_are_costs_by_arm_to_the_byte() -> None:
    task = rmab.make_task("cpap")
    plain, cost = task.problem, np.linspace(1, 3, 20)
    tables: list[Any] = [cost, np.repeat(cost[:, np.newaxis], 3, axis=1), cost[:, np.newaxis, np.newaxis]]
    problems = [rmab.Problem(plain.arms, plain.start, 20.0, plain.horizon, cost=one) for one in tables]
    assert problems[0] == problems[1] == problems[2]
    assert problems[1].cost is not None
    assert problems[1].cost.shape == (20,)
    ones = rmab.Problem(plain.arms, plain.start, plain.budget, plain.horizon, cost=np.ones((20, 3)))
    assert ones == plain
    assert ones.cost is None


def test_costs_and_budget_scaled_together_change_nothing() -> None:
    problem, reward = draw_case(3)
    rest = (problem.horizon, problem.phase_of)
    other = rmab.Problem(
        problem.arms, problem.start, 4 * problem.budgets, *rest, discount=problem.discount, cost=4 * cost_table(problem)
    )
    assert rmab.solvers.solve_fluid(other, reward).bound == pytest.approx(rmab.solvers.solve_fluid(problem, reward).bound)
    first, second = (
        rmab.simulate_many(one, rmab.planners.lagrangian_index(one, reward), reward, np.random.default_rng(0), 20).rewards
        for one in (problem, other)
    )
    np.testing.assert_array_equal(first, second)


def test_a_constant_reward_adds_itself_and_changes_no_index() -> None:
    problem, reward = draw_case(5)
    here, there = (rmab.solvers.solve_fluid(problem, pay, method="highs") for pay in (reward, reward + 1000.0))
    more = 1000.0 * problem.arms.count * float(problem.discounts.sum())
    assert there.bound == pytest.approx(here.bound + more)
    np.testing.assert_allclose(there.advantage, here.advantage, atol=1e-6)


def test_a_decision_at_a_step_by_hand() -> None:
    """Arm 0 costs 3 in state 1 and 1 in state 0; arms 1 and 2 always cost 1: densities 2, 1.5 and 1 in states (1, 0, 0)."""
    arms = rmab.Arms.identical(np.full((2, 2, 2), 0.5), 3)
    cost = [[1.0, 3.0], [1.0, 1.0], [1.0, 1.0]]
    problem = rmab.Problem(arms, 0, 3.0, 4, cost=cost)
    reward = np.zeros((3, 2, 2))
    reward[:, :, 1] = [[6.0, 6.0], [1.5, 1.5], [1.0, 1.0]]
    policy, rng = rmab.planners.lagrangian_index(problem, reward), np.random.default_rng(0)
    np.testing.assert_allclose(policy.table[:, 0, 1], [2.0, 1.5, 1.0], atol=1e-9)
    assert policy.act(0, np.array([1, 0, 0]), rng).tolist() == [True, False, False]  # it takes all of the budget
    assert policy.act(0, np.array([0, 0, 0]), rng).tolist() == [True, True, True]
    assert policy.act(0, np.array([1, 0, 0]), rng, budget=2.5).tolist() == [False, True, True]  # it does not fit any more
    assert policy.act(0, np.array([1, 0, 0]), rng, available=[False, True, True]).tolist() == [False, True, True]


def test_a_policy_that_spends_too_much_is_named_with_its_step() -> None:
    problem = rmab.Problem(rmab.Arms.identical([[[0.0, 1.0], [0.0, 1.0]]] * 2, 2), 0, 2.0, 3, cost=[[1.0, 2.0]] * 2)
    greedy = rmab.IndexPolicy([[1.0, 1.0]] * 2, 2)
    for policy in (greedy, type("Both", (), {"act": lambda self, h, states, rng: np.ones(2, dtype=bool)})()):
        with pytest.raises(BudgetExceeded, match=r"step 1: .*cost 4, .*budget.* 2"):
            rmab.simulate(problem, policy, np.zeros((2, 2, 2)), np.random.default_rng(0))


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("seed", [0, 1])
def test_files_keep_costs_by_state(tmp_path: Path, suffix: str, seed: int) -> None:
    problem, reward = draw_case(seed)
    problem.save(tmp_path / f"p{suffix}")
    assert rmab.Problem.load(tmp_path / f"p{suffix}") == problem
    policy = rmab.planners.lagrangian_index(problem, reward)
    policy.save(tmp_path / f"i{suffix}")
    again = rmab.IndexPolicy.load(tmp_path / f"i{suffix}")
    np.testing.assert_array_equal(np.asarray(again.cost), np.asarray(policy.cost))


REFUSED: dict[str, Callable[[rmab.Problem, FloatArray], object]] = {
    "whittle": rmab.planners.whittle_index,
    "finite_whittle": rmab.planners.finite_whittle_index,
    "IdPolicy": rmab.planners.IdPolicy,
    "round_robin": lambda problem, reward: rmab.planners.round_robin(problem),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_take_them_says_so(name: str) -> None:
    drawn, reward = draw_case(2)
    problem = rmab.Problem(drawn.arms, 0, 2.0, 5, cost=drawn.cost)
    with pytest.raises(ModelError, match=rf"{name}.* cost"):
        REFUSED[name](problem, reward)


def by_state(seed: int = 0) -> rmab.tasks.Task:
    """Return a task of four arms whose costs depend on the state."""
    task = rmab.make_task("cpap", arms=4, budget=2, horizon=6, episodes=3)
    cost = np.random.default_rng(seed).uniform(1, 3, (4, 3))
    problem = rmab.Problem(task.problem.arms, task.problem.start, 3.0, 6, cost=cost)
    return dataclasses.replace(task, problem=problem)


@pytest.mark.parametrize("learner", ["random", "lagrangian", "planner", "oracle"])
def test_learners_that_know_all_play_with_them(learner: str) -> None:
    assert rmab.run(by_state(), learner).reward.sum() > 0


@pytest.mark.parametrize("learner", ["ucmd", "thompson", "rmab-ucrl", "round-robin"])
def test_learners_of_one_cost_per_arm_refuse_them(learner: str) -> None:
    with pytest.raises(ModelError, match=r"one cost per arm|all cost the same"):
        rmab.run(by_state(), learner)


@pytest.mark.parametrize("seed", range(4))
def test_an_environment_draws_among_requests_and_ranks_scores_within_the_budget(seed: int) -> None:
    task = by_state(seed)
    rounds, rng = TaskRounds(task, 5), np.random.default_rng(seed)
    rounds.reset(range(5))
    while not rounds.over:
        states, scores = rounds.states.copy(), rng.uniform(size=(5, 4))
        wanted = rounds.top(scores) if rounds.step % 2 else np.ones((5, 4), dtype=bool)
        active = rounds.play(wanted)[1]["active"]
        for one, here, score, ask in zip(active, states, scores, wanted, strict=True):
            cost = np.asarray(task.problem.cost)[np.arange(4), here]
            assert one @ cost <= 3.0
            left = 3.0 - one @ cost
            assert not (ask & ~one & (cost <= left)).any()  # whoever fits is active
            order = np.argsort(-score)
            assert ask.all() or ask[order[0]] or cost[order[0]] > 3.0


def test_wrong_costs_are_named() -> None:
    arms = rmab.Arms.identical(np.full((2, 2, 2), 0.5), 3)
    with pytest.raises(
        ModelError, match=r"cost must be a number or have shape \(N,\) = \(3,\), \(N, S\) = \(3, 2\) or .*got \(2, 3\)"
    ):
        rmab.Problem(arms, 0, 2.0, 4, cost=np.ones((2, 3)))
    with pytest.raises(ModelError, match=r"arm 1, state 0 must be a finite number above 0, got -1"):
        rmab.Problem(arms, 0, 2.0, 4, cost=[[1.0, 2.0], [-1.0, 2.0], [1.0, 1.0]])
    sizes = rmab.Arms.of_sizes([np.full((2, 2, 2), 0.5), np.ones((1, 2, 1))])
    given = rmab.Problem(sizes, 0, 2.0, 4, cost=[[1.0, 2.0], [3.0, np.nan]])  # arm 1 has no state 1
    assert given.cost is not None
    assert given.cost.tolist() == [[1.0, 2.0], [3.0, 3.0]]
