"""Weights of earlier reports: change points, weighted by likelihood.

A programme's response to actions may change. For each action, and for all groups together, every one of the last periods
may be the first of a new regime. A change point splits the reports in two; it is judged by the marginal likelihood of both
parts against that of the whole (rows of transitions with a Dirichlet prior around the row of all groups), as in the online
change points of Adams & MacKay (2007). The counts of a period are multiplied by the probability that nothing has changed
since; outdated reports still count as a few visits, because not everything changes. The weights only depend on the
counts of periods, not on the order of reports.

Periods differ from one to the next by more than independent arms would: weather, holidays, weekdays. The log-likelihood is
divided by that dispersion, as in quasi-likelihood (McCullagh & Nelder 1989, Section 9.2), so that they are no changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from rmab.common import FloatArray, IntArray

WINDOW = 60  # periods that may be the first of a new regime
HAZARD = 0.001  # prior probability that a period is one
STRENGTH = 4.0  # prior weight of the pooled row, in visits
LEFT = 3.0  # most visits that outdated reports count as, by group, state and action
CAUTION = 4.0  # prior weight of no dispersion, in pairs of periods


def forget(recent: Sequence[IntArray], before: FloatArray) -> FloatArray:
    """Return counts (G, S, 2, S) in which every period is weighted by the probability that it is still valid.

    Parameters
    ----------
    recent : sequence of (G, S, 2, S) int array
        Transitions of the last periods, in order. Groups that joined later may be missing at the end of an array.
    before : (G, S, 2, S) float array
        Transitions of all earlier periods.

    Examples
    --------
    >>> steady, changed = np.zeros((1, 2, 2, 2), dtype=int), np.zeros((1, 2, 2, 2), dtype=int)
    >>> steady[0, 0], changed[0, 0] = [[8, 2], [2, 8]], [[8, 2], [8, 2]]
    >>> forget([steady] * 6, np.zeros((1, 2, 2, 2))).round()[0, 0]
    array([[48., 12.],
           [12., 48.]])
    >>> forget([steady] * 6 + [changed] * 6, np.zeros((1, 2, 2, 2))).round()[0, 0]
    array([[96., 24.],
           [49., 14.]])
    """
    whole, found = before.astype(np.float64), before.astype(np.float64)
    for action in (0, 1):
        weights = still_valid([one[:, :, action] for one in recent], before[:, :, action])
        found[:, :, action] *= weights[0]
        for one, weight in zip(recent, weights[1:], strict=True):
            found[: len(one), :, action] += weight * one[:, :, action]
            whole[: len(one), :, action] += one[:, :, action]
    loss = np.maximum(whole - found, 0.0)
    return np.asarray(found + loss * np.minimum(1.0, LEFT / np.maximum(loss.sum(axis=3, keepdims=True), 1e-300)))


def still_valid(recent: Sequence[IntArray], before: FloatArray) -> FloatArray:
    """(1 + P,) the probability that nothing has changed since: of what was before, and of each of P periods (G, S, S)."""
    if len(recent) < 2:
        return np.ones(1 + len(recent))
    whole = before.astype(np.float64)
    total = np.zeros(before.shape, dtype=np.int64)
    for one in recent:
        total[: len(one)] += one
    cells = np.flatnonzero(total)  # without recent reports, all change points are equally likely
    if not cells.size:
        return np.ones(1 + len(recent))
    seen = np.zeros((len(recent), cells.size))
    for row, one in zip(seen, recent, strict=True):
        mine = cells < one.size
        row[mine] = one.reshape(-1)[cells[mine]]
    pooled = (whole + total).sum(axis=0) + 0.5
    prior = np.broadcast_to(STRENGTH * pooled / pooled.sum(axis=1, keepdims=True), before.shape).reshape(-1)[cells]
    starts = np.flatnonzero(np.diff(cells // before.shape[2], prepend=-1))  # the first cell of every row
    old, rows = whole.reshape(-1)[cells], whole.sum(axis=2).reshape(-1)[np.unique(cells // before.shape[2])]
    since = np.cumsum(seen[::-1], axis=0)[::-1]  # (P, C) from every period on
    until, sums = old + since[0] - since, np.add.reduceat(since, starts, axis=1)
    ratio = _likelihood(since, sums, prior) + _likelihood(until, rows + sums[0] - sums, prior)
    ratio = ratio - _likelihood(old + since[:1], rows + sums[:1], prior)
    scores = np.concatenate([[0.0], ratio / _dispersion(seen, starts) + np.log(HAZARD)])
    likely = np.exp(scores - scores.max())
    return np.cumsum(likely / likely.sum())


def _likelihood(cells: FloatArray, rows: FloatArray, prior: FloatArray) -> FloatArray:
    """(P,) the marginal log-likelihood of cells (P, C) in rows with these sums (P, R), up to what all have in common."""
    own = (gammaln(cells + prior) - gammaln(prior)).sum(axis=1)
    return np.asarray(own - (gammaln(rows + STRENGTH) - gammaln(STRENGTH)).sum(axis=1))


def _dispersion(seen: FloatArray, starts: IntArray) -> float:
    """Return the dispersion: 1 if successive periods (P, C) only differ by chance.

    Of the chi-square of two successive periods, what exceeds its expectation (exact for every table: Haldane 1940) may all
    be due to one common shock. A difference of means over many periods is inflated by the same factor.
    """
    rows, sizes = np.add.reduceat(seen, starts, axis=1), np.diff(starts, append=seen.shape[1])
    one, other = (np.repeat(each, sizes, axis=1) for each in (rows[:-1], rows[1:]))
    both = seen[:-1] + seen[1:]
    compared = (one > 0) & (other > 0) & (both > 0)
    expected = np.divide(both * one, one + other, out=np.zeros_like(both), where=compared)
    inverse = np.divide(1.0, expected, out=np.zeros_like(both), where=compared)
    inverse += np.divide(1.0, both - expected, out=np.zeros_like(both), where=compared)
    square = np.add.reduceat((seen[:-1] - expected) ** 2 * inverse, starts, axis=1)
    cells, total = np.add.reduceat(compared.astype(np.int64), starts, axis=1), rows[:-1] + rows[1:]
    excess = (square * np.maximum(total - 1.0, 0.0) / np.maximum(total, 1.0) - np.maximum(cells - 1, 0)).sum()
    return float(1.0 + max(excess, 0.0) / (len(seen) - 1 + CAUTION))
