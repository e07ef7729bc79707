"""The journal of a programme in a database: append in one transaction, read in order, verify the chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from rmab.errors import ModelError, StoreError
from rmab.live.events import START, Body, Create, Event, Undo, body_hash
from rmab.live.schema import EVENT, PROGRAMME, check_version

Check = Callable[[sa.Connection, int, str], None]  # with number and hash of the last event
LONGEST = 500  # characters of a key, and of who wrote an event
BATCH = 500  # events that are read at a time
FIELDS = [EVENT.c[name] for name in Event.__dataclass_fields__]


class HeadMovedError(Exception):
    """Another writer appended since a plan was started."""


@dataclass(frozen=True)
class Stamp:
    """Label of an event: its idempotency key, its author, and the time of the client's clock.

    Each is short text: text that a database alters would look like a changed event.
    """

    key: str
    actor: str = ""
    client_at: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if (
                not isinstance(value, str)
                or len(value) > LONGEST
                or not value.isprintable()
                or (name == "key" and not value)
            ):
                least = 1 if name == "key" else 0
                raise ModelError(
                    f"{name} must be text of {least} to {LONGEST} printable characters, got {value!r:.60}", field=name
                )


class Journal:
    """The events of one programme."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self.engine, self.name = engine, name

    def append(self, body: Body, stamp: Stamp, check: Check, *, expected: int | None = None) -> tuple[Event, bool]:
        """Append an event, and return it, and whether it is new.

        One transaction: lock the programme's row, compare the key, check, write, commit. If the connection breaks it is
        retried once: the key makes sure that nothing is written twice.

        Parameters
        ----------
        body, stamp
            The event, and its label. The same key with the same body is the same event; with another body it is rejected.
        check : function
            Called inside the transaction with the connection, and number and hash of the last event; raises errors.
        expected : int, optional
            The number that the last event must have; otherwise HeadMovedError.
        """
        try:
            return self._append(body, stamp, check, expected)
        except exc.DBAPIError as error:  # an IntegrityError: two created the same programme at the same time
            if not (error.connection_invalidated or isinstance(error, exc.IntegrityError)):
                raise as_store_error(error) from error
        try:
            return self._append(body, stamp, check, expected)
        except exc.DBAPIError as error:
            raise as_store_error(error) from error

    def _append(self, body: Body, stamp: Stamp, check: Check, expected: int | None) -> tuple[Event, bool]:
        text = body.to_json()
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ModelError("a text has half a character (a surrogate), which cannot be stored") from error
        with writing(self.engine) as connection:
            head, last = self.lock(connection, create=isinstance(body, Create))
            if expected is not None and head != expected:
                raise HeadMovedError
            earlier = self.find(connection, stamp.key)
            if earlier is not None:
                if (earlier.kind, body_hash(earlier.body)) != (body.KIND, body_hash(text)):
                    what = f"the key {stamp.key!r:.60} belongs to event {earlier.sequence}, which has different content"
                    raise ModelError(what, code="key-reused", event=earlier.sequence)
                if earlier.sequence in self.undone(connection, earlier.sequence):
                    what = f"the key {stamp.key!r:.60} belongs to event {earlier.sequence}, which was undone"
                    raise ModelError(f"{what}; use another key", code="key-undone", event=earlier.sequence)
                return earlier, False
            check(connection, head, last)
            return self.insert(connection, body, stamp, head, last), True

    def insert(self, connection: sa.Connection, body: Body, stamp: Stamp, head: int, last: str) -> Event:
        """Write an event after the last one, whose number and hash are given, in a transaction that holds the lock."""
        text, now = body.to_json(), datetime.now(UTC).isoformat(timespec="milliseconds")
        bare = Event(self.name, head + 1, body.KIND, stamp.key, stamp.actor, now, stamp.client_at, text, last)
        event = replace(bare, hash=bare.expected_hash())
        connection.execute(sa.insert(EVENT).values(**asdict(event), body_hash=body_hash(text)))
        update = sa.update(PROGRAMME).where(PROGRAMME.c.name == self.name).values(head=event.sequence, hash=event.hash)
        connection.execute(update)
        return event

    def lock(self, connection: sa.Connection, *, create: bool = False) -> tuple[int, str]:
        """Lock the programme until the transaction ends; return number and hash of its last event."""
        check_version(connection)
        query = sa.select(PROGRAMME.c.head, PROGRAMME.c.hash).where(PROGRAMME.c.name == self.name)
        row = connection.execute(query.with_for_update()).one_or_none()
        if row is None and create:
            connection.execute(sa.insert(PROGRAMME).values(name=self.name, head=0, hash=START))
            return 0, START
        return self._checked_row(row)

    def head(self, connection: sa.Connection) -> tuple[int, str]:
        """Return number and hash of the last event, without a lock."""
        query = sa.select(PROGRAMME.c.head, PROGRAMME.c.hash).where(PROGRAMME.c.name == self.name)
        return self._checked_row(connection.execute(query).one_or_none())

    def _checked_row(self, row: Any) -> tuple[int, str]:
        if row is None:
            raise StoreError(f"no programme {self.name!r:.60} in this database", code="unknown-programme")
        return int(row[0]), str(row[1])

    def read(
        self, connection: sa.Connection, after: int = 0, through: int | None = None, without: Sequence[str] = ()
    ) -> Iterator[Event]:
        """Yield the events after a number, in order; without: kinds to leave out."""
        while True:
            query = self._select().where(EVENT.c.sequence > after).order_by(EVENT.c.sequence).limit(BATCH)
            query = query if through is None else query.where(EVENT.c.sequence <= through)
            query = query.where(EVENT.c.kind.not_in(without)) if without else query
            rows = connection.execute(query).all()
            for row in rows:
                yield Event(**row._mapping)
            if len(rows) < BATCH:
                return
            after = rows[-1].sequence

    def find(self, connection: sa.Connection, key: str) -> Event | None:
        """Return the event with a key, if there is one."""
        row = connection.execute(self._select().where(EVENT.c.key == key)).one_or_none()
        return None if row is None else Event(**row._mapping)

    def undone(self, connection: sa.Connection, after: int = 0, through: int | None = None) -> set[int]:
        """Return the numbers of the events that are undone by events after a number."""
        query = self._select().where(EVENT.c.kind == "undo", EVENT.c.sequence > after)
        query = query if through is None else query.where(EVENT.c.sequence <= through)
        bodies = [Event(**row._mapping).parse() for row in connection.execute(query)]
        return {one.event for one in bodies if isinstance(one, Undo)}

    def kinds(self, connection: sa.Connection, through: int) -> dict[int, str]:
        """Return the kind of every event up to a number."""
        query = sa.select(EVENT.c.sequence, EVENT.c.kind).where(EVENT.c.programme == self.name, EVENT.c.sequence <= through)
        return {int(row.sequence): str(row.kind) for row in connection.execute(query)}

    def _select(self) -> sa.Select[tuple[object, ...]]:
        return sa.select(*FIELDS).where(EVENT.c.programme == self.name)

    def verify(self) -> int:
        """Recompute the chain of hashes; return the number of events, or raise StoreError at the first that was changed."""
        with reading(self.engine) as connection:
            head, sealed = self.head(connection)
            query = sa.select(EVENT.c.sequence, EVENT.c.body_hash).where(EVENT.c.programme == self.name)
            stored = {int(row.sequence): str(row.body_hash) for row in connection.execute(query)}
            previous, count = START, 0
            for event in self.read(connection):
                count += 1
                if event.sequence != count:
                    raise StoreError(f"event {count} is missing from the journal", code="tampered", event=count)
                sealed_body = stored[count] == body_hash(event.body)
                if event.previous != previous or event.hash != event.expected_hash() or not sealed_body:
                    raise StoreError(f"event {count} was changed after it was written", code="tampered", event=count)
                previous = event.hash
            if (head, sealed) != (count, previous):
                raise StoreError(f"the journal ends at event {count}, expected {head}", code="tampered", event=count)
        return count


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction that writes: on SQLite it waits for other writers."""
    with engine.connect().execution_options(rmab_write=True) as connection, connection.begin():
        yield connection


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction that reads one state of the database."""
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except exc.DBAPIError as error:
        raise as_store_error(error) from error


def as_store_error(error: exc.DBAPIError) -> StoreError:
    """Return an error of the database as an error of the library."""
    return StoreError(f"the database rejected the request: {error.orig!s:.300}", code="database")
