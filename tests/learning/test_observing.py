"""What an episode shows, against the same in NumPy."""

import numpy as np
import pytest

import rmab
from rmab.learning.compiled.observing import led_to, show
from rmab.learning.pools import Observations, Pools
from rmab.play import Feedback
from rmab.play.simulation import play_episode, random_streams
from rmab.runs.running import Game


def pooled(pools: Pools, feedback: Feedback) -> Observations:
    """Do what `Pools.observe` does."""
    states, actions, number = feedback.states, feedback.actions, pools.view.states
    low, high, phases = pools.view.low, pools.view.high, pools.view.phases
    step = pools.view.steps[: len(actions), np.newaxis]
    group, payoff = (((of * phases + step) * number + states[:-1]) * 2 + actions for of in (pools.group_of, pools.payoff_of))
    moves = group * number + states[1:]
    counts = np.bincount(moves.reshape(-1), minlength=pools.support.size).reshape(pools.support.shape)
    visits = np.bincount(payoff.reshape(-1), minlength=pools.zero.size).reshape(pools.zero.shape)
    values = np.full((len(pools.zero) // phases, *feedback.rewards.shape[1:]), np.nan)
    np.fmax.at(values, pools.payoff_of, (feedback.rewards - low) / (high - low))
    values = values.reshape(pools.zero.shape)
    values[pools.zero] = pools.floor
    arms = pools.arms_paid_alike[:, np.newaxis, np.newaxis]
    return Observations(counts, np.clip(values, 0.0, 1.0), visits / arms)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["cpap@noisy", "deadline@ramp", "cpap-adherence@weekly", "deadline-day"])
def test_observations(name):
    game = Game(rmab.make_task(name, episodes=1), [0])
    pools, rng = Pools.of(game.view), np.random.default_rng(0)
    policy = rmab.planners.random_policy(game.task.problem)
    game.begin(0, policy)
    feedback = game.feedback(play_episode(game.task.problem, policy, game.reward(), random_streams(rng, 1)))
    found, wanted = pools.observe(feedback), pooled(pools, feedback)
    for one in ("counts", "values", "visits"):
        np.testing.assert_array_equal(getattr(found, one), getattr(wanted, one))


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(20))
def test_where_activation_leads(seed):
    rng = np.random.default_rng(seed)
    states, horizon = int(rng.integers(1, 8)), int(rng.integers(1, 30))
    counts = rng.integers(0, 4, size=(3, states, 2, states)) * (rng.random((3, states, 2, states)) < 0.5)
    start, settled = rng.dirichlet(np.ones(states)), 0.5
    moves = counts[:, :, 1].sum(axis=0) + 1e-9 * np.eye(states)
    moves = moves / moves.sum(axis=1, keepdims=True)
    path = np.array([start @ np.linalg.matrix_power(moves, h) for h in range(horizon)])
    end = np.empty(states)
    steps = led_to(counts, start, horizon, settled, end)
    np.testing.assert_allclose(end, path[-1], rtol=1e-9, atol=1e-15)
    assert steps == int(np.argmax(0.5 * np.abs(path - path[-1]).sum(axis=1) <= settled)) + 1
    values = np.where(rng.random((5, states, 2)) < 0.5, np.nan, 1.0)
    zero, shown = rng.random((5, states, 2)) < 0.2, np.empty(5, dtype=bool)
    show(values, zero, end, 0.25, shown)
    paid = ~np.isnan(values[..., 1]) & ~zero[..., 1]
    np.testing.assert_array_equal(shown, (paid @ end >= 0.25 * (~zero[..., 1] @ end)) & paid.max(axis=1))
