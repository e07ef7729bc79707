"""The page of a list: who is on it and why, additions, removals, changes and alarms."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rmab.decisions.decision import Decision
from rmab.errors import ModelError, RmabError
from rmab.live.events import Event
from rmab.live.journal import reading
from rmab.live.ledger import Ledger
from rmab.live.programme import Programme
from rmab.service.access import find_programme
from rmab.service.pages.frame import Looking, Sent, Visitor, go, programme_path, render, say
from rmab.service.pages.views import came_back, changes, list_rows, narrow, override_events
from rmab.service.problems import Problem
from rmab.service.reading import decision_answer
from rmab.service.shared import acting, decision_tag, write_if

router = APIRouter(include_in_schema=False)
PART = 200  # lines on one page
Text = Annotated[str, Query(max_length=200)]


def _decided_periods(p: Programme) -> list[str]:
    with p.ledger() as ledger:
        return [ledger.label(one) for one in sorted(ledger.decisions, reverse=True)]


def _list_of(p: Programme, period: str) -> Decision | None:
    """Return the list of a period; None if it is not made yet."""
    try:
        return p.decision(period)
    except ModelError:
        return None


def _wishes(ledger: Ledger, period: str) -> dict[str, list[str]]:
    """Return the arms that people added to, and removed from, a list that is not made yet."""
    if not period:
        return {"add": [], "remove": []}
    add, remove = ledger.forced_arms(ledger.declared.rhythm.number(period))
    return {"add": sorted(ledger.ids[n] for n in add), "remove": sorted(ledger.ids[n] for n in remove)}


def _event(p: Programme, sequence: int) -> Event | None:
    with reading(p.store.engine) as connection:
        return next(iter(p.journal.read(connection, sequence - 1, sequence)), None) if sequence else None


def _page(request: Request, visitor: Visitor, name: str, status: int = 200, **given: Any) -> Response:
    """Return the page of a list; given: period, search, group, sort, part, and the errors of a form."""
    p = find_programme(request, visitor.account, name, "viewer")
    periods, found, standing = _decided_periods(p), p.benefit(), p.status()
    period = given.get("period") or (periods[0] if periods else "")
    decision = p.decision(period) if period in periods else None
    if period and decision is None:
        raise Problem(404, "not-decided", say("list.unknown", period=period))
    rows = list_rows(p, decision) if decision else []
    search, group, sort = (str(given.get(one) or "") for one in ("search", "group", "sort"))
    shown, part = narrow(rows, search, group, sort), max(int(given.get("part") or 1), 1)
    with p.ledger() as ledger:
        back, moved = came_back(ledger), changes(ledger)
        body = ledger.decisions[ledger.declared.rhythm.number(period)].body if decision else None
        sequence = ledger.decisions[ledger.declared.rhythm.number(period)].sequence if decision else 0
        wishes = _wishes(ledger, standing.due)
    values: dict[str, Any] = {
        "programme": p.name,
        "page": "list",
        "config": p.config,
        "role": visitor.account.role(p.name),
        "may_write": visitor.account.may("operator", p.name),
        "period": period,
        "periods": periods,
        "is_last": not periods or period == periods[0],
        "decision": decision,
        "made": body,
        "event": _event(p, sequence),
        "tag": decision_tag(decision),
        "rows": shown[(part - 1) * PART : part * PART],
        "total": len(rows),
        "matches": len(shown),
        "part": part,
        "parts": -(-len(shown) // PART),
        "groups": sorted({one.group for one in rows}),
        "search": search,
        "group": group,
        "sort": sort or "rank",
        "status": standing,
        "benefit": found,
        "back": back,
        "moved": moved if periods and period == periods[0] else [],
        "overrides": override_events(p, period) if decision else [],
        "error": "",
        "form": {},
        "wishes": wishes,
    }
    return render(
        request, "list.html", visitor, status, **{**values, **{k: v for k, v in given.items() if k not in values or v}}
    )


@router.get("/p/{name}")
def show_list(
    request: Request,
    visitor: Looking,
    name: str,
    period: Text = "",
    search: Text = "",
    group: Text = "",
    sort: Text = "",
    part: Annotated[int, Query(ge=1, le=100_000)] = 1,
    done: Text = "",
    event: Annotated[int, Query(ge=0, le=2**53)] = 0,
    remove: Text = "",
) -> Response:
    """Show this week's list, or an earlier one."""
    message = say(f"done.{done}", event=event) if done in ("made", "changed", "undone") else None
    given: dict[str, Any] = {"period": period, "search": search, "group": group, "sort": sort, "part": part}
    return _page(request, visitor, name, **given, done=message, done_event=event, form={"remove": remove})


@router.get("/p/{name}/file")
def list_file(
    request: Request, visitor: Looking, name: str, period: Text, kind: Text = "csv", everybody: bool = False
) -> Response:
    """Return a list as a file: a form to fill in."""
    p = find_programme(request, visitor.account, name, "viewer")
    return decision_answer(p, period, None, "xlsx" if kind == "xlsx" else "csv", everybody=everybody)


@router.post("/p/{name}/ask")
async def make_list(request: Request, sent: Sent, name: str) -> Response:
    """Make the list of a period."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        try:
            with acting(sent.visitor.account.owner):
                p.ask(sent.text("period"))
        except RmabError as error:
            return _page(request, sent.visitor, name, 422, error=str(error))
        return go(programme_path(name), done="made", event=p.head.partition(":")[0])

    return await run_in_threadpool(work)


@router.post("/p/{name}/override")
async def change_list(request: Request, sent: Sent, name: str) -> Response:
    """Add somebody to a list, or remove somebody, with a reason; rejected if the list was changed meanwhile."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        period, reason = sent.text("period"), sent.text("reason")
        add, remove = ([one for one in [sent.text(field)] if one] for field in ("add", "remove"))
        again = {
            "period": period if _list_of(p, period) else "",
            "form": {"add": sent.text("add"), "remove": sent.text("remove"), "reason": reason, "next": sent.text("next")},
        }
        if not reason or not (add or remove):
            return _page(request, sent.visitor, name, 422, error=say("list.reason_missing"), **again)

        def change() -> int:
            return p.override(period, add=add, remove=remove, reason=reason, key=sent.key)

        try:
            event = write_if(
                p, sent.visitor.account.owner, change, sent.text("tag"), lambda: decision_tag(_list_of(p, period)), sent.key
            )
        except RmabError as error:
            return _page(request, sent.visitor, name, 422, error=str(error), **again)
        except Problem as problem:
            if problem.status_code != 412:
                raise
            return _page(request, sent.visitor, name, 409, error=say("list.changed_meanwhile"), **again)
        shown = period if _list_of(p, period) else ""
        return go(programme_path(name), period=shown, done="changed", event=event)

    return await run_in_threadpool(work)
