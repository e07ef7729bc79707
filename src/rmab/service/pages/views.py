"""Content of the pages, from a ledger: lists with waiting times, reports, changes, a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.decisions.decision import Decision
from rmab.live.choosing import waiting_times
from rmab.live.events import Override
from rmab.live.journal import reading
from rmab.live.ledger import Ledger
from rmab.live.observing import transitions
from rmab.live.programme import Programme

RECENT = 8  # periods that are shown


@dataclass(frozen=True)
class Row:
    """One line of a list."""

    arm: str
    group: str
    state: str
    rank: int
    index: float
    probability: float
    by: str
    reason: str
    waited: int


def list_rows(p: Programme, decision: Decision) -> list[Row]:
    """Return the lines of a list, the best first, with how long each has waited."""
    with p.ledger() as ledger:
        period = ledger.declared.rhythm.number(decision.period)
        record = ledger.decisions[period]
        waited = dict(zip(record.arms.tolist(), waiting_times(ledger, period, record.arms).tolist(), strict=True))
        place = ledger.place
        group = {one: ledger.groups[ledger.group_of[place[one]]] for one in decision.ids}
    return [
        Row(one.id, group[one.id], one.state, one.rank, one.index, one.chance, one.by, one.reason, waited[place[one.id]])
        for one in decision.rows()
    ]


def narrow(rows: list[Row], search: str, group: str, sort: str) -> list[Row]:
    """Return the lines that contain a text, of a group, in an order."""
    wanted = search.casefold()
    found = [
        one
        for one in rows
        if (not group or one.group == group)
        and (not wanted or any(wanted in text.casefold() for text in (one.arm, one.group, one.state, one.reason)))
    ]
    orders: dict[str, Any] = {
        "arm": lambda one: one.arm,
        "group": lambda one: (one.group, one.rank),
        "state": lambda one: (one.state, one.rank),
        "waited": lambda one: (-one.waited, one.rank),
    }
    return sorted(found, key=orders.get(sort, lambda one: one.rank))


def override_events(p: Programme, period: str | None = None) -> list[dict[str, Any]]:
    """Return the manual changes in force, the last one first; of a period, or all."""
    others = ("create", "join", "leave", "budget", "warm-start", "decide", "ahead", "tell", "correct", "missing", "undo")
    with p.ledger() as ledger:
        last, undone, label = ledger.sequence, set(ledger.undone), ledger.label
    with reading(p.store.engine) as connection:
        events = list(p.journal.read(connection, 0, last, without=others))
        undone |= p.journal.undone(connection, 0, last)
    found = []
    for event in reversed(events):
        body = event.parse()
        if event.sequence in undone or not isinstance(body, Override) or (period and label(body.period) != period):
            continue
        found.append(
            {
                "event": event.sequence,
                "period": label(body.period),
                "add": body.add,
                "remove": body.remove,
                "reason": body.reason,
                "actor": event.actor,
                "at": event.server_at,
            }
        )
    return found


def came_back(ledger: Ledger) -> list[dict[str, Any]]:
    """Return, for recent periods, how many were decided, reached and reported; the last one first."""
    found = []
    for period in sorted(ledger.decisions)[-RECENT:][::-1]:
        seen, record = transitions(ledger, period), ledger.decisions[period]
        listed = np.array(sorted(record.rules), dtype=np.int64)
        executed = seen.executed[listed]
        here = ledger.is_present(period)
        found.append(
            {
                "period": ledger.label(period),
                "budget": record.body.budget,
                "decided": int(listed.size),
                "reached": int((executed == 1).sum()),
                "not_reached": int((executed == 0).sum()),
                "open": int((executed < 0).sum()),
                "reported": int((seen.after[here] >= 0).sum()),
                "missing": len(ledger.cell(period).missing),
                "arms": int(here.sum()),
            }
        )
    return found


def changes(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the share of places by group in the last list and in the one before, the largest change first."""
    decided = sorted(ledger.decisions)[-2:]
    if not decided:
        return []
    counts = []
    for period in decided:
        rules = ledger.decisions[period].rules
        counts.append(np.bincount([ledger.group_of[n] for n in rules], minlength=len(ledger.groups)))
    now, before = counts[-1], counts[0] if len(counts) > 1 else np.zeros_like(counts[-1])
    here = np.bincount(ledger.group_of[ledger.is_present(decided[-1])], minlength=len(ledger.groups))
    rows = []
    for g, name in enumerate(ledger.groups):
        if not now[g] and not before[g] and not here[g]:
            continue
        rows.append(
            {
                "group": name,
                "now": int(now[g]),
                "before": int(before[g]) if len(counts) > 1 else None,
                "share": round(100 * float(now[g]) / max(int(now.sum()), 1)),
                "arms": int(here[g]),
                "why": _why(ledger, decided, name) if len(counts) > 1 else "",
            }
        )
    return sorted(rows, key=lambda one: (-abs(one["now"] - (one["before"] or 0)), one["group"]))


def _why(ledger: Ledger, decided: list[int], group: str) -> str:
    """Return how the index of a group moved between two decisions: 'up', 'down', 'same', or '' if there is none."""
    tables = [ledger.decisions[one].body.table.get(group) for one in decided]
    if not tables[0] or not tables[1]:
        return ""
    before, now = max(tables[0]), max(tables[1])
    scale = max(abs(before), abs(now), 1e-12)
    return "same" if abs(now - before) < 0.02 * scale else "up" if now > before else "down"


def people(ledger: Ledger) -> list[dict[str, Any]]:
    """Return everybody who takes part, the longest waiting first."""
    period = ledger.last_period + 1 if ledger.last_period is not None else ledger.first_period or 0
    arms = np.flatnonzero(ledger.is_present(period))
    if not arms.size:
        return []
    waited = waiting_times(ledger, period, arms)
    state = np.where(ledger.entries(period) >= 0, ledger.entries(period), ledger.cell(period - 1).states(len(ledger.ids)))
    names = [*ledger.declared.states, ""]
    rows = [
        {
            "arm": ledger.ids[n],
            "group": ledger.groups[ledger.group_of[n]],
            "state": names[int(state[n])],
            "waited": int(waited[k]),
        }
        for k, n in enumerate(arms)
    ]
    return sorted(rows, key=lambda one: (-int(str(one["waited"])), one["arm"]))


def person(ledger: Ledger, arm: str) -> dict[str, Any] | None:
    """Return everything known about an arm, the last period first; None if it is unknown."""
    n = ledger.place.get(arm)
    if n is None:
        return None
    names = [*ledger.declared.states, ""]
    rows = []
    for period in sorted({*ledger.decisions, *ledger.cells}, reverse=True):
        if not ledger.is_present(period)[n]:
            continue
        seen, record = transitions(ledger, period), ledger.decisions.get(period)
        at = np.flatnonzero(record.arms == n) if record is not None else np.zeros(0, dtype=np.int64)
        rows.append(
            {
                "period": ledger.label(period),
                "before": names[int(seen.before[n])],
                "after": names[int(seen.after[n])],
                "executed": {1: "yes", 0: "no"}.get(int(seen.executed[n]), ""),
                "is_decided": record is not None,
                "by": record.rules.get(n, "") if record is not None else "",
                "left_out": record is not None and n in record.left_out,
                "probability": float(record.probability[at[0]]) if record is not None and at.size else None,
                "index": float(record.index[at[0]]) if record is not None and at.size else None,
            }
        )
    return {"arm": arm, "group": ledger.groups[ledger.group_of[n]], "rows": rows}


def budget_ahead(ledger: Ledger, count: int = 12) -> list[dict[str, Any]]:
    """Return the budgets of the coming periods."""
    last = ledger.last_period
    if last is None:
        return []
    ahead = range(last + 1, last + 1 + count)
    return [{"period": ledger.label(one), "budget": ledger.budget(one), "single": one in ledger.budgets} for one in ahead]
