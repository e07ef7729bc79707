"""The six rivals against slow literal transcriptions of their formulas, with Clarabel for the projections."""

import math
from typing import Any

import numpy as np
import pytest

import instances
import literal
import oracle
import rmab
from episodes import tiny, view_of
from rmab.arrays import FloatArray
from rmab.learning.base import Learner, State
from rmab.learning.confidence import Confidence
from rmab.learning.exposure import (
    bounds,
    executed_occupancy,
    exploration,
    importance,
    own_occupancy,
    rows_of,
    weighted_losses,
)
from rmab.learning.feedback import Feedback
from rmab.learning.occupancy import doubled
from rmab.learning.pools import Pools
from rmab.learning.shifted_uc_o_reps import shifted_box
from rmab.policy import IndexPolicy
from rmab.problem import Arms, Problem, View
from rmab.simulation import visit_rates

ARMS, STATES, HORIZON, EPISODES, BUDGET = 2, 2, 3, 4, 1
EPSILON = 0.9  # so that sets bind after few episodes


def game(feedback: str) -> tuple[View, Problem, FloatArray]:
    """Two arms of two states for three steps, one active; rewards (T,N,S,2) in [0, 1]."""
    rng = np.random.default_rng(11)
    problem = Problem(Arms(rng.dirichlet(np.full(STATES, 0.7), size=(ARMS, STATES, 2))), [0, 1], BUDGET, HORIZON)
    rewards = rng.random((EPISODES, ARMS, STATES, 2)) / 2
    rewards[..., 1] += 0.5  # all want to be active: the budget binds
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, feedback=feedback)
    return task.view(), problem, rewards


def played(learner: Learner, view: View, problem: Problem, rewards: FloatArray) -> list[tuple[State, Feedback, State]]:
    """Every episode: the state before it, what was seen, and the state after it."""
    state, course = learner.begin(view, seed=3), []
    for t in range(EPISODES):
        episode = rmab.simulate(problem, learner.plan(state).policy, rewards[t], np.random.default_rng((5, t)))
        feedback = Feedback.reveal(view, t, episode, rewards[t])
        after = learner.learn(state, feedback)
        course.append((state, feedback, after))
        state = after
    return course


def iota() -> float:
    return literal.iota(states=STATES, blocks=ARMS, horizon=HORIZON, episodes=EPISODES, epsilon=EPSILON)


def ball(counts: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Centres (N,S,2,S) and radii (N,S,2) of the L1 balls."""
    centre = literal.empirical(counts, np.ones(counts.shape, dtype=bool))
    radius = np.zeros(counts.shape[:3])
    for n, s, a in np.ndindex(radius.shape):
        radius[n, s, a] = literal.l1_radius(int(counts[n, s, a].sum()), iota(), STATES)
    return centre, radius


def box(counts: np.ndarray, width: Any) -> tuple[FloatArray, FloatArray]:
    """Boxes (N,S,2,S) of a width by mean, visits and logarithm."""
    mean = literal.empirical(counts, np.ones(counts.shape, dtype=bool))
    low, high = np.zeros(counts.shape), np.zeros(counts.shape)
    for n, s, a, y in np.ndindex(counts.shape):
        reach = width(float(mean[n, s, a, y]), int(counts[n, s, a].sum()), iota())
        low[n, s, a, y], high[n, s, a, y] = literal.box(float(mean[n, s, a, y]), reach, True)
    return low, high


def epochs(course: list[tuple[State, Feedback, State]]) -> list[np.ndarray]:
    """Counts (N,S,2,S) at the beginning of the epoch of every plan: rebuilt when a pair's count has doubled."""
    counts = np.zeros((ARMS, STATES, 2, STATES), dtype=int)
    epoch, found = counts, [counts]
    for _, feedback, _ in course:
        counts = counts + literal.transition_counts(feedback.states, feedback.actions, list(range(ARMS)), STATES)
        for pair in np.ndindex(counts.shape[:3]):
            if counts[pair].sum() >= max(1, 2 * epoch[pair].sum()):
                epoch = counts
                break
        found.append(epoch)
    return found


def ball_answer(reference: FloatArray, counts: np.ndarray, budget: float) -> FloatArray:
    centre, radius = ball(counts)
    return oracle.clarabel(instances.Instance(reference, centre, None, [0, 1], budget, radius).program).z


UNIFORM = np.full((ARMS, HORIZON, STATES, 2, STATES), 1 / (2 * STATES**2))


# ---------------------------------------------------------------- 1. uc-o-reps


def test_uc_o_reps_solves_its_programme() -> None:
    learner = rmab.learner("uc-o-reps", epsilon=EPSILON)
    course = played(learner, *game("full"))
    rate, before = literal.eta(STATES, EPISODES), UNIFORM
    for (state, feedback, _), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_array_equal(state.arrays["epoch"], epoch)
        answer = ball_answer(before, epoch, BUDGET)
        np.testing.assert_allclose(state.arrays["flow"], answer, atol=1e-4)
        np.testing.assert_allclose(learner.plan(state).policy.table, literal.rmi_index(state.arrays["flow"]), atol=1e-12)
        loss = 1.0 - feedback.rewards
        before = np.maximum(state.arrays["flow"], 1e-12) * np.exp(-rate * loss)[:, None, :, :, None]
    np.testing.assert_array_equal(learner.estimate(course[-1][2]), course[-1][1].rewards)


def test_uc_o_reps_is_the_paper_s_learner_with_true_rewards() -> None:
    """`ucmd` with L1 sets, the active step and the direct estimator sees the same: but for epochs, they are one."""
    view, problem, rewards = game("full")
    ours = rmab.learner("ucmd", confidence="l1", estimator="direct", step="active", epsilon=EPSILON)
    rival = rmab.learner("uc-o-reps", epsilon=EPSILON)
    one, other = ours.begin(view), rival.begin(view)
    for t in range(EPISODES):
        np.testing.assert_allclose(one.arrays["mass"], other.arrays["mass"], atol=1e-6)
        episode = rmab.simulate(problem, ours.plan(one).policy, rewards[t], np.random.default_rng(t))
        feedback = Feedback.reveal(view, t, episode, rewards[t])
        one, other = ours.learn(one, feedback), rival.learn(other, feedback)
        if not np.array_equal(other.arrays["epoch"], one.arrays["counts"]):
            break
    assert t >= 1


def test_an_epoch_ends_when_a_count_has_doubled() -> None:
    epoch = np.zeros((1, 1, 2, 1), dtype=int)
    assert not doubled(epoch, epoch)
    assert doubled(epoch, np.array([[[[1], [0]]]]))
    assert not doubled(np.array([[[[3], [2]]]]), np.array([[[[5], [3]]]]))
    assert doubled(np.array([[[[3], [2]]]]), np.array([[[[5], [4]]]]))


# ---------------------------------------------------------------- 5. ucpd, 6. pdgd-ops


def used(z: FloatArray, h: int) -> float:
    return float(z[:, h, :, 1].sum())


def mixed(z: FloatArray) -> FloatArray:
    return (1 - 1 / EPISODES) * z + (1 / EPISODES) / (2 * STATES**2)


def test_ucpd_follows_its_queues() -> None:
    learner = rmab.learner("ucpd", epsilon=EPSILON, v=2.0, alpha=0.25)
    course = played(learner, *game("full"))
    v, alpha = 2.0 * HORIZON * math.sqrt(EPISODES), 0.25 * HORIZON * EPISODES
    queue, before, total = [0.0] * HORIZON, UNIFORM, [0.0] * HORIZON
    for (state, feedback, after), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_allclose(state.arrays["flow"], ball_answer(before, epoch, ARMS), atol=1e-4)
        z, loss = state.arrays["flow"], 1.0 - feedback.rewards
        for h in range(HORIZON):
            over = used(z, h) / ARMS - BUDGET / ARMS
            queue[h], total[h] = max(queue[h] + over, 0.0), total[h] + over
        np.testing.assert_allclose(after.arrays["prices"], queue, rtol=1e-10, atol=1e-14)
        before = mixed(z)
        for n, h, s, a in np.ndindex(ARMS, HORIZON, STATES, 2):
            before[n, h, s, a] *= math.exp(-(v * loss[n, s, a] + queue[h] * a) / alpha)
    assert learner.violation(course[0][0]) == 0.0
    worst = max(0.0, *total) * ARMS / BUDGET / EPISODES
    assert learner.violation(course[-1][2]) == pytest.approx(worst, rel=1e-9)


def test_pdgd_ops_follows_its_prices() -> None:
    learner = rmab.learner("pdgd-ops", epsilon=EPSILON, dual=30.0)
    course = played(learner, *game("full"))
    dual = 30 / (HORIZON * math.sqrt(EPISODES * math.log(EPISODES**2 / EPSILON)))
    prices, greatest, before = [0.0] * HORIZON, 0.0, UNIFORM
    for (state, feedback, after), epoch in zip(course, epochs(course), strict=False):
        np.testing.assert_allclose(state.arrays["flow"], ball_answer(before, epoch, ARMS), atol=1e-4)
        z, gain = state.arrays["flow"], np.zeros((ARMS, HORIZON, STATES, 2))
        for n, h, s, a in np.ndindex(gain.shape):
            gain[n, h, s, a] = feedback.rewards[n, s, a] - prices[h] * a
        greatest = max(greatest, float(np.abs(gain).max()))
        before = mixed(z) * np.exp(literal.eta(STATES, EPISODES) / greatest * gain)[..., None]
        for h in range(HORIZON):
            prices[h] = min(max(prices[h] + dual * (used(z, h) - BUDGET) / ARMS, 0.0), EPISODES**0.25)
        np.testing.assert_allclose(after.arrays["prices"], prices, rtol=1e-9, atol=1e-12)
    assert max(prices) > 0.1  # the formula above had something to do


def violation(name: str, episodes: int, **options: float) -> float:
    """Return the average violation of two arms that both want to be active, for one step, after so many episodes."""
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(2), size=(2, 2, 2))), 0, 1, 1)
    rewards = 0.5 * rng.random((1, 2, 2, 2)) + 0.5 * rng.random((episodes, 2, 2, 2))
    rewards[..., 0] = 0.0
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, feedback="full", passive_zero=True)
    learner = rmab.learner(name, **options)
    return learner.violation(rmab.run(task, learner).state)


@pytest.mark.parametrize(("name", "still"), [("ucpd", {"v": 1e3, "alpha": 1e3}), ("pdgd-ops", {"dual": 1e-6})])
def test_the_average_violation_vanishes(name: str, still: dict[str, float]) -> None:
    some, many = violation(name, 25), violation(name, 400)
    assert some > 0.2
    assert many < 0.15
    assert many < some / 3
    assert violation(name, 200, **still) > 0.4  # prices that hardly move do not get there


# ---------------------------------------------------------------- importance weights


def literal_own(counts: np.ndarray, share: FloatArray, start: list[int]) -> FloatArray:
    kernel = literal.empirical(counts, np.ones(counts.shape, dtype=bool))
    q = np.zeros((*share.shape, 2))
    for n in range(len(share)):
        law = np.eye(share.shape[2])[start[n]]
        for h in range(share.shape[1]):
            for s in range(share.shape[2]):
                q[n, h, s] = law[s] * (1 - share[n, h, s]), law[s] * share[n, h, s]
            law = np.einsum("sa,say->y", q[n, h], kernel[n])
    return q


def test_own_occupancies_are_followed_by_hand() -> None:
    view, rng = view_of(2, 3, 4, start=np.array([0, 2])), np.random.default_rng(2)
    counts, share = rng.integers(0, 9, size=(2, 3, 2, 3)), rng.random((2, 4, 3))
    np.testing.assert_allclose(own_occupancy(view, Pools.of(view), share, counts), literal_own(counts, share, [0, 2]))


@pytest.mark.parametrize("seed", range(4))
def test_upper_bounds_make_estimates_optimistic(seed: int) -> None:
    """For an arm that follows its own policy, E of loss-hat is loss q / (u + gamma) <= loss: the set holds the kernel."""
    rng = np.random.default_rng(seed)
    kernel, view = rng.dirichlet(np.ones(3), size=(1, 3, 2)), view_of(1, 3, 5, episodes=20)
    counts = np.stack([[[rng.multinomial(60, row) for row in state] for state in kernel[0]]])
    sets = Confidence("bernstein", 0.05).kernels(view, counts, Pools.of(view).support, 0)
    assert ((sets.low <= kernel) & (kernel <= sets.high)).all()
    share = rng.random((1, 5, 3))
    upper = bounds(Pools.of(view), rows_of(Pools.of(view), sets), share, np.ones(share.shape, dtype=bool), most=True)
    lower = bounds(Pools.of(view), rows_of(Pools.of(view), sets), share, np.ones(share.shape, dtype=bool), most=False)
    scale = 10**6  # counts so large that their means are the kernel
    true = literal_own(np.rint(kernel * scale).astype(int), share, [0])
    assert (true <= upper + 1e-5).all()
    assert (true >= lower - 1e-5).all()
    assert (upper - true).max() > 0.05
    loss = rng.random((1, 1, 3, 2))
    assert (loss * true / (upper + exploration(view, 0.05)) <= loss).all()


def test_estimates_under_the_hard_budget_are_optimistic_too() -> None:
    """Arms ranked together: the mean of loss-hat, over what truly happens, is at most the loss, sets holding the kernels."""
    rng = np.random.default_rng(5)
    kernel, view = rng.dirichlet(np.ones(2), size=(3, 2, 2)), view_of(3, 2, 4, episodes=20)
    counts = np.stack([[[rng.multinomial(80, row) for row in state] for state in arm] for arm in kernel])
    pools = Pools.of(view)
    sets = Confidence("bernstein", 0.05).kernels(view, counts, pools.support, 0)
    assert ((sets.low <= kernel) & (kernel <= sets.high)).all()
    share = rng.random((3, 4, 2))
    policy = IndexPolicy(share, 1, rounding="dependent")
    upper = bounds(pools, rows_of(pools, sets), share, np.ones(share.shape, dtype=bool), most=True)
    weights = importance(view, pools, policy, share, counts, upper, (1, 1)) + exploration(view, 0.05)
    true = visit_rates(Problem(Arms(kernel), 0, 1, 4), policy, np.random.default_rng(9), 20_000)
    assert (true / weights).max() < 1.0
    assert (true / weights).max() > 0.5  # and not by far


def literal_weights(executed: FloatArray, own: FloatArray, hoped: FloatArray) -> FloatArray:
    """Return executed visits times hoped over own mass of the state, at least 1 and at most what makes the state certain."""
    weights = np.zeros(executed.shape)
    for n, h, s in np.ndindex(executed.shape[:3]):
        seen, mine, wanted = (float(table[n, h, s].sum()) for table in (executed, own, hoped))
        for a in (0, 1):
            if seen == 0:
                weights[n, h, s, a] = hoped[n, h, s, a]
            else:
                factor = wanted / mine if mine > 0 else math.inf if wanted > 0 else 1.0
                weights[n, h, s, a] = executed[n, h, s, a] * min(max(factor, 1.0), 1 / seen)
    return weights


def test_importance_is_executed_visits_times_the_optimism() -> None:
    view, rng = view_of(2, 3, 3, start=np.array([0, 1])), np.random.default_rng(0)
    pools, counts = Pools.of(view), rng.integers(1, 9, size=(2, 3, 2, 3))
    counts[0, :, :, 2] = 0  # as far as is known, arm 0 never comes there
    share, hoped = rng.random((2, 3, 3)), rng.random((2, 3, 3, 2)) / 3
    policy = IndexPolicy(share, 1, rounding="dependent")
    weights = importance(view, pools, policy, share, counts, hoped, (4, 2))
    executed = executed_occupancy(view, pools, policy, counts, (4, 2))
    assert (executed[0, :, 2] == 0).all()
    np.testing.assert_allclose(weights, literal_weights(executed, literal_own(counts, share, [0, 1]), hoped), rtol=1e-12)
    assert weights.sum(axis=3).max() <= 1 + 1e-12
    assert (weights[1] > 1.1 * executed[1]).any()


def test_importance_of_what_is_hardly_planned_but_done() -> None:
    """The one arm is always active, as the budget is filled, though its plan has 1e-310 of that: weights stay in [0, 1]."""
    view, counts = view_of(1, 2, 2), np.zeros((1, 2, 2, 2), dtype=int)
    counts[0, :, 0, 0] = counts[0, :, 1, 1] = 9  # active moves to 1, passive to 0
    share, hoped = np.full((1, 2, 2), 1e-310), np.full((1, 2, 2, 2), 0.25)
    weights = importance(view, Pools.of(view), IndexPolicy(share, 1), share, counts, hoped, (0, 0))
    hand = np.full((1, 2, 2, 2), 0.25)  # where no simulated episode came
    hand[0, 0, 0] = hand[0, 1, 1] = [0.0, 1.0]
    np.testing.assert_array_equal(weights, hand)


def test_importance_treats_both_actions_alike() -> None:
    """An arm that plans to be active more often than it is has no better weights for being active."""
    view, counts = view_of(2, 2, 3), np.full((2, 2, 2, 2), 5)
    pools, share = Pools.of(view), np.full((2, 3, 2), 0.9)
    policy = IndexPolicy(share, 1, rounding="dependent")
    own = own_occupancy(view, pools, share, counts)
    weights = importance(view, pools, policy, share, counts, 1.5 * own, (0, 0))
    executed = executed_occupancy(view, pools, policy, counts, (0, 0))
    ratio = weights[:, 1:] / executed[:, 1:]
    np.testing.assert_allclose(ratio[..., 0], ratio[..., 1], rtol=1e-12)
    assert ratio.min() > 1.2


# ---------------------------------------------------------------- 2. shifted-uc-o-reps, 3. uob-reps


def weighted(feedback: Feedback, weights: FloatArray) -> FloatArray:
    """(N,H,S,2) loss-hat: the loss over the weight where the arm was at that step, 0 elsewhere."""
    estimate = np.zeros(weights.shape)
    for h, n in np.ndindex(feedback.actions.shape):
        s, a = int(feedback.states[h, n]), int(feedback.actions[h, n])
        estimate[n, h, s, a] = (1 - feedback.rewards[n, s, a]) / weights[n, h, s, a]
    return estimate


def test_uob_reps_solves_its_programme() -> None:
    view, problem, rewards = game("bandit")
    learner = rmab.learner("uob-reps", epsilon=EPSILON, rate=1.5, gamma=0.5)
    course = played(learner, view, problem, rewards)
    # sqrt(ln(S H^2 A / epsilon) / (T S A)) = sqrt(ln(2 * 9 * 2 / 0.9) / 16) = sqrt(ln 40 / 16)
    theory, before, pools = math.sqrt(math.log(40) / 16), UNIFORM, Pools.of(view)
    assert exploration(view, EPSILON) == pytest.approx(theory, rel=1e-13)
    for t, ((state, feedback, _), epoch) in enumerate(zip(course, epochs(course), strict=False)):
        low, high = box(epoch, literal.bernstein_width)
        answer = oracle.clarabel(instances.Instance(before, low, high, [0, 1], BUDGET).program).z
        np.testing.assert_allclose(state.arrays["flow"], answer, atol=1e-4)
        share = literal.rmi_index(state.arrays["flow"])
        sets = Confidence("bernstein", EPSILON).kernels(view, epoch, pools.support, 0)
        np.testing.assert_allclose(sets.low, low, atol=1e-14)
        upper = bounds(pools, rows_of(pools, sets), share, np.ones(share.shape, dtype=bool), most=True)
        executed = executed_occupancy(view, pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
        weights = literal_weights(executed, literal_own(epoch, share, [0, 1]), upper) + 0.5 * theory
        tilt = np.exp(-1.5 * theory * weighted(feedback, weights))
        before = np.maximum(state.arrays["flow"], 1e-12) * tilt[..., None]


def test_shifted_uc_o_reps_solves_its_programme() -> None:
    view, problem, rewards = game("bandit")
    learner = rmab.learner("shifted-uc-o-reps", epsilon=EPSILON, rate=2.0, shift=0.5)
    course = played(learner, view, problem, rewards)
    alpha = 0.5 / math.sqrt(2)  # T^(-1/4) = 4^(-1/4)
    rate, before, pools = 2 * math.sqrt(math.log(8) * alpha / 16), UNIFORM, Pools.of(view)
    for t, ((state, feedback, _), epoch) in enumerate(zip(course, epochs(course), strict=False)):
        centre, radius = ball(epoch)
        low, high = np.zeros(centre.shape), np.zeros(centre.shape)
        for n, s, a, y in np.ndindex(centre.shape):
            ends = literal.box(float(centre[n, s, a, y]), radius[n, s, a] / 2, True)
            low[n, s, a, y], high[n, s, a, y] = ((1 - alpha) * end + alpha / STATES for end in ends)
        answer = oracle.clarabel(instances.Instance(before, low, high, [0, 1], BUDGET).program).z
        np.testing.assert_allclose(state.arrays["flow"], answer, atol=1e-4)
        mass = state.arrays["flow"].sum(axis=4)
        assert mass[:, 1:].sum(axis=3).min() >= alpha / STATES - 1e-9  # no state of the plan is rare
        share = literal.rmi_index(state.arrays["flow"])
        executed = executed_occupancy(view, pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
        weights = literal_weights(executed, literal_own(epoch, share, [0, 1]), mass)
        tilt = np.exp(-rate * weighted(feedback, np.maximum(weights, alpha / 4)))
        before = np.maximum(state.arrays["flow"], 1e-12) * tilt[..., None]


def test_the_shifted_box_holds_every_shifted_kernel_of_the_ball() -> None:
    view, rng = view_of(1, 3, 4, episodes=30), np.random.default_rng(8)
    pools = Pools.of(view)
    sets = Confidence("l1", 0.05).kernels(view, rng.integers(50, 400, size=(1, 3, 2, 3)), pools.support, 0)
    shifted = shifted_box(pools, sets, 0.2)
    for _ in range(300):
        kernel = rng.dirichlet(np.ones(3), size=(1, 3, 2))
        gap = np.abs(kernel - sets.low).sum(axis=3)
        near = sets.low + (kernel - sets.low) * np.minimum(sets.radius / gap, 1.0)[..., None]
        moved = 0.8 * near + 0.2 / 3
        assert ((shifted.low - 1e-12 <= moved) & (moved <= shifted.high + 1e-12)).all()
    assert shifted.low.min() >= 0.2 / 3
    assert shifted.high.max() < 0.95  # and it is not everything


def test_known_rewards_are_not_weighted() -> None:
    """Passive pairs that are declared to pay nothing are known: loss 1 at every step. Others: by hand."""
    _, pools, seen = tiny(passive_zero=True)
    visits, weights = np.zeros((3, 3, 2, 2)), np.full((3, 3, 2, 2), 0.5)
    visits[0, 0, 0, 1] = visits[0, 1, 1, 0] = 1.0
    losses = weighted_losses(pools, seen, visits, weights)
    np.testing.assert_allclose(losses[..., 0], 0.6, rtol=1e-14)  # a reward of 0 in [-2, 3] is 0.4
    hand = np.zeros((3, 3, 2))
    hand[0, 0, 0] = 0.4 / 0.5  # it paid 1, which is 0.6
    np.testing.assert_allclose(losses[..., 1], hand, rtol=1e-14)


# ---------------------------------------------------------------- 4. dilated-po


def test_dilated_po_is_its_literal_twin() -> None:
    view, problem, rewards = game("bandit")
    learner = rmab.learner("dilated-po", epsilon=EPSILON, rate=0.6, gamma=0.3, bonus=0.5)
    course, pools = played(learner, view, problem, rewards), Pools.of(view)
    eta = 0.6 / HORIZON
    gamma = 0.3 * 2 * eta * HORIZON
    total, prices = np.zeros((ARMS, HORIZON, STATES, 2)), [0.0] * HORIZON
    for t, ((state, feedback, after), epoch) in enumerate(zip(course, epochs(course), strict=False)):
        share = np.zeros((ARMS, HORIZON, STATES))
        for place in np.ndindex(share.shape):
            weights = [math.exp(-eta * total[place][a]) for a in (0, 1)]
            share[place] = weights[1] / sum(weights)
        np.testing.assert_allclose(learner.plan(state).policy.table, share, rtol=1e-10)
        low, high = box(epoch, literal.wide_bernstein_width)
        sets = Confidence("wide-bernstein", EPSILON).kernels(view, epoch, pools.support, 0)
        np.testing.assert_allclose(sets.low, low, atol=1e-14)
        np.testing.assert_allclose(sets.high, high, atol=1e-14)
        everywhere = np.ones(share.shape, dtype=bool)
        most, least = (bounds(pools, rows_of(pools, sets), share, everywhere, most=sign) for sign in (True, False))
        executed = executed_occupancy(view, pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
        weights = literal_weights(executed, literal_own(epoch, share, [0, 1]), most)
        for n in range(ARMS):
            bonus = literal_bonus(share[n], most[n], least[n], low[n], high[n], gamma)
            to_go = 0.0
            for h in range(HORIZON - 1, -1, -1):
                s, a = int(feedback.states[h, n]), int(feedback.actions[h, n])
                to_go += 1 - feedback.rewards[n, s, a] + prices[h] * a
                total[n, h, s, a] += to_go / (weights[n, h, s, a] + gamma)
            total[n] -= 0.5 * bonus
        own = literal_own(epoch, share, [0, 1])
        for h in range(HORIZON):
            excess = own[:, h, :, 1].sum() - BUDGET
            prices[h] = min(max(prices[h] + excess / (ARMS * math.sqrt(EPISODES)), 0.0), 1.0)
        np.testing.assert_allclose(after.arrays["losses"], total, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(after.arrays["prices"], prices, rtol=1e-9, atol=1e-12)


def literal_bonus(
    share: FloatArray, most: FloatArray, least: FloatArray, low: FloatArray, high: FloatArray, gamma: float
) -> FloatArray:
    """(H,S,2) B of one arm; with two states the best kernel of a row puts all it may on the better state."""
    bonus = np.zeros((HORIZON + 1, STATES, 2))
    for h in range(HORIZON - 1, -1, -1):
        mean = [0.0, 0.0]
        if h + 1 < HORIZON:
            mean = [(1 - share[h + 1, y]) * bonus[h + 1, y, 0] + share[h + 1, y] * bonus[h + 1, y, 1] for y in (0, 1)]
        for s in range(STATES):
            local = 0.0
            for a, chance in ((0, 1 - share[h, s]), (1, share[h, s])):
                wide = HORIZON * (most[h, s, a] - least[h, s, a])
                local += chance * (3 * gamma * HORIZON + wide) / (most[h, s, a] + gamma)
            for a in (0, 1):
                better = int(mean[1] > mean[0])
                best = min(high[s, a, better], 1 - low[s, a, 1 - better])
                ahead = best * mean[better] + (1 - best) * mean[1 - better]
                bonus[h, s, a] = local + (1 + 1 / HORIZON) * ahead
    return bonus[:HORIZON]


def test_the_rate_of_dilated_po_by_hand() -> None:
    view = view_of(2, 3, 50, episodes=50)
    # 1 / (24 * 125000) = 3.33e-7, far below 1 / sqrt(3 * 50 * 2 * 50 * 50) = 1.2e-3.
    assert rmab.learner("dilated-po").eta(view) == pytest.approx(1 / 3_000_000, rel=1e-12)
    assert rmab.learner("dilated-po", rate=0.5).eta(view) == pytest.approx(0.01, rel=1e-12)
    short = view_of(2, 3, 1, episodes=10_000)
    assert rmab.learner("dilated-po").eta(short) == pytest.approx(1 / math.sqrt(3 * 2 * 10_000), rel=1e-12)


# ---------------------------------------------------------------- presets

RIVALS = ("uc-o-reps", "shifted-uc-o-reps", "uob-reps", "dilated-po", "ucpd", "pdgd-ops")


@pytest.mark.parametrize("name", RIVALS)
def test_presets(name: str) -> None:
    theory, tuned = rmab.learner(name), rmab.learner(name, preset="tuned")
    assert theory.paper
    assert theory.signature != tuned.signature
    parameters = [field for field in theory.options if field not in ("preset", "epsilon", "rounding")]
    assert set(tuned.settings.TUNED) == set(parameters)
    for parameter in parameters:
        assert theory.settings.chosen(parameter) == 1.0
        assert tuned.settings.chosen(parameter) == tuned.settings.TUNED[parameter]
        assert rmab.learner(name, preset="tuned", **{parameter: 0.125}).settings.chosen(parameter) == 0.125
    with pytest.raises(rmab.ModelError, match=f"learner {name}: preset: .*'theory' or 'tuned'"):
        rmab.learner(name, preset="best")


def late(name: str, **options: Any) -> float:
    """Return what is earned per episode at the end, of 1.8 for always the first of three arms and 0.87 for chance."""
    problem, rewards = Problem(Arms(np.ones((3, 1, 2, 1))), 0, 1, 2), np.zeros((300, 3, 1, 2))
    rewards[:, :, 0, 1] = [0.9, 0.2, 0.2]
    learner = rmab.learner(name, **options)
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, passive_zero=True, feedback=learner.feedback)
    return float(rmab.run(task, learner).reward[200:].mean())


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("uc-o-reps", {}, 1.75),
        ("shifted-uc-o-reps", {}, 1.3),
        ("uob-reps", {}, 1.6),
        ("dilated-po", {"rate": 0.03, "gamma": 0.1}, 1.4),
        ("ucpd", {}, 1.75),
        ("pdgd-ops", {}, 1.75),
    ],
)
def test_they_learn(name: str, options: dict[str, Any], least: float) -> None:
    assert late(name, **options) > least


def test_importance_weights_need_draws() -> None:
    """An arm that is left out is never seen to lose, so that its turn comes, over and over."""
    assert late("uob-reps", rounding="top") < 1.55
