"""The best kinds of arms under caps of groups, and the price of each cap: the gain from one more place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.decisions.lottery import CERTAIN, Outcomes, list_outcomes
from rmab.errors import SolverError


@dataclass(frozen=True, eq=False)
class Cap:
    """At most `most` arms of a group (N,), whose name is its label."""

    label: str
    members: BoolArray
    most: int


def caps_cross(member: BoolArray) -> bool:
    """Return whether some kind is under two caps, by member (C, K)."""
    return bool(member.sum(axis=0).max(initial=0) > 1)


def take_line(line: tuple[IntArray, IntArray], free: IntArray, member: BoolArray, room: IntArray, places: int) -> Outcomes:
    """Return how many arms of each kind get a place, if they are served in the order of a line.

    Parameters
    ----------
    line : two (L,) int arrays
        Kinds, and the block of each: kinds of a block are tied, and a random draw decides.
    free, member, room
        (K,) arms of every kind; (C, K) which kinds are under which cap; (C,) places left under each.
    places : int
        Total number of places.
    """
    kinds, block = line
    counts, sizes = np.zeros(free.size, dtype=np.int64), free[kinds]
    if caps_cross(member[:, kinds]):  # ties are broken by the order of kinds
        left, spare = np.array(room), places
        for k in kinds:
            inside = member[:, k]
            counts[k] = max(min(free[k], spare, left[inside].min(initial=spare)), 0)
            left[inside] -= counts[k]
            spare -= counts[k]
            if spare <= 0:
                break
        return [(CERTAIN, counts)]
    allowed = _count_admitted(sizes, member[:, kinds], room)
    total = np.cumsum(allowed)
    if not total.size or total[-1] <= places:
        counts[kinds] = allowed
        return [(CERTAIN, counts)]
    equal = block == block[np.searchsorted(total, max(places, 0), side="right")]
    begin = int(np.argmax(equal))
    counts[kinds[:begin]] = allowed[:begin]
    rest = max(places, 0) - int(counts.sum())
    ends = list_outcomes(sizes[equal], np.eye(int(equal.sum()), dtype=bool), allowed[equal], rest)
    found = []
    for probability, several in ends:
        each = counts.copy()
        each[kinds[equal]] = several
        found.append((probability, each))
    return found


def _count_admitted(sizes: IntArray, member: BoolArray, room: IntArray) -> IntArray:
    """(L,) how many arms of each kind of a line get a place under its cap; no kind is under two caps."""
    allowed = sizes.copy()
    for inside, left in zip(member, room, strict=True):
        mine = np.where(inside, sizes, 0)
        allowed = np.where(inside, np.clip(left - (np.cumsum(mine) - mine), 0, sizes), allowed)
    return np.asarray(allowed)


def price_caps(
    worth: FloatArray, kinds: IntArray, taken: IntArray, free: IntArray, member: BoolArray, room: IntArray, places: int
) -> FloatArray:
    """(C,) the price of each cap, if no kind is under two caps: worth (K,), taken and free (K,)."""
    allowed, given = _count_admitted(free[kinds], member[:, kinds], room), taken[kinds]
    last = float(worth[kinds[given > 0]].min(initial=np.inf)) if 0 < places == given.sum() else 0.0
    blocked = np.where(member[:, kinds] & (allowed < free[kinds]), worth[kinds], -np.inf)
    return np.maximum(blocked.max(axis=1, initial=-np.inf) - last, 0.0) if places else np.zeros(len(room))


def select_best(
    worth: FloatArray, kinds: IntArray, free: IntArray, member: BoolArray, room: IntArray, places: int
) -> tuple[IntArray, FloatArray]:
    """Choose the best under caps that cross, by an integer programme; as many places as possible are filled.

    Returns counts (K,), and the price of each cap (C,), by the linear relaxation. worth and free are
    (K,), kinds (L,) are those to choose from, the best first, ties in the order in which they get places.
    """
    counts, prices = np.zeros(free.size, dtype=np.int64), np.zeros(len(room))
    if not kinds.size or places <= 0:
        return counts, prices
    cell = np.unique(member[:, kinds].T, axis=0, return_inverse=True)[1].reshape(-1)
    by, free_of = np.argsort(cell, kind="stable"), np.bincount(cell, weights=free[kinds])
    before = np.empty(kinds.size)
    before[by] = np.cumsum(free[kinds[by]]) - free[kinds[by]] - (np.cumsum(free_of) - free_of)[cell[by]]
    kinds = kinds[before <= places]  # no more arms of a cell can get a place: the best come first
    keys = np.column_stack([member[:, kinds].T, worth[kinds]])
    alike, one_of = np.unique(keys, axis=0, return_inverse=True)
    one_of = one_of.reshape(-1)
    sizes = np.bincount(one_of, weights=free[kinds]).astype(np.float64)
    rows = csr_array(np.vstack([alike[:, :-1].T, np.ones(len(alike))]))
    most = np.array([*np.maximum(room, 0), places], dtype=np.float64)
    gain = alike[:, -1]
    least = np.full(most.size, -np.inf)
    if gain.min() <= 0:  # a place is better filled than empty
        least[-1] = round(_solve(np.ones(gain.size), sizes, LinearConstraint(rows, least, most)).sum())
    amount = np.rint(_solve(gain, sizes, LinearConstraint(rows, least, most)))
    relaxed = linprog(-gain, A_ub=rows, b_ub=most, bounds=np.column_stack([np.zeros(sizes.size), sizes]), method="highs")
    if relaxed.x is None:
        raise SolverError(f"caps: the linear programme was not solved ({relaxed.message})")
    by = np.argsort(one_of, kind="stable")
    each, group = free[kinds[by]], one_of[by]
    before = np.cumsum(each) - each - (np.cumsum(sizes) - sizes)[group]
    counts[kinds[by]] = np.clip(amount[group] - before, 0, each)
    return counts, np.maximum(-np.asarray(relaxed.ineqlin.marginals[:-1]), 0.0)


def _solve(gain: FloatArray, sizes: FloatArray, limits: LinearConstraint) -> FloatArray:
    whole = milp(-gain, integrality=np.ones(gain.size), bounds=(0, sizes), constraints=limits, options={"mip_rel_gap": 0.0})
    if whole.x is None:
        raise SolverError(f"caps: the integer programme was not solved ({whole.message})")
    return np.asarray(whole.x)
