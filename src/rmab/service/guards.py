"""Checks of every request: limits of its body, its origin, safe headers, a log line and a counter."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import sys
import time
import traceback
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rmab.service.metrics import Metrics
from rmab.service.problems import Problem, answer, problem
from rmab.service.settings import Settings

LOG = logging.getLogger("rmab.service")
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Limits:
    """Rejects bodies that are too large (413) or too slow (408), and changes from another site (403)."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] not in SAFE and is_foreign(headers):
            found = problem(403, "foreign-origin", "the request comes from a page of another site")
            await answer(found)(scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > self.settings.max_bytes:
            await answer(self._too_large())(scope, receive, send)
            return
        size, end = 0, time.monotonic() + self.settings.body_seconds

        async def limited() -> Message:
            nonlocal size
            try:
                message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001)) if end else await receive()
            except TimeoutError:
                raise Problem(
                    408, "too-slow", f"the body did not arrive in {self.settings.body_seconds:g} seconds"
                ) from None
            size += len(message.get("body", b""))
            if size > self.settings.max_bytes:
                raise Problem(413, "too-large", str(self._too_large()["detail"]))
            return message

        await self.app(scope, _BodyOnly(limited, receive), send)

    def _too_large(self) -> dict[str, Any]:
        return problem(413, "too-large", f"the body exceeds {self.settings.max_bytes:,} bytes; send several")


class _BodyOnly:
    """Applies limits until the body has arrived: afterwards a server may wait for the end of the connection."""

    def __init__(self, limited: Receive, plain: Receive) -> None:
        self.limited, self.plain, self.is_complete = limited, plain, False

    async def __call__(self) -> Message:
        if self.is_complete:
            return await self.plain()
        message = await self.limited()
        self.is_complete = not message.get("more_body", False)
        return message


def is_foreign(headers: Headers) -> bool:
    """Return whether a browser sends a request from the page of another site."""
    if headers.get("sec-fetch-site") == "cross-site":
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host", "")


class Surroundings:
    """Adds headers, counts, and logs one line per request: no ids of arms, no names, no addresses."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number, start, status = secrets.token_hex(8), time.perf_counter(), 500
        scope.setdefault("state", {})["request_id"] = number
        has_begun = False

        async def finished(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                has_begun, status = True, message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
                headers["x-request-id"] = number
            await send(message)

        try:
            await self.app(scope, receive, finished)
        except Exception as error:
            _log_failure(number, error)
            if has_begun:
                raise
            failed = problem(500, "internal", "the service failed; its log has the request's number", request=number)
            await answer(failed)(scope, receive, finished)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("endpoint"), "__name__", "none")
            self.metrics.count(scope["method"], route, status, seconds)
            account = getattr(scope.get("state", {}).get("account"), "id", "") or ""
            LOG.info(
                "request",
                extra={
                    "fields": {
                        "request": number,
                        "method": scope["method"],
                        "route": route,
                        "status": status,
                        "ms": round(1000 * seconds, 2),
                        "token": account,
                    }
                },
            )


def _log_failure(number: str, error: BaseException) -> None:
    """Log where a request failed; not its message, which may contain a person's id."""
    frames = [
        f"{one.filename.rpartition('/')[2]}:{one.lineno} {one.name}" for one in traceback.extract_tb(error.__traceback__)
    ]
    LOG.error("failure", extra={"fields": {"request": number, "error": type(error).__name__, "at": frames[-8:]}})


class JsonLines(logging.Formatter):
    """Log records as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = getattr(record, "fields", {})
        return json.dumps(
            {
                "at": f"{when}.{int(record.msecs):03d}Z",
                "level": record.levelname.lower(),
                "event": record.getMessage(),
                **fields,
            }
        )


def log_to_stderr() -> None:
    """Let the service log to standard error, a JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
