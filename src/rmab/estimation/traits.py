"""What groups have in all states alike: a group that does badly where it is seen does so where it is hardly ever seen.

How often a group is seen in a state depends on its level: one that does badly seldom is in a good state, and so most of what
is known of that state is of groups that do well (informative sizes: Hoffman, Sen & Weinberg 2001, "Within-cluster
resampling"). If every state were shrunk alone, groups that do badly would get the rows of those that do well. So the level
of a group, and of every value of a column, has a tilt that is common to all states, as levels of arms have (`tilts.py`):
b is normal, with the mean 0 and the variance t^2 in every direction, and t maximises the likelihood of what was seen in a
node, with b integrated out. What a state has beyond that is shrunk around it (`shrinkage.py`).

A value of a column is known through its groups, and one with the information I counts as I / (1 + t^2 I), t being the
spread of groups: one large group does not speak for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.estimation.tilts import Tilts

SPREADS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.9, 1.2, 1.6, 2.2])  # standard deviations that are tried
SEED = 0  # of the numbers with which tilts are integrated out: the same for every spread


@dataclass
class Trait:
    """The tilts of one column's values, or of groups: logarithms (n, Y), and their standard deviation.

    node (G,): which of them a group has. rung: the likeliest of the spreads that are tried; None: not looked for yet.
    """

    node: IntArray
    log: FloatArray
    spread: float = 0.0
    rung: int | None = None

    @classmethod
    def of(cls, node: IntArray, states: int) -> Trait:
        """Return the trait of these nodes, of which nothing is known."""
        return cls(node, np.zeros((int(node.max(initial=0)) + 1, states)))

    @property
    def tilt(self) -> FloatArray:
        """(G, 1, Y) the tilts of groups."""
        return np.asarray(np.exp(self.log)[self.node][:, np.newaxis])

    def climb(self, counts: FloatArray, rows: FloatArray) -> None:
        """Find the likeliest spread and tilts, given counts of nodes and rows without a tilt, both (n, S, Y).

        After the first time, the spread moves by one rung at most.
        """
        tried = range(len(SPREADS)) if self.rung is None else range(max(self.rung - 1, 0), min(self.rung + 2, len(SPREADS)))
        likely = {k: _evidence(counts, rows, SPREADS[k]) for k in tried}
        self.rung = best = max(likely, key=lambda k: likely[k])
        self.spread = float(SPREADS[best])
        if best - 1 in likely and best + 1 in likely:  # the vertex of the parabola through three points
            parabola = np.polyfit(SPREADS[best - 1 : best + 2], [likely[best + k] for k in (-1, 0, 1)], 2)
            if parabola[0] < 0:
                low, high = SPREADS[best - 1], SPREADS[best + 1]
                self.spread = float(np.clip(-parabola[1] / 2 / parabola[0], low, high))
        self.log = Tilts.of(counts, rows, _covariance(self.spread, rows), 0.0, self.log).log
        self.log = self.log - self.log.mean(axis=0)  # what all have in common is a tilt of everybody

    def draw(self, counts: FloatArray, rows: FloatArray, seen: FloatArray | None, rng: np.random.Generator) -> None:
        """Draw tilts that weighted counts (n, S, Y) allow: the prior is drawn, and weights are those of counts.

        The spread is drawn, too, with a uniform prior, where counts as they were seen are given.
        """
        if seen is not None:
            likely = np.array([_evidence(seen, rows, one) for one in SPREADS])
            mass = np.exp(likely - likely.max()) * np.gradient(SPREADS)
            self.spread = float(rng.choice(SPREADS, p=mass / mass.sum()))
        centre = self.spread * rng.normal(size=self.log.shape)
        self.log = Tilts.of(counts, rows, _covariance(self.spread, rows), centre, self.log).log


def combine(traits: Sequence[Trait]) -> FloatArray:
    """(G, 1, Y) the product of the tilts of traits; ones where there are none."""
    return np.asarray(reduce(np.multiply, (one.tilt for one in traits), np.ones((1, 1, 1))))


def discount(counts: FloatArray, rows: FloatArray, spread: float) -> FloatArray:
    """(G, 1, 1) how much of its visits a group tells of a node above it, by how much groups differ."""
    alike = 1.0 - (rows**2).sum(axis=2)
    known = (counts.sum(axis=2) * alike).sum(axis=1) / max(rows.shape[2] - 1, 1)
    return np.asarray(1.0 / (1.0 + spread**2 * known))[:, np.newaxis, np.newaxis]


def _covariance(spread: float, rows: FloatArray) -> FloatArray:
    return np.asarray(spread**2 * np.eye(rows.shape[2]))


def _evidence(counts: FloatArray, rows: FloatArray, spread: float) -> float:
    """Return the logarithm of the likelihood of counts of nodes (n, S, Y), with their tilts integrated out."""
    return Tilts.of(counts, rows, _covariance(spread, rows)).evidence(np.random.default_rng(SEED))
