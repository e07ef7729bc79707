"""Who gets the places of a period: by name, by floor, by index; then some places change hands at random, on both sides.

Of the L arms that the index lists, l are drawn to be left out (at most half), and of the U eligible others m take places. So
an arm that the index lists is on the list with probability 1 - l/L, any other eligible arm with m/U, both exactly: the draws
are uniform, independent of the ones that break ties, and a hash of seed, period and id, so that they can be drawn again.
Where the index leaves places empty, the random ones are filled all the same: otherwise a model that once took an action for
useless could never find out that it was wrong.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.decisions.candidates import Candidates
from rmab.decisions.rules import FLOOR, INDEX, LOT, NAME
from rmab.live.changes import random_places
from rmab.live.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Choice:
    """Who is listed, for M arms: rule (M,), empty for no place; probability, draw (M,); left_out (M,); notes in words."""

    rule: tuple[str, ...]
    probability: FloatArray
    draw: FloatArray
    left_out: BoolArray
    notes: tuple[str, ...] = ()


def draw_pairs(ids: tuple[str, ...], seed: int, period: str) -> tuple[FloatArray, FloatArray]:
    """Return two numbers in [0, 1) for every arm, one for ties and one for draws: a hash of seed, period and id."""
    salt = f"{seed}/{period}/".encode()
    digests = [hashlib.blake2b(salt + one.encode("utf-8", "surrogatepass"), digest_size=16).digest() for one in ids]
    pairs = (np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2) >> np.uint64(11)) / 2.0**53
    return pairs[:, 0], pairs[:, 1]


def is_control(ids: tuple[str, ...], seed: int, share: float) -> BoolArray:
    """(M,) which arms are in the control group: drawn once, by a hash of seed and id."""
    return np.asarray(draw_pairs(ids, seed, "control")[0] < share) if share > 0 else np.zeros(len(ids), dtype=bool)


def waiting_times(ledger: Ledger, period: int, arms: IntArray) -> IntArray:
    """(M,) for how many periods arms (M,) have waited for a turn: on a list, or executed all the same."""
    count = len(ledger.ids)
    last = np.full(count, -(2**40), dtype=np.int64)
    for one in sorted({*ledger.decisions, *ledger.cells}):
        if one < period:
            turn = ledger.cell(one).executed(count) == 1
            if one in ledger.decisions:
                turn[list(ledger.decisions[one].rules)] = True
            last[turn] = one
    begin = min([*ledger.decisions, period])
    entered = np.full(count, begin, dtype=np.int64)
    arm, first, _, _ = ledger.stay_table()
    np.maximum.at(entered, arm, first)
    return np.where(last < entered, period - entered + 1, period - last)[arms]


def choose(ledger: Ledger, period: int, arms: IntArray, index: FloatArray, *, fill: bool, blind: bool = False) -> Choice:
    """Give the places of a period to arms (M,) with these indices (M,).

    fill: places go to indices that are not positive, too. blind: all arms are equal, and places are drawn at random.
    """
    config, ids = ledger.declared, tuple(ledger.ids[n] for n in arms)
    budget = min(ledger.budget(period), arms.size)
    label = ledger.label(period)
    ties, draws = draw_pairs(ids, config.seed, label)
    must, must_not = (np.isin(arms, list(one)) for one in ledger.forced(period))
    control = is_control(ids, config.seed, config.control)
    waited = waiting_times(ledger, period, arms)
    lowest = np.where(control & ~must, -1.0 - abs(float(np.abs(index).max(initial=0.0))), 0.0 if blind else index)
    scores = Candidates.of(lowest, ids=ids, waited=np.zeros_like(waited) if blind else waited)
    swap = 0 if blind else random_places(config.random_share, budget)
    floor, notes = _feasible_floor(config.floor, arms.size - int(must_not.sum()), budget)
    rule = np.where(must, NAME, "").astype("<U8")
    if floor:
        later = np.cumsum([0, *(ledger.budget(period + k) for k in range(1, floor + 1))])
        rule[_due(waited, (rule == "") & ~must_not, floor, later, ties)[: budget - int(must.sum())]] = FLOOR
    left = budget - int((rule != "").sum())
    open_ = (rule == "") & ~must_not & ~control
    line = scores.rank(ties)
    wanted = open_ & ((lowest > 0) | fill | blind)
    line = line[wanted[line]][: max(left, 0)]
    rule[line] = LOT if blind else INDEX
    chance = np.where(rule != "", 1.0, 0.0)
    out = np.zeros(arms.size, dtype=bool)
    if blind:
        chance[open_] = line.size / max(int(open_.sum()), 1)
    others = np.flatnonzero(open_ & (rule == ""))
    leaving = min(swap, line.size // 2, others.size)
    entering = min(swap, left - line.size + leaving, others.size)
    if entering > 0:
        leave, enter = (pool[np.argsort(draws[pool])[:k]] for pool, k in ((line, leaving), (others, entering)))
        rule[leave], rule[enter] = "", LOT
        out[leave] = True
        chance[others] = entering / others.size
        if leaving:
            chance[line] = 1.0 - leaving / line.size
    empty = budget - int((rule != "").sum())
    if empty and not fill and others.size > entering:
        notes = (*notes, f"{empty} of {budget} places stay empty: the model expects no benefit from them")
    return Choice(tuple(rule.tolist()), chance, draws, out, notes)


def _due(waited: IntArray, eligible: BoolArray, floor: int, later: IntArray, ties: FloatArray) -> IntArray:
    """Return the arms that must have a turn now, the earliest due first, so that all can have theirs in time.

    Of the arms that are due within d more periods, all beyond the budgets of these, later[d], must have their turn now.
    """
    slack = np.maximum(floor - waited, 0)
    line = np.lexsort((ties, -waited, slack))
    line = line[eligible[line]]
    due = np.cumsum(np.bincount(slack[line]))
    return line[: int((due - later[: due.size]).max(initial=0))]


def _feasible_floor(floor: int | None, arms: int, places: int) -> tuple[int, tuple[str, ...]]:
    """Return the floor that can be kept (0 for none), and a note where it is not the declared one."""
    if floor is None or arms == 0:
        return 0, ()
    if places <= 0:
        return 0, (f"the floor of {floor} periods cannot be kept without a place",)
    least = -(-arms // places)
    if least <= floor:
        return floor, ()
    return least, (f"the floor of {floor} periods cannot be kept with {places} places: it is {least} for now",)
