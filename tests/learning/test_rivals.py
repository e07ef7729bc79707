"""Rivals with full information, and presets: slow literal transcriptions, with Clarabel for the projections."""

import math
from typing import Any

import numpy as np
import pytest

import literal
import rmab
from rival_games import ARMS, BUDGET, EPISODES, EPSILON, HORIZON, STATES, UNIFORM, ball_answer, epochs, game, played
from rmab.common.arrays import FloatArray
from rmab.learning.components.sets import has_doubled
from rmab.learning.registry import LEARNERS
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.feedback import Feedback

# ---------------------------------------------------------------- 1. uc-o-reps


def test_uc_o_reps_solves_its_programme() -> None:
    learner = rmab.make_learner("uc-o-reps", epsilon=EPSILON)
    course = played(learner, *game("full"))
    rate, before = literal.eta(STATES, EPISODES), UNIFORM
    for (state, feedback, _), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_array_equal(state.arrays["refresh.epoch"], epoch)
        answer = ball_answer(before, epoch, BUDGET)
        np.testing.assert_allclose(state.arrays["step.flow"], answer, atol=1e-4)
        np.testing.assert_allclose(
            learner.plan(state).policy.table, literal.rmi_index(state.arrays["step.flow"]), atol=1e-12
        )
        loss = 1.0 - feedback.rewards
        before = np.maximum(state.arrays["step.flow"], 1e-12) * np.exp(-rate * loss)[:, None, :, :, None]
    np.testing.assert_array_equal(learner.estimate(course[-1][2]), course[-1][1].rewards)


def test_uc_o_reps_is_the_paper_s_learner_with_true_rewards() -> None:
    """`ucmd` with L1 sets, the active step and the direct estimator sees the same: but for epochs, they are one."""
    view, problem, rewards = game("full")
    ours = rmab.make_learner("ucmd", confidence="l1", estimator="direct", step="active", epsilon=EPSILON)
    rival = rmab.make_learner("uc-o-reps", epsilon=EPSILON)
    one, other = ours.begin(view), rival.begin(view)
    for t in range(EPISODES):
        np.testing.assert_allclose(one.arrays["mass"], other.arrays["mass"], atol=1e-6)
        episode = rmab.simulate(problem, ours.plan(one).policy, rewards[t], np.random.default_rng(t))
        feedback = Feedback.reveal(view, t, episode, rewards[t])
        one, other = ours.learn(one, feedback), rival.learn(other, feedback)
        if not np.array_equal(other.arrays["refresh.epoch"], one.arrays["sets.counts"]):
            break
    assert t >= 1


def test_an_epoch_ends_when_a_count_has_doubled() -> None:
    epoch = np.zeros((1, 1, 2), dtype=int)
    assert not has_doubled(epoch, epoch)
    assert has_doubled(epoch, np.array([[[1, 0]]]))
    assert not has_doubled(np.array([[[3, 2]]]), np.array([[[5, 3]]]))
    assert has_doubled(np.array([[[3, 2]]]), np.array([[[5, 4]]]))


# ---------------------------------------------------------------- 5. ucpd, 6. pdgd-ops


def used(z: FloatArray, h: int) -> float:
    return float(z[:, h, :, 1].sum())


def mixed(z: FloatArray) -> FloatArray:
    return (1 - 1 / EPISODES) * z + (1 / EPISODES) / (2 * STATES**2)


def test_ucpd_follows_its_queues() -> None:
    learner = rmab.make_learner("ucpd", epsilon=EPSILON, v=2.0, alpha=0.25)
    course = played(learner, *game("full"))
    v, alpha = 2.0 * HORIZON * math.sqrt(EPISODES), 0.25 * HORIZON * EPISODES
    queue, before, total = [0.0] * HORIZON, UNIFORM, [0.0] * HORIZON
    for (state, feedback, after), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_allclose(state.arrays["step.flow"], ball_answer(before, epoch, ARMS), atol=1e-4)
        z, loss = state.arrays["step.flow"], 1.0 - feedback.rewards
        for h in range(HORIZON):
            over = used(z, h) / ARMS - BUDGET / ARMS
            queue[h], total[h] = max(queue[h] + over, 0.0), total[h] + over
        np.testing.assert_allclose(after.arrays["step.prices"], queue, rtol=1e-10, atol=1e-14)
        before = mixed(z)
        for n, h, s, a in np.ndindex(ARMS, HORIZON, STATES, 2):
            before[n, h, s, a] *= math.exp(-(v * loss[n, s, a] + queue[h] * a) / alpha)
    assert learner.violation(course[0][0]) == 0.0
    worst = max(0.0, *total) * ARMS / BUDGET / EPISODES
    assert learner.violation(course[-1][2]) == pytest.approx(worst, rel=1e-9)


def test_pdgd_ops_follows_its_prices() -> None:
    learner = rmab.make_learner("pdgd-ops", epsilon=EPSILON, dual=30.0)
    course = played(learner, *game("full"))
    dual = 30 / (HORIZON * math.sqrt(EPISODES * math.log(EPISODES**2 / EPSILON)))
    prices, greatest, before = [0.0] * HORIZON, 0.0, UNIFORM
    for (state, feedback, after), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_allclose(state.arrays["step.flow"], ball_answer(before, epoch, ARMS), atol=1e-4)
        z, gain = state.arrays["step.flow"], np.zeros((ARMS, HORIZON, STATES, 2))
        for n, h, s, a in np.ndindex(gain.shape):
            gain[n, h, s, a] = feedback.rewards[n, s, a] - prices[h] * a
        greatest = max(greatest, float(np.abs(gain).max()))
        before = mixed(z) * np.exp(literal.eta(STATES, EPISODES) / greatest * gain)[..., None]
        for h in range(HORIZON):
            prices[h] = min(max(prices[h] + dual * (used(z, h) - BUDGET) / ARMS, 0.0), EPISODES**0.25)
        np.testing.assert_allclose(after.arrays["step.prices"], prices, rtol=1e-9, atol=1e-12)
    assert max(prices) > 0.1  # the formula above had something to do


def violation(name: str, episodes: int, **options: float) -> float:
    """Return the average violation of two arms that both want to be active, for one step, after so many episodes."""
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(2), size=(2, 2, 2))), 0, 1, 1)
    rewards = 0.5 * rng.random((1, 2, 2, 2)) + 0.5 * rng.random((episodes, 2, 2, 2))
    rewards[..., 0] = 0.0
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, feedback="full", passive_zero=True)
    learner = rmab.make_learner(name, **options)
    return learner.violation(rmab.run(task, learner).state)


@pytest.mark.parametrize(("name", "still"), [("ucpd", {"v": 1e3, "alpha": 1e3}), ("pdgd-ops", {"dual": 1e-6})])
def test_the_average_violation_vanishes(name: str, still: dict[str, float]) -> None:
    some, many = violation(name, 25), violation(name, 400)
    assert some > 0.2
    assert many < 0.15
    assert many < some / 3
    assert violation(name, 200, **still) > 0.4  # prices that hardly move do not get there


# ---------------------------------------------------------------- presets

RIVALS = ("uc-o-reps", "shifted-uc-o-reps", "uob-reps", "dilated-po", "ucpd", "pdgd-ops")


@pytest.mark.parametrize("name", RIVALS)
def test_presets(name: str) -> None:
    theory, tuned = rmab.make_learner(name), rmab.make_learner(name, preset="tuned")
    assert LEARNERS[theory.name].paper
    assert theory.signature != tuned.signature
    parameters = [field for field in theory.options if field not in ("preset", "epsilon", "rounding", "rule")]
    assert set(tuned.TUNED) == set(parameters)
    for parameter in parameters:
        assert theory.parameter(parameter) == 1.0
        assert tuned.parameter(parameter) == tuned.TUNED[parameter]
        assert rmab.make_learner(name, preset="tuned", **{parameter: 0.125}).parameter(parameter) == 0.125
    with pytest.raises(rmab.errors.ModelError, match=f"learner {name}: preset: .*'theory' or 'tuned'"):
        rmab.make_learner(name, preset="best")


def late(name: str, **options: Any) -> float:
    """Return what is earned per episode at the end, of 1.8 for always the first of three arms and 0.87 for chance."""
    problem, rewards = Problem(Arms(np.ones((3, 1, 2, 1))), 0, 1, 2), np.zeros((300, 3, 1, 2))
    rewards[:, :, 0, 1] = [0.9, 0.2, 0.2]
    learner = rmab.make_learner(name, **options)
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, passive_zero=True, feedback=learner.feedback)
    return float(rmab.run(task, learner).reward[200:].mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("uc-o-reps", {}, 1.75),
        ("shifted-uc-o-reps", {}, 1.3),
        ("uob-reps", {}, 1.5),
        ("dilated-po", {"rate": 0.03, "gamma": 0.1}, 1.4),
        ("ucpd", {}, 1.55),
        ("pdgd-ops", {}, 1.25),
        ("ucpd", {"rounding": "top"}, 1.75),
        ("pdgd-ops", {"rounding": "top"}, 1.75),
    ],
)
def test_they_learn(name: str, options: dict[str, Any], least: float) -> None:
    assert late(name, **options) > least


def test_importance_weights_need_draws() -> None:
    """An arm that is left out is never seen to lose, so that its turn comes, over and over."""
    assert late("uob-reps", rounding="top") < 1.55
