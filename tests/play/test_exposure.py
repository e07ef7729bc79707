"""Visits of the executed policy, and estimators weighted by them: exact occupancies, hand-computed numbers."""

import math

import numpy as np
import pytest

import rmab
from episodes import tiny, view_of
from rmab.learning.components.rewards import implicit_estimate
from rmab.learning.pools import Pools
from rmab.learning.visits import executed_occupancy, exploration, of_blocks, of_payoffs
from rmab.play.index_policy import IndexPolicy
from rmab.play.simulation import visit_rates


def test_visit_rates_are_those_of_the_episodes_one_by_one() -> None:
    rng = np.random.default_rng(1)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(3), size=(4, 3, 2))), [0, 1, 2, 0], 2, 5)
    policy = IndexPolicy(rng.random((4, 5, 3)), 2)
    rates = visit_rates(problem, policy, np.random.default_rng(7), 1)
    episode = rmab.simulate(problem, policy, np.zeros((4, 3, 2)), np.random.default_rng(7))
    hand = np.zeros((4, 5, 3, 2))
    for h, n in np.ndindex(5, 4):
        hand[n, h, episode.states[h, n], int(episode.actions[h, n])] = 1.0
    np.testing.assert_array_equal(rates, hand)
    many = visit_rates(problem, policy, np.random.default_rng(7), 300)
    np.testing.assert_allclose(many.sum(axis=(2, 3)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(many[..., 1].sum(axis=(0, 2)), 2.0, rtol=1e-12)  # the full budget, at every step


def test_visit_rates_need_a_round() -> None:
    problem = rmab.Problem(rmab.Arms(np.ones((1, 1, 2, 1))), 0, 1, 1)
    with pytest.raises(rmab.errors.ModelError, match="rounds must be at least 1, got 0"):
        visit_rates(problem, IndexPolicy(np.ones((1, 1)), 1), np.random.default_rng(0), 0)


def test_the_executed_policy_is_not_what_each_arm_would_do_alone() -> None:
    """Two arms that never move, shares 0.6 and 0.4: top-B always takes the first. Kernels are those that were counted."""
    view = view_of(2, 2, 3)
    counts = np.zeros((2, 2, 2, 2), dtype=int)
    counts[:, [0, 1], :, [0, 1]] = 5
    counts[1, 0, 0] = [0, 9]  # the passive arm moves to state 1
    policy = IndexPolicy(np.broadcast_to(np.array([0.6, 0.4])[:, None], (2, 2)), 1)
    rates = executed_occupancy(Pools.of(view), policy, counts, (0, 0))
    hand = np.zeros((2, 3, 2, 2))
    hand[0, :, 0, 1] = 1.0
    hand[1, 0, 0, 0] = 1.0
    hand[1, 1:, 1, 0] = 1.0
    np.testing.assert_array_equal(rates, hand)


def test_means_over_payoffs_and_blocks() -> None:
    values = np.array([[1.0], [2.0], [5.0]])
    _, alike, _ = tiny(pooled_rewards=True)
    np.testing.assert_array_equal(of_payoffs(alike, values), [[1.5], [5.0]])
    np.testing.assert_array_equal(of_blocks(alike, values), [[1.5], [5.0]])
    _, alone, _ = tiny()
    np.testing.assert_array_equal(of_payoffs(alone, values), values)


def test_gamma_by_hand() -> None:
    # S = 3, H = 50, T = 50, epsilon = 0.05: sqrt(ln(3 * 2500 * 2 / 0.05) / (50 * 3 * 2)) = sqrt(12.61154 / 300)
    assert exploration(view_of(2, 3, 50, episodes=50), 0.05) == pytest.approx(math.sqrt(12.611538 / 300), rel=1e-6)


def test_implicit_exploration_by_hand() -> None:
    """Rewards in [0, 1] are .6 of two passive visits in three, and so on (see test_rewards_of_a_range_are_mapped_to_0_1)."""
    _, _, seen = tiny()
    estimate = implicit_estimate(seen, np.full((3, 2, 2), 2.5))
    # Arm 0: active in 0 once at .6; passive in 1 twice at 0. Arm 2: passive in 1 twice at .2, active once at .8.
    hand = [
        [[1.0, 1 - 0.4 / 2.5], [1 - 2 / 2.5, 1.0]],
        [[1 - 0.6 / 2.5, 1 - 0.4 / 2.5], [1 - 1 / 2.5, 1.0]],
        [[1.0, 1.0], [1 - 0.8 * 2 / 2.5, 1 - 0.2 / 2.5]],
    ]
    np.testing.assert_allclose(estimate, hand, rtol=1e-14)


def test_implicit_exploration_is_optimistic_on_average_and_unbiased_without_gamma() -> None:
    """Two arms, one active: over many episodes the mean of r-hat is 1 - loss u / (u + gamma), u the executed visits."""
    rng = np.random.default_rng(3)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(2), size=(2, 2, 2))), 0, 1, 3)
    reward = rng.random((2, 2, 2))
    view = rmab.Task.from_rewards(problem, reward[None], low=0, high=1).view()
    policy = IndexPolicy(rng.random((2, 3, 2)), 1)
    expected = visit_rates(problem, policy, np.random.default_rng(5), 40_000).sum(axis=1)
    pools, rounds = Pools.of(view), 4000
    total, tilted = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    for k in range(rounds):
        episode = rmab.simulate(problem, policy, reward, np.random.default_rng((6, k)))
        seen = pools.observe(rmab.Feedback.reveal(view, 0, episode, reward))
        total += implicit_estimate(seen, np.maximum(expected, 1e-9)) / rounds
        tilted += implicit_estimate(seen, expected + 0.2) / rounds
    often = expected > 0.05
    np.testing.assert_allclose(total[often], reward[often], atol=0.12)
    assert (tilted >= reward - 0.05).all()
    np.testing.assert_allclose(tilted, 1 - (1 - reward) * expected / (expected + 0.2), atol=0.1)
