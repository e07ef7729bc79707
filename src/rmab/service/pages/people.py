"""Who takes part: the longest waiting first, one person over time, joining and leaving."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from rmab.errors import RmabError
from rmab.live.spreadsheets import join_sheet, parse_sheet
from rmab.service.access import check_rows, find_programme
from rmab.service.pages.frame import Looking, Sent, Visitor, go, programme_path, programme_values, render, say
from rmab.service.pages.views import override_events, people, person
from rmab.service.problems import Problem
from rmab.service.shared import acting

router = APIRouter(include_in_schema=False)
PART = 50  # lines on one page
Text = Annotated[str, Query(max_length=200)]
Part = Annotated[int, Query(ge=1, le=10**9)]
Number = Annotated[int, Query(ge=0, le=2**53)]


def _people(request: Request, visitor: Visitor, name: str, code: int = 200, **given: Any) -> Response:
    p = find_programme(request, visitor.account, name, "viewer")
    with p.ledger() as ledger:
        everybody, groups = people(ledger), sorted(set(ledger.groups))
    search, group, part = given.pop("search", ""), given.pop("group", ""), given.pop("part", 1)
    wanted = search.casefold()
    rows = [one for one in everybody if (not group or one["group"] == group) and wanted in one["arm"].casefold()]
    values: dict[str, Any] = {
        "rows": rows[(part - 1) * PART : part * PART],
        "total": len(everybody),
        "matches": len(rows),
        "part": part,
        "parts": -(-len(rows) // PART),
        "groups": groups,
        "search": search,
        "group": group,
        "due": p.status().due,
    }
    return render(request, "people.html", visitor, code, **{**programme_values(p, visitor, "people"), **values, **given})


@router.get("/p/{name}/people")
def show_people(
    request: Request,
    visitor: Looking,
    name: str,
    search: Text = "",
    group: Text = "",
    part: Part = 1,
    done: Text = "",
    event: Number = 0,
) -> Response:
    """Show who takes part, the longest waiting first."""
    message = say(f"done.{done}") if done in ("joined", "left") else None
    return _people(request, visitor, name, search=search, group=group, part=part, done=message, done_event=event)


@router.post("/p/{name}/people")
async def join(request: Request, sent: Sent, name: str) -> Response:
    """Add the people of a file."""
    upload = sent.fields.get("file")
    content = await upload.read() if isinstance(upload, UploadFile) else b""
    filename = (upload.filename or "") if isinstance(upload, UploadFile) else ""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        try:
            sheet = parse_sheet(filename, content)
            check_rows(max((len(one) for one in sheet.columns.values()), default=0), request)
            with acting(sent.visitor.account.owner):
                _, event = join_sheet(p, sheet, sent.text("period") or None)
        except RmabError as error:
            return _people(request, sent.visitor, name, 422, error=str(error))
        return go(programme_path(name, "people"), done="joined", event=event)

    return await run_in_threadpool(work)


def _person(request: Request, visitor: Visitor, name: str, arm: str, code: int = 200, error: str = "") -> Response:
    p = find_programme(request, visitor.account, name, "viewer")
    with p.ledger() as ledger:
        found = person(ledger, arm)
        takes_part = any(one["arm"] == arm for one in people(ledger))
    if found is None:
        raise Problem(404, "unknown-arm", say("person.unknown", arm=arm))
    by_hand = [one for one in override_events(p) if arm in (*one["add"], *one["remove"])]
    values = {"person": found, "by_hand": by_hand, "takes_part": takes_part, "due": p.status().due, "error": error}
    return render(request, "person.html", visitor, code, **{**programme_values(p, visitor, "people"), **values})


@router.get("/p/{name}/person")
def show_person(request: Request, visitor: Looking, name: str, arm: Text) -> Response:
    """Show the states, actions and reasons of one arm over time."""
    return _person(request, visitor, name, arm)


@router.post("/p/{name}/leave")
async def leave(request: Request, sent: Sent, name: str) -> Response:
    """Remove one person from the programme."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        arm = sent.text("arm")
        try:
            with acting(sent.visitor.account.owner):
                event = p.leave([arm], period=sent.text("period"), reason=sent.text("reason"), key=sent.key)
        except RmabError as error:
            return _person(request, sent.visitor, name, arm, 422, str(error))
        return go(programme_path(name, "people"), done="left", event=event)

    return await run_in_threadpool(work)
