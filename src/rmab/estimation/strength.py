"""The similarity of groups: the strength of a Dirichlet prior around known centres, by its marginal likelihood.

A row p_g of a group, where an arm in a state goes under an action, is a distribution over the next states, of which the
group has counts c_g. With the prior p_g ~ Dirichlet(m q_g), the counts have the likelihood (Dirichlet-multinomial; Minka
2000, "Estimating a Dirichlet distribution", Section 2)

    L(m) = sum over g of  ln G(m) - ln G(m + n_g) + sum over y of [ ln G(m q_gy + c_gy) - ln G(m q_gy) ],   n_g = sum_y c_gy

with G the gamma function, for every row on its own. The strength m counts visits: large where groups hardly differ from
their centres beyond chance.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from rmab.common import FloatArray

WEAKEST, STRONGEST, RUNGS = -4.0, 20.0, 25  # of the strengths that are tried: powers of 2
LARGE = 1_000_000  # numbers that are worked on at once
FAINT = 1e-100  # of a prior: ln G of what is much smaller is infinite


def strengths(counts: FloatArray, centre: FloatArray, near: FloatArray | None = None) -> FloatArray:
    """Return the strengths (...) that make counts (n, ..., Y) of groups around centres of the same shape most likely.

    near (...): strengths that are not far off, to save the search.
    """
    rung = (STRONGEST - WEAKEST) / (RUNGS - 1)
    if near is None:
        likely = _ladder(counts, centre)
        best = WEAKEST + rung * np.clip(likely.argmax(axis=0), 1, RUNGS - 2)
    else:
        best = np.log2(near)
    for width in (rung, rung / 4, rung / 16):
        low, mid, high = (_likelihood(counts, centre, np.exp2(best + side * width)) for side in (-1, 0, 1))
        bend = low - 2 * mid + high  # the vertex of the parabola through three points
        shift = np.divide(low - high, 2 * bend, out=np.sign(high - low), where=bend < 0)
        best = np.clip(best + width * np.clip(shift, -1, 1), WEAKEST, STRONGEST)
    return np.asarray(np.exp2(best))


def draw_strengths(counts: FloatArray, centre: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return strengths (...) drawn from their likelihood, with a prior that is uniform in 1 / sqrt(m)."""
    tried = np.linspace(WEAKEST, STRONGEST, RUNGS)
    likely = _ladder(counts, centre)
    likely -= 0.5 * np.log(2.0) * tried.reshape(-1, *[1] * (likely.ndim - 1))
    mass = np.exp(likely - likely.max(axis=0))
    below = np.cumsum(mass, axis=0) / mass.sum(axis=0)
    rung = np.minimum((below < rng.random(counts.shape[1:-1])).sum(axis=0), RUNGS - 1)
    return np.asarray(np.exp2(tried[rung]))


def _ladder(counts: FloatArray, centre: FloatArray) -> FloatArray:
    """(rungs, ...) L(m) at all strengths that are tried."""
    tried = np.exp2(np.linspace(WEAKEST, STRONGEST, RUNGS)).reshape(-1, *[1] * (counts.ndim - 1))
    at_once = max(1, LARGE // max(counts.size, 1))
    parts = [tried[k : k + at_once] for k in range(0, RUNGS, at_once)]
    return np.concatenate([_likelihood(counts[np.newaxis], centre[np.newaxis], one, axis=1) for one in parts])


def _likelihood(counts: FloatArray, centre: FloatArray, m: FloatArray, axis: int = 0) -> FloatArray:
    """(...) L(m) of every row, at strengths m (...); axis: that of the groups."""
    known, visits = centre > 0, counts.sum(axis=-1)
    prior = np.maximum(m[..., np.newaxis] * centre, FAINT)
    terms = gammaln(np.where(known, prior + counts, 1.0)) - gammaln(np.where(known, prior, 1.0))
    rows = gammaln(m) - gammaln(m + visits) + terms.sum(axis=-1)
    return np.asarray(np.where(visits > 0, rows, 0.0).sum(axis=axis))
