"""Programmes that many requests share: each is read once and cached, and every write has its actor.

The actor, and the event that a request expects to be the last one, belong to the request, not to the programme; both are
context variables, which follow a request into the thread that works for it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import sqlalchemy as sa

from rmab.decisions.decision import Decision
from rmab.errors import StoreError
from rmab.live.events import Body, Event
from rmab.live.journal import HeadMovedError, Stamp, reading
from rmab.live.programme import Programme
from rmab.live.schema import EVENT
from rmab.live.store import Store
from rmab.service.problems import Problem

T = TypeVar("T")
ACTOR: ContextVar[str] = ContextVar("rmab_actor", default="")
EXPECTED: ContextVar[int | None] = ContextVar("rmab_expected", default=None)
TRIES = 8  # attempts beside other writers
PATIENCE = 2.0  # seconds that an expensive request waits for another one
FROZEN = 8  # most cached programmes as of earlier events
RESERVED = ("decide/", "create", "log ")  # prefixes of the library's own keys


class SharedStore(Store):
    """A store that writes as the actor of the request."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine)

    @property
    def actor(self) -> str:
        """The actor of the request."""
        return ACTOR.get()

    @actor.setter
    def actor(self, value: str) -> None:
        ACTOR.set(value)


class SharedProgramme(Programme):
    """A programme that writes only after the event that the request expects to be the last."""

    def write(self, body: Body, stamp: Stamp, *, expected: int | None = None) -> Event:
        """Append one event."""
        wanted = EXPECTED.get()
        if wanted is not None and expected is not None and wanted != expected:
            raise Problem(412, "changed", "it was changed meanwhile; read it again")
        return super().write(body, stamp, expected=wanted if expected is None else expected)


class Shared:
    """The programmes of a store, each cached while the service runs."""

    def __init__(self, store: Store) -> None:
        self.store = SharedStore(store)
        self._programmes: dict[str, Programme] = {}
        self._frozen: OrderedDict[tuple[str, int], Programme] = OrderedDict()
        self._lock, self._costly = threading.Lock(), threading.Lock()

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Run one request at a time whose cost grows with the journal: every viewer may send it."""
        if not self._costly.acquire(timeout=PATIENCE):
            raise Problem(429, "busy", "another request of this kind is running; try again", {"Retry-After": "5"})
        try:
            yield
        finally:
            self._costly.release()

    def get(self, name: str, as_of: int | None = None) -> Programme:
        """Return a programme, as it is or as it was known after an event."""
        with self._lock:
            programme = self._programmes.get(name)
        if programme is None:
            programme = SharedProgramme(self.store, name)
            programme.refresh()
            with self._lock:
                programme = self._programmes.setdefault(name, programme)
        return programme if as_of is None else self._as_of(programme, as_of)

    def _as_of(self, p: Programme, sequence: int) -> Programme:
        with self._lock:
            found = self._frozen.get((p.name, sequence))
        if found is None:
            found = p.as_of(sequence)
            with self._lock:
                self._frozen[p.name, sequence] = found
                while len(self._frozen) > FROZEN:
                    self._frozen.popitem(last=False)
        return found


def checked_key(key: str | None) -> str | None:
    """Return an idempotency key; a Problem if it looks like one of the library."""
    if key is not None and (not key or len(key) > 200 or not key.isprintable() or key.startswith(RESERVED)):
        raise Problem(
            422, "bad-key", "Idempotency-Key must be 1 to 200 printable characters, and must not begin like those of rmab"
        )
    return key


@contextmanager
def acting(actor: str, expected: int | None = None) -> Iterator[None]:
    """Write as an actor, and only after this event if it is given."""
    one, other = ACTOR.set(actor), EXPECTED.set(expected)
    try:
        yield
    finally:
        ACTOR.reset(one)
        EXPECTED.reset(other)


def write_if(
    p: Programme, actor: str, action: Callable[[], T], match: str | None, tag: Callable[[], str], key: str | None = None
) -> T:
    """Write as an actor; with `match`, only if `tag()` is one of its tags.

    The tag is that of what the caller has seen. Comparing it and writing the event is atomic, also
    across processes: if something else was written meanwhile it is compared again. A repeated request with the
    same key is not compared: it changed the tag itself.
    """
    if match is None or (key is not None and has_key(p, key)):
        with acting(actor):
            return action()
    for _ in range(TRIES):
        with p.ledger() as ledger:
            head = ledger.sequence
            if not is_match(match, tag()):
                raise Problem(412, "changed", "it was changed meanwhile; read it again", {"ETag": tag()})
            try:
                with acting(actor, head):
                    return action()
            except HeadMovedError:
                continue
    raise StoreError("too many concurrent writes; try again", code="busy")


def has_key(p: Programme, key: str) -> bool:
    """Return whether an event has this key."""
    with reading(p.store.engine) as connection:
        found = sa.select(EVENT.c.sequence).where(EVENT.c.programme == p.name, EVENT.c.key == key)
        return connection.scalar(found) is not None


def is_match(given: str, tag: str) -> bool:
    """Return whether a list of tags (If-Match, If-None-Match) contains a tag."""
    wanted = [one.strip().removeprefix("W/") for one in given.split(",")]
    return "*" in wanted or tag in wanted


def programme_tag(p: Programme) -> str:
    """Return the tag of a whole programme: it changes with every event."""
    number, _, digest = p.head.partition(":")
    return f'"{number}-{digest[:16]}"'


def decision_tag(decision: Decision | None) -> str:
    """Return the tag of a list: it changes with every addition and removal."""
    if decision is None:
        return '"undecided"'
    content = json.dumps([decision.period, list(zip(decision.arms, decision.rule, strict=True))])
    return f'"{hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]}"'
