"""Shared by all pages: templates, texts, files, who is signed in, and forms that no other site can send."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import jinja2
from fastapi import Depends, Request
from starlette.datastructures import FormData, Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from rmab.live.programme import Programme
from rmab.service.accounts import LOCAL, Account
from rmab.service.auth import Authenticator, check_host
from rmab.service.problems import Problem
from rmab.service.sessions import COOKIE, Session

ASSETS = Path(__file__).parents[1] / "assets"
CHARTS = Path(__file__).parents[2] / "report" / "assets"  # uPlot, which reports use too
ENGLISH, MOST_LANGUAGES = "en", 20
LANGUAGE: ContextVar[str] = ContextVar("rmab_language", default=ENGLISH)
STATIC = {
    "app.css": (ASSETS / "static", "text/css"),
    "app.js": (ASSETS / "static", "text/javascript"),
    "theme.js": (ASSETS / "static", "text/javascript"),
    "htmx.min.js": (ASSETS / "static", "text/javascript"),
    "icon.svg": (ASSETS / "static", "image/svg+xml"),
    "uPlot.iife.min.js": (CHARTS, "text/javascript"),
    "uPlot.min.css": (CHARTS, "text/css"),
}


class SignInError(Exception):
    """Nobody is signed in, or the session has ended."""


@dataclass(frozen=True)
class Visitor:
    """The visitor of a page: the account, the session, and the value that forms send back."""

    account: Account
    session: Session
    csrf: str
    cookie: str = ""  # of a session that begins with this answer


@cache
def catalogues() -> Mapping[str, Mapping[str, str]]:
    """Return the texts of the pages by language and key ('list.title'); missing texts are in English."""
    found: dict[str, Mapping[str, str]] = {}
    for path in sorted(ASSETS.glob("texts.*.toml"), key=lambda one: one.name != f"texts.{ENGLISH}.toml"):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        own = {f"{section}.{name}": text for section, entries in content.items() for name, text in entries.items()}
        found[path.name.split(".")[1]] = {**found.get(ENGLISH, {}), **own}
    return found


def choose_language(header: str) -> str:
    """Return the language that an Accept-Language header prefers among the available ones; English by default."""
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(header.split(",")[:MOST_LANGUAGES]):
        name, _, weight = part.partition(";q=")
        if re.fullmatch(r"[01]?(\.\d{1,3})?", weight.strip()):
            wanted.append((-float(weight or 1), place, name.strip().lower()))
    for score, _, name in sorted(wanted):
        for one in (name, name.partition("-")[0]):
            if score < 0 and one in catalogues():
                return one
    return ENGLISH


def say(key: str, **values: object) -> str:
    """Return a text with its values, in the language of the request."""
    return catalogues()[LANGUAGE.get()][key].format_map(values)


class Languages:
    """Sets the language of every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; it runs in its own context."""
        if scope["type"] == "http":
            LANGUAGE.set(choose_language(Headers(scope=scope).get("accept-language", "")))
        await self.app(scope, receive, send)


@cache
def static_file(name: str) -> tuple[bytes, str, str]:
    """Return content, type and hash of a file of the pages."""
    folder, kind = STATIC[name]
    content = (folder / name).read_bytes()
    return content, kind, hashlib.sha256(content).hexdigest()[:16]


def link(path: str, /, **query: object) -> str:
    """Return the address of a page: parts of the path are quoted by the caller, empty values are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return path + (f"?{urlencode(given)}" if given else "")


def programme_path(name: str, page: str = "") -> str:
    """Return the path of a page of a programme."""
    return f"/p/{quote(name, safe='')}" + (f"/{page}" if page else "")


@cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        t=say,
        language=LANGUAGE.get,
        link=link,
        path=programme_path,
        static=lambda name: f"/static/{name}?v={static_file(name)[2]}",
    )
    found.filters["number"] = lambda value: f"{value:,}"
    found.filters["sentence"] = lambda value: f"{str(value)[:1].upper()}{str(value)[1:]}."
    found.filters["json"] = lambda value: json.dumps(value, allow_nan=False)
    return found


def programme_values(p: Programme, visitor: Visitor, page: str) -> dict[str, Any]:
    """Return the values that every page of a programme shows."""
    account = visitor.account
    return {
        "programme": p.name,
        "page": page,
        "config": p.config,
        "role": account.role(p.name),
        "may_write": account.may("operator", p.name),
        "may_manage": account.may("admin", p.name),
        "error": "",
    }


def render(request: Request, template: str, visitor: Visitor | None, code: int = 200, **values: Any) -> Response:
    """Return a page; with the cookie of a new session."""
    shared = {
        "visitor": visitor,
        "csrf": visitor.csrf if visitor else "",
        "key": secrets.token_urlsafe(12),
        "demo": hasattr(request.app.state, "demo"),
        "programme": None,
        "page": "",
        "done": None,
    }
    form = defaultdict(str, values.get("form") or {})  # a field that was not sent is empty
    text = _templates().get_template(template).render({**shared, **values, "form": form})
    answer = HTMLResponse(text, code)
    if visitor is not None and visitor.cookie:
        set_session(request, answer, visitor.cookie)
    return answer


def set_session(request: Request, answer: Response, cookie: str) -> None:
    """Set the cookie of a session."""
    hours = request.app.state.settings.session_hours
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, cookie, max_age=int(3600 * hours), httponly=True, samesite="lax", secure=secure)


def go(path: str, /, **query: object) -> RedirectResponse:
    """Return the answer to a successful form: the next page."""
    return RedirectResponse(link(path, **query), 303)


async def find_visitor(request: Request) -> Visitor:
    """Return the visitor of a page; SignInError if nobody is signed in."""
    auth: Authenticator = request.app.state.auth
    session = auth.session(request)
    account = await auth.by_session(session) if session else None
    cookie = ""
    if session is None or account is None:
        if not await auth.is_open():
            raise SignInError
        cookie = auth.sessions.begin(LOCAL.id)
        session, account = auth.sessions.read(cookie), LOCAL
        assert session is not None
    if account is LOCAL:
        check_host(request)
    request.state.account = account
    return Visitor(account, session, auth.sessions.csrf(session), cookie)


Looking = Annotated[Visitor, Depends(find_visitor)]


@dataclass(frozen=True)
class Form:
    """A submitted form: its sender and its content."""

    visitor: Visitor
    fields: FormData

    def text(self, name: str) -> str:
        """Return a field as text, empty if it is missing."""
        value = self.fields.get(name)
        return value.strip() if isinstance(value, str) else ""

    @property
    def key(self) -> str:
        """The idempotency key of the form: sent twice, it is done once."""
        return f"page {self.text('key')[:60]}"


async def read_form(request: Request, visitor: Looking) -> AsyncIterator[Form]:
    """Yield the form of a request; a Problem if it does not come from a page of this session."""
    fields = await request.form(max_files=1, max_fields=20_000, max_part_size=request.app.state.settings.max_bytes)
    auth: Authenticator = request.app.state.auth
    given = fields.get("csrf")
    try:
        if visitor.cookie or not isinstance(given, str) or not auth.sessions.is_csrf(visitor.session, given):
            raise Problem(403, "bad-form", say("error.form"))
        yield Form(visitor, fields)
    finally:
        await fields.close()


Sent = Annotated[Form, Depends(read_form)]
