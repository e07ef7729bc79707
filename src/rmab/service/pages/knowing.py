"""Pages to look things up: evidence, the journal with undo, the budget."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rmab.errors import RmabError
from rmab.live.benefit import Benefit
from rmab.live.changes import UNDOABLE
from rmab.live.events import Event
from rmab.live.journal import reading
from rmab.service.access import find_programme
from rmab.service.pages.frame import Looking, Sent, Visitor, go, programme_path, programme_values, render, say
from rmab.service.pages.model_check import best_state, check_model
from rmab.service.pages.views import budget_ahead, came_back
from rmab.service.shared import acting

router = APIRouter(include_in_schema=False)
PART = 50  # lines on one page
Text = Annotated[str, Query(max_length=200)]
Part = Annotated[int, Query(ge=1, le=10**9)]
Number = Annotated[int, Query(ge=0, le=2**53)]


def chart_of(found: Benefit) -> dict[str, Any]:
    """Return the series of the chart of benefit."""
    names = ("shown", "low", "high", "promised", "promised_low", "promised_high")
    series = {name: [round(float(one), 4) for one in getattr(found, name)] for name in names}
    return {"periods": list(found.periods), **series}


@router.get("/p/{name}/evidence")
def show_evidence(request: Request, visitor: Looking, name: str) -> Response:
    """Show the benefit of the lists, and whether the model fits."""
    p = find_programme(request, visitor.account, name, "viewer")
    found = p.benefit()
    with p.ledger() as ledger:
        checks, good = check_model(ledger), ledger.declared.states[best_state(ledger)]
    values: dict[str, Any] = {"benefit": found, "chart": chart_of(found), "checks": checks, "good": good, "reach": p.reach}
    return render(request, "evidence.html", visitor, **programme_values(p, visitor, "evidence"), **values)


def _summary(event: Event, label: Any) -> str:
    """Describe an event in a sentence."""
    body = json.loads(event.body)
    period = label(body["period"]) if body.get("period") is not None else ""
    count = len(body.get("arms", ()))
    if event.kind == "override":
        names = [say("journal.added", arms=", ".join(body["add"]))] if body.get("add") else []
        names += [say("journal.removed", arms=", ".join(body["remove"]))] if body.get("remove") else []
        return say("journal.override", period=period, what="; ".join(names))
    if event.kind in ("decide", "ahead"):
        return say(f"journal.{event.kind}", period=period, count=len(body["listed"]), budget=body["budget"])
    if event.kind == "budget":
        single = ", ".join(f"{label(one)}: {many}" for one, many in body.get("periods", ()))
        return say("journal.budget", what=single or body.get("usual"))
    if event.kind == "undo":
        return say("journal.undo", event=body["event"])
    return say(f"journal.{event.kind.replace('-', '_')}", period=period, count=count)


def _journal(request: Request, visitor: Visitor, name: str, part: int, status: int = 200, **given: Any) -> Response:
    p = find_programme(request, visitor.account, name, "viewer")
    with p.ledger() as ledger:
        last, label = ledger.sequence, ledger.label
    top = last - (part - 1) * PART
    with reading(p.store.engine) as connection:
        events = list(p.journal.read(connection, max(top - PART, 0), max(top, 0)))[::-1]
        undone = p.journal.undone(connection, 0, last)
    rows = [
        {
            "event": one.sequence,
            "kind": one.kind,
            "actor": one.actor,
            "at": one.server_at,
            "what": _summary(one, label),
            "reason": json.loads(one.body).get("reason", ""),
            "is_undone": one.sequence in undone,
            "can_undo": one.kind in UNDOABLE and one.sequence not in undone,
        }
        for one in events
    ]
    values = {"rows": rows, "part": part, "parts": -(-last // PART), "undo": 0, "total": last, "reason": ""}
    return render(request, "journal.html", visitor, status, **{**programme_values(p, visitor, "journal"), **values, **given})


@router.get("/p/{name}/journal")
def show_journal(
    request: Request, visitor: Looking, name: str, part: Part = 1, undo: Number = 0, done: Text = "", event: Number = 0
) -> Response:
    """Show every change, who made it, when and why."""
    message = say("done.undone", event=event) if done == "undone" else None
    return _journal(request, visitor, name, part, undo=undo, done=message, done_event=0)


@router.post("/p/{name}/undo")
async def undo_event(request: Request, sent: Sent, name: str) -> Response:
    """Undo an event."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        number, reason = sent.text("event"), sent.text("reason")
        if not reason or not number.isdigit():
            return _journal(request, sent.visitor, name, 1, 422, error=say("journal.reason_missing"), undo=int(number or 0))
        try:
            with acting(sent.visitor.account.owner):
                p.undo(int(number), reason=reason, key=sent.key)
        except RmabError as error:
            return _journal(request, sent.visitor, name, 1, 422, error=str(error), undo=int(number), reason=reason)
        return go(programme_path(name, "journal"), done="undone", event=number)

    return await run_in_threadpool(work)


def _budget(request: Request, visitor: Visitor, name: str, status: int = 200, **given: Any) -> Response:
    p = find_programme(request, visitor.account, name, "viewer")
    with p.ledger() as ledger:
        values = {"back": came_back(ledger), "ahead": budget_ahead(ledger), "usual": ledger.usual_budget}
    return render(request, "budget.html", visitor, status, **{**programme_values(p, visitor, "budget"), **values, **given})


@router.get("/p/{name}/budget")
def show_budget(request: Request, visitor: Looking, name: str, done: Text = "", event: Number = 0) -> Response:
    """Show the budget, used and ahead, and the settings."""
    message = say("done.budget", event=event) if done == "budget" else None
    return _budget(request, visitor, name, done=message, done_event=event)


@router.post("/p/{name}/budget")
async def change_budget(request: Request, sent: Sent, name: str) -> Response:
    """Change the budget, from now on or of one period."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "admin")
        places, period = sent.text("places"), sent.text("period")
        if not places.isdigit() or len(places) > 9:
            return _budget(request, sent.visitor, name, 422, error=say("budget.number"))
        try:
            with acting(sent.visitor.account.owner):
                event = p.set_budget({period: int(places)} if period else int(places), key=sent.key)
        except RmabError as error:
            return _budget(request, sent.visitor, name, 422, error=str(error))
        return go(programme_path(name, "budget"), done="budget", event=event)

    return await run_in_threadpool(work)
