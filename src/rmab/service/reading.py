"""Routes that read: programmes, status, lists, benefit, arms, the journal, exports."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import HTMLResponse, Response

from rmab.common.tables import table_bytes
from rmab.live.choosing import waiting_times
from rmab.live.journal import reading
from rmab.live.programme import Programme
from rmab.live.tables import list_table
from rmab.live.wire import benefit_to_json, decision_to_json, shadow_to_json, statistics_to_json, status_to_json
from rmab.service import schemas
from rmab.service.access import Access, Answers, NoneMatch, Reading, is_unchanged
from rmab.service.accounts import Account
from rmab.service.auth import find_caller
from rmab.service.shared import Shared, decision_tag, programme_tag

router = APIRouter(tags=["read"])
Format = Annotated[Literal["json", "csv", "xlsx"], Query(description="Format of the answer.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Most entries of the answer.")]
CSV, XLSX = "text/csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FILES: dict[str, Any] = {CSV: {"schema": {"type": "string"}}, XLSX: {"schema": {"type": "string", "format": "binary"}}}
UNCHANGED: Answers = {304: {"description": "Unchanged, by the ETag."}}


def json_answer(content: Any, tag: str = "", status: int = 200, **headers: str) -> Response:
    """Return content as JSON, with its tag; names and reasons are not escaped."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    found = {**headers, **({"ETag": tag} if tag else {})}
    return Response(text, status, found, "application/json")


def one_at_a_time(request: Request) -> AbstractContextManager[None]:
    """Process one expensive request at a time."""
    shared: Shared = request.app.state.shared
    return shared.one_at_a_time()


def answer_with_tag(access: Access, seen: str | None, content: Callable[[Programme], Any]) -> Response:
    """Return content of a programme with its tag, or 304 if the caller has it."""
    tag = programme_tag(access.p)
    return Response(None, 304, {"ETag": tag}) if is_unchanged(seen, tag) else json_answer(content(access.p), tag)


def file_answer(table: pa.Table, name: str, suffix: str) -> Response:
    """Return a table as a file for people: spreadsheets do not interpret cells as formulas."""
    kind = CSV if suffix == "csv" else XLSX
    plain = "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else "_" for one in name)
    headers = {"Content-Disposition": f'attachment; filename="{plain}.{suffix}"'}
    return Response(table_bytes(table, f".{suffix}", raw=False), 200, headers, kind)


@router.get("/programmes", response_model=schemas.ProgrammesOut)
def list_programmes(
    request: Request,
    account: Annotated[Account, Depends(find_caller)],
    after: Annotated[str, Query(max_length=200, description="The last name of the previous part.")] = "",
    limit: Limit = 100,
) -> dict[str, Any]:
    """List the programmes that the caller may see."""
    names = [one for one in request.app.state.shared.store.programmes if account.may("viewer", one) and one > after]
    return {"programmes": names[:limit], "next": names[limit - 1] if len(names) > limit else None}


@router.get("/programmes/{name}", response_model=schemas.ProgrammeOut, responses=UNCHANGED)
def show_programme(access: Reading, seen: NoneMatch = None) -> Response:
    """Show the settings of a programme, and its last event."""

    def content(p: Programme) -> dict[str, Any]:
        role = access.account.role(p.name) or ""
        return {"name": p.name, "role": role, "head": p.head, "config": p.config.model_dump(mode="json")}

    return answer_with_tag(access, seen, content)


@router.get("/programmes/{name}/status", response_model=schemas.StatusOut, responses=UNCHANGED)
def show_status(access: Reading, seen: NoneMatch = None) -> Response:
    """Show what is due, what is missing, and warnings."""
    return answer_with_tag(access, seen, lambda p: status_to_json(p.status()))


@router.get("/programmes/{name}/benefit", responses=UNCHANGED)
def show_benefit(
    access: Reading,
    seen: NoneMatch = None,
    alpha: Annotated[float, Query(gt=0, lt=1, description="Probability that the interval misses the truth.")] = 0.05,
    fallback: Annotated[bool, Query(description="Measure the lists of the fallback instead of the planned ones.")] = False,
) -> Response:
    """Show the measured benefit of the lists, without a model, beside the model's prediction."""
    return answer_with_tag(access, seen, lambda p: benefit_to_json(p.benefit(alpha=alpha, fallback=fallback)))


@router.get("/programmes/{name}/statistics", responses=UNCHANGED)
def show_statistics(access: Reading, seen: NoneMatch = None) -> Response:
    """Show the counts of transitions by group, state, executed action and next state, with the reach rates."""
    return answer_with_tag(access, seen, lambda p: {**statistics_to_json(p.statistics), "reach": p.reach})


@router.get("/programmes/{name}/decisions", responses=UNCHANGED)
def list_decisions(access: Reading, seen: NoneMatch = None) -> Response:
    """List the periods that are decided, the last one first."""

    def content(p: Programme) -> dict[str, Any]:
        with p.ledger() as ledger:
            return {"periods": [ledger.label(one) for one in sorted(ledger.decisions, reverse=True)]}

    return answer_with_tag(access, seen, content)


@router.get(
    "/programmes/{name}/decisions/{period}",
    response_model=schemas.DecisionOut,
    responses={200: {"content": FILES}, **UNCHANGED},
)
def show_decision(
    access: Reading,
    period: str,
    seen: NoneMatch = None,
    format: Format = "json",
    everybody: Annotated[bool, Query(description="Rows of all arms, not only of those on the list.")] = False,
) -> Response:
    """Show the list of a period that is decided; as csv or xlsx, a form to fill in."""
    return decision_answer(access.p, period, seen, format, everybody=everybody)


def decision_answer(
    p: Programme, period: str, seen: str | None, format: str, *, everybody: bool, status: int = 200
) -> Response:
    """Return the list of a period, in a format, with its tag."""
    decision = p.decision(period)
    tag = decision_tag(decision)
    if is_unchanged(seen, tag):
        return Response(None, 304, {"ETag": tag})
    if format != "json":
        found = file_answer(list_table(decision, everybody=everybody), f"{p.name}-{decision.period}", format)
        found.headers["ETag"] = tag
        return found
    return json_answer(decision_to_json(decision, groups_of(p), everybody=everybody), tag, status)


def groups_of(p: Programme) -> dict[str, str]:
    """Return the group of every arm."""
    with p.ledger() as ledger:
        return {one: ledger.groups[g] for one, g in zip(ledger.ids, ledger.group_of, strict=True)}


@router.get("/programmes/{name}/arms", response_model=schemas.ArmsOut)
def list_arms(access: Reading, after: Annotated[int, Query(ge=0, le=2**53)] = 0, limit: Limit = 100) -> Response:
    """List the arms, in the order in which they joined, with their last known state and how long they have waited."""
    with access.p.ledger() as ledger:
        now = (ledger.last_period + 1) if ledger.last_period is not None else ledger.first_period or 0
        count = len(ledger.ids)
        here, numbers = ledger.is_present(now), np.arange(count)
        waited = waiting_times(ledger, now, numbers) if count else numbers
        state = ledger.cell(now - 1).states(count)
        names = [*ledger.declared.states, None]
        rows = [
            {
                "arm": ledger.ids[n],
                "group": ledger.groups[ledger.group_of[n]],
                "takes_part": bool(here[n]),
                "state": names[int(state[n])],
                "waited": int(waited[n]) if here[n] else None,
            }
            for n in range(min(after, count), min(after + limit, count))
        ]
    return json_answer({"arms": rows, "next": after + limit if after + limit < count else None})


@router.get("/programmes/{name}/events", response_model=schemas.EventsOut)
def list_events(
    access: Reading,
    after: Annotated[int, Query(ge=0, le=2**53, description="Number of the last event of the previous part.")] = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """List the journal, in order."""
    p = access.p
    with p.ledger() as ledger:
        last = ledger.sequence
    with reading(p.store.engine) as connection:
        events = [asdict(one) for one in p.journal.read(connection, after, min(last, after + limit))]
    end = after + len(events)
    return {"events": events, "next": end if end < last and events else None}


@router.get("/programmes/{name}/export", responses={200: {"content": FILES}})
def export(access: Reading, format: Format = "json") -> Response:
    """Return one row per arm and decided period, for analysis in other tools."""
    table = access.p.export()
    if format != "json":
        return file_answer(table, f"{access.p.name}-export", format)
    return json_answer({"rows": table.to_pylist()})


@router.get("/programmes/{name}/export.arrow", include_in_schema=False)
def export_arrow(access: Reading) -> Response:
    """Return the export as an Arrow stream, for the Python client."""
    table, stream = access.p.export(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return Response(stream.getvalue(), media_type="application/vnd.apache.arrow.stream")


@router.get("/programmes/{name}/verify")
def verify(
    request: Request,
    access: Reading,
    head: Annotated[str | None, Query(max_length=100, description="An earlier head that the journal must contain.")] = None,
) -> dict[str, Any]:
    """Recompute the chain of hashes of the journal."""
    with one_at_a_time(request):
        return {"events": access.p.verify(head), "head": access.p.head}


@router.get("/programmes/{name}/replay")
def replay(
    request: Request, access: Reading, decisions: Annotated[bool, Query(description="Recompute every decision.")] = True
) -> dict[str, Any]:
    """Read the whole journal again, recompute every decision, and name those that would now be different."""
    with one_at_a_time(request):
        return asdict(access.p.replay(verify=decisions))


@router.get("/programmes/{name}/shadow")
def show_shadow(request: Request, access: Reading, engine: Annotated[schemas.EngineName, Query()]) -> Response:
    """Show the lists of another engine, period by period, as of the time of every decision."""
    with one_at_a_time(request):
        return json_answer(shadow_to_json(access.p.shadow(engine)))


@router.get("/programmes/{name}/report", responses={200: {"content": {"text/html": {}}}}, response_class=HTMLResponse)
def download_report(request: Request, access: Reading) -> Response:
    """Return a page for the programme's managers, as a file."""
    with one_at_a_time(request), tempfile.TemporaryDirectory() as folder:
        content = access.p.report(f"{folder}/report.html").read_bytes()
    return Response(content, headers={"Content-Disposition": 'attachment; filename="report.html"'}, media_type="text/html")


@router.get("/me")
def show_me(account: Annotated[Account, Depends(find_caller)]) -> dict[str, Any]:
    """Show the owner and roles of the token; the empty name means all programmes."""
    return {"id": account.id, "owner": account.owner, "grants": dict(account.grants), "expires_at": account.expires_at}
