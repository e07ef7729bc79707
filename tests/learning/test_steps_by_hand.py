"""Steps and refresh rules in numbers that can be followed by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from episodes import ended, view_of
from rmab.errors import ModelError
from rmab.learning import Active, Doubling, EveryEpisode, Hoeffding, Lazy, RewardEstimate, StepResult, Ucmd
from rmab.learning.components import Centred, Exploration, Observing, Sampling, Step
from rmab.learning.components.steps import fitting_beta
from rmab.learning.pools import Observations, Pools
from rmab.play.feedback import Feedback
from rmab.solvers.projection.project import Projection

# ---------------------------------------------------------------- steps


def nothing(pools: Pools) -> Observations:
    return Observations(
        np.zeros(pools.support.shape, dtype=np.int64), np.zeros(pools.zero.shape), np.zeros(pools.zero.shape)
    )


class HalfUniform(Active):
    """Forgets half of the last plan."""

    def uniform_share(self, view: Any) -> float:
        return 0.5


def moved(step: Step, pools: Pools, memory: Any, gain: Any) -> StepResult:
    """Return the next plan of one step, kernels unknown."""
    seen = nothing(pools)
    sets = Hoeffding().around(pools, seen.counts, 0).take(pools.group)
    return step.move(memory, ended(pools, seen), sets, RewardEstimate(np.asarray(gain, dtype=float)))


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
    assert StepResult(np.zeros((1, 1, 1, 2))).iterations == 0


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
    assert [rule.continues(pools, few, episode) for episode in (0, 3, 4, 5)] == [True, True, False, False]
    assert not rule.continues(pools, enough, 0)
    enough[1, 1, 0] = 15
    assert rule.continues(pools, enough, 0)
    enough[1, 1, 0], enough[0, 1] = 16, 0  # padding needs no visit
    assert not rule.continues(pools, enough, 0)
    assert [Exploration(scale=0.3).continues(pools, few, episode) for episode in (1, 2)] == [True, False]  # 1.2, rounded up
    assert [Exploration(scale=9.0).continues(pools, few, episode) for episode in (6, 7)] == [True, False]  # the last is left
    np.testing.assert_array_equal(rule.table(pools, np.arange(8).reshape(2, 2, 2)), [[-1, -3], [-5, -7]])


ASKED: list[tuple[int, int]] = []


class Asked(Hoeffding):
    """Notes how much was counted, and for which episode sets are asked for."""

    def around(self, pools: Pools, counts: Any, episode: int) -> Any:
        ASKED.append((int(counts.sum()), episode))
        return super().around(pools, counts, episode)


@pytest.mark.slow
def test_sets_are_made_for_the_coming_episode() -> None:
    """One arm, H = 3, T = 4: by doubling epochs they hold to the end, and are made of the counts of the epoch."""
    view = view_of(1, 1, 3)
    for rule, hand in ((EveryEpisode(), [(0, 0), (3, 1), (6, 2), (9, 3)]), (Doubling(), [(0, 3), (3, 3), (6, 3), (6, 3)])):
        ASKED.clear()
        learner = Ucmd(confidence=Asked(), refresh=rule)
        state = learner.begin(view)
        for t in range(3):
            state = learner.learn(state, Feedback(t, np.zeros((4, 1)), np.zeros((3, 1)), [[[0.5, np.nan]]]))
        assert hand == ASKED
