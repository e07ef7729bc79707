"""Rivals with importance weights: slow literal transcriptions, with Clarabel for the projections."""

import math

import numpy as np
import pytest

import instances
import literal
import oracle
import rmab
from episodes import sets_of, tiny, view_of
from rival_games import ARMS, BUDGET, EPISODES, EPSILON, HORIZON, STATES, UNIFORM, ball, box, epochs, game, played
from rmab.common.arrays import FloatArray
from rmab.learning.algorithms.shifted_uc_o_reps import shifted_box
from rmab.learning.pools import Pools
from rmab.learning.visits import bounds, executed_occupancy, exploration, importance, own_occupancy, weighted_losses
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.feedback import Feedback
from rmab.play.index_policy import IndexPolicy
from rmab.play.simulation import visit_rates

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
    np.testing.assert_allclose(own_occupancy(Pools.of(view), share, counts), literal_own(counts, share, [0, 2]))


@pytest.mark.parametrize("seed", range(4))
def test_upper_bounds_make_estimates_optimistic(seed: int) -> None:
    """For an arm that follows its own policy, E of loss-hat is loss q / (u + gamma) <= loss: the set holds the kernel."""
    rng = np.random.default_rng(seed)
    kernel, view = rng.dirichlet(np.ones(3), size=(1, 3, 2)), view_of(1, 3, 5, episodes=20)
    counts = np.stack([[[rng.multinomial(60, row) for row in state] for state in kernel[0]]])
    sets = sets_of("bernstein", view, counts, Pools.of(view).support, 0, 0.05)
    assert ((sets.low <= kernel) & (kernel <= sets.high)).all()
    share = rng.random((1, 5, 3))
    upper = bounds(Pools.of(view), sets, share, np.ones(share.shape, dtype=bool), most=True)
    lower = bounds(Pools.of(view), sets, share, np.ones(share.shape, dtype=bool), most=False)
    scale = 10**6  # counts so large that their means are the kernel
    true = literal_own(np.rint(kernel * scale).astype(int), share, [0])
    assert (true <= upper + 1e-5).all()
    assert (true >= lower - 1e-5).all()
    assert (upper - true).max() > 0.05
    loss = rng.random((1, 1, 3, 2))
    assert (loss * true / (upper + exploration(view, 0.05)) <= loss).all()


def test_estimates_under_the_hard_budget_are_optimistic_too() -> None:
    """Arms ranked together: the mean of loss-hat, over what truly happens, is at most the loss, sets holding the kernels.

    That takes gamma: weights alone are below the true visits of some pairs. The factor of optimism makes these fewer.
    """
    rng = np.random.default_rng(5)
    kernel, view = rng.dirichlet(np.ones(2), size=(3, 2, 2)), view_of(3, 2, 4, episodes=20)
    counts = np.stack([[[rng.multinomial(80, row) for row in state] for state in arm] for arm in kernel])
    pools = Pools.of(view)
    sets = sets_of("bernstein", view, counts, pools.support, 0, 0.05)
    assert ((sets.low <= kernel) & (kernel <= sets.high)).all()
    share = rng.random((3, 4, 2))
    policy = IndexPolicy(share, 1, rounding="dependent")
    upper = bounds(pools, sets, share, np.ones(share.shape, dtype=bool), most=True)
    weights, gamma = importance(pools, policy, share, counts, upper, (1, 1)), exploration(view, 0.05)
    true = visit_rates(Problem(Arms(kernel), 0, 1, 4), policy, np.random.default_rng(9), 20_000)
    assert (true / (weights + gamma)).max() < 1.0
    assert (true / (weights + gamma)).max() > 0.5  # and not by far
    plain = executed_occupancy(pools, policy, counts, (1, 1))
    often = true > 0.02
    assert (true > weights)[often].sum() < (true > plain)[often].sum() / 2
    assert (true[often] / weights[often]).max() < (true[often] / plain[often]).max()


def literal_weights(executed: FloatArray, own: FloatArray, hoped: FloatArray) -> FloatArray:
    """Return executed visits times hoped over own mass of the state, at least 1 and at most what makes the state certain.

    Visits of a state that was seen are half of one in 200 at least.
    """
    weights, executed = np.zeros(executed.shape), executed.copy()
    for n, h, s in np.ndindex(executed.shape[:3]):
        if executed[n, h, s].sum() > 0:
            executed[n, h, s] = [max(visits, 0.0025) for visits in executed[n, h, s]]
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
    weights = importance(pools, policy, share, counts, hoped, (4, 2))
    executed = executed_occupancy(pools, policy, counts, (4, 2))
    assert (executed[0, :, 2] == 0).all()
    np.testing.assert_allclose(weights, literal_weights(executed, literal_own(counts, share, [0, 1]), hoped), rtol=1e-12)
    assert weights.sum(axis=3).max() <= 1 + 1e-12
    assert (weights[1] > 1.1 * executed[1]).any()


def test_importance_of_what_is_hardly_planned_but_done() -> None:
    """The one arm is always active, as the budget is filled, though its plan has 1e-310 of that: weights stay in (0, 1]."""
    view, counts = view_of(1, 2, 2), np.zeros((1, 2, 2, 2), dtype=int)
    counts[0, :, 0, 0] = counts[0, :, 1, 1] = 9  # active moves to 1, passive to 0
    share, hoped = np.full((1, 2, 2), 1e-310), np.full((1, 2, 2, 2), 0.25)
    weights = importance(Pools.of(view), IndexPolicy(share, 1), share, counts, hoped, (0, 0))
    hand = np.full((1, 2, 2, 2), 0.25)  # where no simulated episode came
    hand[0, 0, 0] = hand[0, 1, 1] = [0.0025 / 1.0025, 1 / 1.0025]  # being passive, which never came up, has half a count
    np.testing.assert_allclose(weights, hand, rtol=1e-14)


def test_half_a_count_is_that_of_all_arms_of_a_block() -> None:
    """Four arms alike, of one state, all active: 800 chances to be passive, and none taken."""
    view = view_of(4, 1, 2, budget=4, groups=np.zeros(4, dtype=np.int64), pooled_rewards=True)
    policy, share, counts = IndexPolicy(np.ones((4, 1)), 4), np.ones((1, 2, 1)), np.ones((1, 1, 2, 1), dtype=int)
    weights = importance(Pools.of(view), policy, share, counts, np.zeros((1, 2, 1, 2)), (0, 0))
    half = 0.5 / 800
    np.testing.assert_allclose(weights, np.broadcast_to([half / (1 + half), 1 / (1 + half)], (1, 2, 1, 2)), rtol=1e-14)


def test_importance_treats_both_actions_alike() -> None:
    """An arm that plans to be active more often than it is has no better weights for being active."""
    view, counts = view_of(2, 2, 3), np.full((2, 2, 2, 2), 5)
    pools, share = Pools.of(view), np.full((2, 3, 2), 0.9)
    policy = IndexPolicy(share, 1, rounding="dependent")
    own = own_occupancy(pools, share, counts)
    weights = importance(pools, policy, share, counts, 1.5 * own, (0, 0))
    executed = executed_occupancy(pools, policy, counts, (0, 0))
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
    learner = rmab.make_learner("uob-reps", epsilon=EPSILON, rate=1.5, gamma=0.5)
    course = played(learner, view, problem, rewards)
    # sqrt(ln(S H^2 A / epsilon) / (T S A)) = sqrt(ln(2 * 9 * 2 / 0.9) / 16) = sqrt(ln 40 / 16)
    theory, before, pools = math.sqrt(math.log(40) / 16), UNIFORM, Pools.of(view)
    assert exploration(view, EPSILON) == pytest.approx(theory, rel=1e-13)
    for t, ((state, feedback, _), epoch) in enumerate(zip(course, epochs(course), strict=False)):
        low, high = box(epoch, literal.bernstein_width)
        answer = oracle.clarabel(instances.Instance(before, low, high, [0, 1], BUDGET).program).z
        np.testing.assert_allclose(state.arrays["step.flow"], answer, atol=1e-4)
        share = literal.rmi_index(state.arrays["step.flow"])
        sets = sets_of("bernstein", view, epoch, pools.support, 0, EPSILON)
        np.testing.assert_allclose(sets.low, low, atol=1e-14)
        upper = bounds(pools, sets, share, np.ones(share.shape, dtype=bool), most=True)
        executed = executed_occupancy(pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
        weights = literal_weights(executed, literal_own(epoch, share, [0, 1]), upper) + 0.5 * theory
        tilt = np.exp(-1.5 * theory * weighted(feedback, weights))
        before = np.maximum(state.arrays["step.flow"], 1e-12) * tilt[..., None]


def test_shifted_uc_o_reps_solves_its_programme() -> None:
    view, problem, rewards = game("bandit")
    learner = rmab.make_learner("shifted-uc-o-reps", epsilon=EPSILON, rate=2.0, shift=0.5)
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
        np.testing.assert_allclose(state.arrays["step.flow"], answer, atol=1e-4)
        mass = state.arrays["step.flow"].sum(axis=4)
        assert mass[:, 1:].sum(axis=3).min() >= alpha / STATES - 1e-9  # no state of the plan is rare
        share = literal.rmi_index(state.arrays["step.flow"])
        executed = executed_occupancy(pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
        weights = literal_weights(executed, literal_own(epoch, share, [0, 1]), mass)
        tilt = np.exp(-rate * weighted(feedback, np.maximum(weights, alpha / 4)))
        before = np.maximum(state.arrays["step.flow"], 1e-12) * tilt[..., None]


def test_the_shifted_box_holds_every_shifted_kernel_of_the_ball() -> None:
    view, rng = view_of(1, 3, 4, episodes=30), np.random.default_rng(8)
    pools = Pools.of(view)
    sets = sets_of("l1", view, rng.integers(50, 400, size=(1, 3, 2, 3)), pools.support, 0, 0.05)
    shifted = shifted_box(pools, sets, 0.2)
    for _ in range(300):
        kernel = rng.dirichlet(np.ones(3), size=(1, 3, 2))
        gap = np.abs(kernel - sets.centre).sum(axis=3)
        near = sets.centre + (kernel - sets.centre) * np.minimum(sets.radius / gap, 1.0)[..., None]
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
    alike = weighted_losses(pools, seen, visits, weights, alike=True)
    np.testing.assert_array_equal(alike[..., 1], losses[..., 1])
    assert alike[0, 1, 1, 0] == pytest.approx(0.6 / 0.5)  # passive, and there: weighed like all others
    assert np.count_nonzero(alike[..., 0]) == 1


@pytest.mark.parametrize(("name", "exact"), [("uob-reps", False), ("shifted-uc-o-reps", True)])
def test_who_takes_declared_zeros_as_they_are(name: str, exact: bool) -> None:
    """Where zeros are weighed like all losses, it makes no difference that they were declared: every visit reveals them."""
    problem = rmab.Problem(rmab.Arms(np.full((2, 2, 2, 2), 0.5)), 0, 1, 3)
    paid = np.zeros((4, 2, 2, 2))
    paid[..., 1] = [[0.9, 0.2], [0.5, 0.4]]
    plans = []
    for declared in (True, False):
        task = rmab.Task.from_rewards(problem, paid, low=0, high=1, passive_zero=declared)
        learner = rmab.make_learner(name)
        plans.append(learner.plan(rmab.run(task, learner).state).occupancy)
    assert np.allclose(*plans, rtol=0, atol=1e-9) is not exact


# ---------------------------------------------------------------- 4. dilated-po


def test_dilated_po_is_its_literal_twin() -> None:
    view, problem, rewards = game("bandit")
    learner = rmab.make_learner("dilated-po", epsilon=EPSILON, rate=0.6, gamma=0.3, bonus=0.5)
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
        sets = sets_of("wide-bernstein", view, epoch, pools.support, 0, EPSILON)
        np.testing.assert_allclose(sets.low, low, atol=1e-14)
        np.testing.assert_allclose(sets.high, high, atol=1e-14)
        everywhere = np.ones(share.shape, dtype=bool)
        most, least = (bounds(pools, sets, share, everywhere, most=sign) for sign in (True, False))
        executed = executed_occupancy(pools, IndexPolicy(share, BUDGET, rounding="dependent"), epoch, (3, t))
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
    assert rmab.make_learner("dilated-po").eta(view) == pytest.approx(1 / 3_000_000, rel=1e-12)
    assert rmab.make_learner("dilated-po", rate=0.5).eta(view) == pytest.approx(0.01, rel=1e-12)
    short = view_of(2, 3, 1, episodes=10_000)
    assert rmab.make_learner("dilated-po").eta(short) == pytest.approx(1 / math.sqrt(3 * 2 * 10_000), rel=1e-12)
