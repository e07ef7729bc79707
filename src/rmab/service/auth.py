"""Who sends a request: by token (`Authorization: Bearer ...`), by the session of a browser, or from this machine."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict, deque
from hashlib import sha256
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import Request
from starlette.concurrency import run_in_threadpool

from rmab.service.accounts import LOCAL, Account, account_of, find_account, has_tokens, record_use
from rmab.service.problems import Problem
from rmab.service.sessions import COOKIE, Session, Sessions
from rmab.service.settings import Settings

MOST = 10_000  # most accounts, and addresses, in memory
HERE = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")


class Failures:
    """Counts of wrong tokens by address, within a time."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._at: dict[str, deque[float]] = defaultdict(deque)

    def add(self, address: str) -> None:
        """Count a failure."""
        if len(self._at) > MOST:
            self._at.clear()
        self._at[address].append(time.monotonic())

    def wait(self, address: str) -> float:
        """Return the seconds that an address must wait; 0 for none."""
        times, now = self._at.get(address), time.monotonic()
        if times is None:
            return 0.0
        while times and times[0] < now - self.seconds:
            times.popleft()
        return times[0] + self.seconds - now if len(times) >= self.most else 0.0


class Authenticator:
    """Finder of the account of a request; checked accounts are cached for a moment."""

    def __init__(self, engine: sa.Engine, settings: Settings) -> None:
        self.engine, self.settings = engine, settings
        self.sessions = Sessions(settings.secret, settings.session_hours)
        self.failures = Failures(settings.failures, settings.failure_seconds)
        self._known: OrderedDict[str, tuple[float, Account]] = OrderedDict()
        self._lock = threading.Lock()
        self._closed_at = -1e9  # when a token was last looked up
        self._is_open = False

    async def by_token(self, request: Request, token: str) -> Account:
        """Return the account of a token; a Problem (401, 429) if there is none, or it is no longer valid."""
        key, address = sha256(token.encode("utf-8", "replace")).hexdigest(), _address(request)
        account = self._cached_account(key)
        if account is None:
            wait = self.failures.wait(address)
            if wait:  # active accounts are cached, so that nobody can lock out others
                raise Problem(
                    429, "too-many-failures", "too many wrong tokens from this address", {"Retry-After": str(int(wait) + 1)}
                )
            account = await run_in_threadpool(self._find_account, key, token)
        if account is None or not account.is_valid:
            self.failures.add(address)
            why = (
                "the token is wrong"
                if account is None
                else "the token was revoked"
                if account.revoked_at
                else "the token has expired"
            )
            raise Problem(401, "bad-token", why, {"WWW-Authenticate": "Bearer"})
        return account

    async def by_session(self, session: Session) -> Account | None:
        """Return the account of a session; None if its token is no longer valid."""
        if session.account == LOCAL.id:
            return LOCAL if await self.is_open() else None
        key = f"session {session.account}"
        account = self._cached_account(key)
        if account is None:
            account = await run_in_threadpool(self._remember, key, account_of, session.account)
        return account if account is not None and account.is_valid else None

    async def is_open(self) -> bool:
        """Return whether no token is needed: only on this machine, until the first is created."""
        if not self.settings.loopback:
            return False
        if time.monotonic() - self._closed_at > self.settings.token_seconds:
            self._is_open = not await run_in_threadpool(has_tokens, self.engine)
            self._closed_at = time.monotonic()
        return self._is_open

    def session(self, request: Request) -> Session | None:
        """Return the session of a request's cookie."""
        cookie = request.cookies.get(COOKIE)
        return self.sessions.read(cookie) if cookie else None

    def forget(self) -> None:
        """Clear the cache of accounts."""
        with self._lock:
            self._known.clear()

    def _cached_account(self, key: str) -> Account | None:
        with self._lock:
            found = self._known.get(key)
        if found is None or time.monotonic() - found[0] > self.settings.token_seconds:
            return None
        return found[1]

    def _find_account(self, key: str, token: str) -> Account | None:
        return self._remember(key, find_account, token)

    def _remember(self, key: str, find: object, value: str) -> Account | None:
        account: Account | None = find(self.engine, value)  # type: ignore[operator]
        if account is not None and account.is_valid:
            record_use(self.engine, account)
            with self._lock:
                self._known[key] = (time.monotonic(), account)
                self._known.move_to_end(key)
                while len(self._known) > MOST:
                    self._known.popitem(last=False)
        return account


async def find_caller(request: Request) -> Account:
    """Return who calls: a dependency of every route of the API. A Problem (401, 403, 429) if there is no access."""
    auth: Authenticator = request.app.state.auth
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme:
        if scheme.lower() != "bearer" or not token.strip():
            raise Problem(401, "bad-token", "send 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": "Bearer"})
        account = await auth.by_token(request, token.strip())
    else:
        session = auth.session(request)
        found = await auth.by_session(session) if session else None
        if session is not None and found is not None:
            if request.method not in SAFE and not auth.sessions.is_csrf(session, request.headers.get("x-csrf-token", "")):
                raise Problem(403, "bad-form", "the request does not come from the page; reload it, and try again")
            account = found
        elif await auth.is_open():
            check_host(request)
            account = LOCAL
        else:
            raise Problem(401, "no-token", "send 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": "Bearer"})
    request.state.account = account
    return account


def check_host(request: Request) -> None:
    """Reject a request to this machine under another name (DNS rebinding)."""
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if name not in HERE:
        raise Problem(403, "bad-host", f"open it as localhost; {name!r:.60} needs a token (rmab live token create)")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
