"""The fluid plan over long horizons, of chains that need every activation, and of chains that are all but periodic."""

from dataclasses import replace

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.solvers.compiled.dynamics import steer
from rmab.tasks.published import EXAMPLES
from timed import by_step, certificate, limits, timed_problem

pytestmark = pytest.mark.compiled

BOTH = pytest.mark.parametrize("method", ["highs", "newton"])


def example(name: str, horizon: int) -> tuple[rmab.Problem, FloatArray]:
    """Return a published example over so many steps, and its own reward."""
    reward = EXAMPLES[name].reward
    return rmab.make_task(name, horizon=horizon).problem, np.broadcast_to(reward, (100, *reward.shape))


def near_cycle(slip: float, states: int = 5, arms: int = 10, horizon: int = 150) -> tuple[rmab.Problem, FloatArray]:
    """Arms that go round, unless they slip; being active, they stay. They are paid in one place, for being active."""
    go, stay = np.roll(np.eye(states), 1, axis=1), np.eye(states)
    spread = np.full((states, states), 1.0 / states)
    kernel = np.stack([(1 - slip) * go + slip * spread, (1 - slip) * stay + slip * spread], axis=1)
    reward = np.zeros((arms, states, 2))
    reward[:, 0, 1] = 1.0
    return rmab.Problem(rmab.Arms.identical(kernel, arms), 0, arms // 2, horizon), reward


def types_of_arms(types: int, each: int) -> rmab.Arms:
    """Return arms of several random types, many of each."""
    kernels = np.random.default_rng(0).dirichlet(np.ones(3), size=(types, 3, 2))
    return rmab.Arms(kernels.repeat(each, axis=0), groups=np.arange(types).repeat(each))


@pytest.mark.slow
@BOTH
def test_a_conveyor_that_runs_backward_when_activations_are_missing(method: str) -> None:
    """In the long run each of eight places holds 1/8 of the arms, and the last one pays .1: .0125 an arm and step.

    The same is lost on the way in, whatever the horizon: the belt has to be loaded.
    """
    for horizon in (200, 300):
        problem, reward = example("conveyor", horizon)
        plan = rmab.solvers.solve_fluid(problem, reward, method=method)
        assert plan.bound - plan.value <= 1e-6 * plan.bound / 0.1
        assert plan.value / 100 == pytest.approx(0.0125 * horizon - 0.6875, rel=2e-5)


@BOTH
@pytest.mark.parametrize("name", ["conveyor", "non-sa"])
def test_the_certificate_holds_by_other_code(name: str, method: str) -> None:
    problem, reward = example(name, 260)
    plan = rmab.solvers.solve_fluid(problem, reward, method=method)
    value, bound = certificate(problem, reward, plan)
    assert value == pytest.approx(plan.value, rel=1e-9)
    assert bound == pytest.approx(plan.bound, rel=1e-9)


def test_where_the_dual_simplex_method_fails_the_primal_one_answers() -> None:
    """Example 1 of Gast from an even start: HiGHS' dual method ends in an error (1.11 to 1.12)."""
    own, reward = example("gast-1", 200)
    problem = rmab.Problem(own.arms, np.full((100, 3), 1 / 3), own.budget, 200)
    plan = rmab.solvers.solve_fluid(problem, reward, method="highs")
    value, bound = certificate(problem, reward, plan)
    assert bound - value <= 1e-6 * bound
    states = np.random.default_rng(0).integers(0, 3, size=100)
    assert rmab.planners.LpUpdate(problem, reward).act(0, states, np.random.default_rng(0)).sum() <= own.budget


@pytest.mark.parametrize("slip", [0.0, 1e-12, 1e-6, 1e-2])
def test_chains_that_are_all_but_periodic(slip: float) -> None:
    problem, reward = near_cycle(slip)
    one, other = (rmab.solvers.solve_fluid(problem, reward, method=method) for method in ("highs", "newton"))
    assert one.value == pytest.approx(other.value, rel=3e-6)
    assert max(one.gap, other.gap) <= 1e-6


def test_ten_types_of_arms() -> None:
    problem = rmab.Problem(types_of_arms(10, 20), 0, 60, 100)
    reward = np.random.default_rng(1).uniform(size=(10, 3, 2)).repeat(20, axis=0)
    plan = rmab.solvers.solve_fluid(problem, reward)
    value, bound = certificate(problem, reward, plan)
    assert bound - value <= 1e-6 * max(bound, 1.0)
    assert plan.method == "newton"


def test_auto_takes_highs_where_the_horizon_is_very_long() -> None:
    for horizon, method in ((810, "highs"), (260, "newton")):
        problem, reward = example("non-sa", horizon)
        assert rmab.solvers.solve_fluid(problem, reward).method == method


@pytest.mark.parametrize("seed", range(10))
def test_steering_meets_every_budget_and_keeps_the_flow(seed: int) -> None:
    """Whatever the shares: the masses follow the kernels, no budget is broken, and the plan itself is left as it is."""
    problem, reward = timed_problem(seed, 3, 2, 3, 6)
    plan, budget = rmab.solvers.solve_fluid(problem, reward), np.array(limits(problem), dtype=float)
    values, _ = plan.blocks.values(plan.prices)

    def steered(share: FloatArray) -> FloatArray:
        blocks, found = plan.blocks, np.empty((*share.shape, 2))
        given = (blocks.kernels, blocks.phase_of, blocks.reward, blocks.phase_of, blocks.start, budget)
        steer(*given, 0.0, values, share, found)
        np.testing.assert_allclose(share * found.sum(axis=3), found[..., 1], atol=1e-12)
        return found

    any_share = np.random.default_rng(seed).uniform(size=plan.share.shape)
    for share in (any_share, np.zeros_like(any_share), np.ones_like(any_share)):
        found = steered(share)
        checked = replace(plan, share=share, value=float((found * by_step(problem, reward)[1]).sum()))
        value, _ = certificate(problem, reward, checked)
        assert value == pytest.approx(checked.value, abs=1e-9)
        assert value <= plan.bound + 1e-9
    best = steered(plan.share.copy())
    assert float((best * by_step(problem, reward)[1]).sum()) == pytest.approx(plan.value, abs=1e-5)
