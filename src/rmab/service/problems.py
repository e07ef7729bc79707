"""Errors as problem+json (RFC 9457): message, code and location, as in `rmab.errors`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rmab.errors import FileError, LogError, MissingExtra, RmabError, SolverError, StoreError
from rmab.logs.findings import Note

MEDIA_TYPE = "application/problem+json"
MOST_PLACES = 10_000  # lines or rows of one problem that are listed
STATUS = {  # by code; others by class
    "unknown-programme": 404,
    "not-decided": 404,
    "unknown-event": 404,
    "conflict": 409,
    "key-reused": 409,
    "key-undone": 409,
    "past": 409,
    "far": 409,
    "budget": 409,
    "floor": 409,
    "undo": 409,
    "exists": 409,
    "went-back": 409,
    "database": 503,
    "busy": 503,
    "newer-schema": 503,
    "older-schema": 503,
    "backup": 400,
}


class Problem(HTTPException):
    """An error response: status, code, message, and headers."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code


def status_of(error: RmabError) -> int:
    """Return the HTTP status of an error."""
    codes = [error.code, *(one.code for one in getattr(error, "problems", ()) if isinstance(one, Note))]
    known = [STATUS[one] for one in codes if one in STATUS]
    if known:
        return known[0]
    if isinstance(error, StoreError | SolverError):
        return 500
    if isinstance(error, MissingExtra):
        return 501
    return 422


def describe(error: RmabError) -> dict[str, Any]:
    """Return an error of the library as the members of a problem."""
    status = status_of(error)
    location = {name: value for name, value in error.location.items() if isinstance(value, str | int | float | bool)}
    if isinstance(error, LogError | FileError):
        location.pop("path", None) if "/" in str(location.get("path", "")) else None
    found: dict[str, Any] = {
        "type": f"urn:rmab:problem:{error.code}",
        "title": type(error).__name__,
        "status": status,
        "detail": str(error),
        "code": error.code,
        "location": location,
    }
    if isinstance(error, LogError):
        found["name"] = error.name
        found["problems"] = [_note(one) for one in error.problems]
    return found


def _note(one: Any) -> dict[str, Any]:
    if not isinstance(one, Note):
        return {"what": str(one), "at": [], "unit": "row", "code": ""}
    return {"what": one.what, "at": [int(k) for k in one.at[:MOST_PLACES]], "unit": one.unit, "code": one.code}


def answer(content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    text = json.dumps(content, ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), int(content["status"]), dict(headers or {}), MEDIA_TYPE)


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """Return the members of a problem."""
    return {
        "type": f"urn:rmab:problem:{code}",
        "title": code.replace("-", " "),
        "status": status,
        "detail": detail,
        "code": code,
        "location": {},
        **more,
    }


def install(app: FastAPI) -> None:
    """Let an app answer every error as a problem."""

    @app.exception_handler(RmabError)
    async def refused(_request: Request, error: RmabError) -> Response:
        return answer(describe(error))

    @app.exception_handler(Problem)
    async def declined(_request: Request, error: Problem) -> Response:
        return answer(problem(error.status_code, error.code, error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        fields = [{"field": ".".join(str(k) for k in one["loc"]), "what": one["msg"]} for one in error.errors()[:100]]
        detail = "; ".join(f"{one['field']}: {one['what']}" for one in fields[:20])
        first = {"field": fields[0]["field"]} if fields else {}
        return answer({**problem(422, "bad-request", detail, fields=fields), "location": first})

    @app.exception_handler(HTTPException)
    async def plain(_request: Request, error: HTTPException) -> Response:
        code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "http")
        return answer(problem(error.status_code, code, str(error.detail)), error.headers)
