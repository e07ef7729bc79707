"""Clusters of arms with similar behaviour: a mixture of Markov chains, fitted by EM, their number by BIC.

Every arm belongs to one of K clusters, and moves by its cluster's kernel: the likelihood of an arm with counts c is the
sum over clusters k of w_k times the product of P_k(y|s,a) ^ c(s,a,y) (Cadez et al. 2003, "Model-based clustering and
visualization of navigation patterns"). Rows have a weak prior around those of all arms, so that a cluster that never saw
a state has no zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray, as_integer
from rmab.errors import ModelError
from rmab.estimation.statistics import Statistics
from rmab.logs.log import Log

MOST = 12  # largest number of clusters to try
STARTS, SHORT, KEPT = 20, 10, 4  # short climbs from random starts, their passes, and how many of them climb on
PASSES, SETTLED = 500, 1e-7
PRIOR = 2.0  # visits that the rows of all arms are worth


@dataclass(frozen=True, eq=False)
class Mixture:
    """K clusters: weights (K,), kernels (K, S, 2, S), the share of every arm in each (N, K), log-likelihood and BIC."""

    weights: FloatArray
    kernels: FloatArray
    share: FloatArray
    likelihood: float
    bic: float

    @property
    def count(self) -> int:
        """K, the number of clusters."""
        return self.weights.size


def count_by_arm(log: Log) -> FloatArray:
    """(N, S, 2, S) the transitions of every arm."""
    counts = Statistics.from_log(replace(log, reward=None), np.arange(len(log.arms)), len(log.arms)).counts
    return counts.astype(np.float64)


def cluster_arms(log: Log, clusters: int | str, seed: int) -> tuple[IntArray, tuple[str, ...], str]:
    """Return the cluster of every arm, the largest first, their names, and a sentence on them."""
    counts = _levels(count_by_arm(log))
    if isinstance(clusters, str) and clusters == "auto":
        found = best_mixture(counts, seed)
    else:
        number = as_integer(clusters, "clusters")
        if not 1 <= number <= len(log.arms):
            raise ModelError(f"clusters must be 'auto' or from 1 to the number of arms, {len(log.arms)}, got {number}")
        found = mixture(counts, number, seed)
    choice = found.share.argmax(axis=1)
    sizes = np.bincount(choice, minlength=found.count)
    order = [k for k in np.lexsort((np.arange(found.count), -sizes)) if sizes[k]]
    rank = np.full(found.count, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    sure = float(found.share.max(axis=1).mean())
    most = f"as many as BIC says, of {MOST} at most" if found.count == MOST else "as many as BIC says"
    why = most if clusters == "auto" else "as asked"
    text = f"{len(order)} clusters of arms by their behaviour, {why}; an arm belongs to its own with {sure:.0%} on average"
    return np.asarray(rank[choice]), tuple(f"cluster {k + 1}" for k in range(len(order))), text


def redraw_clusters(counts: FloatArray, group_of: IntArray, rng: np.random.Generator) -> IntArray:
    """(N,) the clusters of arms with counts (N, S, 2, S) as they may be: fitted to arms weighted at random, then drawn."""
    levels = _levels(counts)
    flat, centre = levels.reshape(len(counts), -1), _pool(levels.sum(axis=0))
    weight, share = rng.exponential(size=(len(counts), 1)), np.eye(int(group_of.max()) + 1)[group_of]
    for _ in range(SHORT):
        part, kernels = _estimate(weight * flat, share, centre)
        share = _expect(flat, part, kernels)[0]
    return np.asarray((share.cumsum(axis=1)[:, :-1] < rng.random((len(counts), 1))).sum(axis=1))


def _levels(counts: FloatArray) -> FloatArray:
    """(N, S, 2, S) the counts of the more common action of every state: clusters of effects would invent some."""
    rare = np.argmin(counts.sum(axis=(0, 3)), axis=1)
    found = counts.copy()
    found[:, np.arange(rare.size), rare] = 0.0
    return found


def best_mixture(counts: FloatArray, seed: int) -> Mixture:
    """Return the mixture with the smallest BIC: clusters are added until two more in a row do not lower it."""
    best, worse = mixture(counts, 1, seed), 0
    for number in range(2, min(MOST, len(counts)) + 1):
        tried = mixture(counts, number, seed)
        if tried.bic < best.bic:
            best, worse = tried, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best


def mixture(counts: FloatArray, number: int, seed: int) -> Mixture:
    """Fit so many clusters to the counts (N, S, 2, S) of arms: the likeliest of several climbs.

    Many short climbs, the best of which continue, reach higher than a few long ones (Biernacki, Celeux & Govaert 2003).
    """
    flat, centre = counts.reshape(len(counts), -1), _pool(counts.sum(axis=0))
    rngs = [np.random.default_rng((seed, number, k)) for k in range(STARTS if number > 1 else 1)]
    starts = (_deal(flat, centre.reshape(-1), counts.shape[1:], number, rng) for rng in rngs)
    short = sorted((_climb(flat, centre, one, SHORT) for one in starts), key=lambda one: -one.likelihood)
    return max((_climb(flat, centre, one.share, PASSES) for one in short[:KEPT]), key=lambda one: one.likelihood)


def _pool(counts: FloatArray) -> FloatArray:
    """(S, 2, S) rows of counts of that shape, with one visit of evenness; a row never seen is that of the other action."""
    seen = np.where(counts.sum(axis=2, keepdims=True) > 0, counts, counts[:, ::-1])
    return np.asarray((seen + 1 / len(counts)) / (seen.sum(axis=2, keepdims=True) + 1))


def _climb(flat: FloatArray, centre: FloatArray, share: FloatArray, passes: int) -> Mixture:
    """Climb by EM from the shares (N, K) of the arms, of which flat (N, S * 2 * S) are the counts."""
    last = -np.inf
    for _ in range(passes):
        weights, kernels = _estimate(flat, share, centre)
        share, likelihood = _expect(flat, weights, kernels)
        if likelihood - last < SETTLED * abs(likelihood):
            break
        last = likelihood
    states, number = centre.shape[0], share.shape[1]
    free = number * states * 2 * (states - 1) + number - 1
    bic = -2 * likelihood + free * np.log(max((flat.sum(axis=1) > 0).sum(), 2))
    return Mixture(weights, kernels, share, likelihood, bic)


def _deal(flat: FloatArray, centre: FloatArray, shape: tuple[int, ...], number: int, rng: np.random.Generator) -> FloatArray:
    """(N, K) first shares: arms drawn one by one, those that fit the earlier ones least the likeliest (as in k-means++)."""
    size = shape[-1]

    def rows(n: int) -> FloatArray:
        table = flat[n].reshape(-1, size) + PRIOR * centre.reshape(-1, size)
        return np.asarray(np.log(np.maximum(table / table.sum(axis=1, keepdims=True), 1e-300)).reshape(-1))

    seeds = [rows(int(rng.choice(len(flat), p=_weights(flat.sum(axis=1)))))]
    for _ in range(number - 1):
        fit = np.stack([flat @ one for one in seeds], axis=1).max(axis=1)
        most = np.where(flat > 0, flat * np.log(np.maximum(_own(flat, size), 1e-300)), 0.0).sum(axis=1)
        seeds.append(rows(int(rng.choice(len(flat), p=_weights(np.maximum(most - fit, 0.0))))))
    score = np.stack([flat @ one for one in seeds], axis=1)
    return np.asarray(np.exp(score - _logsum(score)[:, np.newaxis]))


def _own(flat: FloatArray, size: int) -> FloatArray:
    """Return every arm's own frequencies."""
    table = flat.reshape(len(flat), -1, size)
    total = table.sum(axis=2, keepdims=True)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0).reshape(flat.shape))


def _weights(weight: FloatArray) -> FloatArray:
    total = weight.sum()
    return np.asarray(weight / total if total > 0 else np.full(weight.size, 1 / weight.size))


def _logsum(score: FloatArray) -> FloatArray:
    top = score.max(axis=1)
    return np.asarray(top + np.log(np.exp(score - top[:, np.newaxis]).sum(axis=1)))


def _estimate(flat: FloatArray, share: FloatArray, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights and kernels, given the shares."""
    own = (share.T @ flat).reshape(share.shape[1], *centre.shape) + PRIOR * centre
    return share.mean(axis=0), own / own.sum(axis=3, keepdims=True)


def _expect(flat: FloatArray, weights: FloatArray, kernels: FloatArray) -> tuple[FloatArray, float]:
    """Return shares and log-likelihood, given weights and kernels."""
    score = flat @ np.log(np.maximum(kernels, 1e-300)).reshape(len(kernels), -1).T + np.log(np.maximum(weights, 1e-300))
    whole = _logsum(score)
    return np.exp(score - whole[:, np.newaxis]), float(whole.sum())
