"""Pools, sets, rewards and visits in numbers that can be followed by hand."""

import math
from typing import Any

import numpy as np
import pytest

from episodes import GROUPS, ended, tiny, view_of
from rmab.learning import Bernstein, Forecast, Hoeffding, Kl, RewardEstimate, WideBernstein
from rmab.learning.components import Fading, LastSeen
from rmab.learning.components.counting import add_to_means, begin_means, mean_reward
from rmab.learning.components.rewards import implicit_estimate
from rmab.learning.components.sets import hoeffding_width, kl_interval, union_log
from rmab.learning.pools import Observations, Pools, share_of
from rmab.learning.visits import bounds, executed_occupancy, importance, weighted_losses
from rmab.play.feedback import Feedback
from rmab.play.index_policy import IndexPolicy
from rmab.solvers import TransitionSets

# ---------------------------------------------------------------- pools


def test_a_group_has_the_states_and_the_support_of_its_arms() -> None:
    """Groups 0, 0, 1 of one and two states: the first arm of group 1 is arm 2."""
    support = np.ones((3, 2, 2, 2), dtype=bool)
    support[2, 0, 1, 0] = False
    pools = Pools.of(view_of(3, 2, groups=GROUPS, sizes=np.array([1, 1, 2]), support=support))
    np.testing.assert_array_equal(pools.real, [[True, False], [True, True]])
    np.testing.assert_array_equal(pools.support[0], [[[True, False]] * 2, [[True, True]] * 2])  # padding may stay put
    np.testing.assert_array_equal(pools.support[1], support[2])


def test_arms_that_start_elsewhere_are_blocks_of_their_own() -> None:
    view = view_of(4, 2, groups=np.array([0, 1, 0, 0]), pooled_rewards=True, start=np.array([1, 0, 0, 1]))
    pools = Pools.of(view)
    np.testing.assert_array_equal(pools.block_of, [1, 2, 0, 1])
    np.testing.assert_array_equal([pools.group, pools.payoff, pools.start], [[0, 0, 1], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(pools.weights, [1, 2, 1])


def test_the_group_of_a_payoff() -> None:
    _, alone, _ = tiny()
    _, alike, _ = tiny(pooled_rewards=True)
    np.testing.assert_array_equal(alone.group_of_payoff, [0, 0, 1])
    np.testing.assert_array_equal(alike.group_of_payoff, [0, 1])


def test_shares_of_states_that_have_hardly_any_mass() -> None:
    """Up to 1e-12 is none."""
    mass = np.array([[[[0.25, 0.75], [0.0, 0.0], [0.5e-12, 0.5e-12], [1.5e-12, 0.5e-12], [-0.5, 1.0], [1.0, -0.5]]]])
    np.testing.assert_allclose(share_of(mass), [[[0.75, 0, 0, 0.25, 1, 0]]], rtol=1e-15)


def test_values_beyond_their_range_are_cut_off() -> None:
    """Rounding of rewards must not lead out of [0, 1]."""
    pools = Pools.of(view_of(1, 1, 1))
    rewards = np.array([[[1 + 1e-12, -1e-12]]])
    np.testing.assert_array_equal(pools.observe(Feedback(0, [[0], [0]], [[0]], rewards)).values, [[[1, 0]]])


# ---------------------------------------------------------------- sets


def test_reaches_by_hand() -> None:
    """Mean 1/4, logarithm 0.09: 0.25 * 0.09 is 0.15 squared."""
    mean, visits = np.full((4, 1), 0.25), np.array([[0], [1], [2], [10]])
    # Jin et al.: of visits less one, at least 1.
    hand = [2 * 0.15 / math.sqrt(less) + 14 * 0.09 / (3 * less) for less in (1, 1, 1, 9)]
    np.testing.assert_allclose(Bernstein().reach(mean, visits, 0.09)[:, 0], hand, rtol=1e-14)
    assert hand[3] == pytest.approx(0.1 + 0.14 / 3, rel=1e-14)
    # Luo et al.: of visits, at least 1.
    hand = [4 * 0.15 / math.sqrt(many) + 28 * 0.09 / (3 * many) for many in (1, 1, 2, 10)]
    np.testing.assert_allclose(WideBernstein().reach(mean, visits, 0.09)[:, 0], hand, rtol=1e-14)


def test_the_union_bound_is_over_all_episodes_and_the_one_at_hand() -> None:
    """S = 3, H = 5, two groups: 2 * 3 * 5 * 2 = 60 rows and steps. Four episodes were announced."""
    pools, counts = Pools.of(view_of(2, 3, 5)), np.zeros((2, 3, 2, 3), dtype=np.int64)
    assert union_log(pools, counts, 0, 0.1) == pytest.approx(math.log(4 * 60 / 0.1), rel=1e-15)
    assert union_log(pools, counts, 3, 0.1) == pytest.approx(math.log(4 * 60 / 0.1), rel=1e-15)
    assert union_log(pools, counts, 9, 0.1) == pytest.approx(math.log(10 * 60 / 0.1), rel=1e-15)


def test_sets_of_a_single_visit_by_hand() -> None:
    """One arm, two states, H = 1, T = 1, epsilon = 4 / e^2, so that the union bound is 2 (see test_sets_by_hand)."""
    pools, counts = Pools.of(view_of(1, 2, 1, episodes=1)), np.zeros((1, 2, 2, 2), dtype=np.int64)
    counts[0, 0, 0] = [1, 0]
    kl = Kl(epsilon=4 * math.exp(-2)).around(pools, counts, 0)
    # -ln p <= 2 + ln(2 * 2).
    np.testing.assert_allclose(kl.low[0, 0, 0], [math.exp(-2) / 4, 0.0], rtol=1e-12)
    np.testing.assert_allclose(kl.high[0, 0, 0], [1.0, 1 - math.exp(-2) / 4], rtol=1e-12)
    # One state, one arm, H = 1: ln(4 * 2 / 0.8) = ln 10, so sqrt(ln 10 / 2) > 1 for one visit; sqrt(ln 10 / 4) for two.
    width = hoeffding_width(view_of(1, 1, 1), np.array([[[1, 2]]]), 0, 0.8)
    np.testing.assert_allclose(width, [[[1.0, math.sqrt(math.log(10) / 4)]]], rtol=1e-15)


def test_scaled_boxes_by_hand() -> None:
    """One arm, two states, 200 visits of 1/4 and 3/4, the first episode: H = 1, epsilon = 16 / e^4, so that delta = 0.1."""
    pools, counts = Pools.of(view_of(1, 2, 1)), np.full((1, 2, 2, 2), [50, 150])
    ends = {0.0: ([0.25, 0.75], [0.25, 0.75]), 0.5: ([0.2, 0.7], [0.3, 0.8]), 1.0: ([0.15, 0.65], [0.35, 0.85])}
    for scale, (low, high) in {**ends, 3.0: ([0, 0.45], [0.55, 1])}.items():
        sets = Hoeffding(epsilon=16 * math.exp(-4), scale=scale).around(pools, counts, 0)
        np.testing.assert_allclose(sets.low[0, 0, 0], low, atol=1e-15)
        np.testing.assert_allclose(sets.high[0, 0, 0], high, atol=1e-15)


def test_intervals_around_certainty() -> None:
    """Of means 0 and 1, the near end is certain, and the far one is 1 - e^(-limit) away."""
    low, high = kl_interval(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert (low[0], high[1]) == (0.0, 1.0)
    np.testing.assert_allclose([high[0], 1 - low[1]], 1 - math.exp(-0.5), rtol=1e-12)


# ---------------------------------------------------------------- rewards


def test_a_loss_that_was_not_shown_is_none() -> None:
    """Two visits whose reward stays hidden, as of passive arms under feedback of active ones."""
    seen = Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[np.nan, 0.25]]]), np.array([[[2.0, 2.0]]]))
    np.testing.assert_allclose(implicit_estimate(seen, np.full((1, 1, 2), 3.0)), [[[1.0, 1 - 0.75 * 2 / 3]]], rtol=1e-15)


def test_a_hidden_loss_has_no_weight() -> None:
    """Arm 0 is passive in state 1 twice, but what that paid is not known. Where nobody was, a weight may be 0."""
    _, pools, seen = tiny()
    values = seen.values.copy()
    values[0, 1, 0] = np.nan
    visits = np.zeros((3, 3, 2, 2))
    visits[0, 1:, 1, 0], visits[0, 0, 0, 1] = 1.0, 1.0
    losses = weighted_losses(pools, Observations(seen.counts, values, seen.visits), visits, 0.5 * visits)
    hand = np.zeros(visits.shape)
    hand[0, 0, 0, 1] = 0.4 / 0.5  # active in state 0, it paid 0.6
    np.testing.assert_allclose(losses, hand, rtol=1e-14)


def test_bounds_of_known_kernels_are_the_occupancy() -> None:
    """From state 0 both states come next, 3 to 1; 0.5 is active at first, then 0.2 and 0.6."""
    pools, share = Pools.of(view_of(1, 2, 2)), np.array([[[0.5, 0.5], [0.2, 0.6]]])
    sets, wanted = TransitionSets.known(np.full((1, 2, 2, 2), [0.75, 0.25])), np.ones((1, 2, 2), dtype=bool)
    hand = [[[[0.5, 0.5], [0, 0]], [[0.6, 0.15], [0.1, 0.15]]]]
    for most in (True, False):
        np.testing.assert_allclose(bounds(pools, sets, share, wanted, most=most), hand, rtol=1e-14)


def test_least_and_most_mass_by_hand() -> None:
    """State 1 comes next with probability 0.25 to 0.5, and half of it is active there."""
    pools, share = Pools.of(view_of(1, 2, 2)), np.full((1, 2, 2), 0.5)
    sets = TransitionSets.boxes(np.full((1, 2, 2, 2), [0.5, 0.25]), np.full((1, 2, 2, 2), [0.75, 0.5]))
    for most, hand in ((True, [0.375, 0.25]), (False, [0.25, 0.125])):
        found = bounds(pools, sets, share, np.ones((1, 2, 2), dtype=bool), most=most)[0, 1]
        np.testing.assert_allclose(found, np.array(hand)[:, np.newaxis].repeat(2, axis=1), rtol=1e-14)


def test_importance_of_what_is_neither_planned_nor_hoped_for() -> None:
    """The arm is active though it plans not to be, and may come to state 1, of which nothing is hoped: mere visits."""
    pools, counts = Pools.of(view_of(1, 2, 2)), np.zeros((1, 2, 2, 2), dtype=np.int64)
    counts[0, :, 0], counts[0, :, 1] = [9, 0], [5, 5]  # passive stays in or goes to state 0
    share, hoped = np.zeros((1, 2, 2)), np.zeros((1, 2, 2, 2))
    policy = IndexPolicy(share, 1)
    seen = executed_occupancy(pools, policy, counts, (0, 0))[0, 1, 1]
    assert seen[0] == 0
    assert 0.3 < seen[1] < 0.7
    weights = importance(pools, policy, share, counts, hoped, (0, 0))
    np.testing.assert_array_equal(weights[0, 1, 1], [0.0025, seen[1]])


def test_means_leave_out_visits_whose_reward_is_hidden() -> None:
    memory: Any = begin_means(Pools.of(view_of(1, 1)))
    for t, paid in enumerate((0.5, np.nan, 0.2)):
        seen = Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[paid, np.nan]]]), np.array([[[3.0, 0.0]]]))
        memory = add_to_means(memory, seen, t)
    np.testing.assert_allclose(mean_reward(memory), [[[(3 * 0.5 + 3 * 0.2) / 6, 1.0]]], rtol=1e-15)
    assert [len(begin_means(Pools.of(view_of(1, 1)), window)["seen"]) for window in (0, 1, 3)] == [1, 1, 3]


def learned(kind: type[Any], paid: list[float | None], episodes: int = 100) -> list[RewardEstimate]:
    """Return the estimates when one pair is seen to pay so, episode by episode; None: not visited."""
    pools = Pools.of(view_of(1, 1, 1, episodes=episodes))
    estimator, estimates = kind(), []
    memory = estimator.begin(pools)
    for t, value in enumerate(paid):
        values = np.array([[[np.nan, np.nan if value is None else value]]])
        seen = Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), values, np.ones((1, 1, 2)))
        estimates.append(estimator.learn(memory, ended(pools, seen, t)))
        memory = estimates[-1].memory
    return estimates


def test_optimism_fades_with_the_times_seen() -> None:
    """Seen three times, mean 0.3, T = 50: 0.3 + 0.3 sqrt(ln 50 / 6). Of a single episode, T counts as 2."""
    gain = learned(Fading, [0.2, 0.3, 0.4, None], 50)[3].gain[0, 0]
    np.testing.assert_allclose(gain, [1.0, 0.3 + 0.3 * math.sqrt(math.log(50) / 6)], rtol=1e-14)
    gain = learned(Fading, [0.2, None], 1)[1].gain[0, 0, 1]
    assert gain == pytest.approx(0.2 + 0.3 * math.sqrt(math.log(2) / 2), rel=1e-14)


def test_guesses_are_at_most_1() -> None:
    assert learned(Fading, [0.95, None])[1].gain[0, 0, 1] == 1.0
    assert learned(LastSeen, [0.95, None])[1].gain[0, 0, 1] == 1.0
    assert learned(Forecast, [0.95, None])[1].ahead[0, 0, 1] == 1.0


def test_the_last_value_ages_from_the_episode_in_which_it_was_seen() -> None:
    """Seen in the third episode, and again in the fifth: 0.1 sqrt(age) on top."""
    gains = [one.gain[0, 0, 1] for one in learned(LastSeen, [None, None, 0.5, None, 0.4, None, None, None])]
    hand = [1.0, 1.0, 0.5, 0.6, 0.4, 0.5, 0.4 + 0.1 * math.sqrt(2), 0.4 + 0.1 * math.sqrt(3)]
    assert gains == pytest.approx(hand, rel=1e-14)


def test_known_zeros_are_not_what_forecasts_are_judged_by() -> None:
    """Being passive pays nothing, which is known; an active pair pays 0.2, then 0.8: one check, of 0.6 squared."""
    pools = Pools.of(view_of(1, 1, 1, passive_zero=True))
    estimator = Forecast()
    memory: Any = estimator.begin(pools)
    for t, paid in enumerate((0.2, 0.8)):
        seen = Observations(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[0.0, paid]]]), np.ones((1, 1, 2)))
        memory = estimator.learn(memory, ended(pools, seen, t)).memory
    np.testing.assert_allclose(memory["errors"], 0.36, rtol=1e-14)
    np.testing.assert_array_equal(memory["times"], [[[0, 2]]])
    np.testing.assert_array_equal(memory["checks"], [1.0])
