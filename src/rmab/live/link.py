"""Requests to a service, with the standard library only: tokens, keys, and the errors that the service describes.

A request on a broken connection is retried once: every write has a key, so that it is safe to send again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from rmab.errors import StoreError
from rmab.live import wire


class Link:
    """Connections to a service, one for each thread; a context manager that closes them."""

    def __init__(self, url: str, token: str = "", *, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StoreError(f"{url!r:.80} is not an address; use for example http://127.0.0.1:8321", code="bad-url")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._parts, self._token = parts, token
        self._mine = threading.local()
        self._open: list[HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._open.pop().close()

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        json_body: Any = None,
        key: str | None = None,
    ) -> Any:
        """Send a request, and return its answer; raises the error that the service describes."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{self._parts.path.rstrip('/')}/api/v1/{path}" + (f"?{urlencode(given)}" if given else "")
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None
        if json_body is not None:
            content = json.dumps(json_body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        status, kind, answer = self._send(method, target, content, headers)
        if status >= 400:
            raise self._error(status, kind, answer)
        return json.loads(answer) if kind == "application/json" else answer

    def _send(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> tuple[int, str, bytes]:
        for is_last in (False, True):
            connection = self._connection()
            try:
                connection.request(method, target, content, headers)
                found = connection.getresponse()
                return found.status, found.headers.get_content_type(), found.read()
            except (OSError, HTTPException) as error:
                connection.close()
                if is_last:
                    raise StoreError(f"{self.url}: cannot be reached ({error})", code="unreachable") from error
        raise AssertionError  # pragma: no cover

    def _connection(self) -> HTTPConnection:
        found: HTTPConnection | None = getattr(self._mine, "connection", None)
        if found is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            found = kind(str(self._parts.hostname), self._parts.port, timeout=self.timeout)
            self._mine.connection = found
            self._open.append(found)
        return found

    def _error(self, status: int, kind: str, answer: bytes) -> Exception:
        try:
            content = json.loads(answer) if kind.endswith("json") else {}
        except ValueError:
            content = {}
        if "code" not in content:
            return StoreError(f"{self.url}: answered {status}", code="unreachable")
        return wire.error_from_json(content)
