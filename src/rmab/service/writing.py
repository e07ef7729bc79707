"""Routes that write: each is one event of the journal, with the caller as its actor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rmab.errors import ModelError
from rmab.estimation.statistics import Statistics
from rmab.live.programme import Programme
from rmab.live.rows import as_columns
from rmab.live.spreadsheets import Sheet, find_uncounted, join_sheet, parse_sheet, tell_sheet
from rmab.live.wire import decision_to_json
from rmab.service import schemas
from rmab.service.access import Access, Administering, Answers, Key, Operating, check_rows
from rmab.service.accounts import Account
from rmab.service.auth import find_caller
from rmab.service.problems import Problem
from rmab.service.reading import CSV, FILES, XLSX, Format, decision_answer, groups_of, json_answer
from rmab.service.shared import Shared, acting, checked_key, decision_tag, programme_tag

router = APIRouter(tags=["write"])
SUFFIX = {CSV: ".csv", XLSX: ".xlsx"}
PeriodOfFile = Annotated[str | None, Query(max_length=60, description="The period of a csv or xlsx body.")]


def _document_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the entry of a body that is JSON, csv or xlsx."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}, **FILES}}}


async def _content(request: Request, model: type[BaseModel]) -> BaseModel | Sheet:
    """Return the body: JSON that fits a model, or the rows of a file."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content = await request.body()
    if kind in SUFFIX:
        sheet = await run_in_threadpool(parse_sheet, f"body{SUFFIX[kind]}", content)
        check_rows(max((len(one) for one in sheet.columns.values()), default=0), request)
        return sheet
    if kind != "application/json":
        raise Problem(415, "media-type", f"send application/json, {CSV} or {XLSX}, not {kind!r:.60}")
    try:
        return await run_in_threadpool(model.model_validate_json, content)
    except ValidationError as error:
        wrong = [(".".join(str(k) for k in one["loc"]), one["msg"]) for one in error.errors()[:20]]
        raise ModelError(
            "; ".join(f"{field}: {what}" if field else what for field, what in wrong), field=wrong[0][0]
        ) from None


@router.post("/programmes", status_code=201, response_model=schemas.ProgrammeOut)
def create_programme(
    request: Request, body: schemas.NewProgramme, account: Annotated[Account, Depends(find_caller)]
) -> Response:
    """Create a programme. The same request again is harmless; another one of the same name is rejected."""
    if not account.may("admin", body.name):
        raise Problem(403, "role", f"this needs the role 'admin', for all programmes or for {body.name!r:.60}")
    shared: Shared = request.app.state.shared
    with acting(account.owner):
        shared.store.create(**body.model_dump())
    p = shared.get(body.name)
    content = {"name": p.name, "role": account.role(p.name), "head": p.head, "config": p.config.model_dump(mode="json")}
    return json_answer(content, programme_tag(p), 201, Location=str(request.url_for("show_programme", name=p.name)))


@router.put(
    "/programmes/{name}/decisions/{period}",
    response_model=schemas.DecisionOut,
    responses={200: {"content": FILES}, 201: {"model": schemas.DecisionOut, "description": "The list was made now."}},
)
def ask(
    access: Operating,
    period: str,
    issued: Annotated[int | None, Query(ge=1, le=2**53, description="Event of a list issued ahead that was used.")] = None,
    skip: Annotated[bool, Query(description=schemas.FAR)] = False,
    format: Format = "json",
    everybody: Annotated[bool, Query(description="Rows of all arms, not only of those on the list.")] = False,
) -> Response:
    """Decide a period, or show the decision: every caller gets the same list."""
    p = access.p
    with p.ledger() as ledger:
        was_there = ledger.declared.rhythm.number(period) in ledger.decisions
    access.write(lambda p: p.ask(period, skip=skip, issued=issued), lambda: _tag(p, period))
    return decision_answer(p, period, None, format, everybody=everybody, status=200 if was_there else 201)


@router.post("/programmes/{name}/lists-ahead")
def ask_ahead(access: Operating, body: schemas.Ahead) -> Response:
    """Issue the lists of the next periods ahead, for people who may be offline; they decide nothing yet."""
    found = access.write(lambda p: p.ask_ahead(body.periods))
    groups = groups_of(access.p)
    lists = [{"event": one.event, **decision_to_json(one.decision, groups, everybody=True)} for one in found]
    return json_answer({"lists": lists})


def _tag(p: Programme, period: str) -> str:
    with p.ledger() as ledger:
        is_decided = ledger.declared.rhythm.number(period) in ledger.decisions
    return decision_tag(p.decision(period) if is_decided else None)


@router.post(
    "/programmes/{name}/observations", response_model=schemas.Reported, openapi_extra=_document_body(schemas.Report)
)
async def report(
    request: Request,
    access: Operating,
    period: PeriodOfFile = None,
    reason: Annotated[str | None, Query(max_length=2000, description="For a file: why a correction is needed.")] = None,
    dry_run: Annotated[bool, Query(description="For a file: only check, without writing.")] = False,
    skip: Annotated[bool, Query(description=f"For a file: {schemas.FAR}")] = False,
) -> dict[str, Any]:
    """Report what happened in a period; a body is accepted as a whole, or rejected with all wrong rows or lines."""
    body = await _content(request, schemas.Report)
    options = {"reason": reason, "dry_run": dry_run, "skip": skip}
    return await run_in_threadpool(_report, request, access, body, period, options)


def _report(
    request: Request, access: Access, body: BaseModel | Sheet, period: str | None, options: dict[str, Any]
) -> dict[str, Any]:
    if isinstance(body, Sheet):
        if period is None:
            raise ModelError("period is missing; give the period of the file, for example ?period=2026-W47", field="period")
        check_reason(options["reason"])
        count, event = access.write(lambda p: tell_sheet(p, period, body, **options, key=access.key))
        return _answer_report(access.p, event, count, period, body.columns["arm"])
    assert isinstance(body, schemas.Report)
    check_reason(body.reason)
    rows = body.rows
    count = max((len(one) for one in rows.values()), default=0) if isinstance(rows, Mapping) else len(rows)
    check_rows(count, request)
    options = body.model_dump(include={"reason", "client_at", "dry_run", "skip"})
    event = access.write(lambda p: p.record(body.period, rows, key=access.key, **options))
    return _answer_report(access.p, event, count, body.period, as_columns(rows)["arm"])


def _answer_report(p: Programme, event: int, rows: int, period: str, ids: Iterable[Any]) -> dict[str, Any]:
    """Return the answer to reports; event 0 is a dry run."""
    lacking = find_uncounted(p, period, ids) if event else {}
    return {"event": event, "rows": rows, "not_counted": sum(lacking.values()) if event else None, "lacking": lacking}


def check_reason(reason: str | None) -> None:
    """Reject an empty reason."""
    if reason is not None and not reason.strip():
        raise ModelError("reason is missing; say why the reports are replaced", field="reason")


@router.post("/programmes/{name}/arms", response_model=schemas.Written, openapi_extra=_document_body(schemas.Arms))
async def join(request: Request, access: Operating, period: PeriodOfFile = None) -> dict[str, Any]:
    """Add arms; a file has the columns arm and, if known, group and state."""
    body = await _content(request, schemas.Arms)
    return await run_in_threadpool(_join, request, access, body, period)


def _join(request: Request, access: Access, body: BaseModel | Sheet, period: str | None) -> dict[str, Any]:
    if isinstance(body, Sheet):
        count, event = access.write(lambda p: join_sheet(p, body, period, key=access.key))
        return {"event": event, "rows": count}
    assert isinstance(body, schemas.Arms)
    check_rows(len(body.arms), request)
    fields = body.model_dump(exclude={"arms"})
    event = access.write(lambda p: p.join(body.arms, **fields, key=access.key))
    return {"event": event, "rows": len(body.arms)}


@router.post("/programmes/{name}/departures", response_model=schemas.Written)
def leave(request: Request, access: Operating, body: schemas.Departure) -> dict[str, Any]:
    """Remove arms: the period is the first without them."""
    check_rows(len(body.arms), request)
    event = access.write(lambda p: p.leave(body.arms, period=body.period, reason=body.reason, key=access.key))
    return {"event": event, "rows": len(body.arms)}


CHANGED: Answers = {412: {"model": schemas.ProblemOut, "description": "The list has changed since the ETag of If-Match."}}


@router.post("/programmes/{name}/overrides", response_model=schemas.Written, responses=CHANGED)
def override(request: Request, access: Operating, body: schemas.Override) -> dict[str, Any]:
    """Add arms to the list of a period, or remove them. If-Match is the ETag of the list."""
    check_rows(len(body.add) + len(body.remove), request)
    event = access.write(
        lambda p: p.override(body.period, add=body.add, remove=body.remove, reason=body.reason, key=access.key),
        lambda: _tag(access.p, body.period),
    )
    return {"event": event, "rows": len(body.add) + len(body.remove)}


@router.post("/programmes/{name}/missing", response_model=schemas.Written)
def missing(request: Request, access: Operating, body: schemas.Missing) -> dict[str, Any]:
    """Declare that reports of a period will never arrive; late ones still count."""
    check_rows(len(body.arms or ()), request)
    event = access.write(lambda p: p.missing(body.period, body.arms, key=access.key, skip=body.skip))
    return {"event": event, "rows": len(body.arms or ())}


@router.post("/programmes/{name}/undo", response_model=schemas.Written)
def undo(access: Operating, body: schemas.UndoEvent) -> dict[str, Any]:
    """Undo an event."""
    return {"event": access.write(lambda p: p.undo(body.event, reason=body.reason, key=access.key))}


@router.post("/programmes/{name}/budgets", response_model=schemas.Written)
def set_budget(access: Administering, body: schemas.NewBudget) -> dict[str, Any]:
    """Change the budget: from now on, or in single periods."""
    return {"event": access.write(lambda p: p.set_budget(body.budget, key=access.key))}


@router.post("/programmes/{name}/warm-starts", response_model=schemas.Written)
def warm_start(access: Administering, body: schemas.WarmStart) -> dict[str, Any]:
    """Start from transitions of another source."""
    source = Statistics.from_counts(body.counts)
    if body.groups and len(body.groups) != len(source.counts):
        raise ModelError(f"groups must have {len(source.counts)} names, one for each table of counts", field="groups")
    event = access.write(lambda p: p.warm_start(source, trust=body.trust, groups=body.groups, key=access.key))
    return {"event": event}


@router.post("/programmes/{name}/snapshots", status_code=204, response_class=Response)
def snapshot(access: Operating, key: Key = None) -> None:
    """Store the reports in one piece, so that the next start is fast."""
    checked_key(key)
    access.p.snapshot()
