"""How much effects differ between arms of a group: not tested, but integrated over.

An arm has few records with an action, which seldom show how much effects differ. But a plan that takes arms to be alike is
too optimistic: arms that gain less stay where they are, and are acted on again and again. And a difference that counts only
where a test finds it is estimated too large, as it was selected. So the covariance of effects has a prior; plans use its
posterior mean, and values and intervals draw it.

Effects are equal, or they differ: both with probability 1/2 before. If they differ, the covariance is t^2 A. A is that of
arms that answer more or less strongly to the same thing (along the common effect), or of effects that differ in any
direction, both equally likely. t has an exponential prior, above 1 with probability 1/20: a penalised-complexity prior
(Simpson, Rue, Riebler, Martins & Sorbye 2017). The likelihood is that of all counts, with the tilts of arms integrated out
(`tilts.py`), on a grid of t. Where equal effects are as likely as others or more, all have the effect of their group.

Only an arm with two actions or more tells of differences. Where there are few such pairs of records, the posterior would be
the prior, and a plan would select arms by it: arms are then taken to be alike. This depends on how many actions arms had,
not on what followed, so it selects nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray
from rmab.estimation.tilts import FAINT, FARTHEST, Tilts, rescale, tilted

SPREADS = np.array([0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3])  # standard deviations that are tried
RATE = 3.0  # of the exponential prior
PAIRS = 200  # of actions on one arm, below which the records tell next to nothing of differences between arms
ROUNDS = 4  # of factors at one spread, beginning with those of the spread before
EQUAL = 0.5  # prior probability of equal effects; if it is the posterior, too, they count as equal


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
    shapes = _shapes(counts, rows, level)
    prior = np.exp(-RATE * SPREADS) * np.gradient(SPREADS)
    prior = (1 - EQUAL) * prior / prior.sum() / len(shapes)
    covariance, ratio = [np.zeros_like(shapes[0])], [np.ones_like(shapes[0])]
    likely = [np.log(EQUAL) + float((counts * np.log(np.maximum(rows, FAINT))).sum())]
    for shape in shapes:
        for spread, part in zip(SPREADS, prior, strict=True):
            covariance.append(spread**2 * shape)
            ratio.append(_factors(counts, rows, covariance[-1], ratio[-1] if spread > SPREADS[0] else ratio[0]))
            own = Tilts.of(counts, tilted(rows, ratio[-1]), covariance[-1])
            likely.append(np.log(part) + own.evidence(np.random.default_rng(0)))  # the same numbers at every spread
    chance = np.exp(np.array(likely) - max(likely))
    chance /= chance.sum()
    return None if chance[0] >= EQUAL else EffectSpread(np.stack(covariance), chance, np.stack(ratio))


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


def _factors(counts: FloatArray, rows: FloatArray, covariance: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return factors (S, S) with which rows lead where they did, on average over tilts: the mean effect stays as it is.

    Rows of a group are means over its arms, and shrunk; records tell how much arms differ, and nothing more.
    """
    rng, visits = np.random.default_rng(0), counts.sum(axis=2, keepdims=True)
    for _ in range(ROUNDS):
        before = Tilts.of(0 * counts, tilted(rows, ratio), covariance)  # tilts of which nothing is known
        ratio = rescale(replace(before, counts=visits * rows), before.sample(rng), ratio)
    return ratio
