"""Parts in numbers that can be followed by hand: options and their limits, widths, means, steps, weights, refresh rules."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import GROUPS, ended, tiny, view_of
from rmab.errors import ModelError
from rmab.learning import (
    L1,
    Active,
    Bernstein,
    DependentRounding,
    Doubling,
    Estimate,
    EveryEpisode,
    Forecast,
    Hoeffding,
    ImplicitExploration,
    Kl,
    Lazy,
    PaperEstimator,
    Part,
    Stepped,
    TopB,
    TransitionSets,
    Ucmd,
    WideBernstein,
    configured,
    option,
)
from rmab.learning.options import Preset
from rmab.learning.parts import Centred, Exploration, Fading, LastSeen, Observing, Sampling, Sets, Step
from rmab.learning.parts.counting import add_to_means, begin_means, mean_reward
from rmab.learning.parts.named import EXECUTIONS, SETS, part
from rmab.learning.parts.rewards import implicit_estimate
from rmab.learning.parts.sets import hoeffding_width, kl_interval, union_log
from rmab.learning.parts.steps import fitting_beta
from rmab.learning.pools import Observed, Pools, share_of
from rmab.learning.visits import bounds, executed_occupancy, importance, weighted_losses
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy
from rmab.solvers.projection.project import Projection

# ---------------------------------------------------------------- options

TINY = 5e-324  # the smallest number above 0
BELOW_ONE = 1 - 2.0**-53
CHANCE = (0.05, [TINY, 0.5, BELOW_ONE], [0.0, 1.0])
FACTOR = (1.0, [TINY, 1e6], [0.0, math.nextafter(1e6, 2e6)])
OPTIONS: list[tuple[type[Part], str, tuple[float, list[float], list[float]]]] = [
    *[
        (cls, "epsilon", CHANCE)
        for cls in (Hoeffding, Bernstein, WideBernstein, Kl, L1, PaperEstimator, ImplicitExploration)
    ],
    (Hoeffding, "scale", (1.0, [0.0, 100.0], [-TINY, math.nextafter(100.0, 200.0)])),
    *[(cls, "scale", FACTOR) for cls in (Active, Centred, Lazy)],
    (Exploration, "scale", (1.0, [TINY, 100.0], [0.0, math.nextafter(100.0, 200.0)])),
]


@pytest.mark.parametrize(("cls", "name", "values"), OPTIONS)
def test_defaults_and_limits(cls: type[Part], name: str, values: tuple[float, list[float], list[float]]) -> None:
    default, allowed, refused = values
    assert cls().options[name] == default
    for value in allowed:
        assert cls(**{name: value}).options[name] == value
    for value in refused:
        with pytest.raises(ModelError, match=f"^{cls.__name__}: {name}: Input should be "):
            cls(**{name: value})


@pytest.mark.parametrize("cls", [TopB, DependentRounding])
def test_executions_fill_the_budget_unless_told_otherwise(cls: type[TopB]) -> None:
    pools, mass = Pools.of(view_of(3, 2, budget=2)), np.full((3, 3, 2, 2), 0.25)
    rounding = "top" if cls is TopB else "dependent"
    for made, rule in ((cls(), "fill"), (cls(rule="at-most"), "at-most")):
        policy: Any = made.policy(pools, mass)
        assert (policy.budget, policy.rule, policy.rounding) == (2, rule, rounding)
        np.testing.assert_array_equal(policy.table, 0.5)


def test_parts_by_name_get_the_options_that_they_have() -> None:
    assert part("confidence", "hoeffding", SETS, object, epsilon=0.2, scale=3.0, rule="fill").options == {
        "epsilon": 0.2,
        "scale": 3.0,
    }
    assert part("confidence", "kl", SETS, object, epsilon=0.2, scale=3.0).options == {"epsilon": 0.2}
    assert type(part("rounding", "dependent", EXECUTIONS, object)) is DependentRounding


class Everything(Sets):
    """Has no options, and is told none."""

    def around(self, pools: Pools, counts: Any, episode: int) -> TransitionSets:
        return TransitionSets.boxes(np.zeros(counts.shape), pools.support)


def test_parts_of_one_s_own_by_name() -> None:
    assert type(part("confidence", f"{__name__}:Everything", SETS, Sets, epsilon=0.2)) is Everything
    asked = part("confidence", f"{__name__}:Asked", SETS, Sets, epsilon=0.2)
    assert (type(asked), asked.options["epsilon"]) == (Asked, 0.2)
    learner: Any = rmab.learner("ucmd", confidence=f"{__name__}:Everything")
    assert type(learner.parts.sets) is Everything
    with pytest.raises(ModelError, match=r"confidence .*:Tunable: must be a class that derives from Sets, got <class "):
        rmab.learner("ucmd", confidence=f"{__name__}:Tunable")


def test_a_wrong_name_or_option_is_told_which_there_are() -> None:
    with pytest.raises(
        ModelError, match=r"step: Input should be one of active, lazy, or module:Class of your own \(got 'hop'\)"
    ):
        rmab.learner("ucmd", step="hop")
    with pytest.raises(
        ModelError, match=r"^learner ucmd-armab: rate: there is no such option, but epsilon, scale, rule, round"
    ):
        rmab.learner("ucmd-armab", rate=1)
    with pytest.raises(ModelError, match=r"^learner random: rate: there is no such option, but none \(got 1\)$"):
        rmab.learner("random", rate=1)


def test_values_are_kept_as_the_type_that_was_declared() -> None:
    assert repr(Hoeffding(epsilon="0.25", scale=2)) == "Hoeffding(epsilon=0.25, scale=2.0)"  # type: ignore[arg-type]


@configured
class Tunable(Part):
    """Two parameters, one of which was tuned."""

    TUNED = {"rate": 8.0}
    preset: Preset = option(default="theory", help="theory or tuned")
    rate: float | None = option(default=None, help="of learning")
    bonus: float | None = option(default=None, help="for what is unknown")


def test_presets_by_hand() -> None:
    assert (Tunable().chosen("rate"), Tunable().chosen("bonus")) == (1.0, 1.0)
    assert (Tunable(preset="tuned").chosen("rate"), Tunable(preset="tuned").chosen("bonus")) == (8.0, 1.0)
    assert (Tunable(preset="tuned", rate=0.0).chosen("rate"), Tunable(bonus=3.0).chosen("bonus")) == (0.0, 3.0)


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
    seen = Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[np.nan, 0.25]]]), np.array([[[2.0, 2.0]]]))
    np.testing.assert_allclose(implicit_estimate(seen, np.full((1, 1, 2), 3.0)), [[[1.0, 1 - 0.75 * 2 / 3]]], rtol=1e-15)


def test_a_hidden_loss_has_no_weight() -> None:
    """Arm 0 is passive in state 1 twice, but what that paid is not known. Where nobody was, a weight may be 0."""
    _, pools, seen = tiny()
    values = seen.values.copy()
    values[0, 1, 0] = np.nan
    visits = np.zeros((3, 3, 2, 2))
    visits[0, 1:, 1, 0], visits[0, 0, 0, 1] = 1.0, 1.0
    losses = weighted_losses(pools, Observed(seen.counts, values, seen.visits), visits, 0.5 * visits)
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
        seen = Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[paid, np.nan]]]), np.array([[[3.0, 0.0]]]))
        memory = add_to_means(memory, seen, t)
    np.testing.assert_allclose(mean_reward(memory), [[[(3 * 0.5 + 3 * 0.2) / 6, 1.0]]], rtol=1e-15)
    assert [len(begin_means(Pools.of(view_of(1, 1)), window)["seen"]) for window in (0, 1, 3)] == [1, 1, 3]


def learned(kind: type[Any], paid: list[float | None], episodes: int = 100) -> list[Estimate]:
    """Return the estimates when one pair is seen to pay so, episode by episode; None: not visited."""
    pools = Pools.of(view_of(1, 1, 1, episodes=episodes))
    estimator, estimates = kind(), []
    memory = estimator.begin(pools)
    for t, value in enumerate(paid):
        values = np.array([[[np.nan, np.nan if value is None else value]]])
        seen = Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), values, np.ones((1, 1, 2)))
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
    assert learned(Forecast, [0.95, None])[1].gain[0, 0, 1] == 1.0


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
        seen = Observed(np.zeros((1, 1, 2, 1), dtype=np.int64), np.array([[[0.0, paid]]]), np.ones((1, 1, 2)))
        memory = estimator.learn(memory, ended(pools, seen, t)).memory
    np.testing.assert_allclose(memory["errors"], 0.36, rtol=1e-14)
    np.testing.assert_array_equal(memory["ever"], [[[False, True]]])
    assert memory["checks"] == 1


# ---------------------------------------------------------------- steps


def nothing(pools: Pools) -> Observed:
    return Observed(np.zeros(pools.support.shape, dtype=np.int64), np.zeros(pools.zero.shape), np.zeros(pools.zero.shape))


class HalfUniform(Active):
    """Forgets half of the last plan."""

    def uniform_share(self, view: Any) -> float:
        return 0.5


def moved(step: Step, pools: Pools, memory: Any, gain: Any) -> Stepped:
    """Return the next plan of one step, kernels unknown."""
    seen = nothing(pools)
    sets = Hoeffding().around(pools, seen.counts, 0).take(pools.group)
    return step.move(memory, ended(pools, seen), sets, Estimate(np.asarray(gain, dtype=float)))


def test_the_plan_is_mixed_with_the_uniform_one_before_it_is_tilted() -> None:
    """Three states, H = 1, flows 0.6 passive and 0.4 active: half of them, and half of 1/18 in each of three entries."""
    pools, flow = Pools.of(view_of(1, 3, 1)), np.zeros((1, 1, 3, 2, 3))
    flow[0, 0, 0] = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.1]]
    plain = moved(Active(), pools, {"flow": flow}, np.zeros((1, 3, 2)))
    np.testing.assert_allclose(plain.mass[0, 0, 0], [0.6, 0.4], rtol=1e-7)
    mixed = moved(HalfUniform(), pools, {"flow": flow}, np.zeros((1, 3, 2)))
    # 0.3 + 1/12 and 0.2 + 1/12, of 2/3.
    np.testing.assert_allclose(mixed.mass[0, 0, 0], [0.575, 0.425], rtol=1e-7)


def test_what_the_last_plan_ruled_out_can_come_back() -> None:
    """Flows of 0 count as 1e-12: e^(30) of them is 10.7, against 0.5 + 0.5 for being passive."""
    pools, flow = Pools.of(view_of(1, 1, 1)), np.array([[[[[1.0], [0.0]]]]])
    rate = Active().rate(pools.view)
    plan = moved(Active(scale=30 / rate), pools, {"flow": flow}, [[[0.0, 1.0]]])
    odds = 1e-12 * math.exp(30)
    np.testing.assert_allclose(plan.mass[0, 0, 0], [1 / (1 + odds), odds / (1 + odds)], rtol=1e-6)


def test_centred_steps_take_losses_of_any_size() -> None:
    """A loss of 1e5 at rate 1: e^(-1e5) is 0, and no reference may be; without centring it would be."""
    pools, flow = Pools.of(view_of(1, 1, 1)), np.full((1, 1, 1, 2, 1), 0.5)
    step = Centred(scale=1 / Active().rate(pools.view))
    near = moved(step, pools, {"flow": flow}, [[[-1e5, 1 - 1e5]]])
    np.testing.assert_allclose(near.mass[0, 0, 0], [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-7)
    far = moved(step, pools, {"flow": flow}, [[[-1e5, 0.0]]])
    np.testing.assert_allclose(far.mass[0, 0, 0], [0.0, 1.0], atol=1e-12)
    assert far.memory["flow"].min() >= 0


@pytest.mark.parametrize("kind", ["lazy", "centred"])
def test_states_that_pay_more_are_sought(kind: str) -> None:
    """Two steps, kernels unknown: the next state is chosen, in proportion to the root of what it promises.

    Exponents are 0 and 1 in state 0, 2 and 2 in state 1: these promise 1 + e and 2 e^2. The root, as being elsewhere than
    the uniform reference says costs once where one goes and once where one is.
    """
    pools = Pools.of(view_of(1, 2, 2))
    if kind == "lazy":  # at the greatest beta, which stays
        plan = moved(Lazy(), pools, {"beta": np.array(500.0)}, [[[0.0, 0.002], [0.004, 0.004]]])
    else:
        step = Centred(scale=1 / Active().rate(pools.view))
        plan = moved(step, pools, {"flow": np.full((1, 2, 2, 2, 2), 1 / 8)}, [[[0.0, 1.0], [2.0, 2.0]]])
    np.testing.assert_allclose(plan.mass[0, 0, 0], [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-6)
    root = math.sqrt(2 * math.e**2 / (1 + math.e))
    np.testing.assert_allclose(plan.mass[0, 1].sum(axis=1), [1 / (1 + root), root / (1 + root)], rtol=1e-6)


def lazy(beta: float, difference: float, scale: float = 1.0) -> tuple[float, float]:
    """Return the active mass of the better of two arms that share one slot, and the beta that is kept.

    At beta, their log-odds are plus and minus beta * difference / 2.
    """
    pools = Pools.of(view_of(2, 1, 1))
    plan = moved(Lazy(scale=scale), pools, {"beta": np.array(beta)}, [[[0.0, difference]], [[0.0, 0.0]]])
    return float(plan.mass[0, 0, 0, 1]), float(plan.memory["beta"])


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def fitting(beta: float, difference: float, part: float = 0.1) -> float:
    """Return the entropies of both arms over a tenth of what the better one gains."""
    p = logistic(beta * difference / 2)
    return 2 * (p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))) / (part * (p - 0.5) * difference)


def test_beta_grows_fourfold_three_times_and_no_further_than_500() -> None:
    """Differences of 0.01 want five times the beta: 10, 40, 160 are tried, and 640 is more than 500."""
    chance, beta = lazy(10.0, 0.01)
    assert fitting(160.0, 0.01) > 640
    assert chance == pytest.approx(logistic(0.8), abs=1e-7)
    assert beta == 500.0
    chance, beta = lazy(500.0, 0.01)
    assert chance == pytest.approx(logistic(2.5), abs=1e-7)
    assert beta == 500.0


def test_beta_is_what_fits_where_that_is_near() -> None:
    """A difference of 1: at 10 a beta of 26.5 would fit, which is tried at once; there 27.7 would, which is near."""
    first = fitting(10.0, 1.0)
    assert first == pytest.approx(26.47, abs=0.01)
    chance, beta = lazy(10.0, 1.0)
    assert chance == pytest.approx(logistic(first / 2), abs=1e-6)
    assert beta == pytest.approx(fitting(first, 1.0), rel=1e-4)
    twice = fitting(12.0, 1.0)
    assert 1.5 * 12 < twice < 2.5 * 12
    assert lazy(12.0, 1.0)[0] == pytest.approx(logistic(twice / 2), abs=1e-6)
    assert lazy(20.0, 1.0)[0] == pytest.approx(logistic(10.0), abs=1e-7)  # 27.7 is less than 1.5 times 20: it waits
    assert lazy(500.0, 1.0)[1] == 125.0  # far too large: a quarter


def test_a_scale_makes_beta_greater() -> None:
    """Half of a tenth may be lost to entropy: from 30, where 27.7 would fit, to twice that."""
    assert lazy(30.0, 1.0, scale=2.0)[1] == pytest.approx(2 * fitting(2 * fitting(30.0, 1.0), 1.0), rel=1e-4)


def test_the_first_beta_is_10() -> None:
    pools = Pools.of(view_of(2, 1, 1))
    first = Lazy().begin(pools, Hoeffding().around(pools, nothing(pools).counts, 0))
    assert first.memory["beta"] == 10.0
    np.testing.assert_allclose(first.mass, 0.5, rtol=1e-9)


def test_the_fitting_beta_of_two_steps_and_states_by_hand() -> None:
    """Two arms, one slot; both states come next with probability 1/2. The plan is 0.9 active and 0.1 active everywhere.

    Being active pays arm 0 0.4 in state 0 and 0.2 in state 1: at the first step 0.4 * 0.4 more than at random, then half of
    0.4 * 0.4 and half of 0.4 * 0.2.
    """
    chance = np.array([0.9, 0.1])
    law = np.array([[1.0, 0.0], [0.5, 0.5]])  # of step and state
    mass = law[np.newaxis, :, :, np.newaxis] * np.stack([1 - chance, chance], axis=1)[:, np.newaxis, np.newaxis]
    plan = Projection(mass, np.full((2, 2, 2, 2, 2), 0.5), np.zeros(2), np.zeros((2, 2, 2)), 0.0, 0, 0.0, 0.0)
    direction = np.zeros((2, 1, 2, 2))
    direction[0, 0, :, 1] = [0.4, 0.2]
    gain, entropy = 0.16 + 0.08 + 0.04, 4 * (0.9 * math.log(1.8) + 0.1 * math.log(0.2))
    found = fitting_beta(Pools.of(view_of(2, 2, 2)), plan, direction, 0.1)
    assert found == pytest.approx(entropy / (0.1 * gain), rel=1e-13)


def test_a_plan_of_one_s_own_took_no_iterations() -> None:
    assert Stepped(np.zeros((1, 1, 1, 2))).iterations == 0


# ---------------------------------------------------------------- when sets are made anew, and where counts are from


def test_refresh_rules_by_hand() -> None:
    pools = Pools.of(view_of(1, 1, 2, episodes=7))
    counts = [np.array([[[[n], [0]]]]) for n in (0, 1, 1, 3)]
    rule = Doubling()
    memory: Any = rule.learn({}, counts[0])
    for now, epoch in ((counts[1], 1), (counts[2], 1), (counts[3], 3)):
        memory = rule.learn(memory, now)
        assert rule.basis(memory, now)[0, 0, 0, 0] == epoch
    kept, begun = (rule.learn(memory, np.array([[[[5], [active]]]])) for active in (0, 1))
    assert rule.basis(kept, counts[3]) is memory["epoch"]  # 5 is not twice 3
    assert begun["epoch"][0, 0, 0, 0] == 5  # the other pair came up for the first time
    assert rule.until(pools, 0) == 6  # to the last episode
    every = EveryEpisode()
    assert (every.learn({}, counts[3]), every.basis({}, counts[3]) is counts[3], every.until(pools, 4)) == ({}, True, 4)


def test_where_transitions_are_known_from() -> None:
    pools = Pools.of(view_of(1, 1, 2, episodes=7))
    once = SimpleNamespace(counts=np.ones((1, 1, 2, 1), dtype=np.int64))
    seen: Any = once
    watching, samples = Observing(), np.full((1, 1, 2, 1), 30)
    counts = watching.begin(pools)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(watching.learn(watching.learn(counts, seen), seen), 2)
    assert watching.until(pools.view, 3) == 3
    told = Sampling(samples, "mine")
    assert told.learn(told.begin(pools), seen) is samples
    assert told.until(pools.view, 3) == 7
    with pytest.raises(ModelError, match=r"^mine: samples of shape \(1, 1, 2, 1\) for a task of \(2, 1, 2, 1\)$"):
        told.begin(Pools.of(view_of(2, 1)))


def test_exploration_by_hand() -> None:
    """T = 8, H = 8: 4 episodes of exploration, or 16 visits of every pair; two groups, the first of one state only."""
    pools = Pools.of(view_of(2, 2, 8, episodes=8, sizes=np.array([1, 2])))
    few, enough = np.full((2, 2, 2), 15), np.full((2, 2, 2), 16)
    rule = Exploration()
    assert [rule.goes_on(pools, few, episode) for episode in (0, 3, 4, 5)] == [True, True, False, False]
    assert not rule.goes_on(pools, enough, 0)
    enough[1, 1, 0] = 15
    assert rule.goes_on(pools, enough, 0)
    enough[1, 1, 0], enough[0, 1] = 16, 0  # padding needs no visit
    assert not rule.goes_on(pools, enough, 0)
    assert [Exploration(scale=0.3).goes_on(pools, few, episode) for episode in (1, 2)] == [True, False]  # 1.2, rounded up
    assert [Exploration(scale=9.0).goes_on(pools, few, episode) for episode in (6, 7)] == [True, False]  # the last is left
    np.testing.assert_array_equal(rule.table(pools, np.arange(8).reshape(2, 2, 2)), [[-1, -3], [-5, -7]])


ASKED: list[tuple[int, int]] = []


class Asked(Hoeffding):
    """Notes how much was counted, and for which episode sets are asked for."""

    def around(self, pools: Pools, counts: Any, episode: int) -> Any:
        ASKED.append((int(counts.sum()), episode))
        return super().around(pools, counts, episode)


def test_sets_are_made_for_the_coming_episode() -> None:
    """One arm, H = 3, T = 4: by doubling epochs they hold to the end, and are made of the counts of the epoch."""
    view = view_of(1, 1, 3)
    for rule, hand in ((EveryEpisode(), [(0, 0), (3, 1), (6, 2), (9, 3)]), (Doubling(), [(0, 3), (3, 3), (6, 3), (6, 3)])):
        ASKED.clear()
        learner = Ucmd(sets=Asked(), refresh=rule)
        state = learner.begin(view)
        for t in range(3):
            state = learner.learn(state, Feedback(t, np.zeros((4, 1)), np.zeros((3, 1)), [[[0.5, np.nan]]]))
        assert hand == ASKED
