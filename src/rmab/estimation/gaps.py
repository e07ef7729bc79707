"""Records that are missing more often in some states: how often, and what that does to the others.

A record is missing with a chance u(a, y) that depends on the action a before it and on the state y in which the arm is,
which nobody saw. After a gap of d periods the arm is seen again in a state z, which tells where it may have been first: from
state s with action a it was in y with a chance proportional to P(y | s, a) u(a, y) B_d(y, z), where B_1 = D, the rows of an
action that is not known, and B_d = D u B_(d-1), with the mean u over actions. EM estimates u and P
together (Dempster, Laird & Rubin 1977). Transitions that were seen are then weighted by 1 / (1 - u(a, y)), so that those
into states that are seldom seen count for more; nothing is filled in.

Three models are compared by likelihood ratios, p < 0.0001 each: chances by action alone, which leave rows as they are, as do
those by the state before; a product of one factor for each action and one for each state; and a chance for each action and
state, where a state is recorded after an action only if it is good, for instance.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from rmab.common import FloatArray, IntArray
from rmab.logs.log import Log

PASSES = 100  # of EM
SURE = 0.0001  # p below which chances differ by state: groups are assumed to be equal, which makes p too small
LEAST = 50  # fewest gaps for a test
MOST, LONGEST = 0.9, 8  # of a chance, and periods of a gap that is used
TURNS = 3  # between the factors of a product, in every pass


def find_missing(log: Log) -> FloatArray | None:
    """(2, S) the chance that a record is missing, by the action before and the state; None where states do not matter."""
    size, moves = len(log.state_names), log.transitions
    length = np.where(np.diff(log.arm_of) == 0, np.diff(log.period) - 1, 0)
    gap = np.flatnonzero((length >= 1) & (length <= LONGEST))
    gap = gap[(log.state[gap] >= 0) & (log.action[gap] >= 0) & (log.state[gap + 1] >= 0)]
    if gap.size < LEAST:
        return None
    counts = np.zeros((size, 2, size))
    np.add.at(counts, (moves.state, moves.action, moves.after), 1.0)
    gaps = (log.state[gap], log.action[gap], log.state[gap + 1], length[gap])
    least, chance = _climb(counts, gaps, "action")
    found = None
    for model in ("product", "both"):
        likely, chance = _climb(counts, gaps, model)
        if chi2.sf(2.0 * (likely - least), size - 1) < SURE:
            least, found = likely, chance
    return found


def _climb(counts: FloatArray, gaps: tuple[IntArray, IntArray, IntArray, IntArray], model: str) -> tuple[float, FloatArray]:
    """Return the logarithm of the likelihood and the chances (2, S) of a model.

    counts (S, 2, S): transitions that were seen. gaps: state and action before, state after, and length of each.
    """
    (state, action, after, length), size = gaps, len(counts)
    seen = counts.sum(axis=0)
    missed = np.bincount(action, minlength=2)
    flat = np.repeat((missed / np.maximum(missed + seen.sum(axis=1), 1.0))[:, np.newaxis], size, axis=1)
    chance, factor = flat, flat[:, :1]
    for _ in range(PASSES):
        rows = counts / (1.0 - chance) + 1.0 / size
        share = rows[:, 1].sum(axis=1) / rows.sum(axis=(1, 2))
        rows = rows / rows.sum(axis=2, keepdims=True)
        drift = (1.0 - share)[:, np.newaxis] * rows[:, 0] + share[:, np.newaxis] * rows[:, 1]
        usual = (1.0 - share.mean()) * chance[0] + share.mean() * chance[1]
        back = [drift]
        for _d in range(1, LONGEST):
            back.append(drift @ (usual[:, np.newaxis] * back[-1]))
        joint = rows[state, action] * chance[action] * np.stack(back)[length - 1, :, after]
        total = joint.sum(axis=1, keepdims=True)
        likely = float(np.log(total).sum() + (counts * np.log(np.maximum(rows * (1.0 - chance), 1e-300))).sum())
        if model == "action":
            break
        hidden = flat + np.stack([(joint / total)[action == a].sum(axis=0) for a in (0, 1)])
        every = hidden + seen + 1.0 - flat
        if model == "both":
            chance = np.minimum(hidden / every, MOST)
            continue
        for _turn in range(TURNS):
            states = hidden.sum(axis=0) / np.maximum((factor * every).sum(axis=0), 1e-300)
            factor = hidden.sum(axis=1, keepdims=True) / np.maximum((states * every).sum(axis=1, keepdims=True), 1e-300)
        chance = np.minimum(factor * states, MOST)
    return likely, chance


def weigh_states(missing: FloatArray | None, counts: FloatArray | IntArray) -> FloatArray:
    """(2, S) weights of transitions by action and where they lead, for counts (..., 2, S): 1 on average by action."""
    if missing is None:
        return np.ones(counts.shape[-2:])
    seen = counts.reshape(-1, *counts.shape[-2:]).sum(axis=0)
    weight = 1.0 / (1.0 - missing)
    return np.asarray(weight * (seen.sum(axis=1) / np.maximum((weight * seen).sum(axis=1), 1e-300))[:, np.newaxis])
