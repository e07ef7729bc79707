"""Numbers so large that arithmetic would overflow are refused before anything is computed; tolerances are checked."""

import warnings

import numpy as np
import pytest

import rmab
from strategies import random_problem

PROBLEM, REWARD = random_problem(1, 3, 2, 4, 1)
KERNELS = PROBLEM.arms.kernels
RNG = np.random.default_rng(0)
CALLS = {
    "fluid": lambda r: rmab.solvers.solve_fluid(PROBLEM, r),
    "fluid, newton": lambda r: rmab.solvers.solve_fluid(PROBLEM, r, method="newton"),
    "optimistic_fluid": lambda r: rmab.solvers.solve_optimistic_fluid(KERNELS, KERNELS, r, PROBLEM.start, 1, 4),
    "soften": lambda r: rmab.solvers.soften(PROBLEM, r, 3.0 / r.max()),
    "whittle": lambda r: rmab.planners.whittle_index(PROBLEM, r, discount=0.9),
    "whittle_finite": lambda r: rmab.planners.finite_whittle_index(PROBLEM, r),
    "occupancy_index": lambda r: rmab.planners.occupancy_index(PROBLEM, r),
    "lagrangian_index": lambda r: rmab.planners.lagrangian_index(PROBLEM, r),
    "myopic_index": lambda r: rmab.planners.myopic_index(PROBLEM, r),
    "LpUpdate": lambda r: rmab.simulate(PROBLEM, rmab.planners.LpUpdate(PROBLEM, r), REWARD, RNG),
    "average_fluid": lambda r: rmab.solvers.solve_average_fluid(PROBLEM, r),
    "stationary_index": lambda r: rmab.planners.stationary_index(PROBLEM, r, rule="auto"),
    "IdPolicy": lambda r: rmab.simulate(PROBLEM, rmab.planners.IdPolicy(PROBLEM, r), REWARD, RNG),
    "Ftva": lambda r: rmab.simulate(PROBLEM, rmab.planners.Ftva(PROBLEM, r), REWARD, RNG),
    "simulate": lambda r: rmab.simulate(PROBLEM, rmab.planners.random_policy(PROBLEM), r, RNG),
    "simulate_many": lambda r: rmab.simulate_many(PROBLEM, rmab.planners.random_policy(PROBLEM), r, RNG, 3),
    "Comparators": lambda r: rmab.runs.Comparators(PROBLEM, r[np.newaxis]).per_episode("O1"),
    "range": lambda r: rmab.Task.from_rewards(PROBLEM, r[np.newaxis], low=-1.0, high=float(r.max())),
}


@pytest.mark.parametrize("largest", [1e306, 1.7e308, 1e151])
@pytest.mark.parametrize("name", CALLS)
def test_rewards_that_may_overflow_are_refused(name: str, largest: float) -> None:
    with pytest.raises(rmab.errors.ModelError, match=r"is too large; the limit is 1e\+150"):
        CALLS[name](REWARD / REWARD.max() * largest)


@pytest.mark.parametrize("largest", [1e148, 1e-290])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "range"])
def test_rewards_up_to_the_limit_are_computed_with(name: str, largest: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CALLS[name](REWARD / REWARD.max() * largest) is not None


def test_plans_at_the_limit_are_those_of_ordinary_numbers() -> None:
    plain = rmab.solvers.solve_fluid(PROBLEM, REWARD)
    for scale in (2.0**480, 2.0**-980):
        plan = rmab.solvers.solve_fluid(PROBLEM, REWARD * scale)
        np.testing.assert_allclose(plan.prices / scale, plain.prices, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(rmab.planners.finite_whittle_index(PROBLEM, REWARD * scale).index / scale,
                                      rmab.planners.finite_whittle_index(PROBLEM, REWARD).index)  # fmt: skip


def test_references_and_weights_that_may_overflow_are_refused() -> None:
    reference = np.full((3, 4, 2, 2, 2), 0.1)
    with pytest.raises(rmab.errors.ModelError, match=r"reference: 1e\+299 times 96 .* is too large"):
        rmab.solvers.project(reference * 1e300, KERNELS, KERNELS, PROBLEM.start, 1)
    with pytest.raises(rmab.errors.ModelError, match=r"weights: 1e\+300 times 3 arms is too large"):
        rmab.solvers.project(reference, KERNELS, KERNELS, PROBLEM.start, 1, weights=[1, 1, 1e300])
    with pytest.raises(rmab.errors.ModelError, match=r"reward: 1e\+03 times 1e\+148 arms times 4 steps is too large"):
        rmab.solvers.solve_optimistic_fluid(
            KERNELS, KERNELS, np.full((3, 2, 2), 1e3), PROBLEM.start, 1, 4, weights=[1, 1, 1e148]
        )


@pytest.mark.parametrize("wrong", [0.0, -1e-6, np.inf, np.nan, True, "1e-6", None, [1e-6]])
def test_tolerances_are_positive_numbers(wrong) -> None:
    reference = np.full((3, 4, 2, 2, 2), 0.1)
    for call in (
        lambda: rmab.solvers.solve_fluid(PROBLEM, REWARD, tolerance=wrong),
        lambda: rmab.solvers.project(reference, KERNELS, KERNELS, PROBLEM.start, 1, tolerance=wrong),
    ):
        with pytest.raises(rmab.errors.ModelError, match=r"^tolerance must be a positive number, got "):
            call()
    with pytest.raises(rmab.errors.ModelError, match=r"^tolerance must be a positive number, got "):
        rmab.solvers.solve_optimistic_fluid(KERNELS, KERNELS, REWARD, PROBLEM.start, 1, 4, tolerance=wrong)
    with pytest.raises(rmab.errors.ModelError, match=r"^tolerance must be a positive number, got "):
        rmab.solvers.project_ball(reference, KERNELS, np.full((3, 2, 2), 0.1), PROBLEM.start, 1, tolerance=wrong)
