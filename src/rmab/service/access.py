"""Access of a route: the programme in its address, and what the caller may do in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from rmab.errors import ModelError, StoreError
from rmab.live.programme import Programme
from rmab.service.accounts import Account
from rmab.service.auth import find_caller
from rmab.service.problems import Problem
from rmab.service.shared import Shared, checked_key, is_match, programme_tag, write_if

T = TypeVar("T")
Name = Annotated[str, Path(max_length=200, description="Name of the programme.", examples=["mothers"])]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="The same request with the same key is one event."),
]
Match = Annotated[
    str | None, Header(alias="If-Match", max_length=1000, description="ETag that must still be current; otherwise 412.")
]
NoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=1000, description="ETag; 304 if unchanged.")]
AsOf = Annotated[int | None, Query(ge=1, le=2**53, description="Show the programme as of this event.")]


@dataclass(frozen=True)
class Access:
    """A programme and its user."""

    p: Programme
    account: Account
    key: str | None = None
    match: str | None = None

    def write(self, action: Callable[[Programme], T], tag: Callable[[], str] | None = None) -> T:
        """Write as the caller; with If-Match, only if the tag (of the programme) is current."""
        mine = tag or (lambda: programme_tag(self.p))
        return write_if(self.p, self.account.owner, lambda: action(self.p), self.match, mine, self.key)


def find_programme(request: Request, account: Account, name: str, role: str, as_of: int | None = None) -> Programme:
    """Return a programme that an account may use in a role; a programme without access is reported as unknown."""
    if not account.may("viewer", name):
        raise StoreError(f"no programme {name!r:.60} in this database", code="unknown-programme")
    if not account.may(role, name):
        raise Problem(403, "role", f"this needs the role '{role}', the token has '{account.role(name)}'")
    shared: Shared = request.app.state.shared
    try:
        return shared.get(name, as_of)
    except ModelError as error:
        raise Problem(404, "unknown-event", str(error)) from error


def reader() -> Callable[..., Awaitable[Access]]:
    """Return a dependency: a programme to read, now or as of an event."""

    async def found(
        request: Request, name: Name, account: Annotated[Account, Depends(find_caller)], as_of: AsOf = None
    ) -> Access:
        return Access(await run_in_threadpool(find_programme, request, account, name, "viewer", as_of), account)

    return found


def writer(role: str) -> Callable[..., Awaitable[Access]]:
    """Return a dependency: a programme to write to, in a role."""

    async def found(
        request: Request, name: Name, account: Annotated[Account, Depends(find_caller)], key: Key = None, match: Match = None
    ) -> Access:
        p = await run_in_threadpool(find_programme, request, account, name, role)
        return Access(p, account, checked_key(key), match)

    return found


Reading = Annotated[Access, Depends(reader())]
Operating = Annotated[Access, Depends(writer("operator"))]
Administering = Annotated[Access, Depends(writer("admin"))]


def is_unchanged(seen: str | None, tag: str) -> bool:
    """Return whether the caller already has the current answer."""
    return seen is not None and is_match(seen, tag)


def check_rows(count: int, request: Request) -> None:
    """Reject a body with too many rows."""
    most = request.app.state.settings.max_rows
    if count > most:
        raise Problem(413, "too-many-rows", f"{count:,} rows, the limit is {most:,}; send several files")


Answers = dict[int | str, dict[str, Any]]
