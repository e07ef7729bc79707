"""The best arms under caps of groups, and what one more place under each cap is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import SolverError


@dataclass(frozen=True, eq=False)
class Cap:
    """At most `most` arms of a group (N,), which is called by its label."""

    label: str
    members: BoolArray
    most: int


def select_best(
    worth: FloatArray, line: IntArray, places: int, caps: tuple[Cap, ...], room: list[int]
) -> tuple[IntArray, dict[str, float]]:
    """Return the best arms of a line, the best first, and the price of every cap; room: places left under each."""
    overlap = sum(cap.members.astype(np.int64) for cap in caps) if caps else np.zeros(1)
    several = np.max(overlap, initial=0) > 1 and line.size and places
    return (_by_program if several else _by_rank)(worth, line, places, caps, room)


def _by_rank(
    worth: FloatArray, line: IntArray, places: int, caps: tuple[Cap, ...], room: list[int]
) -> tuple[IntArray, dict[str, float]]:
    """Choose the best whose cap has room: exact where no arm is under two caps."""
    allowed = np.ones(line.size, dtype=bool)
    for cap, left in zip(caps, room, strict=True):
        allowed[np.flatnonzero(cap.members[line])[max(left, 0) :]] = False
    taken = line[allowed][:places]
    last = float(worth[taken].min()) if taken.size == places and taken.size else 0.0
    prices = {}
    for cap in caps:
        blocked = line[~allowed & cap.members[line]]
        prices[cap.label] = max(0.0, float(worth[blocked].max()) - last) if blocked.size and places else 0.0
    return taken, prices


def _by_program(
    worth: FloatArray, line: IntArray, places: int, caps: tuple[Cap, ...], room: list[int]
) -> tuple[IntArray, dict[str, float]]:
    """Choose the best under caps that overlap: an integer programme over kinds of arms; prices by relaxation."""
    member = np.column_stack([cap.members[line] for cap in caps]).astype(np.float64)
    keys = np.column_stack([member, worth[line]])
    kinds, kind_of, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    kind_of = kind_of.reshape(-1)
    rows = csr_array(np.vstack([kinds[:, :-1].T, np.ones(len(kinds))]))
    most = np.array([*(float(max(left, 0)) for left in room), float(places)])
    gain, bounds = -kinds[:, -1], np.column_stack([np.zeros(len(kinds)), sizes])
    fill = gain - (1.0 + float(gain.max()) if gain.max() >= 0 else 0.0)  # a place is better filled than empty
    whole = milp(fill, integrality=np.ones(len(kinds)), bounds=(0, sizes), constraints=LinearConstraint(rows, -np.inf, most))
    relaxed = linprog(gain, A_ub=rows, b_ub=most, bounds=bounds, method="highs")
    if whole.x is None or relaxed.x is None:
        raise SolverError(f"caps: the programme was not solved ({whole.message})")
    amount = np.rint(whole.x).astype(np.int64)
    by_kind = np.argsort(kind_of, kind="stable")
    before = np.empty(line.size, dtype=np.int64)  # arms of the same kind with a better rank
    before[by_kind] = np.arange(line.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    prices = {cap.label: max(0.0, -float(one)) for cap, one in zip(caps, relaxed.ineqlin.marginals, strict=False)}
    return line[before < amount[kind_of]], prices
