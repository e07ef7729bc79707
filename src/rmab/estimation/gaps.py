"""Records that are missing more often in some states: how often, and what that does to the others.

A record is missing with a chance u(y) that depends on the state y in which the arm is, which nobody saw. After a gap of d
periods the arm is seen again in a state z, which tells where it may have been first: from state s with action a it was in y
with a chance proportional to P(y | s, a) u(y) B_d(y, z), where B_1 = D, the rows of an action that is not known, and
B_d = D u B_(d-1). EM estimates u and P
together (Dempster, Laird & Rubin 1977). Transitions that were seen are then weighted by 1 / (1 - u(y)), so that those into
states that are seldom seen count for more; nothing is filled in. Where chances by state do not explain the gaps better than
one for all (likelihood ratio, p < 0.005), all weights are 1: records that are missing by the state and action before, or by
chance, leave the rows as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from rmab.common import FloatArray, IntArray
from rmab.logs.log import Log

PASSES = 100  # of EM
SURE = 0.005  # p below which chances differ by state
LEAST = 50  # fewest gaps for a test
MOST, LONGEST = 0.9, 8  # of a chance, and periods of a gap that is used


def find_missing(log: Log) -> FloatArray | None:
    """(S,) the chance that a record is missing, by the state of the arm; None where it does not depend on it."""
    size, moves = len(log.state_names), log.transitions
    length = np.where(np.diff(log.arm_of) == 0, np.diff(log.period) - 1, 0)
    gap = np.flatnonzero((length >= 1) & (length <= LONGEST))
    gap = gap[(log.state[gap] >= 0) & (log.action[gap] >= 0) & (log.state[gap + 1] >= 0)]
    if gap.size < LEAST:
        return None
    state, action, after, length = log.state[gap], log.action[gap], log.state[gap + 1], length[gap]
    counts = np.zeros((size, 2, size))
    np.add.at(counts, (moves.state, moves.action, moves.after), 1.0)
    seen = counts.sum(axis=(0, 1))
    flat = np.full(size, gap.size / (gap.size + seen.sum()))
    fits = []
    for by_state in (False, True):
        chance, likely = flat, 0.0
        for _ in range(PASSES):
            rows = counts / (1.0 - chance) + 1.0 / size
            share = rows[:, 1].sum(axis=1) / rows.sum(axis=(1, 2))
            rows = rows / rows.sum(axis=2, keepdims=True)
            drift = (1.0 - share)[:, np.newaxis] * rows[:, 0] + share[:, np.newaxis] * rows[:, 1]
            back = [drift]
            for _d in range(1, LONGEST):
                back.append(drift @ (chance[:, np.newaxis] * back[-1]))
            joint = rows[state, action] * chance * np.stack(back)[length - 1, :, after]  # (n, S) where they may have been
            total = joint.sum(axis=1, keepdims=True)
            hidden = (joint / total).sum(axis=0)
            likely = float(np.log(total).sum() + (counts * np.log(np.maximum(rows * (1.0 - chance), 1e-300))).sum())
            if not by_state:
                break
            chance = np.minimum((hidden + flat) / (hidden + seen + 1.0), MOST)
        fits.append((likely, chance))
    better = 2.0 * (fits[1][0] - fits[0][0])
    return fits[1][1] if chi2.sf(better, size - 1) < SURE else None


def weigh_states(missing: FloatArray | None, counts: FloatArray | IntArray) -> FloatArray:
    """(S,) weights of transitions by where they lead, for counts (..., S): 1 on average."""
    if missing is None:
        return np.ones(counts.shape[-1])
    seen = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
    weight = 1.0 / (1.0 - missing)
    return np.asarray(weight * seen.sum() / max(float((weight * seen).sum()), 1e-300))
