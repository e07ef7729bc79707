"""Who gets the places of a period: by name, by floor, by index; then some places are randomised.

The places are given by `rmab.decisions.filling`, as for every list. Specific to live programmes are a floor that
considers the budgets of later periods, a control group, and fallbacks. Draws are a hash of seed, period and id, so that
they can be reproduced. If the index leaves places empty, the random ones are still filled: otherwise a model that
once estimated no effect could never be corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.decisions.candidates import Candidates
from rmab.decisions.filling import fill_places
from rmab.decisions.randomness import TIES, Randomness, draw_numbers
from rmab.decisions.rules import FLOOR, INDEX, LOT, Rules
from rmab.live.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice among M arms: rule (M,), empty for no place; probability, draw (M,); left_out (M,); notes in words."""

    rule: tuple[str, ...]
    probability: FloatArray
    draw: FloatArray
    left_out: BoolArray
    notes: tuple[str, ...] = ()


def is_control(ids: Sequence[str], seed: int, share: float) -> BoolArray:
    """(M,) which arms are in the control group: drawn once, by a hash of seed and id."""
    return np.asarray(draw_numbers(ids, seed, "control") < share) if share > 0 else np.zeros(len(ids), dtype=bool)


def random_places(share: float, budget: int) -> int:
    """Return the number of places to randomise: at least one, if there are a share and a place."""
    return min(budget, max(1, int(share * budget + 0.5))) if share > 0 else 0


def waiting_times(ledger: Ledger, period: int, arms: IntArray) -> IntArray:
    """(M,) the periods since the last turn of arms (M,): on a list, or executed without it."""
    count = len(ledger.ids)
    last = np.full(count, -(2**40), dtype=np.int64)
    for one in sorted({*ledger.decisions, *ledger.cells}):
        if one < period:
            last[ledger.cell(one).executed(count) == 1] = one
            if one in ledger.decisions:
                last[list(ledger.decisions[one].rules)] = one
    entered = np.full(count, min([*ledger.decisions, period]), dtype=np.int64)
    np.maximum.at(entered, ledger.stays.arm, ledger.stays.first)
    return np.where(last < entered, period - entered + 1, period - last)[arms]


def choose(ledger: Ledger, period: int, arms: IntArray, index: FloatArray, *, fill: bool, uniform: bool = False) -> Choice:
    """Give the places of a period to arms (M,) with these indices (M,).

    fill: places also go to indices that are not positive. uniform: all places are drawn at random.
    """
    config, ids = ledger.declared, [ledger.ids[n] for n in arms]
    budget = min(ledger.budget(period), arms.size)
    source = Randomness(config.seed, ledger.label(period))
    must, must_not = (np.isin(arms, list(one)) for one in ledger.forced_arms(period))
    waited = waiting_times(ledger, period, arms)
    floor, notes = _feasible_floor(config.floor, arms.size - int(must_not.sum()), budget)
    due = np.zeros(arms.size, dtype=bool)
    if floor:
        later = np.cumsum([0, *(ledger.budget(period + k) for k in range(1, floor + 1))])
        line = _due(waited, ~must & ~must_not, floor, later, source.numbers(ids, TIES))
        due[line[: max(budget - int(must.sum()), 0)]] = True
    if int(must.sum()) > budget:  # the budget was lowered since
        notes = (*notes, f"{int(must.sum()) - budget} of {int(must.sum())} arms that people added exceed the budget")
        must[np.flatnonzero(must)[budget:]] = False
    forced = must | due
    swap = 0 if uniform else min(random_places(config.random_share, budget), max(budget - int(forced.sum()), 0))
    known = (np.zeros(arms.size), np.zeros(arms.size)) if uniform else (index, waited)
    candidates = Candidates.of(known[0], ids=ids, waited=known[1], least=-np.inf if fill or uniform else 0.0)
    aside = (must_not | is_control(ids, config.seed, config.control)) & ~forced
    found = fill_places(candidates, Rules(budget, forced, aside, random=swap), source)
    rule = np.where(due, FLOOR, found.rule)
    rule = np.where(rule == INDEX, LOT, rule) if uniform else rule
    empty = budget - int((rule != "").sum())
    if empty and not fill and ((rule == "") & ~aside).any():
        notes = (*notes, f"{empty} of {budget} places stay empty: the model expects no benefit from them")
    return Choice(tuple(rule.tolist()), found.probability, found.draws, found.left_out, notes)


def _due(waited: IntArray, eligible: BoolArray, floor: int, later: IntArray, ties: FloatArray) -> IntArray:
    """Return the arms that must have a turn now, the earliest due first, so that all can have theirs in time.

    Of the arms that are due within d more periods, those that exceed the budgets later[d] must have their turn now.
    """
    slack = np.maximum(floor - waited, 0)
    line = np.lexsort((ties, -waited, slack))
    line = line[eligible[line]]
    due = np.cumsum(np.bincount(slack[line]))
    return line[: int((due - later[: due.size]).max(initial=0))]


def _feasible_floor(floor: int | None, arms: int, places: int) -> tuple[int, tuple[str, ...]]:
    """Return the floor that can be met (0 for none), and a note if it is not the declared one."""
    if floor is None or arms == 0:
        return 0, ()
    if places <= 0:
        return 0, (f"the floor of {floor} periods cannot be met with a budget of 0",)
    least = -(-arms // places)
    if least <= floor:
        return floor, ()
    return least, (f"the floor of {floor} periods cannot be met with {places} places; {least} is used for now",)
