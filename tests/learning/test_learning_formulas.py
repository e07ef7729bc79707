"""Counts, confidence sets, the estimator and the rival against their literal twins and numbers computed by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import rel_entr
from scipy.stats import binom

import literal
import rmab
from episodes import ACTIONS, GROUPS, REWARD, STATES, ended, sets_of, tiny, view_of
from rmab.learning.components.rewards import PaperEstimator, paper_estimate
from rmab.learning.components.sets import hoeffding_width, kl_interval
from rmab.learning.mirror_descent import _with_zeros
from rmab.learning.pools import Observations, Pools, empirical
from rmab.learning.registry import CONFIDENCE, ESTIMATORS
from rmab.model.view import View
from rmab.play.feedback import Feedback

HONEST = sorted(name for name in CONFIDENCE if name not in ("true", "estimated"))  # which are no confidence sets

# ---------------------------------------------------------------- counts and pools


def test_counts_of_a_group_add_up_over_its_arms() -> None:
    _, _, seen = tiny()
    hand = np.zeros((2, 2, 2, 2), dtype=int)
    # Group 0, passive: arm 0 goes 1-1 and 1-0, arm 1 goes 0-0 and 1-1.   Active: arm 0 goes 0-1, arm 1 goes 0-1.
    hand[0, :, 0] = [[1, 0], [1, 2]]
    hand[0, 0, 1] = [0, 2]
    # Group 1: arm 2 stays in 1 twice while passive, and goes 1-0 when active.
    hand[1, 1, 0] = [0, 2]
    hand[1, 1, 1] = [1, 0]
    np.testing.assert_array_equal(seen.counts, hand)
    np.testing.assert_array_equal(seen.counts, literal.transition_counts(STATES, ACTIONS, [0, 0, 1], 2))


def test_every_arm_without_groups_counts_for_itself() -> None:
    _, pools, seen = tiny(groups=None)
    np.testing.assert_array_equal(seen.counts, literal.transition_counts(STATES, ACTIONS, [0, 1, 2], 2))
    np.testing.assert_array_equal(seen.visits, literal.pair_visits(STATES, ACTIONS, 2))
    np.testing.assert_array_equal(pools.weights, np.ones(3))


def test_pooled_rewards_have_visits_per_arm() -> None:
    _, pools, seen = tiny(pooled_rewards=True)
    # Group 0 has two arms: passive in 0 once, passive in 1 three times, active in 0 twice: half of that per arm.
    np.testing.assert_array_equal(seen.visits, [[[0.5, 1.0], [1.5, 0.0]], [[0.0, 0.0], [2.0, 1.0]]])
    np.testing.assert_array_equal(pools.weights, [2, 1])
    np.testing.assert_array_equal(pools.block_of, [0, 0, 1])


def test_groups_without_pooled_rewards_keep_their_own_blocks() -> None:
    _, pools, seen = tiny(pooled_rewards=False)
    np.testing.assert_array_equal(seen.visits, literal.pair_visits(STATES, ACTIONS, 2))
    np.testing.assert_array_equal(pools.group, [0, 0, 1])
    np.testing.assert_array_equal(pools.weights, np.ones(3))


def test_rewards_of_a_range_are_mapped_to_0_1() -> None:
    _, _, seen = tiny()
    # (r + 2) / 5: 0 is 0.4, 1 is 0.6, -2 is 0, -1 is 0.2, 2 is 0.8.
    nan = np.nan
    hand = [[[nan, 0.6], [0.0, nan]], [[0.4, 0.6], [0.0, nan]], [[nan, nan], [0.2, 0.8]]]
    np.testing.assert_allclose(seen.values, hand, rtol=1e-15)


def test_passive_rewards_declared_zero_are_known_everywhere() -> None:
    _, pools, seen = tiny(passive_zero=True)
    assert pools.floor == 0.4
    np.testing.assert_array_equal(seen.values[..., 0], 0.4)
    for make in map(ESTIMATORS.load, ESTIMATORS):
        part = make()
        estimate = _with_zeros(pools, part.learn(part.begin(pools), ended(pools, seen)))
        np.testing.assert_array_equal(estimate.gain[..., 0], 0.4)
        if estimate.ahead is not None:
            np.testing.assert_array_equal(estimate.ahead[..., 0], 0.4)


def test_no_real_state_leads_to_padding() -> None:
    pools = Pools.of(view_of(2, 3, sizes=np.array([2, 3])))
    np.testing.assert_array_equal(pools.support[0, :2], np.broadcast_to([True, True, False], (2, 2, 3)))
    assert pools.support[0, 2, :, 2].all()
    assert pools.support[1].all()


# ---------------------------------------------------------------- confidence sets


def some_counts(view: View, groups: int, seed: int) -> np.ndarray:
    """(G,S,2,S) random counts; about a third of the pairs are unvisited."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 30, size=(groups, view.states, 2, view.states))
    return counts * (rng.random((groups, view.states, 2, 1)) < 0.67)


def test_width_by_hand() -> None:
    view = view_of(3, 2, 5)
    visits = np.array([[[0, 1], [8, 100]]])
    # Second episode (t = 2): ln(4 * 2 * 2 * 3 * 1 * 5 / 0.05) = ln 4800 = 8.47637...
    log = math.log(4800.0)
    hand = [[[1.0, 1.0], [math.sqrt(log / 16), math.sqrt(log / 200)]]]
    np.testing.assert_allclose(hoeffding_width(view, visits, 1, 0.05), hand, rtol=1e-14)
    assert hoeffding_width(view, visits, 1, 0.05)[0, 1, 0] == pytest.approx(0.727855, abs=1e-6)
    # The first episode has max(t - 1, 1) = 1 in its place, the third has 2.
    np.testing.assert_array_equal(hoeffding_width(view, visits, 0, 0.05), hoeffding_width(view, visits, 1, 0.05))
    assert hoeffding_width(view, visits, 2, 0.05)[0, 1, 1] == pytest.approx(math.sqrt(math.log(9600) / 200), rel=1e-14)


@pytest.mark.parametrize("kind", ["hoeffding", "bernstein", "l1"])
def test_nothing_is_known_before_the_first_episode(kind: str) -> None:
    view = view_of(2, 3)
    kernels = sets_of(kind, view, np.zeros((2, 3, 2, 3), dtype=int), np.ones((2, 3, 2, 3), dtype=bool), 0)
    if kernels.radius is None:
        np.testing.assert_array_equal(kernels.low, 0.0)
        np.testing.assert_array_equal(kernels.high, 1.0)
    else:
        np.testing.assert_allclose(kernels.centre, 1 / 3)
        np.testing.assert_array_equal(kernels.high, 1.0)
        np.testing.assert_array_equal(kernels.radius, 2.0)


def test_kl_knows_nothing_before_the_first_visit() -> None:
    """C = 0 is not one visit with mean 1/S, for which kl(1/2, 0) is infinite: probabilities 0 and 1 are possible."""
    view = view_of(2, 2)
    kernels = sets_of("kl", view, np.zeros((2, 2, 2, 2), dtype=int), np.ones((2, 2, 2, 2), dtype=bool), 0)
    np.testing.assert_array_equal(kernels.low, 0.0)
    np.testing.assert_array_equal(kernels.high, 1.0)


@pytest.mark.parametrize("episode", [0, 1, 7])
@pytest.mark.parametrize("kind", HONEST)
def test_sets_are_those_of_the_literal_formulas(kind: str, episode: int) -> None:
    view = view_of(4, 3, 5, episodes=8)
    counts = some_counts(view, 2, episode)
    support = np.random.default_rng(9).random(counts.shape) < 0.8
    support[..., 0] = True
    counts = counts * support
    kernels = sets_of(kind, view, counts, support, episode, 0.1)
    mean = literal.empirical(counts, support)
    np.testing.assert_allclose(empirical(counts, support), mean, rtol=1e-15)
    deltas = hoeffding_width(view, counts.sum(axis=3), episode, 0.1)
    log = literal.iota(states=3, blocks=2, horizon=5, episodes=8, epsilon=0.1)
    for g, s, a in np.ndindex(2, 3, 2):
        visits = int(counts[g, s, a].sum())
        delta = literal.hoeffding_delta(visits, episode + 1, states=3, arms=4, horizon=5, epsilon=0.1)
        assert deltas[g, s, a] == pytest.approx(delta, rel=1e-14)
        if kind == "l1":
            assert kernels.radius[g, s, a] == pytest.approx(literal.l1_radius(visits, log, 3), rel=1e-14)
            np.testing.assert_allclose(kernels.centre[g, s, a], mean[g, s, a], rtol=1e-15)
            continue
        assert kernels.radius is None
        for y in range(3):
            p = float(mean[g, s, a, y])
            if kind == "kl" and support[g, s, a, y]:
                limit = (log + math.log(2 * 3)) / max(visits, 1)
                hand = tuple(literal.kl_end(p, limit, side) for side in (0, 1)) if visits else (0.0, 1.0)
            elif kind == "kl":
                hand = (0.0, 0.0)
            else:
                widths = {"bernstein": literal.bernstein_width, "wide-bernstein": literal.wide_bernstein_width}
                width = delta if kind == "hoeffding" else widths[kind](p, visits, log)
                hand = literal.box(p, width, bool(support[g, s, a, y]))
            assert (kernels.low[g, s, a, y], kernels.high[g, s, a, y]) == pytest.approx(hand, abs=2e-15, rel=1e-13)


def test_sets_by_hand() -> None:
    """One arm, two states, H = 1, T = 1, epsilon = 4 / e^2: iota = ln(2 * 2 / (4 / e^2)) = 2."""
    view = view_of(1, 2, 1, episodes=1)
    epsilon = 4 * math.exp(-2)
    counts = np.zeros((1, 2, 2, 2), dtype=int)
    counts[0, 0, 0], counts[0, 0, 1], counts[0, 1, 0] = [0, 40], [1, 2], [50, 150]
    everything = np.ones(counts.shape, dtype=bool)
    kl = sets_of("kl", view, counts, everything, 0, epsilon)
    # Mean 0 of 40 visits: -ln(1 - p) <= (2 + ln(2 * 2)) / 40, so p <= 1 - exp(-0.05) / 4^(1/40).
    least = math.exp(-0.05) / 4**0.025
    np.testing.assert_allclose(kl.high[0, 0, 0], [1 - least, 1.0], rtol=1e-12)
    np.testing.assert_allclose(kl.low[0, 0, 0], [0.0, least], rtol=1e-12)
    ball = sets_of("l1", view, counts, everything, 0, epsilon)
    # sqrt(2 * 2 * 2 / C): C = 200 gives 0.2, C = 3 gives 1.63; C = 0 gives 2.
    np.testing.assert_allclose(ball.radius[0], [[math.sqrt(0.2), math.sqrt(8 / 3)], [0.2, 2.0]], rtol=1e-14)
    bernstein = sets_of("bernstein", view, counts, everything, 0, epsilon)
    # Mean 1/4 of 200 visits: 2 sqrt(0.25 * 2 / 199) + 28 / 597 = 0.1471527...
    assert bernstein.high[0, 1, 0, 0] == pytest.approx(0.25 + 2 * math.sqrt(0.5 / 199) + 28 / 597, rel=1e-14)
    assert bernstein.high[0, 1, 0, 0] == pytest.approx(0.397152, abs=1e-5)


@given(st.integers(0, 500), st.integers(1, 500), st.floats(1e-3, 30.0))
@settings(max_examples=200)
def test_ends_of_kl_intervals_are_where_the_divergence_is_the_limit(hits: int, visits: int, log: float) -> None:
    mean, limit = min(hits, visits) / visits, log / visits
    low, high = (float(end[0]) for end in kl_interval(np.array([mean]), np.array([limit])))
    assert 0 <= low <= mean <= high <= 1
    for end in (low, high):
        spent = float(rel_entr(mean, end) + rel_entr(1 - mean, 1 - end))
        if 1e-6 < end < 1 - 1e-6:  # nearer to the ends, rounding of `end` moves the divergence
            assert spent == pytest.approx(limit, rel=1e-6, abs=1e-12)
    assert (low == 0) == (mean == 0) or low < 1e-12
    assert (high == 1) == (mean == 1) or high > 1 - 1e-12


@given(st.integers(0, 2**31), st.sampled_from(HONEST), st.integers(0, 50))
@settings(max_examples=100)
def test_sets_hold_the_empirical_mean_and_are_never_empty(seed: int, kind: str, episode: int) -> None:
    view = view_of(2, 3, 5, episodes=50)
    counts = some_counts(view, 2, seed)
    support = np.ones(counts.shape, dtype=bool)
    kernels = sets_of(kind, view, counts, support, episode)
    mean = empirical(counts, support)
    assert (kernels.low <= mean).all()
    assert (mean <= kernels.high).all()
    assert (kernels.low.sum(axis=3) <= 1 + 1e-12).all()
    assert (kernels.high.sum(axis=3) >= 1 - 1e-12).all()
    assert kernels.radius is None or ((kernels.radius > 0) & (kernels.radius <= 2)).all()


def missed(kind: str, view: View, shrink: float = 1.0, visits: Any = (1, 3, 10, 30, 100, 1000), tables: int = 1000) -> float:
    """Return in which part of the tables of counts some true row lies outside its set, sets shrunk towards their mean."""
    rng = np.random.default_rng(5)
    shape = (view.arms, view.states, 2)
    truth = rng.dirichlet(np.full(view.states, 0.5), size=shape)
    number = rng.choice(visits, size=shape)
    samples = rng.multinomial(number, truth, size=(tables, *shape))
    support, out = np.ones(truth.shape, dtype=bool), 0
    for counts in samples:
        kernels = sets_of(kind, view, counts, support, view.episodes - 1, 0.2)
        mean = empirical(counts, support)
        off = truth - mean
        if kernels.radius is None:
            inside = (off >= shrink * (kernels.low - mean) - 1e-12) & (off <= shrink * (kernels.high - mean) + 1e-12)
        else:
            inside = np.abs(off).sum(axis=3) <= shrink * kernels.radius
        out += not inside.all()
    return out / tables


@pytest.mark.slow
@pytest.mark.parametrize("kind", HONEST)
def test_the_true_kernels_are_in_their_sets(kind: str) -> None:
    assert missed(kind, view_of(2, 3, 3, episodes=2)) <= 0.2


@pytest.mark.parametrize(("kind", "shrink"), [("hoeffding", 0.3), ("bernstein", 0.1), ("kl", 0.5), ("l1", 0.2)])
def test_the_count_tables_can_tell_sets_that_are_too_small(kind: str, shrink: float) -> None:
    assert missed(kind, view_of(2, 3, 3, episodes=2), shrink, tables=300) > 0.2


def test_kl_sets_of_many_states_and_one_step() -> None:
    assert missed("kl", view_of(1, 10, 1, episodes=1), visits=(1000,), tables=300) <= 0.2


# ---------------------------------------------------------------- the reward estimator


def test_the_estimator_by_hand() -> None:
    view, _, seen = tiny()
    width = np.full((3, 2, 2), 0.1)
    # Arm 2 in state 1, H = 3: passive twice at 0.2: 0.2 * 3 / 2 + 0.1 = 0.4; active once at 0.8: 2.4 + 0.1, at most 1.
    # Arm 0: active in 0 once at 0.6: 1; passive in 1 twice at 0: 0.1. Arm 1: 0.4 * 3 > 1, and passive in 1 once at 0: 0.1.
    hand = [[[1, 1], [0.1, 1]], [[1, 1], [0.1, 1]], [[1, 1], [0.4, 1]]]
    np.testing.assert_allclose(paper_estimate(view, seen, width), hand, rtol=1e-14)


def test_the_estimator_of_a_pool_by_hand() -> None:
    view, _, seen = tiny(pooled_rewards=True, low=-7.0, high=43.0)
    width = np.full((2, 2, 2), 0.01)
    # (r + 7) / 50. Group 0, passive in 1: r = -2 is 0.1, 1.5 visits per arm: 0.1 * 3 / 1.5 + 0.01 = 0.21. Passive in 0:
    # 0 is 0.14, half a visit counts as one: 0.42 + 0.01. Active in 0: 1 is 0.16, 0.48 + 0.01.
    # Group 1 in state 1: -1 is 0.12, twice: 0.18 + 0.01; 2 is 0.18, once: 0.54 + 0.01.
    hand = [[[0.43, 0.49], [0.21, 1]], [[1, 1], [0.19, 0.55]]]
    np.testing.assert_allclose(paper_estimate(view, seen, width), hand, rtol=1e-13)


@given(
    st.integers(0, 2**31),
    st.booleans(),
    st.sampled_from(["unknown", "estimated", "declared"]),
    st.sampled_from(["bandit", "active", "full"]),
)
@settings(max_examples=150)
def test_the_estimator_never_underestimates(seed: int, pooled: bool, zeros: str, feedback: str) -> None:
    """To the letter, passive rewards that are declared to be zero are estimated, too. With full feedback nothing is."""
    zero = zeros != "unknown"
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(1, 7))
    fields = {"groups": GROUPS, "budget": 3, "pooled_rewards": pooled, "passive_zero": zero, "feedback": feedback}
    states = rng.integers(2, size=(horizon + 1, 3))
    view = view_of(3, 2, horizon, low=-2.0, high=3.0, start=states[0], **fields)
    actions = rng.integers(2, size=(horizon, 3))
    reward = rng.uniform(-2, 3, size=(3, 2, 2))
    reward[1] = reward[0]
    reward[..., 0] *= not zero
    pools = Pools.of(view)
    trajectory = rmab.Trajectory(states.astype(np.int32), actions.astype(bool), 0.0)
    told = Feedback.reveal(view, 0, trajectory, reward)
    told.check(view, 0)
    seen, before = pools.observe(told), rng.integers(0, 500, size=pools.support.shape)
    part = PaperEstimator(epsilon=0.5, zeros="declared" if zeros == "declared" else "estimated")
    learned = part.learn({}, ended(pools, seen, 2, before))
    estimate = _with_zeros(pools, learned).gain if part.knows_zeros else learned.gain
    width = hoeffding_width(view, before.sum(axis=3)[pools.group_of_payoff], 2, 0.5)
    assert (estimate[pools.payoff_of] >= (reward + 2) / 5 - 1e-12).all()
    assert (estimate <= 1).all()
    for k, s, a in np.ndindex(estimate.shape):
        value, known = seen.values[k, s, a], zero and a == 0
        visited = seen.visits[k, s, a] > 0 if known else not np.isnan(value)
        twin = literal.reward_estimate(value, seen.visits[k, s, a], width[k, s, a], horizon, visited)
        hand = value if feedback == "full" else 0.4 if known and zeros == "declared" else twin
        assert estimate[k, s, a] == pytest.approx(hand, rel=1e-13)


@pytest.mark.parametrize(("chance", "published"), [(0.01, 17), (0.05, 23), (0.2, 5.5), (0.5, 2.0), (0.9, 1.1)])
def test_a_defect_of_the_paper_that_its_weights_are_not_unbiased(chance: float, published: float) -> None:
    """E[(H / c) 1{c > 0}] would have to be 1. Without the cap, an estimate of r = 0.01 is off by the same factor."""
    view = view_of(1, 1, 50)
    expected = 0.0
    for c in range(1, 51):
        seen = Observations(np.zeros((1, 1, 2, 1), dtype=int), np.full((1, 1, 2), 0.01), np.full((1, 1, 2), float(c)))
        expected += binom.pmf(c, 50, chance) * paper_estimate(view, seen, np.zeros((1, 1, 2)))[0, 0, 0]
    assert expected / 0.01 == pytest.approx(published, rel=0.05)
    assert expected / 0.01 > 1.05


# ---------------------------------------------------------------- rmab-ucrl


@pytest.mark.parametrize("version", ["stationary", "finite", "window"])
@pytest.mark.parametrize("optimistic", [False, True])
def test_ucrl_takes_the_mean_of_what_it_saw_plus_delta_where_asked(version: str, optimistic: bool) -> None:
    """T = 4: the window holds two episodes."""
    fields = {"groups": GROUPS, "start": STATES[0], "low": -2.0, "high": 3.0, "episodes": 4}
    view = view_of(3, 2, 3, **fields)
    learner = rmab.make_learner("rmab-ucrl", version=version, epsilon=0.999, rewards="optimistic" if optimistic else "mean")
    state = learner.begin(view)
    assert learner.estimate(state) is None
    visits = literal.pair_visits(STATES, ACTIONS, 2)
    rewards = [np.where(visits > 0, np.clip(REWARD * scale, -2, 3), np.nan) for scale in (1.0, 0.2, -0.5)]
    for t, shown in enumerate(rewards, start=1):
        state = learner.learn(state, Feedback(t - 1, STATES, ACTIONS, shown))
        estimate = learner.estimate(state)
        first = max(0, t - 2) if version == "window" else 0
        for n, s, a in np.ndindex(3, 2, 2):
            count = int(state.arrays["counts"][GROUPS[n], s, a].sum())
            assert count == t * sum(visits[m, s, a] for m in range(3) if GROUPS[m] == GROUPS[n])
            width_of = count if version == "window" else t * int(visits[n, s, a])  # rewards are not pooled: the arm's own
            delta = literal.hoeffding_delta(width_of, t + 1, states=2, arms=3, horizon=3, epsilon=0.999)
            past = [((float(r[n, s, a]) + 2) / 5 if visits[n, s, a] else None, visits[n, s, a]) for r in rewards[first:t]]
            hand = literal.ucrl_estimate(past, delta if optimistic else 0.0)
            assert estimate[n, s, a] == pytest.approx(-2 + 5 * hand, rel=1e-12)


def test_ucrl_by_hand() -> None:
    """One arm, one state, H = 100, always passive at 0.5 and then at 0.1: mean 0.3 of 200 visits; active never: 1."""
    view = view_of(1, 1, 100, budget=0)
    learner = rmab.make_learner("rmab-ucrl", epsilon=0.5, rewards="optimistic")
    state = learner.begin(view)
    for t, paid in enumerate((0.5, 0.1)):
        state = learner.learn(state, Feedback(t, np.zeros((101, 1)), np.zeros((100, 1)), [[[paid, np.nan]]]))
    # delta at t = 3: sqrt(ln(4 * 1 * 2 * 1 * 2 * 100 / 0.5) / 400) = sqrt(ln 3200 / 400) = 0.142046...
    np.testing.assert_allclose(learner.estimate(state)[0, 0], [0.3 + math.sqrt(math.log(3200) / 400), 1.0], rtol=1e-13)
    assert learner.estimate(state)[0, 0, 0] == pytest.approx(0.442047, abs=2e-6)


def test_ucrl_plans_with_real_states_only() -> None:
    """Arm 0 has one state, visited passive and active in turn at 0.1; its padding is never visited."""
    view = view_of(2, 2, 200, sizes=np.array([1, 2]))
    learner = rmab.make_learner("rmab-ucrl", epsilon=0.9)
    states, actions = np.zeros((201, 2), dtype=int), np.zeros((200, 2), dtype=int)
    actions[::2, 0] = 1
    rewards = np.full((2, 2, 2), np.nan)
    rewards[0, 0], rewards[1, 0, 0] = 0.1, 0.1
    state = learner.learn(learner.begin(view), Feedback(0, states, actions, rewards))
    np.testing.assert_allclose(learner.plan(state).occupancy[0, :, 0].sum(axis=1), 1.0, rtol=1e-6)
