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

import numpy as np
from scipy.special import gammaln

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen

WEAKEST, STRONGEST, RUNGS = -4.0, 20.0, 25  # of the strengths that are tried: powers of 2


@dataclass(frozen=True, eq=False)
class Tree(ReadOnly):
    """Groups of groups. nodes[l] (G,) is the node of every cell on level l, the last level are the cells themselves;
    parents[l] (nodes of level l,) the node above on level l - 1, where level -1 is everybody.
    """

    nodes: tuple[IntArray, ...]
    parents: tuple[IntArray, ...]

    @classmethod
    def of(cls, factors: IntArray) -> tuple[Tree, IntArray, IntArray]:
        """Return the tree of factors (N, F), the cell of every arm (N,), and the factors of every cell (G, F)."""
        count, depth = factors.shape
        if depth == 0:
            return cls((), ()), np.zeros(count, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        cells, cell_of = np.unique(factors, axis=0, return_inverse=True)
        nodes, parents = [], []
        above = np.zeros(len(cells), dtype=np.int64)
        for level in range(1, depth + 1):
            _, first, node = np.unique(cells[:, :level], axis=0, return_index=True, return_inverse=True)
            node = node.reshape(-1)
            nodes.append(frozen(node))
            parents.append(frozen(above[first]))
            above = node
        return cls(tuple(nodes), tuple(parents)), np.asarray(cell_of.reshape(-1)), cells


@dataclass(frozen=True, eq=False)
class Shrunk(ReadOnly):
    """Kernels (G, S, 2, S), those of everybody (S, 2, S), the strength of every level (L, S, 2), and rows never seen (S, 2)."""

    kernels: FloatArray
    pooled: FloatArray
    strength: FloatArray
    unseen: BoolArray


def pooled_rows(counts: FloatArray) -> tuple[FloatArray, BoolArray]:
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


def strengths(counts: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the strength (S, 2) that makes counts (n, S, 2, S) of groups around centres of the same shape most likely."""
    tried = np.exp2(np.linspace(WEAKEST, STRONGEST, RUNGS))
    likely = np.stack([_likelihood(counts, centre, m) for m in tried])  # (rungs, S, 2)
    best = np.clip(likely.argmax(axis=0), 1, RUNGS - 2)
    low, mid, high = (np.take_along_axis(likely, (best + k)[np.newaxis], 0)[0] for k in (-1, 0, 1))
    bend = low - 2 * mid + high  # the vertex of the parabola through the best rung and its neighbours
    shift = np.divide(low - high, 2 * bend, out=np.zeros_like(bend), where=bend < 0)
    at = WEAKEST + (STRONGEST - WEAKEST) / (RUNGS - 1) * (best + np.clip(shift, -1, 1))
    return np.asarray(np.exp2(at))


def _likelihood(counts: FloatArray, centre: FloatArray, m: float) -> FloatArray:
    """Return L(m) of every state and action, (S, 2)."""
    visits, prior = counts.sum(axis=3), m * centre
    known = prior > 0
    cells = gammaln(np.where(known, prior + counts, 1.0)) - gammaln(np.where(known, prior, 1.0))
    rows = gammaln(m) - gammaln(m + visits) + cells.sum(axis=3)
    return np.asarray(np.where(visits > 0, rows, 0.0).sum(axis=0))


def shrunk(counts: FloatArray, tree: Tree) -> Shrunk:
    """Return the kernels of cells with counts (G, S, 2, S), which need not be whole."""
    pooled, unseen = pooled_rows(counts.sum(axis=0))
    rows, found = pooled[np.newaxis], []
    for node, parent in zip(tree.nodes, tree.parents, strict=True):
        own = np.zeros((parent.size, *counts.shape[1:]))
        np.add.at(own, node, counts)
        centre = rows[parent]
        m = strengths(own, centre) if parent.size > 1 else np.zeros(pooled.shape[:2])
        weight = m[..., np.newaxis]
        total = own.sum(axis=3, keepdims=True) + weight
        rows = np.divide(own + weight * centre, total, out=centre.copy(), where=total > 0)
        found.append(m)
    kernels = rows[tree.nodes[-1]] if tree.nodes else np.repeat(rows, len(counts), axis=0)
    strength = np.stack(found) if found else np.zeros((0, *pooled.shape[:2]))
    return Shrunk(frozen(kernels / kernels.sum(axis=3, keepdims=True)), frozen(pooled), frozen(strength), frozen(unseen))
