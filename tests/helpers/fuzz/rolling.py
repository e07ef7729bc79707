"""Part 8: rolling plans from random states at random steps: within the budget, repeatable, and never above the bound."""

from __future__ import annotations

import numpy as np

import rmab
from fuzz import draw
from fuzz.cases import Case
from fuzz.files import refused
from fuzz.proofs import budgets, require, stake
from rmab.errors import SolverError
from rmab.planners import Rolling
from rmab.planners.rolling import RollingEpisode

USE = 1e-6  # of the arms, by which a plan may exceed its budget: rounding
RARE = 0.05  # probabilities below which a few episodes say nothing of their mean
SIGNS = 10.0  # standard errors above the bound that are no accident


def check_shares(case: Case, policy: Rolling, h: int, states: np.ndarray) -> None:
    """Require what is planned now to be parts of what is there, within the budget of the step."""
    masses = policy.blocks.count_arms(states, h)
    share, prices = policy.shares(h, masses, RollingEpisode(policy)._first_prices(h))
    require(share.min() >= 0 and share.max() <= 1, f"rolling: shares of {share.min()} to {share.max()}")
    require(prices.min() >= 0 and np.isfinite(prices).all(), "rolling: prices")
    limit = budgets(policy.problem.budget, policy.problem.horizon)[h]
    used = float((share * masses).sum())
    # A softened plan meets its budget as closely as it is certified.
    require(used <= limit + 1e-2 * max(1.0, limit) + USE * masses.sum(), f"rolling: uses {used} of {limit}")
    case.count("plans")


def play(case: Case) -> None:
    """Build a policy, decide from anywhere, play an episode, and store it."""
    problem = draw.problem(case, most_arms=9, most_steps=14)
    reward, window = draw.reward(case, problem), case.whole(1, 12)
    name = case.folder / "policy.npz"
    policy = refused(case, name, lambda: Rolling(problem, reward, window=window), SolverError)
    if policy is None:
        return
    limits = budgets(problem.budget, problem.horizon)
    copy = Rolling.from_bytes(policy.to_bytes(case.pick([".npz", ".json"])))
    for _ in range(4):
        h, seed = case.whole(0, problem.horizon - 1), case.whole(0, 2**40)
        states = case.rng.integers(0, problem.arms.real_states)
        active = policy.act(h, states, np.random.default_rng(seed))
        require(active.shape == states.shape and active.dtype == bool, "rolling: shape")
        require(int(active.sum()) <= limits[h], "rolling: the budget is broken")
        require(
            np.array_equal(copy.act(h, states, np.random.default_rng(seed)), active), "rolling: a copy decides otherwise"
        )
        check_shares(case, policy, h, states)
    rounds = 20
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(case.whole(0, 2**40)), rounds, threads=1)
    bound = rmab.solvers.solve_fluid(problem, reward).bound
    over, chances = float(batch.mean) - bound, np.append(problem.arms.group_kernels, problem.start_masses)
    if chances[chances > 0].min() > RARE and batch.stderr > 1e-9 * stake(problem, reward):
        slack = SIGNS * batch.stderr + 1e-6 * stake(problem, reward)
        require(over <= slack, f"rolling: {over} above the bound, {batch.stderr}")
        case.count("bounds")
    case.count("episodes")
