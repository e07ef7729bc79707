"""Plans of timed problems: linear programmes by SciPy, the joint problem by brute force, and every step written out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rmab
from reference import bisect
from rmab.common.arrays import FloatArray
from timed import by_step, certificate, expected, fluid_value, limits, optimum, timed_problem

pytestmark = pytest.mark.compiled

SIZES = [(2, 2, 3, 4), (3, 3, 2, 5), (1, 4, 3, 4), (3, 2, 2, 1)]  # arms, phases, states, horizon


def written_out(problem: rmab.Problem, reward: FloatArray) -> tuple[rmab.Problem, FloatArray]:
    """Return the same problem with a phase for every step."""
    kernels, gains = by_step(problem, reward)
    arms = rmab.Arms(kernels, groups=problem.arms.groups)
    return rmab.Problem(arms, problem.start, problem.budget, problem.horizon, np.arange(problem.horizon)), gains


@pytest.mark.parametrize("method", ["highs", "newton"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_the_fluid_plan_is_that_of_scipy_and_proves_itself(seed: int, size: tuple[int, ...], method: str) -> None:
    problem, reward = timed_problem(seed, *size)
    plan = rmab.solvers.solve_fluid(problem, reward, method=method)  # type: ignore[arg-type]
    assert plan.value == pytest.approx(fluid_value(problem, reward), abs=2e-5)
    earned, bound = certificate(problem, reward, plan)
    assert earned == pytest.approx(plan.value, abs=1e-9)
    assert bound == pytest.approx(plan.bound, abs=1e-9)
    assert bound >= earned - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_no_policy_beats_the_bound_and_the_optimum_lies_below_it(seed: int) -> None:
    problem, reward = timed_problem(seed, 3, 2, 2, 4)
    best, plan = optimum(problem, reward), rmab.solvers.solve_fluid(problem, reward)
    assert best <= plan.bound + 1e-9
    for policy in (
        rmab.planners.lagrangian_index(problem, reward, fluid=plan),
        rmab.planners.occupancy_index(problem, reward, fluid=plan),
    ):
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), 4000)
        assert batch.mean - 4 * batch.stderr <= best


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6))
def test_a_phase_for_every_step_is_the_same_problem(seed: int, arms: int, phases: int, states: int, horizon: int) -> None:
    problem, reward = timed_problem(seed, arms, min(phases, horizon), states, horizon)
    if problem.phases == 1:
        reward = reward.reshape(arms, states, 2)
    whole, gains = written_out(problem, reward)
    gains = gains if whole.phases > 1 else gains[:, 0]
    one, other = rmab.solvers.solve_fluid(problem, reward), rmab.solvers.solve_fluid(whole, gains)
    assert one.value == pytest.approx(other.value, abs=1e-5)
    np.testing.assert_allclose(
        rmab.planners.finite_whittle_index(problem, reward).index,
        rmab.planners.finite_whittle_index(whole, gains).index,
        atol=1e-9,
    )
    np.testing.assert_allclose(
        rmab.planners.myopic_index(problem, reward).table, rmab.planners.myopic_index(whole, gains).table, atol=1e-12
    )
    played = [
        rmab.simulate(p, rmab.planners.myopic_index(p, r), r, np.random.default_rng(seed))
        for p, r in ((problem, reward), (whole, gains))
    ]
    np.testing.assert_array_equal(played[0].states, played[1].states)
    assert played[0].reward == played[1].reward


def test_phases_that_are_alike_change_nothing() -> None:
    """Every public answer has the bytes of the plain problem: one phase costs nothing, and several alike no digit."""
    rng = np.random.default_rng(3)
    kernels, reward = rng.dirichlet(np.ones(3), size=(4, 3, 2)), rng.uniform(size=(4, 3, 2))
    plain = rmab.Problem(rmab.Arms(kernels), [0, 1, 2, 0], 2, 6)
    alike = rmab.Problem(rmab.Arms(kernels), [0, 1, 2, 0], 2, 6, [0, 2, 1, 1, 0, 2])
    assert alike.phases == 3
    for method in ("highs", "newton"):
        one, other = (rmab.solvers.solve_fluid(problem, reward, method=method) for problem in (plain, alike))
        np.testing.assert_allclose(one.prices, other.prices, atol=1e-12)
        np.testing.assert_allclose(one.share, other.share, atol=1e-12)
        assert one.bound == pytest.approx(other.bound, rel=1e-14)
    assert (
        rmab.planners.finite_whittle_index(plain, reward).index.tobytes()
        == rmab.planners.finite_whittle_index(alike, reward).index.tobytes()
    )
    for make in (rmab.planners.myopic_index, rmab.planners.lagrangian_index, rmab.planners.occupancy_index):
        np.testing.assert_allclose(make(plain, reward).table, make(alike, reward).table, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_finite_whittle_index_leaves_both_actions_equal(seed: int) -> None:
    """At the price that is the index, both actions are worth the same, where the price is paid from there to the end."""
    problem, reward = timed_problem(seed, 1, 3, 3, 5)
    kernels, gains = by_step(problem, reward)
    index = rmab.planners.finite_whittle_index(problem, reward).index[0]

    def advantage(h: int, s: int, price: float) -> float:
        value = np.zeros(3)
        for step in reversed(range(h, problem.horizon)):
            worth = gains[0, step] - price * np.array([0.0, 1.0]) + kernels[0, step] @ value
            value = worth.max(axis=1)
        return float(worth[s, 1] - worth[s, 0])

    for h in range(problem.horizon):
        for s in range(3):
            assert advantage(h, s, float(index[h, s])) == pytest.approx(0.0, abs=1e-9)
    low, high = np.full(index.shape, -50.0), np.full(index.shape, 50.0)
    grid = bisect(lambda x: np.array([[advantage(h, s, x[h, s]) > 0 for s in range(3)] for h in range(5)]), low, high, 60)
    if rmab.planners.finite_whittle_index(problem, reward).indexable.all():
        np.testing.assert_allclose(grid, index, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_lagrangian_index_is_the_advantage_at_the_plan_s_prices(seed: int) -> None:
    problem, reward = timed_problem(seed, 3, 2, 3, 4)
    plan = rmab.solvers.solve_fluid(problem, reward)
    kernels, gains = by_step(problem, reward)
    table, value = rmab.planners.lagrangian_index(problem, reward, fluid=plan).table, np.zeros((3, 3))
    for h in reversed(range(4)):
        worth = gains[:, h] + np.einsum("nsay,ny->nsa", kernels[:, h], value)
        np.testing.assert_allclose(table[:, h], worth[..., 1] - worth[..., 0], atol=1e-9)
        value = (worth - plan.prices[h] * np.array([0.0, 1.0])).max(axis=2)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimistic_plan_is_that_of_scipy(seed: int) -> None:
    problem, reward = timed_problem(seed, 2, 2, 3, 4)
    rng = np.random.default_rng(seed)
    low = np.maximum(problem.arms.kernels - rng.uniform(0, 0.3, size=problem.arms.kernels.shape), 0)
    high = np.minimum(problem.arms.kernels + rng.uniform(0, 0.3, size=problem.arms.kernels.shape), 1)
    steps = problem.phase_of
    plan = rmab.solvers.solve_optimistic_fluid(
        low, high, reward, problem.start, problem.budgets, 4, phase_of=problem.phase_of, tolerance=1e-7
    )
    assert plan.value == pytest.approx(fluid_value(problem, reward, (low[:, steps], high[:, steps])), abs=1e-5)
    for h, k in enumerate(steps):
        assert (plan.kernel[:, h] >= low[:, k] - 1e-9).all()
        assert (plan.kernel[:, h] <= high[:, k] + 1e-9).all()
        if h > 0:
            flow = np.einsum("nsa,nsay->ny", plan.mass[:, h - 1], plan.kernel[:, h - 1])
            np.testing.assert_allclose(plan.mass[:, h].sum(axis=2), flow, atol=1e-9)
    known = rmab.solvers.solve_optimistic_fluid(
        problem.arms.kernels, problem.arms.kernels, reward, problem.start, problem.budgets, 4, phase_of=steps
    )
    assert known.value == pytest.approx(rmab.solvers.solve_fluid(problem, reward).value, abs=1e-5)


def test_boxes_without_phases_hold_in_all() -> None:
    problem, reward = timed_problem(5, 2, 2, 3, 4)
    plain = problem.arms.kernels[:, 0]
    size = (problem.start, problem.budgets, 4)
    one = rmab.solvers.solve_optimistic_fluid(plain, plain, reward, *size, phase_of=problem.phase_of)
    both = np.stack([plain, plain], axis=1)
    other = rmab.solvers.solve_optimistic_fluid(both, both, reward, *size, phase_of=problem.phase_of)
    assert one.value == other.value


@pytest.mark.parametrize("seed", range(3))
def test_lp_update_takes_the_first_step_of_the_rest(seed: int) -> None:
    problem, reward = timed_problem(seed, 3, 2, 2, 4, budget=[1, 2, 1, 3])
    policy, rng = rmab.planners.LpUpdate(problem, reward), np.random.default_rng(seed)
    for h in range(4):
        states = rng.integers(0, 2, size=3)
        share = (
            rmab.solvers.solve_fluid(problem.from_step(h, states), reward, method="highs").occupancy[:, 0, :, 1].sum(axis=1)
        )
        acts = np.array([policy.act(h, states, np.random.default_rng(k)) for k in range(300)])
        assert (acts.sum(axis=1) <= limits(problem)[h]).all()
        if np.isin(share.round(6), (0.0, 1.0)).all():  # nothing is split, so the plan is unique here or tied
            assert acts.sum(axis=1).max() <= round(share.sum()) + 1e-9
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 200)
    assert batch.mean - 4 * batch.stderr <= optimum(problem, reward)


@pytest.mark.parametrize("rule", ["fill", "at-most"])
@pytest.mark.parametrize("seed", range(3))
def test_simulated_means_are_exact_expectations(seed: int, rule: str) -> None:
    problem, reward = timed_problem(seed, 3, 2, 2, 4)
    table = np.random.default_rng(seed + 50).normal(size=(3, 4, 2))
    policy = rmab.IndexPolicy(table, problem.budget, rule=rule)  # type: ignore[arg-type]
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), 6000)
    assert abs(batch.mean - expected(problem, table, rule, reward)) < 4 * batch.stderr
    own = rmab.simulate_many(problem, Wrapped(policy), reward, np.random.default_rng(seed), 300)
    np.testing.assert_allclose(own.rewards, batch.rewards[:300])  # without ties, Python decides as compiled code does


class Wrapped:
    """A policy that is no IndexPolicy: decided in Python, step by step."""

    def __init__(self, policy: rmab.IndexPolicy) -> None:
        self.policy = policy

    def act(self, h, states, rng):
        return self.policy.act(h, states, rng)


def test_round_robin_goes_on_where_it_stopped() -> None:
    problem, _ = timed_problem(0, 5, 2, 2, 4, budget=[1, 0, 3, 2])
    turns = [
        np.flatnonzero(rmab.planners.round_robin(problem, episode=e).table[:, h, 0]) for e in range(3) for h in range(4)
    ]
    took = [n for turn, size in zip(turns, [1, 0, 3, 2] * 3, strict=True) for n in turn]
    assert [turn.size for turn in turns] == [1, 0, 3, 2] * 3
    np.testing.assert_array_equal(np.bincount(took, minlength=5), [4, 4, 4, 3, 3])


def test_a_phase_without_a_step_decides_nothing() -> None:
    """Its rewards may be as large as they like: no rounding of the others is measured by them."""
    problem, reward = timed_problem(5, 2, 2, 3, 4, phase_of=[0, 0, 0, 0], budget=1)
    reward *= 1e-9
    huge = reward.copy()
    huge[:, 1] *= 1e17
    np.testing.assert_array_equal(
        rmab.planners.finite_whittle_index(problem, huge).index, rmab.planners.finite_whittle_index(problem, reward).index
    )
    for method in ("highs", "newton"):
        one, other = (rmab.solvers.solve_fluid(problem, table, method=method) for table in (huge, reward))
        np.testing.assert_array_equal(one.prices, other.prices)
        assert one.bound == other.bound
    for make in (rmab.planners.myopic_index, rmab.planners.lagrangian_index, rmab.planners.occupancy_index):
        np.testing.assert_array_equal(make(problem, huge).table, make(problem, reward).table)
