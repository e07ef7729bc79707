"""The effect of each kind of event on a ledger: it is checked completely, and the change is returned, not applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rmab.common import IntArray
from rmab.errors import ModelError, StoreError, many
from rmab.live.cells import FIELDS, Cells, is_known
from rmab.live.events import Ahead, Body, Budget, Create, Decide, Join, Leave, Undo, WarmStart
from rmab.live.listing import decide, issue, override
from rmab.live.reporting import declare_missing, tell
from rmab.live.rows import find_duplicates, row_findings
from rmab.live.stays import ALWAYS
from rmab.logs.findings import quote

if TYPE_CHECKING:
    from rmab.live.ledger import Ledger

UNDOABLE = ("join", "leave", "budget", "warm-start", "override", "tell", "correct", "missing")
Change = Callable[[], None]


def change_of(ledger: Ledger, body: Body, sequence: int) -> Change:
    """Return what an event changes; ModelError or LogError if it does not fit."""
    if isinstance(body, Ahead):
        return issue(ledger, body, sequence)
    if isinstance(body, Decide):
        return decide(ledger, body, sequence)
    handlers: dict[str, Callable[[Ledger, Any], Change]] = {
        "create": _create,
        "join": _join,
        "leave": _leave,
        "budget": _budget,
        "warm-start": _warm_start,
        "override": override,
        "tell": tell,
        "correct": tell,
        "missing": declare_missing,
        "undo": _undo,
    }
    return handlers[body.KIND](ledger, body)


def _create(ledger: Ledger, body: Create) -> Change:
    if ledger.config is not None:
        raise ModelError("the programme already exists")

    def change() -> None:
        ledger.config, ledger.usual_budget = body, body.budget

    return change


def _join(ledger: Ledger, body: Join) -> Change:
    count, states = len(body.arms), len(ledger.declared.states)
    if len(body.group) != count or len(body.state) != count:
        raise ModelError(f"group and state must have {count} entries, one for each arm")
    first = ALWAYS if body.period is None else body.period
    if body.period is None and ledger.decisions:
        raise ModelError("period is missing; give the first period of these arms, as periods are already decided")
    findings = row_findings("arms")
    findings.add_each(*find_duplicates(body.arms))
    for row, (one, group, state) in enumerate(zip(body.arms, body.group, body.state, strict=True)):
        known = ledger.place.get(one)
        if known is not None and ledger.stays.end[ledger.stays.latest[known]] > first:
            findings.add(f"{quote(one)} already takes part", row)
        elif known is not None and ledger.groups[ledger.group_of[known]] != group:
            was = ledger.groups[ledger.group_of[known]]
            findings.add(f"{quote(one)} was in group {quote(was)} before; use a new id for another group", row)
        if not -1 <= state < states:
            findings.add(f"{quote(one)} has an unknown state", row)
    findings.stop()
    _check_floor(ledger, int(ledger.is_present(max(first, ledger.last_period or first)).sum()) + count, ledger.usual_budget)

    return lambda: ledger.enter(body.arms, body.group, body.state, first)


def _leave(ledger: Ledger, body: Leave) -> Change:
    arms = np.array(ledger.find(body.arms, body.period), dtype=np.int64)
    later = [k for k, one in ledger.cells.items() if k >= body.period and _has_report(one, arms, len(ledger.ids))]
    if later:
        raise ModelError(f"these arms have reports in {ledger.label(min(later))}; undo them first")
    return lambda: ledger.stays.finish(arms, body.period)


def _budget(ledger: Ledger, body: Budget) -> Change:
    if body.usual is None and not body.periods:
        raise ModelError("budget is missing; give a number from now on, or numbers by period")
    last = ledger.last_period
    for period, _ in body.periods:
        if last is not None and period <= last:
            raise ModelError(f"budget: {ledger.label(period)} is already decided")
    if body.usual is not None:
        here = ledger.is_present(last if last is not None else ledger.stays.last_first or 0)
        _check_floor(ledger, int(here.sum()), body.usual)

    def change() -> None:
        if body.usual is not None:
            ledger.usual_budget = body.usual
        ledger.budgets.update(dict(body.periods))

    return change


def _check_floor(ledger: Ledger, arms: int, budget: int) -> None:
    """Reject a floor that cannot be met: it needs N <= k B."""
    floor = ledger.declared.floor
    if floor is not None and arms > floor * budget:
        need = f"with {many(budget, 'place')} a {ledger.declared.rhythm.unit}"
        raise ModelError(f"floor: {many(arms, 'arm')} cannot each have a turn every {floor} periods {need}", code="floor")


def _warm_start(ledger: Ledger, body: WarmStart) -> Change:
    states = len(ledger.declared.states)
    counts = np.array(body.counts, dtype=np.float64) if body.groups else np.zeros(0)
    if counts.shape != (len(body.groups), states, 2, states) or not (counts >= 0).all():
        raise ModelError(f"warm_start: counts must be 0 or more, of shape (G, {states}, 2, {states}), got {counts.shape}")

    def change() -> None:
        ledger.add_groups(body.groups)
        ledger.warm.append(body)

    return change


def _undo(ledger: Ledger, body: Undo) -> Change:
    kind = ledger.kinds.get(body.event)
    if kind is None or body.event in ledger.undone:
        what = "no event" if kind is None else "already undone: event"
        raise ModelError(f"undo: {what} {body.event}", code="undo")
    if kind not in UNDOABLE:
        hint = "; change a list with override" if kind == "decide" else ""
        raise ModelError(f"undo: event {body.event} is of kind '{kind}', which cannot be undone{hint}", code="undo")
    return _replay_instead


def _replay_instead() -> None:
    raise StoreError("an undo is carried out by a replay without the event")


def _has_report(cells: Cells, arms: IntArray, count: int) -> bool:
    return any(bool(is_known(name, cells.read(name, count)[arms]).any()) for name in FIELDS)
