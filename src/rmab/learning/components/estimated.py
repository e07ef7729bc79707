"""Kernels as they are estimated, where they may change between episodes and may, or may not, depend on the phase."""

from __future__ import annotations

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning.components.sets import ConfidenceSets
from rmab.learning.options import configured, option
from rmab.learning.pools import Observations, Pools
from rmab.learning.state import MOST, ArraySpec, ArraySpecs, Memory
from rmab.solvers.transitions import TransitionSets

RARE = 10  # transitions of a row, of all groups, from which on it holds nothing that was not seen
FADING = 0.9  # what is left of a score after an episode
OTHERS = 1.0  # part of the mean score of all groups that counts with that of a group
STEADY = 2.0  # powers of e by which it is likelier at first that nothing changes
FAINT = 1e-6  # weights below are none
WORST = 1e9  # of a score
PRIOR, RATES = (
    "transitions of all groups that count with those of one",
    "what is left of counts after an episode, rate by rate",
)


@configured
class Estimated(ConfidenceSets):
    """No set at all: the kernels as they are estimated. Optimism about unseen rewards is enough to explore.

    The frequencies of a row count together with `prior` transitions of all groups: those that were seen from the same state
    under the same action, and one that may lead anywhere. While a row was seen fewer than ten times by all groups together
    that one stays; later, rows hold nothing that never happened, and are short.

    Dynamics may change. Counts are kept at several rates of forgetting, and the estimate is the mean of all estimates, which
    are weighed, group by group, by how likely they found what the group did: scores fade by .9 an episode, a quarter of the
    mean score of all groups is added, and forgetting begins with e^-2 of the weight. Where phases are declared, estimates
    that take all phases of a group as one are weighed with the others (`phases`).

    Examples
    --------
    >>> from rmab.learning import Estimated, Ucmd
    >>> Ucmd(confidence=Estimated(rates=(1.0,))).confidence.rates
    (1.0,)
    """

    confident = False
    prior: float = option(default=1.0, ge=1e-12, le=1e6, help=PRIOR)
    rates: tuple[float, ...] = option(default=(1.0, 0.9, 0.6), help=RATES)
    phases: bool = option(default=True, help="whether estimates that take all phases of an arm as one are tried")

    def __post_init__(self) -> None:
        """Check the rates, too."""
        super().__post_init__()
        if self.rates[:1] != (1.0,) or not all(0 < one < 1 for one in self.rates[1:]):
            raise ModelError(f"Estimated: rates must be 1, and then numbers between 0 and 1, got {self.rates}")

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the counts, those that fade, and the scores."""
        declared, (experts, shape) = dict(super().state_spec(pools)), (self._experts(pools), pools.support.shape)
        if experts > 1:
            declared["recent"] = ArraySpec((len(self.rates) - 1, *shape), "f", 0, MOST)
            declared["score"] = ArraySpec((experts, shape[0] // pools.view.phases), "f", -WORST, WORST)
        return declared

    def begin(self, pools: Pools) -> Memory:
        """Return counts of nothing."""
        made = {name: np.zeros(one.shape) for name, one in self.state_spec(pools).items() if one.kind == "f"}
        return {**super().begin(pools), **made}

    def _experts(self, pools: Pools) -> int:
        return len(self.rates) * (2 if self.phases and pools.view.phases > 1 else 1)

    def learn(self, memory: Memory, observed: Observations) -> Memory:
        """Count, forget, and score every estimate by the likelihood of what was seen."""
        counts = super().learn(memory, observed)
        if "score" not in memory:
            return counts
        experts, groups = memory["score"].shape
        score = FADING * memory["score"]
        seen = observed.counts.reshape(groups, -1)
        for k in range(experts):
            kernels = self._kernels(memory, k, None).reshape(groups, -1)
            score[k] += np.where(seen > 0, seen * np.log(np.maximum(kernels, 1e-6)), 0.0).sum(axis=1)
        score = np.maximum(score - score.max(axis=0), -WORST)
        rates = np.array(self.rates[1:]).reshape(-1, 1, 1, 1, 1)
        return {**counts, "recent": rates * memory["recent"] + observed.counts, "score": score}

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:  # noqa: ARG002
        """Return sets that hold one kernel each: of all counts alike."""
        mean = _shrunk(counts, pools.view.phases, self.prior, pools.support)
        return TransitionSets(mean, mean)

    def after(self, pools: Pools, memory: Memory, basis: IntArray, episode: int) -> TransitionSets:
        """Return sets that hold one kernel each: the mean of all estimates, by their weights."""
        if "score" not in memory or basis is not memory["counts"]:
            return self.around(pools, basis, episode)
        weight = self._weights(memory["score"])
        mean = np.zeros(basis.shape)
        for k in np.flatnonzero(weight.max(axis=1) > FAINT):
            share = np.repeat(weight[k], pools.view.phases).reshape(-1, 1, 1, 1)
            mean += share * self._kernels(memory, int(k), pools.support)
        mean /= mean.sum(axis=3, keepdims=True)
        return TransitionSets(mean, mean)

    def _weights(self, score: FloatArray) -> FloatArray:
        """(E, groups) how far each estimate is believed, group by group."""
        score, several = score + OTHERS * score.mean(axis=1, keepdims=True), len(self.rates)
        score = score - STEADY * (np.arange(len(score)) % several > 0)[:, np.newaxis]
        weight = np.exp(score - score.max(axis=0))
        weight[weight < FAINT] = 0.0
        return np.asarray(weight / weight.sum(axis=0))

    def _kernels(self, memory: Memory, k: int, support: BoolArray | None) -> FloatArray:
        """(G, S, 2, S) estimate k; without a support every transition is taken to be possible."""
        several, phases = len(self.rates), len(memory["counts"]) // memory["score"].shape[1]
        counts = memory["counts"] if k % several == 0 else memory["recent"][k % several - 1]
        if k < several:
            return _shrunk(counts, phases, self.prior, support)
        pooled = counts.reshape(-1, phases, *counts.shape[1:]).sum(axis=1)
        own = np.repeat(_shrunk(pooled, 1, self.prior, None if support is None else support[::phases]), phases, axis=0)
        return own if support is None else own * support


def _shrunk(counts: IntArray | FloatArray, phases: int, prior: float, support: BoolArray | None) -> FloatArray:
    """(G, S, 2, S) frequencies, together with `prior` transitions of all groups in the same phase."""
    possible = np.ones(counts.shape[-1], dtype=bool) if support is None else support
    total = np.tile(counts.reshape(-1, phases, *counts.shape[1:]).sum(axis=0), (len(counts) // phases, 1, 1, 1)) * possible
    number = total.sum(axis=3, keepdims=True)
    even = np.where(number < RARE, possible / possible.sum(axis=-1, keepdims=True), 0.0)
    common = (total + even) / np.maximum(number + (number < RARE), 1.0)
    return np.asarray((counts + prior * common) / (counts.sum(axis=3, keepdims=True) + prior))
