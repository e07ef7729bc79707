"""Estimated kernels, which may change between episodes and may depend on the phase."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning.compiled.changes import CERTAIN, NEVER, fit_priors, judge_common, mix, pool_groups, take_in, weigh_changes
from rmab.learning.components.base import ConfidenceSets
from rmab.learning.options import configured, option
from rmab.learning.pools import Observations, Pools
from rmab.learning.state import MOST, ArraySpec, ArraySpecs, Memory, whole
from rmab.solvers.transitions import TransitionSets

RARE = 10  # transitions of a row, of all groups, above which unobserved transitions get probability 0
OVER_PHASES = 4.0  # pooled transitions added to those of one group in all phases
WINDOW = 3  # most recent episodes in which a change can be found
ALIKE = 16.0  # pooled transitions added to those of one group, if all may change together
FEW, ENOUGH = 2, 4  # times as many transitions of all groups before a change of one, or of all, as since then
WORST = 1e300  # of a log-likelihood
TYPES, ROUNDS = 4, 15  # types of groups, and rounds of fitting them
SEVERAL, LARGE = 64, 500_000  # groups needed for types, and largest table of counts, as it would take long
FIRM = 1.0  # pooled transitions added to those of a type
UNLIKELY = 1e-9  # smallest probability
PRIORS = "candidate weights, in transitions, of the estimate pooled over groups; the likeliest one is used"


@configured
class Estimated(ConfidenceSets):
    """Point estimates of the kernels, without a set. Optimism about unseen rewards is enough to explore.

    The transitions of a row are pooled with some of all groups, from the same state under the same action: the more
    similar groups are, the more of them. Of the numbers `priors`, the one with the highest likelihood is used, for
    each action. With phases, there is a second choice: those of the same group in all phases (`phases`). With 64 groups or
    more, and no phases, similar groups are a third (`types`): a mixture of four types is fitted to the transitions of
    the groups (EM; Dempster, Laird & Rubin 1977). While a row was
    seen fewer than ten times in all groups together, one pseudo-transition is spread over all states; later, rows contain
    only observed transitions, and are short.

    Dynamics may change (`changes`). Every group and action may have changed in one of the last three episodes: these
    cases are weighted by the likelihood of the observations since. A change in some groups makes it likelier in others.

    Examples
    --------
    >>> from rmab.learning import Estimated, Ucmd
    >>> Ucmd(confidence=Estimated(changes=False)).confidence.priors
    (1.0, 4.0, 16.0, 64.0, 256.0)
    """

    confident = False
    priors: tuple[float, ...] = option(default=(1.0, 4.0, 16.0, 64.0, 256.0), help=PRIORS)
    changes: bool = option(default=True, help="whether kernels may change between episodes")
    phases: bool = option(default=True, help="whether to try estimates that pool all phases of an arm")
    types: bool = option(default=True, help="whether to try estimates that pool similar arms (from 64 arms on)")

    def __post_init__(self) -> None:
        """Check the priors, too."""
        super().__post_init__()
        if not self.priors or not all(1e-12 <= one <= 1e6 for one in self.priors):
            raise ModelError(f"Estimated: priors must be one or more numbers from 1e-12 to 1e6, got {self.priors}")

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the counts: all, since the last change, and since a change that is not yet certain."""
        shape, window = pools.support.shape, WINDOW * self.changes
        groups = shape[0] // pools.view.phases
        return {
            **super().state_spec(pools),
            "base": whole(*shape),
            "since": whole(window, *shape),
            "ratio": ArraySpec((window, groups, 2), "f", NEVER, MOST),
            "fit": ArraySpec((self._means(pools), len(self.priors), 2), "f", -WORST, 0),
            "common": ArraySpec((window, 2), "f", 2 * NEVER, MOST, optional=True),
            "slot": ArraySpec((), "i", 0, max(window - 1, 0)),
        }

    def begin(self, pools: Pools) -> Memory:
        """Return zero counts."""
        kinds = {"i": np.int64, "f": np.float64}
        memory = {name: np.zeros(one.shape or (), dtype=kinds[one.kind]) for name, one in self.state_spec(pools).items()}
        for name in ("ratio", "common"):
            memory[name].fill(NEVER)
        return memory

    def _means(self, pools: Pools) -> int:
        """Return how many prior means there are."""
        if pools.view.phases > 1:
            return 2 if self.phases else 1
        return 2 if self.types and len(pools.support) >= SEVERAL and pools.support.size <= LARGE else 1

    def learn(self, memory: Memory, observed: Observations) -> Memory:
        """Count, and weight priors and changes by the likelihood of the observations."""
        counts, slot = memory["counts"] + observed.counts, int(memory["slot"])
        base, since, ratio, fit = (np.array(memory[name]) for name in ("base", "since", "ratio", "fit"))
        window, groups = ratio.shape[:2]
        common = np.array(memory.get("common", np.full((window, 2), NEVER)))
        seen, means = np.array(observed.counts), _means(_in_force(memory), len(counts) // groups, len(fit), None)
        mean, strength = self._prior(fit, means)
        fit_priors(seen, base, means, np.array(self.priors), fit)
        if window == 0:
            base += seen
        else:
            known = base.sum(axis=(0, 1, 3)) > FEW * since[slot].sum(axis=(0, 1, 3))  # at first, nothing has changed
            changed = (_weights(ratio)[1 + slot] > 0.5) & known
            judge_common(seen, base, since, mean, strength, slot, common)
            take_in(seen, base, since, mean, strength, slot, changed, ratio)
            one_mean = len(fit) == 1 or len(counts) == groups  # of groups, not of the phases of one
            alike = strength >= ALIKE if one_mean else np.zeros(2, dtype=bool)
            _drop_common(base, since, ratio, common, alike)
        after = np.array((slot + 1) % window if window else 0)
        return {"counts": counts, "base": base, "since": since, "ratio": ratio, "fit": fit, "common": common, "slot": after}

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:  # noqa: ARG002
        """Return sets of one kernel each: from all counts, with the first prior."""
        mean = _means(counts, pools.view.phases, 1, pools.support)[0]
        kernels = (counts + self.priors[0] * mean) / (counts.sum(axis=3, keepdims=True) + self.priors[0])
        return TransitionSets(kernels, kernels)

    def after(self, pools: Pools, memory: Memory, basis: IntArray, episode: int) -> TransitionSets:
        """Return sets of one kernel each: the weighted mean of all estimates."""
        counts = memory["counts"]
        if basis is not counts and not np.array_equal(basis, counts):  # by value: a state that was loaded has other arrays
            return self.around(pools, basis, episode)
        base, since, ratio, fit = (_writable(memory[name]) for name in ("base", "since", "ratio", "fit"))
        mean, strength = self._prior(fit, _means(_in_force(memory), pools.view.phases, len(fit), pools.support))
        kernels = np.empty(basis.shape)
        mix(base, since, _weights(ratio), mean, strength, kernels)
        return TransitionSets(kernels, kernels)

    def _prior(self, fit: FloatArray, means: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean (G, S, 2, S) and the strength (2,) of the likeliest prior of either action."""
        best = fit.reshape(-1, 2).argmax(axis=0)
        which, strength = best // len(self.priors), np.array(self.priors)[best % len(self.priors)]
        if len(means) == 1:
            return means[0], strength
        return np.stack([means[which[a], :, :, a] for a in range(2)], axis=2), strength


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, or a copy of one that is read-only: code is compiled for one kind only."""
    return array if array.flags.writeable else np.array(array)


def _weights(ratio: FloatArray) -> FloatArray:
    """(1 + W, groups, 2) the probability that the last change is the base's, or a candidate's."""
    weight = np.empty((len(ratio) + 1, *ratio.shape[1:]))
    weigh_changes(ratio, weight)
    return weight


def _drop_common(base: IntArray, since: IntArray, ratio: FloatArray, common: FloatArray, alike: BoolArray) -> None:
    """Drop what was counted before a change of all groups together, of actions under which groups are similar (2,)."""
    some = np.logaddexp(0.0, ratio).sum(axis=1) - ratio.shape[1] * np.log(2.0)  # have changed, each in its own way
    lead = common - np.maximum(some, 0.0)
    for a, w in enumerate(lead.argmax(axis=0)):
        if alike[a] and lead[w, a] > CERTAIN and base[:, :, a].sum() > ENOUGH * since[w, :, :, a].sum():
            base[:, :, a] = since[w, :, :, a]
            ratio[:, :, a] = common[:, a] = NEVER


def _in_force(memory: Memory) -> IntArray:
    """(G, S, 2, S) the counts to pool over groups: all, or those since a change of every group."""
    counts, base, groups = memory["counts"], memory["base"], memory["ratio"].shape[1]
    if base.sum() == counts.sum():
        return counts
    total, left = (one.sum(axis=(1, 3)).reshape(groups, -1, 2).sum(axis=1) for one in (counts, base))
    renewed = ((left < total) | (total == 0)).all(axis=0) & (left < total).any(axis=0)
    return np.asarray(np.where(renewed[:, np.newaxis], base, counts)) if renewed.any() else counts


def _means(counts: IntArray, phases: int, number: int, support: BoolArray | None) -> FloatArray:
    """(number, G, S, 2, S) frequencies of all groups in the same phase; those of a group in all phases, or of its type."""
    possible = np.ones(counts.shape, dtype=bool) if support is None else support
    means = [_common(counts, phases, possible)]
    if number > 1 and phases == 1:
        means.append(_within(_of_types(counts, means[0]), possible, means[0]))
    elif number > 1:
        by_group = counts.reshape(-1, phases, *counts.shape[1:])
        own = by_group.sum(axis=1)
        ever = np.asarray(possible.reshape(by_group.shape).any(axis=1))
        common = _common(own, 1, ever)
        mean = np.repeat((own + OVER_PHASES * common) / (own.sum(axis=3, keepdims=True) + OVER_PHASES), phases, axis=0)
        means.insert(0, _within(mean, possible, means[0]))  # first: the default before any observation
    return np.stack(means) if number > 1 else means[0][np.newaxis]


def _of_types(counts: IntArray, common: FloatArray) -> FloatArray:
    """(G, S, 2, S) what is to be expected of groups that are each of one of a few types; common (G, S, 2, S): of all.

    Types begin as quarters of the groups, in the order of their transitions along the direction in which groups differ
    most. Groups that have shown the same are of the same type, whatever their order.
    """
    total = counts.sum(axis=3, keepdims=True)
    if not total.any():
        return common
    seen, expected = counts.reshape(len(counts), -1).astype(np.float64), total * common
    spread = (expected * (1.0 - common)).reshape(seen.shape).sum(axis=0)
    unlike = (seen - expected.reshape(seen.shape)) / np.sqrt(np.maximum(spread, 1.0))
    axis = unlike[np.argmax((unlike**2).sum(axis=1))]
    for _ in range(ROUNDS):  # to the first principal component
        axis = np.einsum("nk,n->k", unlike, np.einsum("nk,k->n", unlike, axis))
        axis /= max(float(np.abs(axis).max()), UNLIKELY)
    along = np.einsum("nk,k->n", unlike, axis)
    type_of = np.searchsorted(np.quantile(along, np.arange(1, TYPES) / TYPES), along)
    chance, mean = np.eye(TYPES)[type_of], common.mean(axis=0)
    for _ in range(ROUNDS):
        kernels = np.einsum("nc,nk->ck", chance, seen).reshape(TYPES, *mean.shape) + FIRM * mean
        kernels /= kernels.sum(axis=3, keepdims=True)
        logs = np.log(np.maximum(kernels.reshape(TYPES, -1), UNLIKELY))
        likely = np.einsum("nk,ck->nc", seen, logs) + np.log(chance.sum(axis=0) + 1.0)
        chance = np.exp(likely - likely.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nc,csay->nsay", chance, kernels))


def _within(mean: FloatArray, possible: BoolArray, otherwise: FloatArray) -> FloatArray:
    """Return the rows of a mean without transitions that are impossible in a phase; empty rows come from another mean."""
    lost = (mean * ~possible).any(axis=3, keepdims=True)
    left = np.where(possible, mean, 0.0)
    total = left.sum(axis=3, keepdims=True)
    return np.where(lost, np.where(total > 0.0, left / np.where(total > 0.0, total, 1.0), otherwise), left)


def _common(counts: IntArray, phases: int, possible: BoolArray) -> FloatArray:
    """(G, S, 2, S) frequencies of all groups in the same phase; with few observations, plus one pseudo-transition."""
    mean = np.empty(counts.shape)
    pool_groups(_writable(counts), _writable(possible), phases, RARE, mean)
    return mean
