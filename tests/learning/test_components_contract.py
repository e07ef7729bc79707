"""Every part keeps the contract of its kind; sets and rewards that break one clause of it are caught by that clause."""

import numpy as np
import pytest

from contracts import broken
from rmab.learning import (
    L1,
    Active,
    Bernstein,
    ConfidenceSets,
    DependentRounding,
    Direct,
    Doubling,
    Estimated,
    EveryEpisode,
    Fading,
    Forecast,
    Hoeffding,
    ImplicitExploration,
    Kl,
    LastSeen,
    Lazy,
    PaperEstimator,
    Priced,
    Revealed,
    RewardEstimate,
    RewardEstimator,
    TopB,
    WideBernstein,
)
from rmab.learning.algorithms.shifted_uc_o_reps import ShiftedL1, ShiftedWeights
from rmab.learning.algorithms.uob_reps import UobStep, UpperOccupancy
from rmab.learning.pools import empirical
from rmab.solvers import TransitionSets
from rmab.testing import check_execution, check_refresh, check_rewards, check_sets, check_step


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [Estimated(), Hoeffding(), Bernstein(), WideBernstein(), Kl(epsilon=0.5), L1(), Hoeffding(scale=0.3)]
)
def test_sets(part):
    check_sets(part)


@pytest.mark.parametrize(
    "part",
    [
        PaperEstimator(),
        Direct(),
        Fading(),
        LastSeen(),
        Forecast(),
        ImplicitExploration(),
        Revealed(),
        UpperOccupancy(),
        ShiftedWeights(),
    ],
)
def test_rewards(part):
    check_rewards(part)


@pytest.mark.parametrize("part", [Active(), Lazy(), Priced(), Priced(trust=1.0), UobStep(scale=3.0)])
def test_steps(part):
    check_step(part)


@pytest.mark.parametrize("part", [TopB(), TopB(rule="at-most"), DependentRounding(), DependentRounding(rule="at-most")])
def test_executions(part):
    check_execution(part)


@pytest.mark.parametrize("part", [EveryEpisode(), Doubling()])
def test_refresh_rules(part):
    check_refresh(part)


def box(pools, low, high):
    return TransitionSets.boxes(np.full(pools.support.shape, low) * pools.support, np.full(pools.support.shape, high))


class NoSets(ConfidenceSets):
    def around(self, pools, counts, episode):
        return counts


class SmallSets(ConfidenceSets):
    def around(self, pools, counts, episode):
        even = pools.support / pools.support.sum(axis=3, keepdims=True)
        return TransitionSets.boxes(even, even)


class FreeSets(ConfidenceSets):
    def around(self, pools, counts, episode):
        return TransitionSets.boxes(np.zeros(counts.shape), np.ones(counts.shape))


class FreeBalls(ConfidenceSets):
    def around(self, pools, counts, episode):
        mean = empirical(counts, pools.support)
        return TransitionSets.balls(mean, np.full(counts.shape[:3], 2.0), np.ones(counts.shape, dtype=bool))


class Empty(ConfidenceSets):
    def around(self, pools, counts, episode):
        return TransitionSets.boxes(np.zeros(counts.shape), np.zeros(counts.shape))


class Fails(ConfidenceSets):
    def around(self, pools, counts, episode):
        return {}["nothing"]


class Window(Kl):
    """Keeps the last two episodes: a set that forgets."""

    def begin(self, pools):
        return {"counts": super().begin(pools)["counts"], "last": super().begin(pools)["counts"]}

    def learn(self, memory, observed):
        return {"counts": memory["last"] + observed.counts, "last": observed.counts}


def test_sets_may_forget():
    check_sets(Window())


class OneGroup(Kl):
    def around(self, pools, counts, episode):
        return super().around(pools, counts, episode).take(np.array([0]))


class Miscounts(Kl):
    def learn(self, memory, observed):
        return {"counts": memory["counts"] + 2 * observed.counts}


class Uncounted(Kl):
    def begin(self, pools):
        return {"visits": np.zeros(3)}


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (NoSets(), "returns: NoSets: around must return TransitionSets, got ndarray"),
        (OneGroup(), "returns: OneGroup: the sets are (1, 3, 2, 3), not (4, 3, 2, 3)"),
        (SmallSets(), "mean: a set does not contain the observed frequencies"),
        (FreeSets(), "returns: FreeSets: a transition that is declared impossible is possible"),
        (Miscounts(), "counting: the memory's counts are not those of observed transitions"),
        (FreeBalls(), "returns: FreeBalls: a transition that is declared impossible is possible"),
        (Empty(), "returns: arm 0, state 0, action 0: no distribution lies between lower and upper"),
        (Fails(), "raises: KeyError: 'nothing'"),
        (Uncounted(), "counting: counts must be (4, 3, 2, 3), got None"),
        (ShiftedL1(), "mean: a set does not contain"),  # it is meant to be shifted; the contract is that of a confidence set
        (Direct(), "kind: Direct does not derive from ConfidenceSets"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_broken_sets(part, line):
    assert broken(check_sets, part).startswith(line)


class Gains(RewardEstimator):
    """Says the same of every pair."""

    def __init__(self, value=0.5, shape=None, ahead=None, memory=None):
        self.value, self.shape, self.ahead, self.memory = value, shape, ahead, memory

    def learn(self, memory, episode):
        gain = np.full(self.shape or episode.pools.zero.shape, self.value)
        return RewardEstimate(gain, self.ahead, self.memory or {})


class NoEstimate(RewardEstimator):
    def learn(self, memory, episode):
        return episode.observed.values


class Secret(RewardEstimator):
    """Remembers in itself what it should return."""

    def __init__(self):
        self._calls = 0

    def learn(self, memory, episode):
        self._calls += 1
        return RewardEstimate(np.full(episode.pools.zero.shape, 1 / self._calls))


class Overwrites(Direct):
    def learn(self, memory, episode):
        episode.observed.values[:] = 0.5
        return super().learn(memory, episode)


class Changes(Direct):
    """Is made of something else after every episode."""

    def __init__(self):
        self.calls = 0

    def learn(self, memory, episode):
        self.calls += 1
        return super().learn(memory, episode)


class Unpicklable(Direct):
    def __getstate__(self):
        raise TypeError("not me")


class Draws(RewardEstimator):
    """Has noise arm by arm, and does not say so."""

    def learn(self, memory, episode):
        return RewardEstimate(np.random.default_rng(episode.draw_key).random(episode.pools.zero.shape))


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (NoEstimate(), "returns: NoEstimate: learn must return a RewardEstimate, got ndarray"),
        (Gains(shape=(2, 2)), "returns: Gains: gain is (2, 2), not (4, 3, 2) or (4, 4, 3, 2)"),
        (Gains(ahead=np.zeros((3, 2))), "returns: Gains: ahead is (3, 2), not (4, 3, 2)"),
        (Gains(np.nan), "returns: Gains: estimates must be finite, and at most 1"),
        (Gains(1.5), "returns: Gains: estimates must be finite, and at most 1"),
        (Gains(memory={"list": [1, 2]}), "returns: Gains: memory: list must be an array of numbers, got list"),
        (Gains(memory={"words": np.array(["a"])}), "returns: Gains: memory: words must be an array of numbers, got ndarray"),
        (Secret(), "determinism: two runs"),
        (Unpicklable(), "pickling: the component cannot be pickled (not me)"),
        (Draws(), "relabelling: in episode 1"),
        (Overwrites(), "read-only: learning writes to its arguments"),
        (Changes(), "own states: the learner rejects its own state"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_broken_rewards(part, line):
    assert broken(check_rewards, part).startswith(line)
