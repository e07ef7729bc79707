"""A constant added to all rewards, or a positive factor, changes no plan: tolerances are relative to what is at stake.

Rewards are multiples of 1/64, offsets whole numbers and factors powers of 2: floating point has no part in it, and the
same plan means the same bits. Other offsets and factors move rewards by rounding, and answers by no more than certified.
"""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import rmab
from rmab.common.arrays import FloatArray
from rmab.model.problem import Problem
from rmab.solvers.stationary.stationary import stationary_fluid
from strategies import problems, random_problem

pytestmark = pytest.mark.compiled

OFFSETS = st.sampled_from([0.0, 1.0, -3.0, 1024.0, 4000.0, -5000.0])
FACTORS = st.sampled_from([1.0, 0.125, 2.0**20, 2.0**-30])


def grid(problem: Problem) -> st.SearchStrategy[FloatArray]:
    """(N, S, 2) rewards from -2 to 2 that are multiples of 1/64."""
    shape = (problem.arms.count, problem.arms.states, 2)
    return arrays(np.int64, shape, elements=st.integers(-128, 128)).map(lambda table: table / 64)


@settings(max_examples=60)
@given(st.data(), problems(), OFFSETS, FACTORS, st.sampled_from(["highs", "newton"]))
def test_fluid_and_its_indices(data: st.DataObject, problem: Problem, offset: float, factor: float, method) -> None:
    reward = data.draw(grid(problem))
    other = (reward + offset) * factor
    one, two = (rmab.solvers.solve_fluid(problem, table, method=method) for table in (reward, other))
    np.testing.assert_array_equal(one.share, two.share)
    np.testing.assert_array_equal(one.prices * factor, two.prices)
    assert one.gap == two.gap
    everywhere = problem.arms.count * problem.horizon * offset
    for mine, theirs in ((one.value, two.value), (one.bound, two.bound)):
        assert theirs / factor == pytest.approx(mine + everywhere, rel=1e-13, abs=1e-12)
    for index in (rmab.planners.occupancy_index, rmab.planners.lagrangian_index):
        first, second = (index(problem, plan.blocks.reward[plan.blocks.block_of], fluid=plan).table for plan in (one, two))
        np.testing.assert_array_equal(first * (factor if index is rmab.planners.lagrangian_index else 1.0), second)
    myopic = [rmab.planners.myopic_index(problem, table).table for table in (reward, other)]
    np.testing.assert_array_equal(myopic[0] * factor, myopic[1])


@settings(max_examples=40)
@given(st.data(), problems(max_states=3), OFFSETS, FACTORS)
def test_whittle_indices(data: st.DataObject, problem: Problem, offset: float, factor: float) -> None:
    reward = data.draw(grid(problem))
    for solve in (rmab.planners.finite_whittle_index, lambda *args: rmab.planners.whittle_index(*args, discount=0.75)):
        one, two = solve(problem, reward), solve(problem, (reward + offset) * factor)
        np.testing.assert_array_equal(one.index * factor, two.index)
        np.testing.assert_array_equal(one.indexable, two.indexable)


@settings(max_examples=30)
@given(st.data(), problems(), OFFSETS, FACTORS, st.floats(0.0, 0.3))
def test_optimistic_and_stationary_plans(
    data: st.DataObject, problem: Problem, offset: float, factor: float, width: float
) -> None:
    reward, kernels = data.draw(grid(problem)), problem.arms.kernels
    low, high = np.maximum(kernels - width, 0.0), np.where(kernels > 0, np.minimum(kernels + width, 1.0), 0.0)
    size, other = (problem.start, problem.budget, problem.horizon), (reward + offset) * factor
    one, two = (rmab.solvers.solve_optimistic_fluid(low, high, table, *size) for table in (reward, other))
    np.testing.assert_array_equal(one.mass, two.mass)
    np.testing.assert_array_equal(one.kernel, two.kernel)
    np.testing.assert_array_equal(one.prices * factor, two.prices)
    assert one.gap == two.gap
    ends = [stationary_fluid(low, high, table, float(problem.budget), np.ones(len(low))) for table in (reward, other)]
    np.testing.assert_array_equal(ends[0].z, ends[1].z)
    assert ends[0].price * factor == ends[1].price


@pytest.mark.parametrize("method", ["highs", "newton"])
@pytest.mark.parametrize("factor", [1.0, 3.7e-5, 1.3e8])
def test_prices_of_any_offset_and_factor(method, factor: float) -> None:
    """With an offset a thousand times the range, prices moved by a third within a gap relative to the offset."""
    for seed in range(5):
        problem, reward = random_problem(seed, count=6, states=3, horizon=5, budget=2)
        plain, moved = (
            rmab.solvers.solve_fluid(problem, table, method=method) for table in (reward, factor * (reward + 1e3))
        )
        np.testing.assert_allclose(moved.prices / factor, plain.prices, atol=1e-6)
        np.testing.assert_allclose(moved.share, plain.share, atol=1e-4)
        assert moved.gap <= 1e-6


def test_every_arm_may_have_its_own_offset() -> None:
    problem, reward = random_problem(4, count=5, states=3, horizon=6, budget=2)
    other = np.round(reward * 64) / 64
    one, two = (
        rmab.solvers.solve_fluid(problem, other + table) for table in (0.0, np.arange(5.0)[:, np.newaxis, np.newaxis] * 512)
    )
    np.testing.assert_array_equal(one.share, two.share)
    assert one.gap == two.gap


@pytest.mark.parametrize("seed", range(6))
def test_projections_do_not_depend_on_the_size_of_the_reference(seed: int) -> None:
    """All masses of an arm at a step are 1 together: a factor of the reference adds a constant to the divergence."""
    rng = np.random.default_rng(seed)
    problem, _ = random_problem(seed, count=3, states=3, horizon=5, budget=1)
    kernels = problem.arms.kernels
    low, high = np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)
    reference = rng.random((3, 5, 3, 2, 3)) + 0.01
    plain = rmab.solvers.project(reference, low, high, problem.start, 1)
    for factor in (1e3, 1e-90, 1e90, 10.0 ** rng.uniform(-60, 60, (3, 5, 1, 1, 1))):
        moved = rmab.solvers.project(reference * factor, low, high, problem.start, 1)
        np.testing.assert_allclose(moved.z, plain.z, atol=1e-7)
        np.testing.assert_allclose(moved.prices, plain.prices, atol=1e-6)
