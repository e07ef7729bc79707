"""Kernels of many groups, small ones too: empirical Bayes for levels and for effects, with groups that may be crossed.

Rows without an action are levels; a row with one is the same group's row without, changed by an effect. Both are estimated
in the same way, one after the other. A group g has counts c_g of a row, and an offset o_g: evenness for levels, and the
group's own level for effects, so that groups that differ in level do not look as if actions did something. The row is

    p_g ~ Dirichlet(m q_g),     q_g(y) proportional to o_g(y) t(y) t_1(y) ... t_F(y)

where t is the tilt of everybody in this state, and t_f that of the group's value in column f: none is above another, and
columns may be crossed or nested. A level also has tilts that all states have in common, of the group and of its values
(`traits.py`): groups that do badly do so anywhere. The effect of all states has a tilt in common, with a prior of two visits
of no effect: states differ in their effect only as far as records say so. A tilt is that of a multinomial logit with
offsets; with C what was seen in a node and E what is expected with the tilt, it solves C(y) + k r(y) = E(y) + k r'(y), where
k visits of no tilt (r before, r' after it) are its prior: one for the level of everybody, and else as many as make the
counts most likely (`strength.py`): those of all values of a column, or, for the effect, of all states (two visits at least).
So does m. Groups that were never seen with an action have the tilted row of their level.

A state in which actions are more common than their absence has its level with an action, and the effect of none, which is
the inverse: so is its tilt, where states have it in common.

Indirect standardisation, E from the rows without an action, is that of Breslow & Day (1987, Section 2.3); the iteration is
generalised scaling (Darroch & Ratcliff 1972).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, as_indices, as_table, frozen
from rmab.errors import ModelError
from rmab.estimation.scaling import find_common_tilt, find_tilts, gather, normal
from rmab.estimation.strength import draw_strengths, strengths
from rmab.estimation.traits import Trait, combine, discount

NEARLY = 1e-9  # how far the sum of probabilities may be from 1
LEVEL_PRIOR, EFFECT_PRIOR = 1.0, 2.0  # visits: of evenness, and of no effect
ROUNDS, SETTLED = 25, 0.05  # of strengths and tilts in turn at most, and when they have settled


@dataclass(frozen=True, eq=False)
class Levels(ReadOnly):
    """What groups have in common, checked on construction.

    nodes (L, G): the value of every group in each column, and last the groups themselves; no row where there is one group.
    """

    nodes: IntArray

    def __post_init__(self) -> None:
        groups = np.shape(self.nodes)[1] if np.size(self.nodes) else 1
        nodes = as_indices(self.nodes, "levels", (len(self.nodes), groups), groups)
        if any(np.unique(node).size <= node.max() for node in nodes):
            raise ModelError("levels: nodes must be numbered from 0")
        if len(nodes) and (nodes[-1] != np.arange(groups)).any():
            raise ModelError("levels: the nodes of the last level must be the groups")
        object.__setattr__(self, "nodes", nodes)

    @classmethod
    def of(cls, factors: IntArray) -> tuple[Levels, IntArray, IntArray]:
        """Return the levels of columns (N, F), the group of every arm (N,), and the values of every group (G, F)."""
        if factors.shape[1] == 0:
            none = np.zeros((0, 1), dtype=np.int64)
            return cls(none), np.zeros(len(factors), dtype=np.int64), none.reshape(1, 0)
        groups, group_of = np.unique(factors, axis=0, return_inverse=True)
        columns = [np.unique(one, return_inverse=True)[1].reshape(-1) for one in groups.T]
        several = [one for one in columns if 0 < one.max() < len(groups) - 1]  # others are everybody, or the groups
        return cls(np.stack([*several, np.arange(len(groups))])), np.asarray(group_of.reshape(-1)), groups


@dataclass(frozen=True, eq=False)
class Shrinkage(ReadOnly):
    """Kernels (G, S, 2, S), pooled ones (S, 2, S), strengths (1 + L, S, 2), of everybody first, rows never seen (S, 2)."""

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


def shrink(counts: FloatArray | IntArray, levels: Levels) -> Shrinkage:
    """Return the kernels of groups with counts (G, S, 2, S), which need not be whole."""
    counts = np.asarray(counts, dtype=np.float64)
    order = _order(counts)
    ordered = np.take_along_axis(counts, order[np.newaxis, :, :, np.newaxis], axis=2)
    even, size = _evenness(counts), len(levels.nodes)
    rows, common, strength = Layer.of(ordered[:, :, 0], even, levels, order[:, 0] == 1, effect=False).solve(size)
    called, tilt, force = Layer.of(ordered[:, :, 1], rows, levels, order[:, 0] == 1, effect=True).solve(size)
    common = normal(even[0] * common)
    back = np.argsort(order, axis=1)[:, :, np.newaxis]
    kernels = np.take_along_axis(np.stack([rows, called], axis=2), back[np.newaxis], axis=2)
    pooled = np.take_along_axis(np.stack([common, normal(common * tilt)], axis=1), back, axis=1)
    strength = np.take_along_axis(np.stack([strength, force], axis=2), back[np.newaxis, ..., 0], axis=2)
    return Shrinkage(kernels, pooled, strength, counts.sum(axis=(0, 3)) <= 0)


def draw_rows(
    counts: FloatArray, shrunk: Shrinkage, levels: Levels, rng: np.random.Generator, seen: FloatArray | None = None
) -> FloatArray:
    """(G, S, 2, S) kernels of weighted counts of the same shape, with priors drawn.

    Their strengths are drawn, too, where the counts as they were seen, not weighted, are given; else they are as they are.
    """
    order = _order(counts if seen is None else seen)
    place = order[np.newaxis, :, :, np.newaxis]
    several = [np.take_along_axis(one, place, axis=2) for one in (counts, counts if seen is None else seen)]
    strength = np.take_along_axis(shrunk.strength, order[np.newaxis], axis=2)
    rows, drawn = _evenness(counts), []
    for a in (0, 1):
        own, whole = (one[:, :, a] for one in several)
        layer = Layer.of(own, rows, levels, order[:, 0] == 1, effect=a == 1)
        rows = layer.draw(strength[:, :, a], rng, None if seen is None else whole)
        drawn.append(rows)
    back = np.argsort(order, axis=1)[np.newaxis, :, :, np.newaxis]
    return np.take_along_axis(np.stack(drawn, axis=2), back, axis=2)


def posterior(own: FloatArray, prior: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the rows of counts and a prior, all (..., Y); the centre where there is neither."""
    total = (own + prior).sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(own + prior, total, out=centre.copy(), where=total > 0))


def _order(counts: FloatArray) -> IntArray:
    """(S, 2) the actions, the more common first, by state; none first where they are equally common."""
    return np.asarray(np.argsort(-counts.sum(axis=(0, 3)), axis=1, kind="stable"))


def _evenness(counts: FloatArray) -> FloatArray:
    """(G, S, S) even rows; of states that nobody was seen to leave, rows that stay."""
    states = counts.shape[1]
    left = counts.sum(axis=(0, 2, 3)) > 0
    rows = np.where(left[:, np.newaxis], 1.0 / states, np.eye(states))
    return np.broadcast_to(rows, (len(counts), states, states))


@dataclass(frozen=True, eq=False)
class Layer:
    """Levels, or effects on them: counts of a row and offsets, both (G, S, Y), and what groups have in common.

    A level has separate strengths in every state; those of effects, which are seen far less often, are common to all
    states, and so is that of no effect at all: where actions do nothing it is large.
    """

    counts: FloatArray
    offset: FloatArray
    nodes: list[IntArray]
    effect: bool
    traits: list[Trait]
    inverse: BoolArray

    @classmethod
    def of(cls, counts: FloatArray, offset: FloatArray, levels: Levels, inverse: BoolArray, *, effect: bool) -> Layer:
        """Return the layer; nodes are everybody, and each column: groups themselves have no tilt of a state."""
        everybody = np.zeros(len(counts), dtype=np.int64)
        traits = [] if effect else [Trait.of(node, counts.shape[2]) for node in levels.nodes]
        return cls(counts, offset, [everybody, *levels.nodes[:-1]], effect, traits, inverse)

    def solve(self, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rows (G, S, Y), the tilt of everybody (S, Y), and strengths (1 + L, S), of everybody first.

        Strengths need tilts, and tilts need strengths: rounds settle both.
        """
        m = np.full((1 + size, self.counts.shape[1]), np.inf)
        m[0] = EFFECT_PRIOR if self.effect else LEVEL_PRIOR
        tilts, shared = self._flat(), np.ones(self.counts.shape[1:])
        if self.traits:  # what everybody does is no trait
            tilts[0] = find_tilts(self.counts, self.offset, self.nodes[0], m[0])
        for number in range(ROUNDS):
            before, wide = m.copy(), [one.spread for one in self.traits]
            shared = self._share(tilts, m)
            for k, node in enumerate(self.nodes):
                own, centre = self.counts * _part(self.counts, m, k), self._centre(tilts, shared, skip=k)
                if k or self.effect:
                    m[k] = self._strength(*gather(own, centre, node), before[k] if number else None, least=k == 0)
                tilts[k] = find_tilts(own, centre, node, m[k])
            if size:
                m[-1] = self._strength(self.counts, self._centre(tilts, shared), before[-1] if number else None)
            still = np.allclose(np.log1p(m), np.log1p(before), rtol=0, atol=SETTLED)
            if still and np.allclose(wide, [one.spread for one in self.traits], rtol=0, atol=SETTLED):
                break
        centre = self._centre(tilts, shared)
        rows = posterior(self.counts, m[-1][:, np.newaxis] * centre, centre) if size else centre
        return normal(rows), tilts[0][0] * (shared if self.effect else 1.0), m

    def draw(self, m: FloatArray, rng: np.random.Generator, seen: FloatArray | None) -> FloatArray:
        """(G, S, Y) rows that the counts, which are weighted, allow: priors are drawn as visits (gamma numbers).

        Strengths m (1 + L, S) are drawn, too, where the counts as they were seen are given.
        """
        tilts, m = self._flat(), m.copy()
        if self.traits:
            tilts[0] = find_tilts(self.counts * _part(self.counts, m, 0), self.offset, self.nodes[0], m[0])
        for last in (False, False, True) if self.traits else (False, True):
            shared = self._share(tilts, m, rng if last or self.effect else None, seen if last else None)
            for k, node in enumerate(self.nodes):
                own, centre = self.counts * _part(self.counts, m, k), self._centre(tilts, shared, skip=k)
                if (k or self.effect) and last and seen is not None:
                    m[k] = self._strength(*gather(seen * _part(seen, m, k), centre, node), rng=rng, least=k == 0)
                tilts[k] = find_tilts(own, centre, node, m[k], rng)
        centre = self._centre(tilts, shared)
        if len(m) == 1:
            return centre
        if seen is not None:
            m[-1] = self._strength(seen, centre, rng=rng)
        return posterior(self.counts, rng.gamma(m[-1][:, np.newaxis] * centre), centre)

    def _flat(self) -> list[FloatArray]:
        return [np.ones((int(one.max()) + 1, *self.counts.shape[1:])) for one in self.nodes]

    def _strength(
        self,
        counts: FloatArray,
        centre: FloatArray,
        near: FloatArray | None = None,
        *,
        rng: np.random.Generator | None = None,
        least: bool = False,
    ) -> FloatArray:
        """(S,) the likeliest strengths of counts (n, S, Y) around centres, or drawn ones."""
        shape = counts.shape
        if self.effect:
            counts, centre = (one.reshape(-1, 1, shape[2]) for one in (counts, centre))
            near = None if near is None else near[:1]
        found = strengths(counts, centre, near) if rng is None else draw_strengths(counts, centre, rng)
        return np.broadcast_to(np.maximum(found, EFFECT_PRIOR if least else 0.0), shape[1:2])

    def _share(
        self, tilts: list[FloatArray], m: FloatArray, rng: np.random.Generator | None = None, seen: FloatArray | None = None
    ) -> FloatArray:
        """Return the tilt that states have in common: (S, Y) that of effects, (G, 1, Y) or 1 those of levels of groups.

        An effect has none in states in which nothing was seen.
        """
        if not self.effect:
            return self._share_levels(tilts, m, rng, seen)
        known = self.counts.sum(axis=(0, 2)) > 0
        if not known.any():
            return np.ones(self.counts.shape[1:])
        own, centre = self.counts * _part(self.counts, m, -1), self._centre(tilts, np.ones(1))
        tilt = find_common_tilt(own, centre, self.inverse, EFFECT_PRIOR, rng)
        return np.where(known[:, np.newaxis], tilt, 1.0)

    def _share_levels(
        self, tilts: list[FloatArray], m: FloatArray, rng: np.random.Generator | None, seen: FloatArray | None
    ) -> FloatArray:
        """(G, 1, Y) the tilts of groups that are common to states: those of their columns, and their own."""
        for k, trait in enumerate(self.traits):
            last = k == len(self.traits) - 1
            others = [one for one in (self.traits if last else self.traits[:-1]) if one is not trait]
            centre = self._centre(tilts, combine(others), skip=-1 if last else k + 1)
            several = []
            for counts in (self.counts, seen):
                if counts is None:
                    continue
                own = counts * _part(counts, m, 1)
                own = own if last else own * discount(own, centre, self.traits[-1].spread)
                gathered, rows = gather(own, centre, trait.node)
                if not last:
                    gathered = gathered / (1.0 + gathered.sum(axis=2, keepdims=True) / m[k + 1][:, np.newaxis])
                several.append((gathered, rows))
            if rng is None:
                trait.climb(*several[0])
            else:
                trait.draw(*several[0], several[1][0] if seen is not None else None, rng)
        return combine(self.traits)

    def _centre(self, tilts: list[FloatArray], shared: FloatArray, skip: int = -1) -> FloatArray:
        """(G, S, Y) the offsets, tilted by all but one."""
        rows = self.offset * shared
        for k, (tilt, node) in enumerate(zip(tilts, self.nodes, strict=True)):
            rows = rows if k == skip else rows * tilt[node]
        return normal(rows)


def _part(counts: FloatArray, m: FloatArray, k: int) -> FloatArray:
    """(G, S, 1) how much of its visits a group tells of a node above it: n of them count as n m / (n + m).

    The group is a draw around the node, and so it tells at most m, whatever its size. k = -1: what all states share.
    """
    spread = (1.0 / (m if k < 0 else m[-1:] if k else m[1:])).sum(axis=0)
    return np.asarray(1.0 / (1.0 + counts.sum(axis=2) * spread))[..., np.newaxis]
