"""Resampled logs: arms are drawn anew with replacement, or weighted at random, and the model is fitted again.

Arms are the independent units of a log: records of one arm hang together, so whole arms are drawn. Two kinds are used.
The plain bootstrap draws arms with replacement and gives the error of the estimate. The Bayesian one (Rubin 1981) weighs
every arm by an exponential number; with the prior of the shrinkage drawn as records of its own (gamma numbers whose mean
is the prior's strength), it gives draws of what the kernels may really be, also for groups that borrow most of what is
known of them (as Laird & Louis 1987, their type III: the prior is estimated again in every draw).
"""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.data.fit import Fit
from rmab.data.shrinkage import Shrunk, Tree, descended, pooled_rows, shrunk, solved


class Resampler:
    """The transitions of a fit, arm by arm, ready to be counted with weights."""

    def __init__(self, fitted: Fit) -> None:
        moves, states = fitted.log.transitions, len(fitted.log.state_names)
        self.tree, self.arms, self.shape = fitted.tree, len(fitted.log.arms), fitted.counts.shape
        kind = (moves.state * 2 + moves.action) * states + moves.after
        size = 2 * states * states
        both, self.times = np.unique(moves.arm * size + kind, return_counts=True)
        self.arm, self.place = both // size, fitted.cell_of[both // size] * size + both % size
        self.known = np.unique(moves.arm)  # arms that show a transition

    def counts(self, weights: FloatArray) -> FloatArray:
        """(G, S, 2, S) the transitions, every arm (N,) weighted."""
        found = np.bincount(self.place, weights=self.times * weights[self.arm], minlength=int(np.prod(self.shape)))
        return np.asarray(found.reshape(self.shape), dtype=np.float64)

    def refitted(self, rng: np.random.Generator) -> Shrunk:
        """Fit arms that are drawn with replacement."""
        drawn = np.bincount(rng.choice(self.known, self.known.size), minlength=self.arms).astype(np.float64)
        return shrunk(self.counts(drawn), self.tree)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """(G, S, 2, S) what the kernels may be."""
        return drawn_rows(self.counts(rng.exponential(size=self.arms)), self.tree, rng)


def drawn_rows(counts: FloatArray, tree: Tree, rng: np.random.Generator) -> FloatArray:
    """(G, S, 2, S) kernels drawn around weighted counts (G, S, 2, S), level by level."""
    strength, told = solved(counts, tree)
    pooled, unseen = pooled_rows(told[0])
    whole = told[0] + rng.gamma(np.full(pooled.shape, 1.0 / counts.shape[1]))
    everybody = np.where(unseen[..., np.newaxis], pooled, whole / whole.sum(axis=2, keepdims=True))
    return descended(everybody, strength, told[1:], tree, len(counts), rng)
