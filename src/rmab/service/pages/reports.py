"""The page of reports: what was reported, and a file to upload: every bad line is shown and can be fixed."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from rmab.errors import LogError, RmabError
from rmab.live.rows import COLUMNS
from rmab.live.spreadsheets import Sheet, parse_sheet, tell_sheet
from rmab.logs.findings import Note
from rmab.service.access import check_rows, find_programme
from rmab.service.pages.frame import Form, Looking, Sent, Visitor, go, programme_path, render, say
from rmab.service.pages.views import came_back
from rmab.service.shared import acting

router = APIRouter(include_in_schema=False)
FIELDS = ("arm", "executed", "state", "reward")
MOST = 500  # lines that can be fixed on the page


def _page(request: Request, visitor: Visitor, name: str, status: int = 200, **given: Any) -> Response:
    p = find_programme(request, visitor.account, name, "viewer")
    with p.ledger() as ledger:
        back = came_back(ledger)
        periods = [ledger.label(one) for one in sorted(ledger.decisions, reverse=True)]
    values: dict[str, Any] = {
        "programme": p.name,
        "page": "reports",
        "config": p.config,
        "may_write": visitor.account.may("operator", p.name),
        "role": visitor.account.role(p.name),
        "back": back,
        "periods": periods,
        "period": periods[0] if periods else "",
        "error": "",
        "problems": [],
        "fixes": [],
        "columns": [],
        "rest": "",
        "checked": 0,
        "reason": "",
        "filename": "",
    }
    return render(request, "reports.html", visitor, status, **{**values, **given})


@router.get("/p/{name}/reports")
def show_reports(
    request: Request,
    visitor: Looking,
    name: str,
    period: Annotated[str, Query(max_length=60)] = "",
    done: Annotated[str, Query(max_length=20)] = "",
    event: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """Show the reports of recent lists, and a form for a file."""
    message = say(f"done.{done}", event=event) if done in ("told", "missing", "undone") else None
    more: dict[str, Any] = {"period": period} if period else {}
    return _page(request, visitor, name, done=message, done_event=event, **more)


@router.post("/p/{name}/reports")
async def send_reports(request: Request, sent: Sent, name: str) -> Response:
    """Check a file, or send it: as a whole, or not at all."""
    upload = sent.fields.get("file")
    content = await upload.read() if isinstance(upload, UploadFile) else b""
    filename = (upload.filename or "") if isinstance(upload, UploadFile) else sent.text("filename")
    return await run_in_threadpool(_send, request, sent, name, filename, content)


def _send(request: Request, sent: Form, name: str, filename: str, content: bytes) -> Response:
    p = find_programme(request, sent.visitor.account, name, "operator")
    period, reason = sent.text("period"), sent.text("reason")
    again: dict[str, Any] = {"period": period, "reason": reason, "filename": filename}
    try:
        sheet = parse_sheet(filename, content) if content else _merge_fixes(sent)
    except RmabError as error:
        return _page(request, sent.visitor, name, 422, error=str(error), **again)
    check_rows(max((len(one) for one in sheet.columns.values()), default=0), request)
    dry_run = sent.text("do") == "check"
    try:
        with acting(sent.visitor.account.owner):
            count, event = tell_sheet(p, period, sheet, reason=reason or None, dry_run=dry_run)
    except LogError as error:
        return _page(request, sent.visitor, name, 422, **again, **_repair(sheet, error))
    except RmabError as error:
        return _page(request, sent.visitor, name, 422, error=str(error), **again)
    if dry_run:
        return _page(request, sent.visitor, name, **again, checked=count, **_hidden_fields(sheet))
    return go(programme_path(name, "reports"), period=period, done="told", event=event)


@router.post("/p/{name}/missing")
async def declare_missing(request: Request, sent: Sent, name: str) -> Response:
    """Declare that the outstanding reports of a period will never arrive."""

    def work() -> Response:
        p = find_programme(request, sent.visitor.account, name, "operator")
        try:
            with acting(sent.visitor.account.owner):
                event = p.missing(sent.text("period"), key=sent.key)
        except RmabError as error:
            return _page(request, sent.visitor, name, 422, error=str(error))
        return go(programme_path(name, "reports"), done="missing", event=event)

    return await run_in_threadpool(work)


def _columns(sheet: Sheet) -> list[str]:
    return [one for one in FIELDS if one in sheet.columns]


def _write_csv(columns: list[str], rows: list[list[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if one is None else one for one in row] for row in rows])
    return stream.getvalue()


def _hidden_fields(sheet: Sheet, without: frozenset[int] = frozenset()) -> dict[str, Any]:
    """Return the correct lines of a file, for a hidden field of the page."""
    columns = _columns(sheet)
    count = len(sheet.columns.get("arm", []))
    rows = [[sheet.columns[one][k] for one in columns] for k in range(count) if k not in without]
    return {"columns": columns, "rest": _write_csv(columns, rows)}


def _repair(sheet: Sheet, error: LogError) -> dict[str, Any]:
    """Return the errors, and the lines that can be fixed on the page."""
    notes = [one for one in error.problems if isinstance(one, Note)]
    count = len(sheet.columns.get("arm", []))
    lines = [int(sheet.line_of(_array([k]))[0]) for k in range(count)]
    wrong = {line: one.what for one in notes for line in one.at}
    places = [k for k, line in enumerate(lines) if line in wrong][:MOST]
    columns = _columns(sheet)
    fixes = [
        {"line": lines[k], "what": wrong[lines[k]], "cells": [sheet.columns[one][k] or "" for one in columns]}
        for k in places
    ]
    problems = [{"what": one.what, "lines": list(one.at[:20]), "more": max(len(one.at) - 20, 0)} for one in notes]
    problems += [{"what": str(one), "lines": [], "more": 0} for one in error.problems if not isinstance(one, Note)]
    return {"problems": problems, "fixes": fixes, **_hidden_fields(sheet, frozenset(places))}


def _merge_fixes(sent: Form) -> Sheet:
    """Return the file of correct and fixed lines."""
    columns = [one for one in sent.text("columns").split(",") if one in COLUMNS]
    cells = [[str(value).strip() for value in sent.fields.getlist(f"fix-{one}")] for one in columns]
    fixed = _write_csv(columns, [list(row) for row in zip(*cells, strict=True)]).partition("\n")[2]
    rest = str(sent.fields.get("rest") or "").replace("\r\n", "\n")
    return parse_sheet(say("reports.repaired"), (rest + fixed).encode())


def _array(places: list[int]) -> Any:
    import numpy as np  # noqa: PLC0415  (lines are looked up by arrays)

    return np.array(places, dtype=np.int64)
