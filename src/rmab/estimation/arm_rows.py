"""Arms that differ within their groups: the records of an arm move its level and its effect away from those of its group.

The rows of an arm are those of its group, tilted: q(y) is proportional to p(y) exp(b_n(y)), with one b_n for all states and
both actions, as an arm that does badly does so anywhere. b_n is normal, with a covariance that is common to all arms: a
multinomial logit with random effects. Its mean depends on the state in which the arm was first seen, and is 0 in every
group: arms that do well are already well when the log begins, and a model that does not know it takes their level for the
effect of the state (Wooldridge 2005, "Simple solutions to the initial conditions problem"). The model is fitted by EM. b_n
is found by Newton's method; draws around it by the curvature are weighted by their likelihood, as the curvature alone
makes arms too alike (Breslow & Clayton 1993; Booth & Hobert 1999). Rows of a group that are fitted as if its arms were equal
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

CLEAR = 5.0  # gain in the logarithm of the likelihood of records that were left out, below which arms are alike
FOLDS, PASSES, ROUNDS = 4, 4, 60  # of records, of Newton's method, and of EM
FIRST, RIDGE, FARTHEST = 0.3, 1e-3, 6.0  # variance of tilts: at first, and at least; the largest logarithm of one
FASTER = 1.7  # than scaling: it converges below 2
PRIOR = 2.0  # prior weight of the rows of a group, in visits
DRAWS = 16  # of a tilt, weighted by their likelihood
ENOUGH = 1500  # arms used to estimate the covariance: more change it little
FAINT = 1e-100


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Estimates of single arms: counts (2, N, S, S) under the common action (S,) and the other, and their groups (N,).

    spread: covariances (S, S) of levels and of effects, None if arms do not differ in it. ratio (2, S, S): rows without a
    tilt of levels, and of effects, over those that are fitted as if arms were equal, but for a factor. centre (N, S): the
    means of levels.
    """

    counts: FloatArray
    action: IntArray
    group_of: IntArray
    spread: tuple[FloatArray | None, FloatArray | None]
    ratio: FloatArray
    centre: FloatArray

    def kernels(self, groups: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(N, S, 2, S) kernels of the arms, by those of groups (G, S, 2, S): their means, or drawn."""
        states = np.arange(groups.shape[1])
        rows = [_tilted(groups[:, states, a], self.ratio[0])[self.group_of] for a in (self.action, 1 - self.action)]
        tilt = Tilts.of(np.concatenate(self.counts, axis=1), np.concatenate(rows, axis=1), self.spread[0], self.centre)
        level, other = (_tilted(one, tilt.draw(rng)) for one in rows)
        found = np.empty((len(level), *groups.shape[1:]))
        if self.spread[1] is not None:  # else no effect stays exactly none
            other = _tilted(other, self.ratio[1])
            other = _tilted(other, Tilts.of(self.counts[1], other, self.spread[1]).draw(rng))
        found[:, states, self.action], found[:, states, 1 - self.action] = level, other
        return found

    def recount(self, counts: FloatArray) -> ArmRows:
        """Return the same arms with other records (N, S, 2, S)."""
        states = np.arange(self.action.size)
        return replace(self, counts=np.stack([counts[:, states, a] for a in (self.action, 1 - self.action)]))


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
            now = _tilted(rows, np.exp(log)[:, np.newaxis])
            said = np.einsum("ns,nsy->ny", visits, now)
            bend = said[..., np.newaxis] * np.eye(len(spread)) - np.einsum("ns,nsy,nsz->nyz", visits, now, now) + prior
            if left:
                step = np.linalg.solve(bend, (seen - said - (log - centre) @ prior)[..., np.newaxis])[..., 0]
                log = np.clip(log + np.clip(step, -1, 1), -FARTHEST, FARTHEST)
        return cls(log, counts, rows, prior, centre, bend)

    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return tilts (K, N, Y) around the likeliest, weights (K, N) by their likelihood, and totals of rows (K, N, R)."""
        assert self.prior is not None
        noise = rng.normal(size=(DRAWS // 2, *self.log.shape))
        noise = np.concatenate([noise, -noise])
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        log = self.log + np.einsum("nzy,knz->kny", root, noise)
        totals = np.maximum((self.rows @ np.exp(log).transpose(1, 2, 0)).transpose(2, 0, 1), FAINT)
        off, seen = log - self.centre, self.counts.sum(axis=1)
        likely = (log * seen - 0.5 * (off @ self.prior) * off + 0.5 * noise**2).sum(axis=2)
        likely -= (self.counts.sum(axis=2) * np.log(totals)).sum(axis=2)
        weights = np.exp(likely - likely.max(axis=0))
        return log, weights / weights.sum(axis=0), totals

    def draw(self, rng: np.random.Generator | None) -> FloatArray:
        """(N, 1, Y) the tilts, or what they may be."""
        if rng is None or self.prior is None:
            return np.exp(self.log)[:, np.newaxis]
        log, weights, _ = self.sample(rng)
        chosen = (weights.cumsum(axis=0) < rng.random(len(self.log))).sum(axis=0).clip(max=DRAWS - 1)
        return np.asarray(np.exp(log[chosen, np.arange(len(self.log))])[:, np.newaxis])


def _tilted(rows: FloatArray, tilt: FloatArray) -> FloatArray:
    moved = rows * tilt
    return np.asarray(moved / moved.sum(axis=-1, keepdims=True))


def find_arm_rows(log: Log, group_of: IntArray, groups: FloatArray, weights: FloatArray | float = 1.0) -> ArmRows | None:
    """Return the estimates of single arms, given kernels of groups (G, S, 2, S); None if arms of a group do not differ.

    weights (2, S): of transitions, by action and where they lead.
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
    each = np.broadcast_to(weights, (2, states))
    folds *= np.stack([each[action], each[1 - action]])[:, np.newaxis, np.newaxis]
    fitted = np.concatenate([groups[:, every, a] for a in (action, 1 - action)], axis=1)
    some = np.linspace(0, count - 1, min(count, ENOUGH)).astype(np.int64)
    first = _first_states(log, group_of, states)
    ratio, level, centre = _climb(np.concatenate(folds[:, :, some], axis=2), fitted, group_of[some], first[some])
    both = np.stack([ratio, np.ones_like(ratio)])
    found = ArmRows(folds.sum(axis=1), action, group_of, (level, None), both, first @ centre)
    other = found.kernels(groups)[some][:, every, 1 - action]
    again, effect, _ = _climb(folds[1][:, some], other, np.arange(some.size), np.zeros_like(first[some]))
    both = np.stack([ratio, again])
    return None if level is None and effect is None else replace(found, spread=(level, effect), ratio=both)


def _first_states(log: Log, group_of: IntArray, states: int) -> FloatArray:
    """(N, S) 1 for the first state that is known of an arm, less the mean of its group."""
    seen = np.flatnonzero(log.state >= 0)[::-1]
    found = np.zeros((len(log.arms), states))
    first = np.full(len(log.arms), -1)
    first[log.arm_of[seen]] = log.state[seen]
    known = first >= 0
    found[known, first[known]] = 1.0
    mean = np.zeros((int(group_of.max(initial=0)) + 1, states))
    np.add.at(mean, group_of[known], found[known])
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), 1.0)
    return np.where(known[:, np.newaxis], found - mean[group_of], 0.0)


def _climb(
    folds: FloatArray, rows: FloatArray, group_of: IntArray, first: FloatArray
) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Return by what factors (S, S) rows without a tilt differ, the covariance of tilts, and their means by first state.

    folds (F, N, R, S): the counts of every arm, in parts, of rows (G, R, S) with R a multiple of S. Factors are found from
    the first S rows; they are the same in all groups, which stay shrunk. The covariance is None where arms are alike.
    """
    counts, start, states = folds.sum(axis=0), rows, rows.shape[-1]
    known, free = counts.sum(axis=(1, 2)) > 0, np.eye(states) - 1.0 / states
    spread, near, rng, means = FIRST * free, None, np.random.default_rng(0), np.zeros((states, states))
    ratio = np.ones((states, states))
    if not known.any():
        return ratio, None, means
    for _ in range(ROUNDS):
        centre = first @ means
        found = Tilts.of(counts, rows[group_of], spread, centre, near)
        log, weights, totals = found.sample(rng)
        tilts, log, near = np.exp(log), log @ free, found.log @ free  # a tilt of all states alike is none
        off = (log - centre)[:, known]
        weighted = weights[:, known, np.newaxis] * off
        spread = weighted.reshape(-1, states).T @ off.reshape(-1, states) / known.sum()
        means = np.linalg.lstsq(first[known], np.einsum("kn,kny->ny", weights, log)[known], rcond=None)[0]
        parts = counts.sum(axis=2) * weights[..., np.newaxis] / totals
        said = (found.rows * (parts.transpose(1, 2, 0) @ tilts.transpose(1, 0, 2))).sum(axis=0)[:states]
        ratio = ratio * ((counts.sum(axis=0)[:states] + PRIOR) / (said + PRIOR)) ** FASTER
        ratio /= ratio.mean(axis=1, keepdims=True)
        rows = _tilted(start, np.tile(ratio, (start.shape[1] // states, 1)))
    gain, centre = 0.0, first @ means
    for one in folds:
        tilted = _tilted(rows[group_of], Tilts.of(counts - one, rows[group_of], spread, centre, near).draw(None))
        gain += float((one * np.log(np.maximum(tilted, FAINT) / np.maximum(start[group_of], FAINT))).sum())
    free_numbers = states * (states - 1) + (states - 1) ** 2 * bool(first.any())  # each gains half a unit of likelihood
    alike = gain <= CLEAR + free_numbers / 2
    return (np.ones_like(ratio), None, 0 * means) if alike else (ratio, spread, means)
