"""Set expansion: the largest set against an LP solver, the sets of an episode, and the gap to the bound as arms grow."""

import numpy as np
import pytest
from scipy.optimize import linprog

import rmab
from rmab.planners.expansion import largest_set


def lp_size(least: np.ndarray, most: np.ndarray, aim: np.ndarray, slack: float) -> float:
    """Maximise m = sum of z: variables z and d >= |z - m aim|, half the sum of d within slack (1 - m)."""
    size = aim.size
    differs = np.eye(size) - np.outer(aim, np.ones(size))
    rows = np.vstack([np.hstack([differs, -np.eye(size)]), np.hstack([-differs, -np.eye(size)])])
    last = np.concatenate([np.full(size, slack), np.full(size, 0.5)])
    bounds = [*zip(least, most, strict=True), *[(0, None)] * size]
    worth = np.concatenate([-np.ones(size), np.zeros(size)])
    found = linprog(worth, A_ub=np.vstack([rows, last]), b_ub=[*np.zeros(2 * size), slack], bounds=bounds)
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_set_is_that_of_the_lp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, slack = int(rng.integers(2, 9)), float(rng.uniform(0.02, 0.5))
    aim, most = rng.dirichlet(np.full(size, 0.5)), rng.dirichlet(np.full(size, 0.5))
    least = np.zeros(size)
    if seed % 2:  # a set that may stay
        least = largest_set(least, most, aim, slack) * rng.uniform(0.2, 0.9)
        part = least.sum()
        assert np.maximum(least - part * aim, 0).sum() <= slack * (1 - part)
    found = largest_set(least, most, aim, slack)
    assert (found >= least - 1e-12).all()
    assert (found <= most + 1e-12).all()
    assert np.maximum(found - found.sum() * aim, 0).sum() <= slack * (1 - found.sum()) + 1e-8
    assert found.sum() == pytest.approx(lp_size(least, most, aim, slack), abs=1e-6)


@pytest.mark.parametrize("exact", [True, False])
def test_the_set_grows_or_shrinks_and_its_arms_do_what_they_want(exact: bool) -> None:
    game = rmab.make_task("dirichlet-355", arms=60, horizon=80)
    problem = rmab.Problem(game.problem.arms, 0, game.problem.budget, 80, exact=exact)
    policy = rmab.planners.SetExpansion(problem, game.base_reward)
    rng, states = np.random.default_rng(0), np.zeros(60, dtype=int)
    player, sizes = policy.begin(states, rng), []
    kernels = problem.arms.kernels
    for h in range(80):
        before = player.focus
        active = player.act(h, states, rng)
        assert problem.keeps_budget(active, h, states)
        assert (before <= player.focus).all() or (player.focus <= before).all()
        surely = policy.share[policy.blocks.block_of, states]
        follows = player.focus & ((surely == 1.0) | (surely == 0.0))
        sizes.append((active == (surely == 1.0))[follows].mean() if follows.any() else 1.0)
        states = np.array([rng.choice(10, p=kernels[n, states[n], int(active[n])]) for n in range(60)])
    assert np.mean(sizes) > 0.98  # but for what draws ask beyond the mean
    assert player.focus.mean() > 0.3


@pytest.mark.parametrize("name", ["conveyor-bait", "dirichlet-355"])
def test_the_gap_shrinks_where_priorities_stay_away_from_the_bound(name: str) -> None:
    gaps = {}
    for count in (100, 900):
        game = rmab.make_task(name, arms=count, horizon=600)
        plan = rmab.solvers.solve_average_fluid(game.problem, game.base_reward)
        spread = plan.mass.sum(axis=2)[plan.blocks.block_of]
        problem = rmab.Problem(game.problem.arms, spread, game.problem.budget, 600, exact=True)
        for planner in ("set-expansion", "stationary"):
            policy = rmab.make_planner(planner)(problem, game.base_reward)
            batch = rmab.simulate_many(problem, policy, game.base_reward, np.random.default_rng(0), 2)
            gaps[planner, count] = 1.0 - batch.mean / 600 / plan.bound
    assert gaps["set-expansion", 900] < 0.6 * gaps["set-expansion", 100]
    assert gaps["set-expansion", 900] < 0.06
    assert gaps["stationary", 900] > 0.1
