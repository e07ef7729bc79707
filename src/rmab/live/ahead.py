"""Lists that are issued ahead: they assume that earlier lists are carried out, and newer ones replace them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from rmab.decisions.decision import Decision
from rmab.live.deciding import make_decision
from rmab.live.events import Ahead, Decide, pack_numbers
from rmab.live.ledger import Ledger
from rmab.live.listing import Record, as_record, find_issued_list
from rmab.live.observing import Observer

MOST_AHEAD = 52  # periods


@dataclass(frozen=True)
class Issue:
    """A list that was issued ahead: its event, by which `ask` records that it was used, and the list."""

    event: int
    decision: Decision


def newest_ahead(ledger: Ledger, period: int) -> Record | None:
    """Return the last list that was issued for a period; None if there is none."""
    return next((one for _, one in sorted(ledger.ahead.items(), reverse=True) if one.body.period == period), None)


def make_ahead(ledger: Ledger, observer: Observer, period: int) -> Ahead:
    """Return the list of a period ahead: assuming that the periods between are decided as issued."""
    assumed = copy(ledger)
    assumed.decisions = dict(ledger.decisions)
    for between in range((ledger.last_period or 0) + 1, period):
        newest = newest_ahead(ledger, between)
        if newest is not None and np.array_equal(newest.arms, np.flatnonzero(ledger.is_present(between))):
            assumed.decisions[between] = newest
    body = make_decision(assumed, observer, period)
    return Ahead.checked(**body.model_dump())


def make_list(ledger: Ledger, observer: Observer, period: int, *, issued: int | None = None) -> Decide:
    """Return the decision of a period: made now, or the one that was issued ahead and used."""
    if issued is None:
        return make_decision(ledger, observer, period)
    record = find_issued_list(ledger, issued, period)
    arms = np.flatnonzero(ledger.is_present(period))
    fields = record.body.model_dump()
    if not np.array_equal(arms, record.arms):  # arms that joined since had probability 0; those that left are not on it
        place = {int(n): k for k, n in enumerate(record.arms)}
        row = np.array([place.get(int(n), -1) for n in arms])
        for name, nothing in (("index", 0.0), ("probability", 0.0), ("draw", 0.0), ("state", -1.0)):
            values = np.append(np.asarray(getattr(record, name), dtype=np.float64), nothing)
            fields[name] = pack_numbers(values[row])
        here = {ledger.ids[n] for n in arms}
        places = [k for k, one in enumerate(record.body.listed) if one in here]
        fields["listed"], fields["rule"] = ([fields[name][k] for k in places] for name in ("listed", "rule"))
        fields["left_out"] = [one for one in record.body.left_out if one in here]
        fields["present"] = arms.size
    fields.update(through=ledger.sequence, issued=issued)
    body = Decide.checked(**fields)
    as_record(ledger, body, ledger.sequence + 1)
    return body
