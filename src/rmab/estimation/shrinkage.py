"""Kernels of many groups, small ones too: empirical Bayes with Dirichlet priors along a tree of groups.

A row of a kernel, where an arm in state s goes under action a, is a distribution p_g over the next states, of which a
group g has counts c_g. The prior is p_g ~ Dirichlet(m q), centred at the row q of the parent: of all arms for the first
factor, of the first factor for the first two together, and so on. Its strength m, in visits, is that which makes the
counts of all groups of the level most likely, once p_g is integrated out (Dirichlet-multinomial; Minka 2000, "Estimating
a Dirichlet distribution", Section 2):

    L(m) = sum over g of  ln G(m) - ln G(m + n_g) + sum over y of [ ln G(m q_y + c_gy) - ln G(m q_y) ],   n_g = sum_y c_gy

for each state and action, with G the gamma function. The row is then the posterior mean, (c_g + m q) / (n_g + m): a group
without data has its parent's row, a large one its own frequencies. Where groups do not differ beyond chance m is large,
and they are pooled.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_indices, as_table
from rmab.common.forks import cached_property
from rmab.errors import ModelError

WEAKEST, STRONGEST, RUNGS = -4.0, 20.0, 25  # of the strengths that are tried: powers of 2
NEARLY = 1e-9  # how far the sum of probabilities may be from 1
FAINT = 1e-100  # of a prior: ln G of what is much smaller is infinite
ROUNDS, SETTLED = 25, 0.05  # of strengths and centres in turn at most, and when they have settled


@dataclass(frozen=True, eq=False)
class Tree(ReadOnly):
    """Groups of groups, checked on construction.

    nodes (L, G): the node of every group on each level, the groups themselves on the last one. `parents` has, for each
    level, the node above (nodes of the level,) on the level before, where everybody is above the first.
    """

    nodes: IntArray

    def __post_init__(self) -> None:
        groups = np.shape(self.nodes)[1] if np.size(self.nodes) else 1
        nodes = as_indices(self.nodes, "tree", (len(self.nodes), groups), groups)
        above = np.zeros(groups, dtype=np.int64)
        for node in nodes:
            first = np.unique(node, return_index=True)[1]
            if first.size <= node.max() or (above[first][node] != above).any():
                raise ModelError("tree: nodes must be numbered from 0, and nested")
            above = node
        if (above != np.arange(groups)).any():
            raise ModelError("tree: the nodes of the last level must be the groups")
        object.__setattr__(self, "nodes", nodes)

    @classmethod
    def of(cls, factors: IntArray) -> tuple[Tree, IntArray, IntArray]:
        """Return the tree of factors (N, F), the group of every arm (N,), and the factors of every group (G, F)."""
        depth = factors.shape[1]
        if depth == 0:
            return (
                cls(np.zeros((0, 1), dtype=np.int64)),
                np.zeros(len(factors), dtype=np.int64),
                np.zeros((1, 0), dtype=np.int64),
            )
        groups, group_of = np.unique(factors, axis=0, return_inverse=True)
        levels = [np.unique(groups[:, : k + 1], axis=0, return_inverse=True)[1].reshape(-1) for k in range(depth)]
        return cls(np.stack(levels)), np.asarray(group_of.reshape(-1)), groups

    @cached_property
    def parents(self) -> tuple[IntArray, ...]:
        """For each level, the node above (nodes of the level,)."""
        levels = [np.zeros(self.nodes.shape[1], dtype=np.int64), *self.nodes]
        return tuple(above[np.unique(node, return_index=True)[1]] for above, node in pairwise(levels))


@dataclass(frozen=True, eq=False)
class Shrinkage(ReadOnly):
    """Kernels (G, S, 2, S), those of everybody (S, 2, S), strengths by level (L, S, 2), and rows never seen (S, 2)."""

    kernels: FloatArray
    pooled: FloatArray
    strength: FloatArray
    unseen: BoolArray

    def __post_init__(self) -> None:
        shape = np.shape(self.kernels)
        if len(shape) != 4 or shape[1:] != (shape[3], 2, shape[3]):
            raise ModelError(f"kernels must have shape (G, S, 2, S), got {shape}")
        for name, size in (("kernels", shape), ("pooled", shape[1:])):
            rows = as_table(getattr(self, name), name, size, 0.0, 1.0)
            if (abs(rows.sum(axis=-1) - 1.0) > NEARLY).any():
                raise ModelError(f"{name}: not every row sums to 1")
            object.__setattr__(self, name, rows)
        levels = (len(self.strength), *shape[1:3])
        object.__setattr__(self, "strength", as_table(self.strength, "strength", levels, 0.0))
        object.__setattr__(self, "unseen", frozen(as_indices(self.unseen, "unseen", shape[1:3], 2) == 1))


def pool_rows(counts: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the kernel (S, 2, S) of counts (S, 2, S), and the rows that were never seen (S, 2).

    One visit's worth of evenness is added, so that what was not seen yet is not impossible. Of a row that was never seen
    nothing is known: it is taken to be that of the other action, so that no effect is invented; where that is not known
    either, the arm is taken to stay.
    """
    states = counts.shape[0]
    visits = counts.sum(axis=2)
    rows = (counts + 1.0 / states) / (visits + 1.0)[..., np.newaxis]
    unseen = visits <= 0
    for s, a in zip(*np.nonzero(unseen), strict=True):
        rows[s, a] = np.eye(states)[s] if unseen[s, 1 - a] else rows[s, 1 - a]
    return rows, unseen


def strengths(counts: FloatArray, centre: FloatArray, near: FloatArray | None = None) -> FloatArray:
    """Return the strength (S, 2) that makes counts (n, S, 2, S) of groups around centres of the same shape most likely.

    near (S, 2): strengths that are not far off, to save the search.
    """
    rung = (STRONGEST - WEAKEST) / (RUNGS - 1)
    if near is None:
        likely = _ladder(counts, centre)
        best = WEAKEST + rung * np.clip(likely.argmax(axis=0), 1, RUNGS - 2)  # (S, 2)
    else:
        best = np.log2(near)
    for width in (rung, rung / 4, rung / 16):
        low, mid, high = (_likelihood(counts, centre, np.exp2(best + side * width)) for side in (-1, 0, 1))
        bend = low - 2 * mid + high  # the vertex of the parabola through three points
        shift = np.divide(low - high, 2 * bend, out=np.sign(high - low), where=bend < 0)
        best = np.clip(best + width * np.clip(shift, -1, 1), WEAKEST, STRONGEST)
    return np.asarray(np.exp2(best))


def _ladder(counts: FloatArray, centre: FloatArray) -> FloatArray:
    """(rungs, S, 2) L(m) at all strengths that are tried."""
    tried = np.exp2(np.linspace(WEAKEST, STRONGEST, RUNGS))
    return np.stack([_likelihood(counts, centre, np.full(counts.shape[1:3], m)) for m in tried])


def draw_strengths(counts: FloatArray, centre: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return strengths (S, 2) drawn from their likelihood, with a prior that is uniform in 1 / sqrt(m)."""
    tried = np.linspace(WEAKEST, STRONGEST, RUNGS)
    likely = _ladder(counts, centre) - 0.5 * np.log(2.0) * tried[:, np.newaxis, np.newaxis]
    mass = np.exp(likely - likely.max(axis=0))
    below = np.cumsum(mass, axis=0) / mass.sum(axis=0)
    rung = np.minimum((below < rng.random(counts.shape[1:3])).sum(axis=0), RUNGS - 1)
    return np.asarray(np.exp2(tried[rung]))


def _likelihood(counts: FloatArray, centre: FloatArray, m: FloatArray) -> FloatArray:
    """Return L(m) of every state and action, (S, 2), at strengths m (S, 2)."""
    known, visits = centre > 0, counts.sum(axis=3)
    prior = np.maximum(m[..., np.newaxis] * centre, FAINT)
    terms = gammaln(np.where(known, prior + counts, 1.0)) - gammaln(np.where(known, prior, 1.0))
    rows = gammaln(m) - gammaln(m + visits) + terms.sum(axis=3)
    return np.asarray(np.where(visits > 0, rows, 0.0).sum(axis=0))


def shrink(counts: FloatArray | IntArray, tree: Tree) -> Shrinkage:
    """Return the kernels of groups with counts (G, S, 2, S), which need not be whole."""
    counts = np.asarray(counts, dtype=np.float64)
    strength, evidence = solve_strengths(counts, tree)
    pooled, unseen = pool_rows(evidence[0])
    rows = pooled[np.newaxis]
    for own, parent, m in zip(evidence[1:], tree.parents, strength, strict=True):
        rows = posterior(own, m[..., np.newaxis] * rows[parent], rows[parent])
    rows = rows / rows.sum(axis=3, keepdims=True)
    return Shrinkage(rows, pooled, np.reshape(strength, (-1, *pooled.shape[:2])), unseen)


def solve_strengths(counts: FloatArray, tree: Tree) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the strength (S, 2) of every level, and the evidence of its nodes (nodes, S, 2, S), everybody (S, 2, S) first.

    Strengths need centres, and centres need strengths: a few rounds settle both.
    """
    strength: list[FloatArray] = [np.full(counts.shape[1:3], np.inf) for _ in tree.nodes]
    for _ in range(ROUNDS):
        evidence, before = collect_evidence(counts, strength, tree), strength
        rows, strength = pool_rows(evidence[0])[0][np.newaxis], []
        for own, parent in zip(evidence[1:], tree.parents, strict=True):
            near = before[len(strength)] if np.isfinite(before[len(strength)]).all() else None
            m = strengths(own, rows[parent], near) if parent.size > 1 else np.zeros(own.shape[1:3])
            rows = posterior(own, m[..., np.newaxis] * rows[parent], rows[parent])
            strength.append(m)
        if all(np.allclose(np.log1p(a), np.log1p(b), rtol=0, atol=SETTLED) for a, b in zip(strength, before, strict=True)):
            break
    return strength, collect_evidence(counts, strength, tree)


def collect_evidence(counts: FloatArray, strength: list[FloatArray], tree: Tree) -> list[FloatArray]:
    """Return the visits that count on every level (nodes, S, 2, S), everybody (S, 2, S) first and the groups' counts last.

    n visits of a group count as n m / (n + m) for its parent: at most m, because the group is a draw around it.
    """
    levels = [counts]
    for level in reversed(range(len(tree.nodes))):
        own, parent, m = levels[-1], tree.parents[level], strength[level]
        bounded = np.isfinite(m) & (parent.size > 1)
        limit = np.where(bounded, m, 1.0)
        part = np.where(bounded, limit / (own.sum(axis=3) + limit), 1.0)
        whole = np.zeros((int(parent.max()) + 1, *counts.shape[1:]))
        np.add.at(whole, parent, own * part[..., np.newaxis])
        levels.append(whole)
    everybody = levels.pop()[0] if len(tree.nodes) else counts.sum(axis=0)
    return [everybody, *(levels[::-1] if len(tree.nodes) else [])]


def posterior(own: FloatArray, prior: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the rows of counts and a prior, all (n, S, 2, S); the centre where there is neither."""
    total = (own + prior).sum(axis=3, keepdims=True)
    return np.asarray(np.divide(own + prior, total, out=centre.copy(), where=total > 0))
