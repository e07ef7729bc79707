"""The simulator against exact values: joint chains of tiny problems, enumerated, and trajectories written down."""

import numpy as np
import pytest

from reference import backward, expected_reward, occupancy, optimal_value
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.index_policy import IndexPolicy
from rmab.play.simulation import simulate, simulate_many
from strategies import MODES, RULES, distinct, random_problem

pytestmark = pytest.mark.compiled

ROUNDS = 4000
SIZES = [(1, 3, 4, 1), (2, 3, 3, 1), (3, 2, 5, 2), (4, 2, 3, 1), (3, 3, 2, 0)]


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", SIZES)
def test_mean_is_the_expectation(size, rule):
    problem, reward = random_problem(11, *size)
    table = distinct(problem, 5)
    batch = simulate_many(problem, IndexPolicy(table, problem.budget, rule=rule), reward, rng(1), ROUNDS)
    expected = expected_reward(problem, table, problem.budget, rule, reward)
    assert 0 < batch.stderr < 0.05
    assert abs(batch.mean - expected) < 4 * batch.stderr


@pytest.mark.parametrize(("rule", "rounding"), MODES)
@pytest.mark.parametrize("size", SIZES)
def test_no_policy_beats_the_optimum(size, rule, rounding):
    problem, reward = random_problem(12, *size)
    best = optimal_value(problem, reward)
    for seed in range(5):
        table = rng(seed).integers(0, 4, size=(problem.arms.count, problem.horizon, problem.arms.states)) / 3
        policy = IndexPolicy(table, problem.budget, rule=rule, rounding=rounding)
        batch = simulate_many(problem, policy, reward, rng(seed), ROUNDS)
        assert batch.mean - 4 * batch.stderr < best


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_reached_where_an_index_is_optimal(seed):
    """One arm that may be active, or many that all may: the best index is Q(s,1) - Q(s,0)."""
    for count, budget in ((1, 1), (3, 3)):
        problem, reward = random_problem(seed, count, 2, 4, budget)
        Q = np.stack([backward(problem.arms.kernels[n], reward[n], 4)[1] for n in range(count)])
        table = Q[..., 1] - Q[..., 0]
        best = sum(backward(problem.arms.kernels[n], reward[n], 4)[0][0, problem.start[n]] for n in range(count))
        assert optimal_value(problem, reward) == pytest.approx(best)
        assert expected_reward(problem, table, budget, "at-most", reward) == pytest.approx(best)
        batch = simulate_many(problem, IndexPolicy(table, budget, rule="at-most"), reward, rng(seed), ROUNDS)
        assert abs(batch.mean - best) < 4 * batch.stderr


@pytest.mark.parametrize("seed", range(3))
def test_random_activation_has_the_occupancy_of_its_probabilities(seed):
    """Dependent rounding with probabilities that fit the budget at every step: each arm is a chain of its own."""
    problem, reward = random_problem(seed, 3, 2, 5, 3)
    chance = rng(seed).random((3, 5, 2))
    chains = [occupancy(problem.arms.kernels[n], problem.start[n], chance[n]) for n in range(3)]
    for mu in chains:
        np.testing.assert_allclose(mu.sum(axis=(1, 2)), 1.0)
    policy = IndexPolicy(chance, 3, rule="at-most", rounding="dependent")
    batch = simulate_many(problem, policy, reward, rng(seed), ROUNDS)
    expected = sum((mu * reward[n]).sum() for n, mu in enumerate(chains))
    assert abs(batch.mean - expected) < 4 * batch.stderr
    used = sum(mu[..., 1].sum() for mu in chains)
    assert abs(batch.activations.mean() - used) < 4 * batch.activations.std() / np.sqrt(ROUNDS)


ONE = [[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]]
TWO = [[[0.6, 0.4], [0.5, 0.5]], [[0.9, 0.1], [0.3, 0.7]]]
INDEX = [[0.9, 0.1], [0.2, 0.6], [0.5, 0.4], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("table", "rule", "rounding", "states", "actions", "reward"),
    [
        (
            [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]], "fill", "top",
            "0101 1010 0010 1011 1101 1010 1001", "1010 0101 1100 0101 0011 0101", 45.5,
        ),
        (
            [[0.5, 0.5]] * 4, "fill", "top",
            "0101 0110 0010 1011 1100 1010 1011", "0110 0011 1010 0110 1010 1010", 45.0,
        ),
        (INDEX, "at-most", "dependent", "0101 1000 0010 1011 1001 1110 1001", "1001 0010 1010 0001 0101 1100", 44.5),
        (INDEX, "fill", "dependent", "0101 1000 0010 1011 1001 1110 1001", "1001 0011 1010 0011 0101 1100", 45.0),
    ],
)  # fmt: skip
def test_golden_trajectory(table, rule, rounding, states, actions, reward):
    """One word per step, one digit per arm. A change of these changes every published number: it must be meant."""
    problem = Problem(Arms([ONE, TWO, ONE, TWO], groups=["a", "b", "a", "b"]), [0, 1, 0, 1], 2, 6)
    policy = IndexPolicy(table, 2, rule=rule, rounding=rounding)
    run = simulate(problem, policy, np.arange(16).reshape(4, 2, 2) / 4, rng(2024))
    assert " ".join("".join(map(str, step)) for step in run.states) == states
    assert " ".join("".join(map(str, step)) for step in run.actions.astype(int)) == actions
    assert run.reward == reward
