"""The current state of every arm: the last seen state, for how long, and a belief if that is older than the period to
plan.

The period to plan is the last of the log, where nobody has been acted on in it yet, and the next one otherwise. What was
seen before is carried there by the kernels: with the action of the record where it is known, and else as often as the log
acted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, as_floats, as_indices, as_table, sum_by_group
from rmab.errors import ModelError
from rmab.logs.log import Log

TIMES = ("state", "seen_before", "streak", "moved", "acted_before", "never", "unseen_for")
NEARLY, LONGEST = 1e-9, 2**31  # how far probabilities may be from 1; periods that can be counted
SETTLED = 1000  # steps after which a belief no longer changes


@dataclass(frozen=True, eq=False)
class Situation(ReadOnly):
    """Where N arms are in the period that is planned.

    Attributes
    ----------
    period : int
        The period that is planned, and its `label`.
    belief : (N, S) float array
        The probability of every state; 1 for the state of an arm that was seen in this period.
    state : (N,) int array
        The last state that was seen; -1 if none was.
    seen_before : (N,) int array
        How many periods before this one that was; 0 if in this period.
    streak : (N,) int array
        In how many records without a gap the arm had been in that state, up to then.
    moved : (N,) int array
        1 where the record of the period before shows that it was in another state.
    acted_before : (N,) int array
        Periods since it was last acted on; since the first record, less one, if it never was.
    never : (N,) int array
        1 where an arm was never acted on.
    unseen_for : (N,) int array
        Periods since the last record of any kind.
    """

    period: int
    label: str
    belief: FloatArray
    state: IntArray
    seen_before: IntArray
    streak: IntArray
    moved: IntArray
    acted_before: IntArray
    never: IntArray
    unseen_for: IntArray

    def __post_init__(self) -> None:
        as_indices(self.period, "period", (), LONGEST)
        belief = as_floats(self.belief, "belief")
        shape = belief.shape if belief.ndim == 2 else (belief.size, 1)
        object.__setattr__(self, "belief", as_table(belief, "belief", shape, 0.0, 1.0))
        for n in np.flatnonzero(abs(belief.sum(axis=1) - 1) > NEARLY)[:1]:
            raise ModelError(f"belief[{n}] must sum to 1, got {belief[n].sum():g}")
        limits = {"state": (-1, shape[1]), "never": (0, 2), "moved": (0, 2)}
        for name in TIMES:
            start, stop = limits.get(name, (-1, LONGEST))
            object.__setattr__(self, name, as_indices(getattr(self, name), name, shape[:1], stop, start))

    @classmethod
    def of_belief(cls, label: str, belief: ArrayLike, waited: ArrayLike | None = None) -> Situation:
        """Return where arms are by belief (N, S) alone, 1 for a state that is known; waited (N,) is `acted_before`."""
        given = as_floats(belief, "belief")
        if given.ndim != 2 or 0 in given.shape:
            raise ModelError(f"belief must have shape (N, S), got {given.shape}")
        state = np.where(given.max(axis=1) == 1.0, given.argmax(axis=1), -1)
        zeros = np.zeros(len(given), dtype=np.int64)
        acted = zeros if waited is None else as_indices(as_floats(waited, "waited"), "waited", zeros.shape, LONGEST, -1)
        return cls(0, label, given, state, zeros, zeros, zeros, acted, zeros, zeros)


def find_situation(
    log: Log, kernels: FloatArray, group_of: IntArray, period: int | None = None, *, missing: FloatArray | None = None
) -> Situation:
    """Return where everybody is, by kernels (G, S, 2, S), in a period that is not before the last; by default as above.

    missing (2, S): the chance that a record is missing, by the action before and the state. Arms without one are filtered:
    who is not seen is likely to be where records are often missing.
    """
    last = log.periods.count - 1
    planned = last + (log.action[log.period == last] >= 0).any() if period is None else period
    count = len(log.arms)
    final = _last_row(log, np.ones(log.arm_of.size, dtype=bool), count)
    place = _last_row(log, log.state >= 0, count)
    seen = place >= 0
    state = np.where(seen, log.state[place], -1)
    before = np.where(seen, planned - log.period[place], planned + 1)
    acted = _last_row(log, log.action == 1, count)
    first = np.searchsorted(log.arm_of, np.arange(count))
    since = np.where(acted >= 0, planned - log.period[acted], planned - log.period[first] + 1)
    linked = np.concatenate([[False], (np.diff(log.arm_of) == 0) & (np.diff(log.period) == 1)])
    return Situation(
        period=int(planned),
        label=log.periods.label(int(planned)),
        belief=_beliefs(log, kernels, group_of, place, np.minimum(before, planned + 1), last - log.period[place], missing),
        state=state,
        seen_before=before,
        streak=_streaks(log, linked, place),
        moved=(linked[final] & (log.state[final - 1] >= 0)).astype(np.int64),
        acted_before=since,
        never=(acted < 0).astype(np.int64),
        unseen_for=planned - log.period[final],
    )


def _last_row(log: Log, mask: BoolArray, count: int) -> IntArray:
    """(N,) the last of the rows of every arm in a mask, -1 if there is none: rows are in the order of arms and periods."""
    found = np.full(count, -1, dtype=np.int64)
    rows = np.flatnonzero(mask)
    found[log.arm_of[rows]] = rows
    return found


def _streaks(log: Log, linked: BoolArray, place: IntArray) -> IntArray:
    """(N,) how many records up to this row, without a gap, are of the same arm and state; linked (R,): to the row before."""
    stays = linked & np.concatenate([[False], np.diff(log.state) == 0])
    begins = np.maximum.accumulate(np.where(stays, 0, np.arange(stays.size)))
    return np.where(place >= 0, place - begins[place] + 1, 0)


def _beliefs(
    log: Log,
    kernels: FloatArray,
    group_of: IntArray,
    place: IntArray,
    steps: IntArray,
    unseen: IntArray,
    missing: FloatArray | None,
) -> FloatArray:
    """(N, S) what was last seen, carried over so many steps (N,); the first unseen (N,) of them have no record."""
    states, count = len(log.state_names), len(log.arms)
    known = (log.state >= 0) & (log.action >= 0)
    acts = np.bincount(log.state[known], weights=log.action[known], minlength=states)
    rate = (acts / np.maximum(np.bincount(log.state[known], minlength=states), 1))[:, np.newaxis]
    silent = np.ones((2, states)) if missing is None else np.asarray(missing)
    usually = (1 - rate.mean()) * silent[0] + rate.mean() * silent[1]
    drift = (1 - rate) * kernels[:, :, 0] + rate * kernels[:, :, 1]  # (G, S, S)
    usual = np.bincount(log.state[log.state >= 0], minlength=states).astype(np.float64)
    belief = np.broadcast_to(usual / usual.sum(), (count, states)).copy()
    seen = place >= 0
    belief[seen] = np.eye(states)[log.state[place[seen]]]
    moved = np.flatnonzero(seen & (steps > 0))
    action, group = log.action[place[moved]], group_of[moved]
    own = np.where((action >= 0)[:, np.newaxis], kernels[group, log.state[place[moved]], np.maximum(action, 0)], 0.0)
    belief[moved] = np.where((action >= 0)[:, np.newaxis], own, drift[group, log.state[place[moved]]])
    left, done = np.where(seen, np.minimum(steps - 1, SETTLED), 0), 1
    first = np.where((action >= 0)[:, np.newaxis], silent[np.maximum(action, 0)], usually)
    belief[moved] *= np.where((unseen[moved] >= done)[:, np.newaxis], first, 1.0)
    while (going := np.flatnonzero(left > 0)).size:
        done += 1
        belief[going] /= belief[going].sum(axis=1, keepdims=True)
        belief[going] = sum_by_group("ns,nsy->ny", belief[going], drift, group_of[going])
        belief[going] *= np.where((unseen[going] >= done)[:, np.newaxis], usually, 1.0)
        left[going] -= 1
    return np.asarray(belief / belief.sum(axis=1, keepdims=True))
