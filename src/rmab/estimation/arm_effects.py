"""How much effects differ between arms of a group: not tested, but integrated over.

An arm has few records with an action, which seldom show how much effects differ. But a plan that takes arms to be alike is
too optimistic: arms that gain less stay where they are, and are acted on again and again. And a difference that counts only
where a test finds it is estimated too large, as it was selected. So the covariance of effects has a prior; plans use its
posterior mean, and values and intervals draw it.

A covariance is t^2 A. A is that of arms that answer more or less strongly to the same thing (along the common effect), or
of effects that differ in any direction, both equally likely before. t has an exponential prior, above 1 with probability
1/20: a penalised-complexity prior (Simpson, Rue, Riebler, Martins & Sorbye 2017). Its likelihood is that of all
counts, with the tilts of arms integrated out (`tilts.py`), on a grid of t.

Only an arm with two actions or more tells of differences. Where there are few such pairs of records, the posterior would be
the prior, and a plan would select arms by it: arms are then taken to be alike. This depends on how many actions arms had,
not on what followed, so it selects nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray
from rmab.estimation.tilts import FAINT, FARTHEST, Tilts, rescale, tilted

SPREADS = np.array([0.05, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3])  # standard deviations that are tried
RATE = 3.0  # of the exponential prior
PAIRS = 200  # of actions on one arm, below which the records tell next to nothing of differences between arms
ROUNDS = 4  # of factors at one spread, beginning with those of the spread before
ALIKE = 0.05  # mean variance, below which effects count as equal: it would change a benefit by 3%


@dataclass(frozen=True, eq=False)
class EffectSpread:
    """Covariances (K, S, S) of effects, how likely they are (K,), and the factors (K, S, S) of rows without a tilt."""

    covariance: FloatArray
    chance: FloatArray
    ratio: FloatArray

    def draw(self, rng: np.random.Generator | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the mean covariance and the mean factors, or drawn ones."""
        if rng is None:
            return np.tensordot(self.chance, self.covariance, 1), np.tensordot(self.chance, self.ratio, 1)
        chosen = int(rng.choice(self.chance.size, p=self.chance))
        return self.covariance[chosen], self.ratio[chosen]

    @property
    def variance(self) -> float:
        """The mean variance t^2."""
        total: float = np.trace(self.draw()[0])
        return total / max(len(self.covariance[0]) - 1, 1)


def find_effect_spread(counts: FloatArray, rows: FloatArray, level: FloatArray) -> EffectSpread | None:
    """Return what the covariance of effects may be; None if arms are alike, or too few have several actions.

    counts (N, S, S): of every arm, with an action; rows and level (N, S, S): of its group with an action and without.
    """
    each = counts.sum(axis=(1, 2))
    if (each * np.maximum(each - 1, 0)).sum() / 2 < PAIRS:
        return None
    known = each > 0
    counts, rows, level = counts[known], rows[known], level[known]
    several = [_posterior(counts, rows, one) for one in _shapes(counts, rows, level)]
    covariance, likely, ratio = (np.concatenate(one) for one in zip(*several, strict=True))
    chance = np.exp(likely - likely.max())
    found = EffectSpread(covariance, chance / chance.sum(), ratio)
    return None if found.variance < ALIKE else found


def _shapes(counts: FloatArray, rows: FloatArray, level: FloatArray) -> list[FloatArray]:
    """Return the shapes (S, S) of a covariance with the trace S - 1: any direction, and that of the common effect."""
    states = rows.shape[-1]
    shapes = [np.eye(states) - 1.0 / states]
    gain = np.log(np.maximum(rows, FAINT)) - np.log(np.maximum(level, FAINT))
    gain = np.clip(gain, -FARTHEST, FARTHEST)
    along = ((gain - gain.mean(axis=2, keepdims=True)) * counts.sum(axis=2, keepdims=True)).sum(axis=(0, 1))
    size = float(np.linalg.norm(along))
    if states > 2 and size > 0:  # with two states there is one direction
        shapes.append((states - 1) * np.outer(along, along) / size**2)
    return shapes


def _posterior(counts: FloatArray, start: FloatArray, shape: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return covariances (K, S, S), logarithms (K,) of prior and likelihood, and factors (K, S, S) at all spreads."""
    ratio, near, rows = np.ones_like(shape), None, start
    likely, ratios = [], []
    for spread in SPREADS:
        rng = np.random.default_rng(0)  # the same numbers at every spread: differences are smooth
        for _ in range(ROUNDS):
            found = Tilts.of(counts, rows, spread**2 * shape, near=near)
            ratio, near = rescale(found, found.sample(rng), ratio), found.log
            rows = tilted(start, ratio)
        likely.append(Tilts.of(counts, rows, spread**2 * shape, near=near).evidence(rng))
        ratios.append(ratio)
    prior = np.log(np.gradient(SPREADS)) - RATE * SPREADS
    return SPREADS[:, np.newaxis, np.newaxis] ** 2 * shape, np.array(likely) + prior, np.stack(ratios)
