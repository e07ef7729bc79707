"""Arms that differ within their groups: an arm's own records move its level away from that of its group.

The levels of an arm, its rows under the more common action of each state, are rows of its group, tilted: q(y) is
proportional to p(y) t_n(y), with one tilt for all states, as an arm that does badly does so anywhere. With C what it did, E
what the tilted rows expect for its visits, and r the mean of its group's rows over them, it solves C + m r = E + m r', as
tilts of groups do (`shrinkage.py`): m visits of no tilt are its prior, as many as make the counts of all arms most likely.

Rows of a group that are fitted as if its arms were alike tell too little of this: those in a good state are mostly good
arms, and so the rows of that state are already theirs. So rows p without a tilt, tilts and m are estimated in turn. The
effect is that of the group, as a tilt of the arm's own level. Where arms of a group are alike m is large, and arms are not
told apart: plans stay small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.estimation.strength import FAINT, strengths
from rmab.logs.log import Log

ALIKE = 200.0  # visits: arms whose prior is as strong do not differ enough to matter
PASSES, ROUNDS = 8, 15  # of the tilts of arms, and of tilts and rows in turn
PRIOR = 2.0  # visits that rows of a group are worth when they are fitted again


@dataclass(frozen=True, eq=False)
class ArmRows:
    """What is known of single arms: counts (N, S, S) under the action (S,), their groups (N,), and the strength.

    ratio (G, S, S): rows of groups without a tilt over those that are fitted as if arms were alike.
    """

    counts: FloatArray
    action: IntArray
    group_of: IntArray
    strength: float
    ratio: FloatArray

    def kernels(self, groups: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(N, S, 2, S) kernels of the arms, by those of groups (G, S, 2, S): their means, or drawn."""
        states = np.arange(groups.shape[1])
        rows = (_tilted(groups[:, states, a], self.ratio)[self.group_of] for a in (self.action, 1 - self.action))
        level, other = rows
        tilt = self.tilts(level, rng)[:, np.newaxis]
        found = np.empty((len(level), *groups.shape[1:]))
        found[:, states, self.action], found[:, states, 1 - self.action] = _tilted(level, tilt), _tilted(other, tilt)
        return found

    def tilts(self, level: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """(N, S) the tilts of arms, by generalised scaling; drawn as records of their own, with a generator."""
        mean = expected(self.counts, level)
        total = self.counts.sum(axis=1) + self.strength * mean
        total = total if rng is None else np.maximum(rng.gamma(total), FAINT * mean)
        part, visits = total.sum(axis=1, keepdims=True), self.counts.sum(axis=2, keepdims=True)
        share = part / (visits.sum(axis=1) + self.strength)  # of drawn records, so that their number does not matter
        tilt = np.ones_like(mean)
        for _ in range(PASSES):
            now = share * ((visits * _tilted(level, tilt[:, np.newaxis])).sum(axis=1) + self.strength * _tilted(mean, tilt))
            tilt = tilt * np.divide(total, now, out=np.ones_like(now), where=now > 0)
        return tilt


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


def find_arm_rows(log: Log, group_of: IntArray, groups: FloatArray) -> ArmRows | None:
    """Return what is known of single arms, given kernels of groups (G, S, 2, S); None where arms of a group are alike."""
    moves, count, states = log.transitions, len(log.arms), groups.shape[1]
    visits = np.zeros((states, 2))
    np.add.at(visits, (moves.state, moves.action), 1)
    action = visits.argmax(axis=1)
    own = moves.action == action[moves.state]
    counts = np.zeros((count, states, states))
    np.add.at(counts, (moves.arm[own], moves.state[own], moves.after[own]), 1.0)
    fitted = groups[:, np.arange(states), action]
    rows = fitted.copy()
    for _ in range(ROUNDS):
        level = rows[group_of]
        strength = float(strengths(counts.sum(axis=1)[:, np.newaxis], expected(counts, level)[:, np.newaxis])[0])
        if strength >= ALIKE:
            return None
        found = ArmRows(counts, action, group_of, strength, _ratio(rows, fitted))
        moved = counts.sum(axis=2, keepdims=True) * _tilted(level, found.tilts(level)[:, np.newaxis])
        seen, said = np.zeros_like(rows), np.zeros_like(rows)
        np.add.at(seen, group_of, counts)
        np.add.at(said, group_of, moved)
        rows = _tilted(rows, _ratio(seen + PRIOR * rows, said + PRIOR * rows))
    return found
