"""The effect of lists on a ledger: decided lists, lists issued ahead, and overrides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError, many
from rmab.live.events import Ahead, Decide, Override, unpack_numbers
from rmab.logs.findings import quote

if TYPE_CHECKING:
    from rmab.live.ledger import Ledger

Change = Callable[[], None]


@dataclass
class Record:
    """A list with the numbers of its arms; index, probability, draw and state are unpacked when they are read.

    arms (M,): the arms that were present. planned: by arm, the rule of every place when decided; rules: as the list
    stands after overrides. left_out: who was drawn to be left out. version: how often people changed the list.
    """

    body: Decide
    sequence: int
    arms: IntArray
    planned: dict[int, str]
    left_out: tuple[int, ...]
    rules: dict[int, str] = field(default_factory=dict)
    version: int = 0

    @property
    def index(self) -> FloatArray:
        """(M,) the index of every arm."""
        return unpack_numbers(self.body.index)

    @property
    def probability(self) -> FloatArray:
        """(M,) the probability of being listed."""
        return unpack_numbers(self.body.probability)

    @property
    def draw(self) -> FloatArray:
        """(M,) the random numbers of the draw."""
        return unpack_numbers(self.body.draw)

    @property
    def state(self) -> IntArray:
        """(M,) the state in which the period began, -1 if unknown."""
        return unpack_numbers(self.body.state).astype(np.int64)

    def by_index(self) -> list[int]:
        """Return the arms that got a place by index, before overrides."""
        return [n for n, rule in self.planned.items() if rule == "index"]


def as_record(ledger: Ledger, body: Decide, sequence: int) -> Record:
    """Return the record of a list; ModelError if it does not fit the arms of its period."""
    arms = np.flatnonzero(ledger.is_present(body.period))
    numbers = [unpack_numbers(one) for one in (body.index, body.probability, body.draw, body.state)]
    if body.present != arms.size or any(one.shape != arms.shape for one in numbers):
        here = ledger.label(body.period)
        raise ModelError(
            f"the list of {here} was made for {many(body.present, 'arm')}, not for {arms.size}; it cannot change now"
        )
    if not ((numbers[1] >= 0) & (numbers[1] <= 1)).all():
        raise ModelError("the decision has a probability outside [0, 1]")
    planned = dict(zip(ledger.find(body.listed, body.period), body.rule, strict=True))
    return Record(body, sequence, arms, planned, tuple(ledger.find(body.left_out, body.period)), dict(planned))


def decide(ledger: Ledger, body: Decide, sequence: int) -> Change:
    """Return what a decision changes: the period is decided, and lists issued ahead for it are no longer valid."""
    _check_later(ledger, body)
    record = as_record(ledger, body, sequence)
    if body.issued is not None:
        find_issued_list(ledger, body.issued, body.period)

    def change() -> None:
        ledger.decisions[body.period] = record
        ledger.pending.pop(body.period, None)
        ledger.ahead = {k: one for k, one in ledger.ahead.items() if one.body.period > body.period}

    return change


def issue(ledger: Ledger, body: Ahead, sequence: int) -> Change:
    """Return what a list issued ahead changes: it can be used, but decides nothing."""
    _check_later(ledger, body)
    record = as_record(ledger, body, sequence)
    return lambda: ledger.ahead.update({sequence: record})


def find_issued_list(ledger: Ledger, event: int, period: int) -> Record:
    """Return a list that was issued ahead; ModelError if the event did not issue one for this period."""
    found = ledger.ahead.get(event)
    if found is None or found.body.period != period:
        there = [str(k) for k, one in ledger.ahead.items() if one.body.period == period]
        what = f"event {event} issued no list for {ledger.label(period)}"
        raise ModelError(f"{what}; available: {', '.join(there) or 'none'}", code="not-issued")
    return found


def _check_later(ledger: Ledger, body: Decide) -> None:
    last = ledger.last_period
    if last is not None and body.period <= last:
        raise ModelError(f"{ledger.label(body.period)} cannot be decided after {ledger.label(last)}", code="past")


def override(ledger: Ledger, body: Override) -> Change:
    """Return what people change on the list of a period, decided or not."""
    add, remove = (ledger.find(ids, body.period) for ids in (body.add, body.remove))
    if not add and not remove:
        raise ModelError("override: name arms to add or to remove")
    if set(add) & set(remove):
        raise ModelError(f"override: add and remove both name {quote(ledger.ids[min(set(add) & set(remove))])}")
    record = ledger.decisions.get(body.period)
    if record is None:
        places = ledger.budget(body.period)
        forced, _ = ledger.forced_arms(body.period, [*ledger.pending.get(body.period, []), body])
        if len(forced) > places:
            what = f"override: {many(len(forced), 'arm')} would be forced, but the budget is {places}"
            raise ModelError(what, code="budget")
        return lambda: ledger.pending.setdefault(body.period, []).append(body)
    rules = revise(record, add, remove)

    def change() -> None:
        record.rules, record.version = rules, record.version + 1

    return change


def revise(record: Record, add: Sequence[int], remove: Sequence[int]) -> dict[int, str]:
    """Return the places after an override: forced arms first, then the others as far as the budget goes.

    If there are too many, places by index are removed first, the lowest first, and then random ones.
    """
    rules = {n: rule for n, rule in record.rules.items() if n not in set(remove)}
    rules.update(dict.fromkeys(add, "name"))
    over = len(rules) - record.body.budget
    if over <= 0:
        return rules
    index = dict(zip(record.arms.tolist(), record.index.tolist(), strict=True))
    free = [n for n, rule in rules.items() if rule not in ("name", "floor")]
    free.sort(key=lambda n: (rules[n] != "index", index[n], -n))
    if over > len(free):
        forced = len(rules) - len(free)
        raise ModelError(f"override: the budget is {record.body.budget}, but {forced} are forced or due", code="budget")
    for n in free[:over]:
        del rules[n]
    return rules
