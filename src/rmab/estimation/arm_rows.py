"""Arms that differ within their groups: the records of an arm move its level and its effect away from those of its group.

The rows of an arm under the more common action of each state are rows of its group, tilted: q(y) is proportional to
p(y) exp(b_n(y)), with one b_n for all states, as an arm that does badly does so anywhere. b_n is normal with mean 0 and a
covariance that is common to all arms: a multinomial logit with random effects, fitted by EM, with b_n by Newton's method
and its spread by the curvature (Laplace; Breslow & Clayton 1993). Rows of a group that are fitted as if its arms were equal
underestimate this: those in a good state are mostly good arms, and so the rows of that state are already theirs. So
rows p without a tilt, tilts and covariance are estimated in turn.

The effect of an arm is that of its group, as a tilt of the arm's own level; its records with an action tilt it further, in
the same way, with a separate covariance. Means of effects move little, as an arm has few such records; but arms that gain
less stay where they are, and are acted on again and again: draws show what that costs. Arms count as different only where
this predicts records that were left out; else all have the kernels of their group, and plans stay small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.logs.log import Log

CLEAR = 5.0  # gain in the logarithm of the likelihood of records that were left out, below which arms do not differ
FOLDS, PASSES, ROUNDS = 4, 4, 60  # of records, of Newton's method, and of EM
FIRST, RIDGE, FARTHEST = 0.3, 1e-3, 6.0  # variance of tilts: at first, and at least; the largest logarithm of one
FASTER = 1.7  # than scaling: it converges below 2
PRIOR = 2.0  # prior weight of the rows of a group, in visits
FAINT = 1e-100


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Estimates of single arms: counts (2, N, S, S) under the common action (S,) and the other, and their groups (N,).

    spread: covariances (S, S) of levels and of effects, None if arms do not differ in it. ratio (G, S, S): rows of groups
    without a tilt over those that are fitted as if arms were identical; but for a factor, the same in all groups.
    """

    counts: FloatArray
    action: IntArray
    group_of: IntArray
    spread: tuple[FloatArray | None, FloatArray | None]
    ratio: FloatArray

    def kernels(self, groups: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(N, S, 2, S) kernels of the arms, by those of groups (G, S, 2, S): their means, or drawn."""
        states = np.arange(groups.shape[1])
        rows = (_tilted(groups[:, states, a], self.ratio)[self.group_of] for a in (self.action, 1 - self.action))
        level, other = rows
        tilt = Tilts.of(self.counts[0], level, self.spread[0]).draw(rng)
        level, other = _tilted(level, tilt), _tilted(other, tilt)
        found = np.empty((len(level), *groups.shape[1:]))
        if self.spread[1] is not None:  # else no effect stays exactly none
            other = _tilted(other, Tilts.of(self.counts[1], other, self.spread[1]).draw(rng))
        found[:, states, self.action], found[:, states, 1 - self.action] = level, other
        return found

    def recount(self, counts: FloatArray) -> ArmRows:
        """Return the same arms with other records (N, S, 2, S)."""
        states = np.arange(self.action.size)
        return replace(self, counts=np.stack([counts[:, states, a] for a in (self.action, 1 - self.action)]))


@dataclass(frozen=True, eq=False)
class Tilts:
    """Tilts of arms: the likeliest logarithms (N, Y), and their precision (N, Y, Y); None where there is no tilt."""

    log: FloatArray
    precision: FloatArray | None

    @classmethod
    def of(cls, counts: FloatArray, rows: FloatArray, spread: FloatArray | None, near: FloatArray | None = None) -> Tilts:
        """Return the tilts of arms with counts and rows (N, S, Y), for a covariance (Y, Y); near: first guess (N, Y)."""
        log = np.zeros((len(counts), counts.shape[2])) if near is None else near
        if spread is None:
            return cls(log, None)
        prior = np.linalg.inv(spread + RIDGE * np.eye(len(spread)))
        seen, visits = counts.sum(axis=1), counts.sum(axis=2)
        for left in reversed(range(PASSES)):
            now = _tilted(rows, np.exp(log)[:, np.newaxis])
            said = np.einsum("ns,nsy->ny", visits, now)
            bend = said[..., np.newaxis] * np.eye(len(spread)) - np.einsum("ns,nsy,nsz->nyz", visits, now, now) + prior
            if left:
                step = np.linalg.solve(bend, (seen - said - log @ prior)[..., np.newaxis])[..., 0]
                log = np.clip(log + np.clip(step, -1, 1), -FARTHEST, FARTHEST)
        return cls(log, bend)

    def draw(self, rng: np.random.Generator | None) -> FloatArray:
        """(N, 1, Y) the tilts, or what they may be."""
        log = self.log
        if rng is not None and self.precision is not None:
            root = np.linalg.cholesky(self.precision).transpose(0, 2, 1)
            log = log + np.linalg.solve(root, rng.normal(size=(*log.shape, 1)))[..., 0]
        return np.exp(log)[:, np.newaxis]

    def moments(self, known: FloatArray) -> FloatArray:
        """(Y, Y) the mean of their squares over arms of which something is known (N,)."""
        assert self.precision is not None
        return np.asarray(
            (self.log[known].T @ self.log[known]) / max(known.sum(), 1) + np.linalg.inv(self.precision[known]).mean(axis=0)
        )


def _tilted(rows: FloatArray, tilt: FloatArray) -> FloatArray:
    moved = rows * tilt
    return np.asarray(moved / moved.sum(axis=-1, keepdims=True))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return the ratio of rows; 1 where a transition is impossible."""
    return np.divide(above, below, out=np.ones_like(below), where=below > 0)


def expected(counts: FloatArray, level: FloatArray) -> FloatArray:
    """(N, S) the mean of the rows of arms, (N, S, S), over the visits of counts (N, S, S)."""
    visits = counts.sum(axis=2, keepdims=True) + 1e-9
    return np.asarray((visits * level).sum(axis=1) / visits.sum(axis=1))


def find_arm_rows(log: Log, group_of: IntArray, groups: FloatArray, weights: FloatArray | float = 1.0) -> ArmRows | None:
    """Return the estimates of single arms, given kernels of groups (G, S, 2, S); None if arms of a group do not differ.

    weights (S,): of transitions, by where they lead.
    """
    moves, count, states = log.transitions, len(log.arms), groups.shape[1]
    visits = np.zeros((states, 2))
    np.add.at(visits, (moves.state, moves.action), 1)
    action, every = visits.argmax(axis=1), np.arange(states)
    rare = (moves.action != action[moves.state]).astype(np.int64)
    folds = np.zeros((2, FOLDS, count, states, states))
    for k in (0, 1):
        one = moves.where(rare == k)
        turn = np.arange(one.arm.size) - np.searchsorted(one.arm, one.arm)  # records are in the order of arms
        np.add.at(folds[k], (turn % FOLDS, one.arm, one.state, one.after), 1.0)
    folds *= weights
    counts, fitted = folds.sum(axis=1), groups[:, every, action]
    rows, level = _climb(folds[0], fitted, group_of, settle=True)
    ratio = _ratio(rows, fitted)
    other = _tilted(groups[:, every, 1 - action], ratio)[group_of]
    other = _tilted(other, Tilts.of(counts[0], rows[group_of], level).draw(None))
    effect = _climb(folds[1], other, np.arange(count), settle=False)[1]
    return None if level is None and effect is None else ArmRows(counts, action, group_of, (level, effect), ratio)


def _climb(folds: FloatArray, rows: FloatArray, group_of: IntArray, *, settle: bool) -> tuple[FloatArray, FloatArray | None]:
    """Return rows (G, S, S) without a tilt, if they are to settle, and the covariance of tilts; None where arms are alike.

    folds (F, N, S, S): the counts of every arm, in parts.
    """
    counts, first = folds.sum(axis=0), rows
    known, free = counts.sum(axis=(1, 2)) > 0, np.eye(rows.shape[-1]) - 1.0 / rows.shape[-1]
    spread, near, rng = FIRST * free, None, np.random.default_rng(0)
    if not known.any():
        return first, None
    for _ in range(ROUNDS):
        found = Tilts.of(counts, rows[group_of], spread, near)
        spread, near = free @ found.moments(known) @ free, found.log @ free  # a tilt of all states alike is none
        if settle:
            said = (counts.sum(axis=2, keepdims=True) * _tilted(rows[group_of], found.draw(rng))).sum(axis=0)
            rows = _tilted(
                rows, _ratio(counts.sum(axis=0) + PRIOR, said + PRIOR) ** FASTER
            )  # of all groups: they stay shrunk
    gain = 0.0
    for one in folds:
        tilted = _tilted(rows[group_of], Tilts.of(counts - one, rows[group_of], spread, near).draw(None))
        gain += float((one * np.log(np.maximum(tilted, FAINT) / np.maximum(first[group_of], FAINT))).sum())
    clear = CLEAR + (rows[0].size - len(rows[0])) / 2 * settle  # rows that settle gain half a unit for each that is free
    return (rows, spread) if gain > clear else (first, None)
