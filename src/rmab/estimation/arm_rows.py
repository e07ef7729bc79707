"""Arms that differ within their groups: the records of an arm move its level and its effect away from those of its group.

The rows of an arm are those of its group, tilted: q(y) is proportional to p(y) exp(b_n(y)), with one b_n for all states and
both actions, as an arm that does badly does so anywhere. b_n is normal, with a covariance that is common to all arms: a
multinomial logit with random effects. Its mean depends on the state in which the arm was first seen, and is 0 in every
group: arms that do well are already well when the log begins, and a model that does not know it takes their level for the
effect of the state (Wooldridge 2005, "Simple solutions to the initial conditions problem"). The model is fitted by EM
(`tilts.py`). Rows of a group that are fitted as if its arms were equal underestimate this: those in a good state are mostly
good arms, and so the rows of that state are already theirs. So rows p without a tilt, tilts and covariance are estimated in
turn. Levels count as different only where this predicts records that were left out.

The effect of an arm is that of its group, as a tilt of the arm's own level; its records with an action tilt it further, in
the same way. How much effects differ is seldom known, and averaged over (`arm_effects.py`). Where arms differ in
neither, all have the kernels of their group, and plans stay small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.estimation.arm_effects import EffectSpread, find_effect_spread
from rmab.estimation.tilts import FAINT, Tilts, rescale, tilted
from rmab.logs.log import Log

CLEAR = 5.0  # gain in the logarithm of the likelihood of records that were left out, below which arms are alike
FOLDS, ROUNDS = 4, 60  # of records, and of EM
FIRST = 0.3  # variance of tilts, at first
ENOUGH = 1500  # arms used to estimate the covariance: more change it little


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Estimates of single arms: counts (2, N, S, S) under the common action and the other, and their groups (N,).

    spread: the covariance (S, S) of levels, None if arms do not differ in it. ratio (S, S): rows without a tilt of levels
    over those that are fitted as if arms were equal, but for a factor. centre (N, S): the means of levels. effects: what
    the covariance of effects may be, None if arms do not differ in it. shown (2, S): how often records of a state are there,
    without and with the other action, but for a factor: counts are of records, rows of what happens.
    """

    counts: FloatArray
    action: int
    group_of: IntArray
    spread: FloatArray | None
    ratio: FloatArray
    centre: FloatArray
    effects: EffectSpread | None = None
    shown: FloatArray | float = 1.0

    def kernels(self, groups: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(N, S, 2, S) kernels of the arms, by those of groups (G, S, 2, S): their means, or drawn."""
        rows = [tilted(groups[:, :, a], self.ratio)[self.group_of] for a in (self.action, 1 - self.action)]
        shown = np.broadcast_to(self.shown, (2, groups.shape[1]))
        seen = np.concatenate([tilted(one, part) for one, part in zip(rows, shown, strict=True)], axis=1)
        tilt = Tilts.of(np.concatenate(self.counts, axis=1), seen, self.spread, self.centre)
        level, other = (tilted(one, tilt.draw(rng)) for one in rows)
        if self.effects is not None:  # else no effect stays exactly none
            spread, ratio = self.effects.draw(rng)
            other = tilted(other, ratio)
            other = tilted(other, Tilts.of(self.counts[1], tilted(other, shown[1]), spread).draw(rng))
        return np.stack([level, other] if self.action == 0 else [other, level], axis=2)

    def recount(self, counts: FloatArray) -> ArmRows:
        """Return the same arms with other records (N, S, 2, S), none of which is missing."""
        return replace(self, counts=np.stack([counts[:, :, a] for a in (self.action, 1 - self.action)]), shown=1.0)


def find_arm_rows(log: Log, group_of: IntArray, groups: FloatArray, weights: FloatArray | float = 1.0) -> ArmRows | None:
    """Return the estimates of single arms, given kernels of groups (G, S, 2, S); None if arms of a group do not differ.

    weights (2, S): of transitions, by action and where they lead, which make up for missing records. A record that counted
    twice would look like two of an arm that agree, so rows are thinned instead.
    """
    moves, count, states = log.transitions, len(log.arms), groups.shape[1]
    action = int(np.bincount(moves.action, minlength=2).argmax())
    folds = np.zeros((2, FOLDS, count, states, states))
    for k in (0, 1):
        one = moves.where(moves.action == (action + k) % 2)
        turn = np.arange(one.arm.size) - np.searchsorted(one.arm, one.arm)  # records are in the order of arms
        np.add.at(folds[k], (turn % FOLDS, one.arm, one.state, one.after), 1.0)
    shown = 1.0 / np.broadcast_to(weights, (2, states))[[action, 1 - action]]
    fitted = np.concatenate([tilted(groups[:, :, (action + k) % 2], shown[k]) for k in (0, 1)], axis=1)
    some = np.linspace(0, count - 1, min(count, ENOUGH)).astype(np.int64)
    first = _first_states(log, group_of, states)
    ratio, level, centre = _climb(np.concatenate(folds[:, :, some], axis=2), fitted, group_of[some], first[some])
    found = ArmRows(folds.sum(axis=1), action, group_of, level, ratio, first @ centre, None, shown)
    rows = found.kernels(groups)[some]
    effects = find_effect_spread(found.counts[1, some], tilted(rows[:, :, 1 - action], shown[1]), rows[:, :, action])
    return None if level is None and effects is None else replace(found, effects=effects)


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
        drawn = found.sample(rng)
        log, weights, near = drawn[0] @ free, drawn[1], found.log @ free  # a tilt of all states alike is none
        off = (log - centre)[:, known]
        weighted = weights[:, known, np.newaxis] * off
        spread = weighted.reshape(-1, states).T @ off.reshape(-1, states) / known.sum()
        means = np.linalg.lstsq(first[known], np.einsum("kn,kny->ny", weights, log)[known], rcond=None)[0]
        ratio = rescale(found, drawn, ratio)
        rows = tilted(start, np.tile(ratio, (start.shape[1] // states, 1)))
    gain, centre = 0.0, first @ means
    for one in folds:
        own = tilted(rows[group_of], Tilts.of(counts - one, rows[group_of], spread, centre, near).draw(None))
        gain += float((one * np.log(np.maximum(own, FAINT) / np.maximum(start[group_of], FAINT))).sum())
    free_numbers = states * (states - 1) + (states - 1) ** 2 * bool(first.any())  # each gains half a unit of likelihood
    alike = gain <= CLEAR + free_numbers / 2
    return (np.ones_like(ratio), None, 0 * means) if alike else (ratio, spread, means)
