"""The infinite-horizon fluid bound: against an LP in SciPy, closed forms, every policy of one arm, and joint optima."""

import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, SolverError
from rmab.tasks.published import kernel_of
from strategies import random_problem

pytestmark = pytest.mark.compiled


def scipy_value(problem, reward):
    """Return the optimum of the LP arm by arm, without blocks, over occupancies (N, S, 2) of real states."""
    arms, pays = problem.arms, np.asarray(reward)
    count, states = arms.count, arms.states
    flow, whole = np.zeros((count * states, count, states, 2)), np.zeros((count, count, states, 2))
    for n in range(count):
        whole[n, n] = 1.0
        for s, a in product(range(states), range(2)):
            flow[n * states + s, n, s, a] += 1.0
            flow[n * states : (n + 1) * states, n, s, a] -= arms.kernels[n, s, a]
    active = np.zeros((1, count, states, 2))
    active[..., 1] = 1.0
    real = np.broadcast_to(np.arange(states)[:, None] < arms.real_states[:, None, None], (count, states, 2))
    solved = linprog(
        -pays.reshape(-1),
        active.reshape(1, -1),
        [problem.budget],
        np.concatenate([flow, whole]).reshape(-1, pays.size),
        np.concatenate([np.zeros(count * states), np.ones(count)]),
        np.stack([np.zeros(pays.size), np.where(real, np.inf, 0.0).reshape(-1)], axis=1),
    )
    assert solved.status == 0
    return -solved.fun


def some_case(seed):
    """Arms of some types and sizes, rows full or with one or two successors: unichain or not, periodic or not."""
    rng = np.random.default_rng(seed)
    types, states = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    kinds = rng.integers(0, types, size=int(rng.integers(1, 7)))
    sizes = rng.integers(1, states + 1, size=types)
    kernels = np.zeros((types, states, 2, states))
    for k, size in enumerate(sizes):
        rows = rng.dirichlet(np.ones(size), size=(size, 2))
        if rng.random() < 0.6:
            rows = np.eye(size)[rng.integers(0, size, size=(size, 2))]
        kernels[k, :size, :, :size] = rows
        kernels[k, size:, :, 0] = 1.0
    arms = rmab.Arms(kernels[kinds], groups=kinds.tolist(), sizes=sizes[kinds])
    reward = rng.integers(-2, 3, size=(types, states, 2)).astype(float) if seed % 2 else rng.normal(size=(types, states, 2))
    return rmab.Problem(arms, 0, int(rng.integers(0, arms.count + 1)), 3), reward[kinds]


def stationary_law(chain):
    """(S,) the stationary law of a chain with one class."""
    size = len(chain)
    left = np.vstack([chain.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(left, np.append(np.zeros(size), 1.0), rcond=None)[0]


class TestAgainstScipy:
    @pytest.mark.parametrize("part", range(4))
    def test_value_feasibility_and_shares(self, part):
        for seed in range(25 * part, 25 * part + 25):
            problem, reward = some_case(seed)
            plan, expected = rmab.solvers.solve_average_fluid(problem, reward), scipy_value(problem, reward)
            occupancy, arms = plan.occupancy, problem.arms
            scale = 1e-6 * arms.count
            assert plan.value == pytest.approx(expected, abs=scale), seed
            assert plan.value - 1e-9 <= plan.bound <= plan.value + 1e-8 * arms.count
            assert plan.price >= 0
            assert plan.value == pytest.approx((occupancy * reward).sum(), abs=1e-9 * arms.count)
            np.testing.assert_allclose(occupancy.sum(axis=(1, 2)), 1.0, atol=1e-9)
            entering = np.einsum("nsa,nsay->ny", occupancy, arms.kernels)
            np.testing.assert_allclose(occupancy.sum(axis=2), entering, atol=1e-9)
            assert occupancy[..., 1].sum() <= problem.budget + 1e-9
            share = plan.share[plan.blocks.block_of]
            np.testing.assert_allclose(occupancy[..., 1], share * occupancy.sum(axis=2), atol=1e-9)
            assert ((share >= 0) & (share <= 1)).all()
            padded = np.arange(arms.states) >= arms.real_states[:, None]
            assert not occupancy[padded].any()
            assert not share[padded].any()
            assert not plan.advantage[plan.blocks.block_of][padded].any()

    def test_many_types_at_once(self):
        problem, reward = random_problem(3, count=40, states=5, horizon=2, budget=11)
        plan = rmab.solvers.solve_average_fluid(problem, reward)
        assert plan.share.shape == (40, 5)
        assert plan.price > 0
        assert plan.bound == pytest.approx(scipy_value(problem, reward), rel=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_the_advantage_is_that_of_the_plan_s_own_relative_values(seed):
    """Poisson's equation of the shares, solved by linear algebra: all states of these arms are in one class."""
    problem, reward = random_problem(seed, count=3, states=4, horizon=2, budget=1)
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    for kernel, pays, share, advantage in zip(problem.arms.kernels, reward, plan.share, plan.advantage, strict=True):
        odds = np.stack([1 - share, share], axis=1)
        chain = np.einsum("sa,say->sy", odds, kernel)
        paid = (odds * (pays - plan.price * np.array([0, 1]))).sum(axis=1)
        gain = stationary_law(chain) @ paid
        values = np.linalg.lstsq(np.eye(4) - chain, paid - gain, rcond=None)[0]
        worth = pays + kernel @ values
        np.testing.assert_allclose(advantage, worth[:, 1] - worth[:, 0], atol=1e-9)
        assert (advantage[share == 1] >= plan.price - 1e-9).all()
        assert (advantage[share == 0] <= plan.price + 1e-9).all()
        np.testing.assert_allclose(advantage[(share > 0) & (share < 1)], plan.price, atol=1e-9)


class TestClosedForms:
    def test_the_conveyor(self):
        """One step in ten moves on, each of eight states has an eighth, and the last one pays .1: .0125 per arm."""
        task = rmab.make_task("conveyor", arms=60)
        plan = rmab.solvers.solve_average_fluid(task.problem, task.base_reward)
        assert plan.bound == pytest.approx(60 * 0.0125, rel=1e-9)
        np.testing.assert_allclose(plan.share, [[1, 1, 1, 1, 0, 0, 0, 0]], atol=1e-12)
        np.testing.assert_allclose(plan.occupancy.sum(axis=2), 1 / 8, atol=1e-12)

    @pytest.mark.parametrize("seed", range(6))
    def test_no_budget_and_a_budget_for_all(self, seed):
        """Nothing to spend: the passive chain. Enough for all: the best of all 2^S policies of each arm."""
        problem, reward = random_problem(seed, count=2, states=3, horizon=2, budget=0)
        kernels = problem.arms.kernels
        passive = sum(stationary_law(kernels[n, :, 0]) @ reward[n, :, 0] for n in range(2))
        plan = rmab.solvers.solve_average_fluid(problem, reward)
        assert plan.bound == pytest.approx(passive, rel=1e-9)
        assert not plan.occupancy[..., 1].any()
        each = [
            max(stationary_law(kernels[n, range(3), a]) @ reward[n, range(3), a] for a in product(range(2), repeat=3))
            for n in range(2)
        ]
        rich = rmab.solvers.solve_average_fluid(rmab.Problem(problem.arms, 0, 2, 1), reward)
        assert rich.bound == pytest.approx(sum(each), rel=1e-9)
        assert rich.price == 0

    def test_the_best_trap_counts_whatever_the_start(self):
        """Traps that pay 1 and 3: no start beats 3, but from the poor one nobody gets there: the bound is not tight."""
        kernel = np.zeros((2, 2, 2))
        kernel[0, :, 0] = kernel[1, :, 1] = 1.0
        problem = rmab.Problem(rmab.Arms.identical(kernel, 4), 0, 0, 5)
        reward = np.broadcast_to([[1.0, 1.0], [3.0, 3.0]], (4, 2, 2))
        plan = rmab.solvers.solve_average_fluid(problem, reward)
        assert plan.bound == pytest.approx(12)
        assert (
            rmab.simulate(problem, rmab.planners.Ftva(problem, reward), reward, np.random.default_rng(0)).reward == 5 * 4 * 1
        )

    def test_a_cycle_of_two(self):
        """State 1 pays 2 if active, and states alternate: half of the steps are of each."""
        kernel = np.zeros((2, 2, 2))
        kernel[0, :, 1] = kernel[1, :, 0] = 1.0
        reward = np.broadcast_to([[0.0, 0.0], [0.0, 2.0]], (6, 2, 2))
        for budget, bound in ((1, 2.0), (3, 6.0), (6, 6.0)):
            plan = rmab.solvers.solve_average_fluid(rmab.Problem(rmab.Arms.identical(kernel, 6), 0, budget, 5), reward)
            assert plan.bound == pytest.approx(bound)
            assert plan.share[0, 1] == pytest.approx(min(1.0, budget / 3))


def joint_optimum(problem, reward, steps=3000):
    """Return the best long-run average of all arms together, from the best start, by dynamic programming on joint states."""
    arms, states = range(problem.arms.count), problem.arms.states
    kernels = problem.arms.kernels
    worth, moves = [], []
    for active in product(range(2), repeat=len(arms)):
        if sum(active) > problem.budget:
            continue
        move, paid = np.ones((1, 1)), np.zeros(1)
        for n in arms:
            move = np.kron(move, kernels[n, :, active[n]])
            paid = np.add.outer(paid, reward[n, :, active[n]]).reshape(-1)
        worth.append(paid)
        moves.append(move)
    values, half = np.zeros(states ** len(arms)), None
    for step in range(steps):
        values = (np.array(worth) + np.array(moves) @ values).max(axis=0)
        half = values if step == steps // 2 - 1 else half
    return ((values - half) / (steps - steps // 2)).max()


@pytest.mark.parametrize("seed", range(16))
def test_no_policy_of_all_arms_together_beats_the_bound(seed):
    """Exact optima of two arms, as unruly as they come; with one arm and a budget of one, the bound is the optimum."""
    rng = np.random.default_rng(seed)
    rows = np.eye(3)[rng.integers(0, 3, size=(2, 3, 2))] if seed % 2 else rng.dirichlet(np.ones(3), size=(2, 3, 2))
    reward = rng.random((2, 3, 2))
    problem = rmab.Problem(rmab.Arms(rows), 0, 1, 1)
    assert joint_optimum(problem, reward) <= rmab.solvers.solve_average_fluid(problem, reward).bound + 5e-3
    single = rmab.Problem(rmab.Arms(rows[:1]), 0, 1, 1)
    assert rmab.solvers.solve_average_fluid(single, reward[:1]).bound == pytest.approx(
        joint_optimum(single, reward[:1]), abs=5e-3
    )


class TestInvariance:
    def test_start_and_horizon_are_of_no_consequence(self):
        problem, reward = random_problem(5, count=4, states=3, horizon=2, budget=2)
        other = rmab.Problem(problem.arms, np.full((4, 3), 1 / 3), 2, 50)
        one, two = rmab.solvers.solve_average_fluid(problem, reward), rmab.solvers.solve_average_fluid(other, reward)
        np.testing.assert_array_equal(one.share, two.share)
        assert one.bound == two.bound
        assert rmab.planners.stationary_index(other, reward, average=one).table.shape == (4, 3)

    def test_constants_and_units_of_the_rewards(self):
        problem, reward = random_problem(6, count=4, states=3, horizon=2, budget=1)
        plan, shift = rmab.solvers.solve_average_fluid(problem, reward), np.arange(4.0)[:, None, None]
        moved = rmab.solvers.solve_average_fluid(problem, 8.0 * reward + shift)
        assert moved.bound == pytest.approx(8.0 * plan.bound + shift.sum())
        np.testing.assert_allclose(moved.advantage, 8.0 * plan.advantage, atol=1e-12)
        np.testing.assert_allclose(moved.share, plan.share, atol=1e-9)

    def test_like_arms_in_one_block_or_each_by_itself(self):
        kernel = kernel_of("gast-2")
        reward = rmab.make_task("gast-2", arms=10).base_reward
        alike = rmab.solvers.solve_average_fluid(rmab.Problem(rmab.Arms.identical(kernel, 10), 0, 4, 1), reward)
        alone = rmab.solvers.solve_average_fluid(rmab.Problem(rmab.Arms([kernel] * 10), 0, 4, 1), reward)
        assert (alike.share.shape, alone.share.shape) == ((1, 3), (10, 3))
        assert alone.bound == pytest.approx(alike.bound, rel=1e-9)
        np.testing.assert_allclose(alone.share, alike.share.repeat(10, axis=0), atol=1e-9)

    def test_pickled_and_read_only(self):
        plan = rmab.solvers.solve_average_fluid(*random_problem(7, count=3, states=2, horizon=2, budget=1))
        again = pickle.loads(pickle.dumps(plan))
        for one in (plan, again):
            for array in (one.mass, one.share, one.advantage, one.occupancy):
                with pytest.raises(ValueError, match="read-only"):
                    array[:] = 0
        np.testing.assert_array_equal(again.occupancy, plan.occupancy)
        assert repr(plan).startswith("AverageFluid(value ")


MAKERS = (rmab.solvers.solve_average_fluid, rmab.planners.stationary_index, rmab.planners.IdPolicy, rmab.planners.Ftva)


class TestErrors:
    @pytest.mark.parametrize("make", MAKERS)
    def test_what_depends_on_the_time(self, make):
        kernels = np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 2, 2, 2))
        timed = rmab.Problem(rmab.Arms(kernels), 0, 1, 4, [0, 0, 1, 1])
        with pytest.raises(
            ModelError, match=rf"^{make.__name__} needs dynamics and rewards that do not change, got 2 phases"
        ):
            make(timed, np.zeros((3, 2, 2, 2)))
        limits = rmab.Problem(rmab.Arms(kernels[:, 0]), 0, [1, 2, 1, 1], 4)
        with pytest.raises(ModelError, match=rf"^{make.__name__} needs one budget for all steps, got 1 to 2$"):
            make(limits, np.zeros((3, 2, 2)))

    @pytest.mark.parametrize("make", MAKERS[1:])
    def test_plans_of_others(self, make):
        problem, reward = random_problem(1, count=3, states=2, horizon=4, budget=1)
        plan = rmab.solvers.solve_average_fluid(problem, reward)
        more = rmab.Problem(problem.arms, 0, 2, 4)
        for other, pays in ((more, reward), (problem, reward + 1.0), random_problem(2, 3, 2, 4, 1)):
            with pytest.raises(ModelError, match=r"^average: it belongs to another problem or reward$"):
                make(other, pays, average=plan)
        with pytest.raises(ModelError, match=r"average must be an? AverageFluid, got Fluid"):
            make(problem, reward, average=rmab.solvers.solve_fluid(problem, reward))
        assert make(problem, reward, average=plan) is not None

    def test_the_tolerance(self):
        with pytest.raises(ModelError, match=r"^tolerance must be a positive number, got"):
            rmab.solvers.solve_average_fluid(*random_problem(1, count=3, states=2, horizon=4, budget=1), tolerance=0.0)


def _exact_gain(kernel: FloatArray, reward: FloatArray) -> float:
    """Return the best average reward of one arm, over all its deterministic policies and their closed classes, exactly."""
    states, best = len(reward), Fraction(-(10**9))
    exact = [[[Fraction(float(p)) for p in row] for row in pair] for pair in kernel]
    for policy in product((0, 1), repeat=states):
        rows = [[p / sum(exact[s][a]) for p in exact[s][a]] for s, a in enumerate(policy)]
        reach = [{s} for s in range(states)]
        for _ in range(states):
            reach = [set().union(one, *({y for y in range(states) if rows[s][y]} for s in one)) for one in reach]
        for members in {tuple(sorted(one)) for one in reach}:
            if all(reach[s] == set(members) for s in members):
                law = _law([[rows[s][y] for y in members] for s in members])
                best = max(best, sum(m * Fraction(float(reward[s, policy[s]])) for m, s in zip(law, members, strict=True)))
    return float(best)


def _law(rows: list[list[Fraction]]) -> list[Fraction]:
    """Return the stationary law of an irreducible chain, by elimination in exact arithmetic."""
    size = len(rows)
    work = [list(row) for row in rows]
    for k in range(size - 1, 0, -1):
        leaving = sum(work[k][:k])
        for i in range(k):
            for y in range(k):
                work[i][y] += work[i][k] * work[k][y] / leaving
    law = [Fraction(1)]
    for k in range(1, size):
        law.append(sum(law[y] * work[y][k] for y in range(k)) / sum(work[k][:k]))
    return [one / sum(law) for one in law]


def test_rare_transitions_are_certified_or_refused() -> None:
    """Probabilities down to 1e-20 decide where an arm is in the long run: the value is right, or there is none."""
    rng, answers, count = np.random.default_rng(29), 0, 150
    for _ in range(count):
        states = int(rng.integers(2, 4))
        kernel = 10.0 ** -rng.choice([0, 0, 1, 3, 8, 11, 13, 14, 16, 20, 400], size=(states, 2, states))
        kernel += np.eye(states)[:, np.newaxis] * (kernel.sum(axis=2, keepdims=True) < 1e-3)
        kernel /= kernel.sum(axis=2, keepdims=True)
        reward = rng.integers(0, 4, size=(states, 2)).astype(float)
        problem = rmab.Problem(rmab.Arms(kernel[np.newaxis]), 0, 1, 4)
        try:
            found = rmab.solvers.solve_average_fluid(problem, reward[np.newaxis])
        except SolverError:
            continue
        answers += 1
        assert found.value == pytest.approx(_exact_gain(kernel, reward), abs=1e-6)
    assert answers > count / 4
