"""The plan of the fluid LP does not depend on the order of the arms, although optimal plans and prices are rarely unique."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common import FloatArray, IntArray
from rmab.solvers import solve_fluid
from rmab.testing import check_learner

COUNT, STATES, STEPS = 5, 3, 6


def certain(rng: np.random.Generator, noise: float) -> FloatArray:
    """(N, S, 2, S) chains that move with certainty, or nearly: prices are an interval, or one to the solver's tolerance."""
    moves = np.eye(STATES)[rng.integers(STATES, size=(COUNT, STATES, 2))]
    table = moves + noise * rng.dirichlet(np.ones(STATES), size=(COUNT, STATES, 2))
    return np.asarray(table / table.sum(axis=3, keepdims=True))


def problem(rng: np.random.Generator, kind: str, noise: float) -> tuple[dict[str, Any], FloatArray]:
    """Return the arguments of a problem, those by arm as arrays, and a reward with many ties."""
    given: dict[str, Any] = {"kernels": certain(rng, noise), "groups": np.arange(COUNT)}
    given |= {"start": rng.integers(STATES, size=COUNT), "budget": 2}
    reward = rng.integers(0, 3, size=(COUNT, STATES, 2)).astype(float)
    if kind == "grouped":  # probabilities that are summed
        own = np.array([0, 0, 0, 0, 1])
        given |= {"kernels": given["kernels"][own], "groups": own, "start": rng.dirichlet(np.ones(STATES), size=COUNT)}
        reward = reward[own]
    elif kind == "alike":  # identical arms that nobody declared as such
        own = np.array([0, 0, 1, 1, 1])
        given |= {"kernels": given["kernels"][own], "start": rng.dirichlet(np.ones(STATES), size=COUNT)}
        reward = reward[own]
    elif kind == "exact":
        given |= {"exact": True}
    elif kind == "costs":
        given |= {"cost": rng.choice([1.0, 2.0, 3.0], size=COUNT), "budget": 3.0}
    elif kind == "costs by state":
        given |= {"cost": rng.choice([1.0, 2.0, 3.0], size=(COUNT, STATES)), "budget": 3.0}
    return given, reward


def build(given: dict[str, Any], order: IntArray) -> rmab.Problem:
    """Return the problem with its arms in this order."""
    arms = rmab.Arms(given["kernels"][order], groups=given["groups"][order])
    cost = given["cost"][order] if "cost" in given else None
    return rmab.Problem(arms, given["start"][order], given["budget"], STEPS, exact=given.get("exact", False), cost=cost)


@pytest.mark.parametrize("method", ["highs", "newton"])
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("kind", ["single", "grouped", "alike", "exact", "costs", "costs by state"])
def test_plans_do_not_depend_on_the_order_of_arms(kind: str, noise: float, method: Any) -> None:
    for seed in range(15):
        rng = np.random.default_rng([seed, len(kind)])
        given, reward = problem(rng, kind, noise)
        order = rng.permutation(COUNT)
        here, there = (solve_fluid(build(given, each), reward[each], method=method) for each in (np.arange(COUNT), order))
        np.testing.assert_array_equal(here.prices, there.prices)
        for one in ("advantage", "share"):
            tables = [getattr(plan, one)[plan.blocks.block_of] for plan in (here, there)]
            np.testing.assert_array_equal(tables[0][order], tables[1])


@pytest.mark.parametrize("seed", [16, 40])
@pytest.mark.parametrize(("name", "options"), [("lagrangian", {}), ("oracle", {}), ("oracle", {"index": "occupancy"})])
def test_learners_fulfil_the_contract_where_prices_are_not_unique(name: str, options: dict[str, Any], seed: int) -> None:
    """The clause `relabelling` was broken: an index changed by up to 4 when arms were reordered."""
    rng = np.random.default_rng(seed)
    given, _ = problem(rng, "single", 1e-9)
    rewards = rng.integers(0, 3, size=(3, COUNT, STATES, 2)).astype(float)
    task = rmab.Task.from_rewards(build(given, np.arange(COUNT)), rewards, low=0, high=2)
    check_learner(rmab.make_learner(name, **options), task, episodes=3)


def test_negative_zeros_do_not_order_blocks() -> None:
    """0.0 and -0.0 are equal, and so are the problems."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        given, reward = problem(rng, "single", 1e-9)
        given["kernels"][:] = given["kernels"][0]  # so that rewards decide
        signed = np.where(reward == 0, np.copysign(0.0, rng.normal(size=(COUNT, 1, 1))), reward)
        plans = [solve_fluid(build(given, np.arange(COUNT)), paid, method="highs") for paid in (reward, signed)]
        np.testing.assert_array_equal(plans[0].prices, plans[1].prices)
