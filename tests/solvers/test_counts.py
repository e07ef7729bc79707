"""The exact optimum over counts: against induction over joint states, the fluid bound, and closed forms."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import ModelError, SolverError
from rmab.solvers import solve_average_fluid, solve_exact, solve_exact_average, solve_fluid
from rmab.solvers.counts import MOST


def drawn(seed: int, **given: Any) -> tuple[rmab.Problem, Any]:
    """Return a random problem of some types, with phases, budgets by step and a discount, and its reward."""
    rng = np.random.default_rng(seed)
    states, types, phases = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    count, steps = (4 if states == 2 else 3), 3
    alike = rng.permutation(np.arange(count) % types)
    shape = (types, phases) if phases > 1 else (types,)
    kernels = rng.dirichlet(np.ones(states), size=(*shape, states, 2))
    start = rng.integers(states, size=count) if seed % 2 else rng.dirichlet(np.ones(states), size=count)
    budgets = rng.integers(count + 1, size=steps)
    phase_of = rng.permutation(np.arange(steps) % phases)
    arms = rmab.Arms.of_groups(kernels, alike) if seed % 3 else rmab.Arms(kernels[alike])
    reward = rng.normal(size=(*shape, states, 2))[alike]
    return rmab.Problem(arms, start, budgets, steps, phase_of, discount=float(rng.uniform(0.5, 1.0)), **given), reward


def induction(problem: rmab.Problem, reward: Any) -> float:
    """Return the optimum by induction over joint states and all sets of arms."""
    arms, phases = problem.arms, problem.phases
    kernels = np.asarray(arms.kernels).reshape(arms.count, phases, arms.states, 2, arms.states)
    pay = np.asarray(reward).reshape(arms.count, phases, arms.states, 2)
    joint = list(product(range(arms.states), repeat=arms.count))
    value = np.zeros(len(joint))
    for h in reversed(range(problem.horizon)):
        k = problem.phase_of[h]
        best = np.full(len(joint), -np.inf)
        for place, states in enumerate(joint):
            for actions in product((0, 1), repeat=arms.count):
                if sum(actions) > problem.budgets[h]:
                    continue
                law, gain = np.ones(1), 0.0
                for n, (s, a) in enumerate(zip(states, actions, strict=True)):
                    law, gain = np.outer(law, kernels[n, k, s, a]).ravel(), gain + pay[n, k, s, a]
                best[place] = max(best[place], gain + problem.discount * law @ value)
        value = best
    begin = np.ones(1)
    for mass in problem.start_masses:
        begin = np.outer(begin, mass).ravel()
    return float(begin @ value)


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_optimum_over_joint_states(seed: int) -> None:
    problem, reward = drawn(seed)
    found = solve_exact(problem, reward)
    assert found.value == pytest.approx(induction(problem, reward), abs=1e-12)
    assert found.value <= solve_fluid(problem, reward).bound + 1e-9
    assert found.states <= problem.arms.states**problem.arms.count


def test_arms_of_different_sizes() -> None:
    rng = np.random.default_rng(1)
    kernels = [rng.dirichlet(np.ones(s), size=(s, 2)) for s in (2, 3, 2)]
    problem = rmab.Problem(rmab.Arms.of_sizes(kernels), [1, 2, 0], 1, 3)
    reward = np.where(
        np.arange(3)[:, np.newaxis] < np.array([2, 3, 2])[:, np.newaxis, np.newaxis], rng.random((3, 3, 2)), 0.0
    )
    assert solve_exact(problem, reward).value == pytest.approx(induction(problem, reward), abs=1e-12)


def test_like_arms_are_one_type_whether_declared_or_not() -> None:
    kernel = np.random.default_rng(2).dirichlet(np.ones(2), size=(2, 2))
    reward = np.tile([[0.0, 0.1], [1.0, 0.8]], (5, 1, 1))
    declared = solve_exact(rmab.Problem(rmab.Arms.identical(kernel, 5), 0, 2, 6), reward)
    found = solve_exact(rmab.Problem(rmab.Arms(np.tile(kernel, (5, 1, 1, 1))), 0, 2, 6), reward)
    assert (declared.value, declared.states) == (found.value, 6)
    other = reward.copy()
    other[4, 0, 1] = 0.2
    assert solve_exact(rmab.Problem(rmab.Arms.identical(kernel, 5), 0, 2, 6), other).states == 5 * 2


def test_a_hundred_arms_are_below_the_bound_and_above_a_policy() -> None:
    kernel = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5]]]
    problem = rmab.Problem(rmab.Arms.identical(kernel, 100), 0, 20, 8)
    reward = np.tile([[0.0, 0.0], [1.0, 1.0]], (100, 1, 1))
    fluid = solve_fluid(problem, reward)
    policy = rmab.planners.lagrangian_index(problem, reward, fluid=fluid)
    played = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 4000).rewards
    found = solve_exact(problem, reward).value
    assert played.mean() - 5 * played.std() / np.sqrt(4000) <= found <= fluid.bound + 1e-9


def test_the_average_is_that_of_long_episodes() -> None:
    kernel = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5]]]
    reward = np.tile([[0.0, 0.0], [1.0, 1.0]], (6, 1, 1))
    arms = rmab.Arms.identical(kernel, 6)
    found = solve_exact_average(rmab.Problem(arms, 0, 2, 1), reward)
    long, longer = (solve_exact(rmab.Problem(arms, 0, 2, steps), reward).value for steps in (200, 300))
    assert found.value - 1e-9 <= (longer - long) / 100 <= found.bound + 1e-9
    assert found.bound <= solve_average_fluid(rmab.Problem(arms, 0, 2, 1), reward).bound + 1e-6


def test_a_periodic_chain_has_an_average() -> None:
    swap = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]  # passive arms alternate, active ones stay
    problem = rmab.Problem(rmab.Arms.identical(swap, 2), 0, 1, 1)
    reward = np.tile([[0.0, 0.0], [1.0, 1.0]], (2, 1, 1))
    assert solve_exact_average(problem, reward).value == pytest.approx(1.5, abs=1e-6)  # one stays, one alternates


def test_what_cannot_be_solved_is_refused() -> None:
    rng = np.random.default_rng(0)
    kernels = rng.dirichlet(np.ones(3), size=(12, 3, 2))
    large = rmab.Problem(rmab.Arms(kernels), 0, 3, 4)
    with pytest.raises(
        ModelError, match=r"solve_exact: the arms have \S+ splits of their counts or more, the limit"
    ) as caught:
        solve_exact(large, rng.random((12, 3, 2)))
    assert caught.value.code == "too-large"
    assert MOST < 6.0**12
    reward = drawn(1)[1]
    with pytest.raises(ModelError, match="solve_exact_average: the budget must be the same at every step"):
        solve_exact_average(rmab.Problem(rmab.Arms.identical([[[1.0], [1.0]]], 2), 0, [1, 2], 2), np.zeros((2, 1, 2)))
    with pytest.raises(ModelError, match="solve_exact needs a problem and a reward"):
        solve_exact(None, reward)  # type: ignore[arg-type]
    apart = rmab.Arms.identical(np.eye(2)[:, np.newaxis].repeat(2, axis=1), 1)  # it stays where it starts
    with pytest.raises(SolverError, match="the average may depend on the start"):
        solve_exact_average(rmab.Problem(apart, 0, 1, 1), [[[0, 0], [1, 1]]], tolerance=1e-3)
