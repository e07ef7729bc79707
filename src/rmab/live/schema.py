"""The tables of a store, and the numbered migrations that create them, each in one transaction.

All names begin with `rmab_`, so that a store can share a database with other tables. A database that a newer version of the
library has migrated is rejected, never written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from rmab.errors import StoreError

LOCK = 0x726D6162  # of PostgreSQL's advisory locks, for migrations
METADATA = sa.MetaData()
VERSION = sa.Table("rmab_version", METADATA, sa.Column("number", sa.Integer, primary_key=True))
PROGRAMME = sa.Table(
    "rmab_programme",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("head", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)
EVENT = sa.Table(
    "rmab_event",
    METADATA,
    sa.Column("programme", sa.ForeignKey(PROGRAMME.c.name), primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("key", sa.String(200), nullable=False),
    sa.Column("actor", sa.String(200), nullable=False),
    sa.Column("server_at", sa.String(40), nullable=False),
    sa.Column("client_at", sa.String(40), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("body_hash", sa.String(64), nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.UniqueConstraint("programme", "key", name="rmab_event_key"),
)
SNAPSHOT = sa.Table(
    "rmab_snapshot",
    METADATA,
    sa.Column("programme", sa.ForeignKey(PROGRAMME.c.name), primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
TOKEN = sa.Table(  # who may use the service (rmab.service); the secret itself is never stored
    "rmab_token",
    METADATA,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("created_at", sa.String(40), nullable=False),
    sa.Column("expires_at", sa.String(40), nullable=False),
    sa.Column("revoked_at", sa.String(40), nullable=False),
    sa.Column("used_at", sa.String(40), nullable=False),
)
GRANT = sa.Table(  # what a token may do in a programme; the empty name means all
    "rmab_grant",
    METADATA,
    sa.Column("token", sa.ForeignKey(TOKEN.c.id), primary_key=True),
    sa.Column("programme", sa.String(200), primary_key=True),
    sa.Column("role", sa.String(20), nullable=False),
)


def _journal(connection: sa.Connection) -> None:
    METADATA.create_all(connection, tables=[PROGRAMME, EVENT])


def _snapshots(connection: sa.Connection) -> None:
    METADATA.create_all(connection, tables=[SNAPSHOT])


def _accounts(connection: sa.Connection) -> None:
    METADATA.create_all(connection, tables=[TOKEN, GRANT])


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_journal, _snapshots, _accounts)  # number 1, 2, ...


def migrate(engine: sa.Engine) -> None:
    """Bring the tables of a database to this version; StoreError if they are newer."""
    with _alone(engine) as connection:
        METADATA.create_all(connection, tables=[VERSION])
    for number, migration in enumerate(MIGRATIONS, start=1):
        with _alone(engine) as connection:
            if _version(connection) < number:
                migration(connection)
                connection.execute(sa.insert(VERSION).values(number=number))


def check_version(connection: sa.Connection) -> None:
    """Raise StoreError unless the tables are of this version: another instance may have migrated them meanwhile."""
    found = _version(connection)
    if found > len(MIGRATIONS):
        both = f"(schema {found}, this one knows {len(MIGRATIONS)})"
        raise StoreError(f"the database was migrated by a newer rmab {both}; update rmab", code="newer-schema")
    if found < len(MIGRATIONS):
        raise StoreError("the database has an older schema; open it with rmab.live.open", code="older-schema")


def _version(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.max(VERSION.c.number))) or 0)


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction that excludes other migrations."""
    with engine.connect().execution_options(rmab_write=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        yield connection
