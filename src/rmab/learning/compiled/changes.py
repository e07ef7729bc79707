"""Kernels that may change between episodes: change points of every group and action, weighted by likelihood.

The transitions of a group under an action are those since its last change, `base`, or since a candidate for a change in one
of the last W episodes, `since`. A candidate is judged by the ratio of the marginal likelihoods of what was seen from its
episode on (Adams & MacKay 2007: Bayesian online changepoint detection): of transitions counted since then, over that
of the base. Rows are Dirichlet a priori, around a mean that is learned from all groups.

Changes may be common: with probability e^-COMMON an event in an episode affects every group with probability SHARE; or
one group changes by itself, with probability e^-ALONE. The other groups show how likely the former is.
"""

import math

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline

COMMON, ALONE, SHARE = 3.0, 5.0, 0.5
CERTAIN = 5.0  # log ratio, beyond that of changes one by one, above which all groups have changed together
NEVER = -1e9  # the log ratio of a candidate that was dropped
FEW = 8  # factors that are multiplied one by one
LOOSE = 4.0  # transitions prior weight of the kernel before a common change for the one after it
VAGUE = 0.01  # share of a prior mean that is spread over all states, when likelihoods are compared
LEAST = 1e-6  # probabilities and weights below are taken for this, and for none


@compiled_inline
def _number(counts: IntArray) -> int:
    """Return the sum of a row of counts (S,). Loops, here and below: array expressions take seconds to compile."""
    number = 0
    for y in range(counts.size):
        number += counts[y]
    return number


@compiled
def pool_groups(counts: IntArray, possible: BoolArray, phases: int, rare: int, mean: FloatArray) -> None:
    """Write the frequencies (C,S,2,S) of the possible transitions of all groups in the same phase, of counts (C,S,2,S).

    With fewer than `rare` transitions in a row, plus one pseudo-transition that is spread over all states.
    """
    cells, states = counts.shape[:2]
    total = np.empty(states)
    for k in range(phases):
        for s in range(states):
            for a in range(2):
                for y in range(states):
                    total[y] = 0.0
                for c in range(k, cells, phases):
                    for y in range(states):
                        total[y] += counts[c, s, a, y]
                for c in range(k, cells, phases):
                    number, several = 0.0, 0
                    for y in range(states):
                        number += total[y] if possible[c, s, a, y] else 0.0
                        several += possible[c, s, a, y]
                    extra = 1.0 if number < rare else 0.0
                    for y in range(states):
                        even = extra / several + total[y] if possible[c, s, a, y] else 0.0
                        mean[c, s, a, y] = even / max(number + extra, 1.0)


@compiled
def fit_priors(seen: IntArray, base: IntArray, means: FloatArray, strengths: FloatArray, fit: FloatArray) -> None:
    """Add to fit (M,P,2) the log-likelihood of what was seen (C,S,2,S) under M prior means (M,C,S,2,S) of P strengths (P,).

    base (C,S,2,S): the transitions that were counted before, since the last change.
    """
    for c in range(seen.shape[0]):
        for s in range(seen.shape[1]):
            for a in range(2):
                if _number(seen[c, s, a]) == 0:
                    continue
                number = _number(base[c, s, a])
                for y in range(seen.shape[3]):
                    if seen[c, s, a, y] > 0:
                        for m in range(means.shape[0]):
                            for p in range(strengths.size):
                                likely = base[c, s, a, y] + strengths[p] * means[m, c, s, a, y]
                                chance = max(likely / (number + strengths[p]), LEAST)
                                fit[m, p, a] += seen[c, s, a, y] * math.log(chance)


@compiled_inline
def _rising(first: float, times: int) -> float:
    """Return the logarithm of first * (first + 1) * ... of so many factors."""
    if times > FEW:
        return math.lgamma(first + times) - math.lgamma(first)
    product = 1.0
    for i in range(times):
        product *= first + i
    return math.log(product)


@compiled_inline
def _likelihood(seen: IntArray, before: IntArray, counted: bool, mean: FloatArray, strength: float) -> float:
    """Return the marginal log-likelihood of a row of transitions (S,), after those of before, if they are counted."""
    total, number, found = 0, 0.0, 0.0
    for y in range(seen.size):
        earlier = float(before[y]) if counted else 0.0
        number += earlier
        if seen[y] > 0:
            total += seen[y]
            weight = strength * ((1.0 - VAGUE) * mean[y] + VAGUE / seen.size)
            found += _rising(earlier + weight, seen[y])
    return found - _rising(number + strength, total) if total > 0 else 0.0


@compiled
def judge_common(
    seen: IntArray, base: IntArray, since: IntArray, mean: FloatArray, strength: FloatArray, slot: int, common: FloatArray
) -> None:
    """Judge whether all groups have changed together: common (W,2), the log ratios of all candidates, is updated.

    What all groups together have shown (C,S,2,S) since a candidate's episode is compared with the prediction of each. So
    a change is found even if every group shows little of it, as with passive arms. It must be called before `take_in`.
    """
    window, states = common.shape[0], seen.shape[1]
    row, own = np.empty(states, dtype=np.int64), np.empty(states)
    before = np.empty((window, states), dtype=np.int64)
    for a in range(2):
        common[slot, a] = 0.0
        for s in range(states):
            plain = 0.0
            for y in range(states):
                row[y], own[y] = 0, 0.0
                for w in range(window):
                    before[w, y] = 0
            for c in range(seen.shape[0]):
                if _number(seen[c, s, a]) > 0:
                    plain += _likelihood(seen[c, s, a], base[c, s, a], True, mean[c, s, a], strength[a])
                for y in range(states):
                    row[y] += seen[c, s, a, y]
                    own[y] += mean[c, s, a, y] / seen.shape[0]
                    for w in range(window):
                        before[w, y] += since[w, c, s, a, y]
            for w in range(window):
                common[w, a] += _likelihood(row, before[w], w != slot, own, LOOSE) - plain


@compiled
def take_in(
    seen: IntArray,
    base: IntArray,
    since: IntArray,
    mean: FloatArray,
    strength: FloatArray,
    slot: int,
    changed: BoolArray,
    ratio: FloatArray,
) -> None:
    """Count what was seen (C,S,2,S), and judge all candidates. base (C,S,2,S), since (W,C,S,2,S), ratio (W,G,2): updated.

    The candidate of this episode takes the slot of the oldest, which becomes the base of the groups that `changed` (G,2).
    mean (C,S,2,S) and strength (2,): prior of the rows.
    """
    window, groups = ratio.shape[:2]
    phases, states = seen.shape[0] // groups, seen.shape[1]
    for g in range(groups):
        for a in range(2):
            for w in range(window):
                if changed[g, a]:
                    ratio[w, g, a] = NEVER
            ratio[slot, g, a] = 0.0
            for c in range(g * phases, (g + 1) * phases):
                for s in range(states):
                    for y in range(states):
                        if changed[g, a]:
                            base[c, s, a, y] = since[slot, c, s, a, y]
                        since[slot, c, s, a, y] = 0
                    if _number(seen[c, s, a]) == 0:
                        continue
                    row, own = seen[c, s, a], mean[c, s, a]
                    plain = _likelihood(row, base[c, s, a], True, own, strength[a])
                    for w in range(window):
                        if ratio[w, g, a] > 0.5 * NEVER:
                            ratio[w, g, a] += _likelihood(row, since[w, c, s, a], w != slot, own, strength[a]) - plain
                        for y in range(states):
                            since[w, c, s, a, y] += row[y]
                    for y in range(states):
                        base[c, s, a, y] += row[y]


@compiled_inline
def _log_sum(x: float, y: float) -> float:
    """Return ln(e^x + e^y)."""
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@compiled
def weigh_changes(ratio: FloatArray, weight: FloatArray) -> None:
    """Write how likely it is that the transitions are those of the base, or since a candidate: weight (1+W,G,2)."""
    window, groups = ratio.shape[:2]
    shown, common = np.empty((window, groups)), np.empty(window)
    for a in range(2):
        for w in range(window):
            common[w] = 0.0
            for g in range(groups):  # whether something happened to all, by what happened to this one
                shown[w, g] = _log_sum(math.log(1.0 - SHARE), math.log(SHARE) + ratio[w, g, a])
                common[w] += shown[w, g]
            common[w] -= COMMON
        for g in range(groups):
            most, total, changed = 0.0, 1.0, 0.0
            for w in range(window):
                most = max(most, common[w] - shown[w, g])
            total = math.exp(-most)
            for w in range(window):
                total += math.exp(common[w] - shown[w, g] - most)
            unchanged = math.exp(-most) / total
            for w in range(window):  # a priori, by what the others show
                weight[1 + w, g, a] = SHARE * math.exp(common[w] - shown[w, g] - most) / total + unchanged * math.exp(-ALONE)
                changed += weight[1 + w, g, a]
            best = math.log(max(1.0 - changed, LEAST))
            weight[0, g, a] = best
            for w in range(window):
                weight[1 + w, g, a] = math.log(max(weight[1 + w, g, a], 1e-300)) + ratio[w, g, a]
                best = max(best, weight[1 + w, g, a])
            total = 0.0
            for w in range(1 + window):
                weight[w, g, a] = math.exp(weight[w, g, a] - best)
                if weight[w, g, a] < LEAST:
                    weight[w, g, a] = 0.0
                total += weight[w, g, a]
            for w in range(1 + window):
                weight[w, g, a] /= total


@compiled
def mix(
    base: IntArray, since: IntArray, weight: FloatArray, mean: FloatArray, strength: FloatArray, kernels: FloatArray
) -> None:
    """Write the kernels (C,S,2,S): the mean of the estimates of the base and of all candidates, by weight (1+W,G,2)."""
    phases = base.shape[0] // weight.shape[1]
    for c in range(base.shape[0]):
        for a in range(2):
            for s in range(base.shape[1]):
                for y in range(base.shape[3]):
                    kernels[c, s, a, y] = 0.0
                total = 0.0
                for w in range(weight.shape[0]):
                    share = weight[w, c // phases, a]
                    if share == 0.0:
                        continue
                    counts = base[c, s, a] if w == 0 else since[w - 1, c, s, a]
                    share /= _number(counts) + strength[a]
                    for y in range(counts.size):
                        kernels[c, s, a, y] += share * (counts[y] + strength[a] * mean[c, s, a, y])
                for y in range(base.shape[3]):
                    total += kernels[c, s, a, y]
                for y in range(base.shape[3]):
                    kernels[c, s, a, y] /= total
