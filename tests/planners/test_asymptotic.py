"""Theorem 1: the index policy of the fluid plan loses nothing per arm as arms and budget grow; and where it does."""

from dataclasses import dataclass

import numpy as np
import pytest

import rmab

SIZES = (1, 4, 16, 64)


@dataclass(frozen=True)
class Loss:
    """What a policy loses to the bound, per arm: mean, half of its 95% interval, and the bound itself."""

    mean: float
    half: float
    bound: float


def grown(name: str, rho: int) -> tuple[rmab.Problem, np.ndarray]:
    """Return rho copies of every arm of a small problem, under rho times the budget, and what it pays."""
    sizes = {"arms": 6, "budget": 4, "horizon": 20} if name == "cpap" else {}
    task = rmab.make_task(name, seed=0, copies=rho, **sizes)
    return task.problem, task.base_reward


def loss(problem: rmab.Problem, reward: np.ndarray, policy: rmab.Policy, bound: float, seed: int = 0) -> Loss:
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), 1000, threads=1)
    count = problem.arms.count
    return Loss((bound - batch.mean) / count, 1.96 * batch.stderr / count, bound / count)


def index_loss(name: str, rho: int, rounding: str = "top") -> Loss:
    """Return what the index of the fluid LP's vertex loses."""
    problem, reward = grown(name, rho)
    plan = rmab.solvers.solve_fluid(problem, reward, method="highs")
    rule = "fill" if rounding == "top" else "at-most"
    policy = rmab.planners.occupancy_index(problem, reward, fluid=plan, rule=rule, rounding=rounding)
    return loss(problem, reward, policy, plan.bound, seed=rho)


def test_the_fluid_plan_does_not_grow() -> None:
    small, large = (rmab.solvers.solve_fluid(*grown("cpap", rho), method="highs") for rho in (1, 64))
    assert large.share.shape == small.share.shape
    assert large.bound == pytest.approx(64 * small.bound, rel=1e-9)


def test_the_loss_per_arm_vanishes() -> None:
    losses = [index_loss("cpap", rho) for rho in SIZES]
    for one in losses:
        assert one.mean > -1.5 * one.half  # nobody beats the bound
    for less, more in zip(losses[1:], losses, strict=False):
        assert less.mean + less.half < more.mean - more.half
    # Theory has at most rho^-1/2; a loss that stayed, or shrank more slowly, would be seen.
    first, last = losses[0], losses[-1]
    assert last.mean <= (first.mean + first.half) / np.sqrt(64) + last.half
    assert last.mean < 0.001 * last.bound
    assert first.mean > 0.01 * first.bound


def test_a_policy_without_a_plan_keeps_its_loss() -> None:
    """The measurement itself does not shrink: random calls lose as much per arm among 384 patients as among 6."""
    bound = rmab.solvers.solve_fluid(*grown("cpap", 1)).bound
    first, last = (
        loss(large, pays, rmab.planners.random_policy(large), rho * bound)
        for rho in (1, 64)
        for large, pays in [grown("cpap", rho)]
    )
    assert last.mean == pytest.approx(first.mean, abs=1.5 * (first.half + last.half))
    assert last.mean > 0.02 * last.bound


@pytest.mark.parametrize("rho", [1, 16])
def test_a_defect_of_the_theorem_that_top_b_does_not_split_as_the_plan_does(rho: int) -> None:
    """The plan earns 16 with 0.6 of A and 0.4 of B at step 0; top-B takes all of A, and earns 14 at most, whatever rho."""
    problem, reward = grown("split", rho)
    plan = rmab.solvers.solve_fluid(problem, reward, method="highs")
    assert plan.bound == pytest.approx(16 * rho, rel=1e-9)
    kind = np.repeat([0, 1, 2], [10 * rho, 10 * rho, 4 * rho])
    shares = plan.share[plan.blocks.block_of][:, 0, 0]
    np.testing.assert_allclose(shares[kind < 2], np.where(kind[kind < 2] == 0, 0.6, 0.4), atol=1e-9)
    policy = rmab.planners.occupancy_index(problem, reward, fluid=plan)
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 400)
    assert (batch.rewards <= 14 * rho).all()
    # At step 1 all 10 of A and 4 of C have index 1: of each, 10/14 are activated, and pay 1 and 2.
    assert batch.mean == pytest.approx((10 + 2 * 4) * rho * 10 / 14, abs=4 * batch.stderr)


def test_dependent_rounding_splits_as_the_plan_does() -> None:
    first, last = (index_loss("split", rho, "dependent") for rho in (1, 64))
    assert last.mean + last.half < first.mean - first.half
    assert last.mean < 1.2 * first.mean / np.sqrt(64) + last.half  # it shrinks just as fast as that
