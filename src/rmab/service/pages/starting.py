"""New programmes: empty, or from a log, whose fit and checks are shown first."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from rmab.errors import ModelError, RmabError
from rmab.estimation.checks import run_checks
from rmab.estimation.fitting import fit
from rmab.live.importing import create_from_log
from rmab.live.spreadsheets import parse_sheet
from rmab.logs.log import Log
from rmab.logs.reading import read_log
from rmab.service.pages.frame import Form, Looking, Sent, Visitor, go, programme_path, render, say
from rmab.service.problems import Problem
from rmab.service.shared import Shared, acting

router = APIRouter(include_in_schema=False)
MOST, SECONDS = 20, 3600.0  # most drafts in memory, and their lifetime
COLUMNS = ("arm", "period", "state", "action", "group")
GUESSES = {
    "arm": ("id", "arm", "person", "mother", "patient"),
    "period": ("week", "period", "date", "month"),
    "state": ("state", "status"),
    "action": ("called", "action", "call", "visited", "treated"),
    "group": ("group", "age", "district", "region", "clinic"),
}


@dataclass(frozen=True)
class Draft:
    """A log that somebody uploaded for a new programme."""

    account: str
    name: str
    content: bytes
    header: tuple[str, ...]
    at: float


class Drafts:
    """Logs of programmes that are being created; the oldest are dropped first."""

    def __init__(self) -> None:
        self._by_number: OrderedDict[str, Draft] = OrderedDict()

    def add(self, draft: Draft) -> str:
        """Store a draft, and return its number."""
        number = secrets.token_urlsafe(12)
        self._by_number[number] = draft
        while len(self._by_number) > MOST:
            self._by_number.popitem(last=False)
        return number

    def get(self, number: str, account: str) -> Draft:
        """Return a draft of an account; ModelError if it was dropped."""
        found = self._by_number.get(number)
        if found is None or found.account != account or time.monotonic() - found.at > SECONDS:
            raise ModelError(say("new.gone"))
        return found


def _page(request: Request, visitor: Visitor, status: int = 200, **given: Any) -> Response:
    if "admin" not in visitor.account.grants.values():
        raise Problem(403, "role", say("new.role"))
    values: dict[str, Any] = {"step": "begin", "error": "", "form": {}, "draft": "", "header": (), "checks": [], "log": None}
    return render(request, "new.html", visitor, status, **{**values, **given})


@router.get("/new")
def begin(request: Request, visitor: Looking) -> Response:
    """Show the form of a new programme."""
    return _page(request, visitor)


@router.post("/new")
async def create(request: Request, sent: Sent) -> Response:
    """Go one step further: read a log, check it, or create the programme."""
    upload = sent.fields.get("file")
    content = await upload.read() if isinstance(upload, UploadFile) else b""
    filename = (upload.filename or "") if isinstance(upload, UploadFile) else ""
    return await run_in_threadpool(_step, request, sent, filename, content)


def _step(request: Request, sent: Form, filename: str, content: bytes) -> Response:
    step = sent.text("step")
    form = {name: value for name, value in sent.fields.items() if isinstance(value, str)}
    if "admin" not in sent.visitor.account.grants.values():
        raise Problem(403, "role", say("new.role"))
    try:
        if step == "log":
            return _columns(request, sent, filename, content)
        if step == "check":
            return _check(request, sent, form)
        return _create(request, sent)
    except RmabError as error:
        draft = sent.text("draft")
        back = {"log": "begin", "check": "columns", "create": "check" if draft else "begin"}.get(step, "begin")
        more: dict[str, Any] = {}
        if draft:
            try:
                more = {"header": _drafts(request).get(draft, sent.visitor.account.id).header}
            except ModelError:
                back, draft = "begin", ""
        return _page(request, sent.visitor, 422, error=str(error), step=back, form=form, draft=draft, **more)


def _drafts(request: Request) -> Drafts:
    found: Drafts = request.app.state.drafts
    return found


def _columns(request: Request, sent: Form, filename: str, content: bytes) -> Response:
    sheet = parse_sheet(filename, content)
    header = tuple(sheet.columns)
    draft = Draft(sent.visitor.account.id, filename, content, header, time.monotonic())
    guessed = {
        column: next((one for guess in guesses for one in header if guess in one.casefold()), "")
        for column, guesses in GUESSES.items()
    }
    return _page(request, sent.visitor, step="columns", draft=_drafts(request).add(draft), header=header, form=guessed)


@contextmanager
def _log(request: Request, sent: Form) -> Iterator[Log]:
    """Yield the log of a draft, read by the columns that the form names."""
    draft = _drafts(request).get(sent.text("draft"), sent.visitor.account.id)
    names = {one: sent.text(one) for one in COLUMNS}
    groups = [names.pop("group")] if names["group"] else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{Path(draft.name).suffix.lower()}"
        path.write_bytes(draft.content)
        yield read_log(path, **names, groups=groups)


def _check(request: Request, sent: Form, form: dict[str, str]) -> Response:
    with _log(request, sent) as log:
        checks = run_checks(fit(log), replicates=50)
    shown = [{"verdict": one.verdict, "name": one.name, "words": one.words, "advice": one.advice} for one in checks]
    facts = {
        "arms": len(log.arms),
        "periods": log.periods.count,
        "states": list(log.state_names),
        "next": log.periods.label(log.periods.count),
    }
    form = {**form, "budget": form.get("budget") or str(_usual(log))}
    return _page(request, sent.visitor, step="check", draft=sent.text("draft"), form=form, checks=shown, log=facts)


def _usual(log: Log) -> int:
    """Return the mean number of actions per period."""
    return max(round(float((log.action == 1).sum()) / max(log.periods.count, 1)), 1)


def _create(request: Request, sent: Form) -> Response:
    name, account = sent.text("name"), sent.visitor.account
    if not account.may("admin", name):
        raise ModelError(say("new.role"))
    if not name or "/" in name:
        raise ModelError(say("new.name_missing"))
    options: dict[str, Any] = {
        "budget": _whole(sent, "budget"),
        "floor": _whole(sent, "floor") if sent.text("floor") else None,
        "control": _share(sent, "control"),
        "random_share": _share(sent, "random_share"),
        "action": sent.text("action_word") or "call",
    }
    good = sent.text("good")
    if good:
        options["reward"] = {good: 1.0}
    shared: Shared = request.app.state.shared
    if name in shared.store.programmes:
        raise ModelError(say("new.exists", name=name))
    with acting(account.owner):
        if sent.text("draft"):
            with _log(request, sent) as log:
                create_from_log(shared.store, name, log, **options)
        else:
            states = [one.strip() for one in sent.text("states").split(",") if one.strip()]
            shared.store.create(name, states=states, every=sent.text("every") or "week", **options)
    return go(programme_path(name))


def _whole(sent: Form, field: str) -> int:
    text = sent.text(field)
    if not text.isdigit() or len(text) > 9:
        raise ModelError(say("new.number", field=say(f"new.{field}")))
    return int(text)


def _share(sent: Form, field: str) -> float:
    try:
        return float(sent.text(field) or 0) / 100
    except ValueError:
        raise ModelError(say("new.number", field=say(f"new.{field}"))) from None
