"""Tilts of the rows of arms: q(y) proportional to p(y) exp(b_n(y)), with b_n normal.

The likeliest b_n is found by Newton's method; draws around it by the curvature are weighted by their likelihood, as the
curvature alone makes arms too alike (Breslow & Clayton 1993; Booth & Hobert 1999).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray

PASSES = 4  # of Newton's method
RIDGE, FARTHEST = 1e-3, 6.0  # the least variance of a tilt, and the largest logarithm of one
DRAWS = 16  # of a tilt, weighted by their likelihood
FASTER = 1.7  # than scaling: it converges below 2
PRIOR = 2.0  # prior weight of the rows of a group, in visits
FAINT = 1e-100


@dataclass(frozen=True, eq=False)
class Tilts:
    """Tilts of arms: the likeliest logarithms (N, Y), and how likely others are.

    counts and rows (N, R, Y); the inverse covariance (Y, Y) of tilts, None where arms are alike; their means, and the
    precision (N, Y, Y) of each.
    """

    log: FloatArray
    counts: FloatArray
    rows: FloatArray
    prior: FloatArray | None
    centre: FloatArray | float
    precision: FloatArray

    @classmethod
    def of(
        cls,
        counts: FloatArray,
        rows: FloatArray,
        spread: FloatArray | None,
        centre: FloatArray | float = 0.0,
        near: FloatArray | None = None,
    ) -> Tilts:
        """Return the tilts of arms with counts and rows (N, R, Y), a covariance (Y, Y) and means; near (N, Y): a guess."""
        log = np.zeros((len(counts), counts.shape[2])) if near is None else near
        if spread is None:
            return cls(log, counts, rows, None, centre, np.eye(counts.shape[2])[np.newaxis])
        prior = np.asarray(np.linalg.inv(spread + RIDGE * np.eye(len(spread))), dtype=np.float64)
        seen, visits = counts.sum(axis=1), counts.sum(axis=2)
        for left in reversed(range(PASSES)):
            now = tilted(rows, np.exp(log)[:, np.newaxis])
            said = np.einsum("ns,nsy->ny", visits, now)
            bend = said[..., np.newaxis] * np.eye(len(spread)) - np.einsum("ns,nsy,nsz->nyz", visits, now, now) + prior
            if left:
                step = np.linalg.solve(bend, (seen - said - (log - centre) @ prior)[..., np.newaxis])[..., 0]
                log = np.clip(log + np.clip(step, -1, 1), -FARTHEST, FARTHEST)
        return cls(log, counts, rows, prior, centre, bend)

    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return tilts (K, N, Y) around the likeliest, weights (K, N) by their likelihood, and totals of rows (K, N, R)."""
        log, likely, totals = self._around(rng)
        weights = np.exp(likely - likely.max(axis=0))
        return log, weights / weights.sum(axis=0), totals

    def evidence(self, rng: np.random.Generator) -> float:
        """Return the logarithm of the likelihood of all counts, with the tilts integrated out by importance sampling."""
        assert self.prior is not None
        likely = self._around(rng)[1]
        most = likely.max(axis=0)
        each = most + np.log(np.exp(likely - most).mean(axis=0)) - 0.5 * np.linalg.slogdet(self.precision)[1]
        plain = (self.counts * np.log(np.maximum(self.rows, FAINT))).sum()
        return float(each.sum() + plain + 0.5 * len(self.log) * np.linalg.slogdet(self.prior)[1])

    def _around(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return tilts and totals as in `sample`, and the logarithms (K, N) of likelihood and prior over their density."""
        assert self.prior is not None
        noise = rng.normal(size=(DRAWS // 2, *self.log.shape))
        noise = np.concatenate([noise, -noise])
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        log = self.log + np.einsum("nzy,knz->kny", root, noise)
        totals = np.maximum((self.rows @ np.exp(log).transpose(1, 2, 0)).transpose(2, 0, 1), FAINT)
        off, seen = log - self.centre, self.counts.sum(axis=1)
        likely = (log * seen - 0.5 * (off @ self.prior) * off + 0.5 * noise**2).sum(axis=2)
        likely -= (self.counts.sum(axis=2) * np.log(totals)).sum(axis=2)
        return log, likely, totals

    def draw(self, rng: np.random.Generator | None) -> FloatArray:
        """(N, 1, Y) the tilts, or what they may be."""
        if rng is None or self.prior is None:
            return np.exp(self.log)[:, np.newaxis]
        log, weights, _ = self.sample(rng)
        chosen = (weights.cumsum(axis=0) < rng.random(len(self.log))).sum(axis=0).clip(max=DRAWS - 1)
        return np.asarray(np.exp(log[chosen, np.arange(len(self.log))])[:, np.newaxis])


def tilted(rows: FloatArray, tilt: FloatArray) -> FloatArray:
    """Return rows (..., Y) times a tilt, each with the sum 1."""
    moved = rows * tilt
    return np.asarray(moved / moved.sum(axis=-1, keepdims=True))


def rescale(found: Tilts, drawn: tuple[FloatArray, FloatArray, FloatArray], ratio: FloatArray) -> FloatArray:
    """Return better factors (S, S) of the first S rows without a tilt: with the tilts, rows lead where counts do.

    drawn: as `Tilts.sample` returns it. Iterated scaling, a little faster than by the ratio of counts and expectation.
    """
    log, weights, totals = drawn
    size = len(ratio)
    parts = found.counts.sum(axis=2) * weights[..., np.newaxis] / totals
    said = (found.rows * (parts.transpose(1, 2, 0) @ np.exp(log).transpose(1, 0, 2))).sum(axis=0)[:size]
    ratio = ratio * ((found.counts.sum(axis=0)[:size] + PRIOR) / (said + PRIOR)) ** FASTER
    return np.asarray(ratio / ratio.mean(axis=1, keepdims=True))
