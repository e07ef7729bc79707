"""A store of live programmes: one SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa
from sqlalchemy import exc

from rmab.common import require
from rmab.errors import FileError, ModelError, StoreError
from rmab.live.engines import SAMPLED, Engine, check_informed, check_rolling, engine_of, engine_text
from rmab.live.events import Create
from rmab.live.journal import Stamp, as_store_error, reading
from rmab.live.periods import Rhythm
from rmab.live.schema import PROGRAMME, check_version, migrate

if TYPE_CHECKING:
    from rmab.live.programme import Programme

HEAD = b"SQLite format 3\0"  # first bytes of a SQLite file
PATIENCE = 60  # seconds that a transaction waits for another one


class Store:
    """Programmes in a database, as `rmab.live.open` returns it; a context manager.

    Threads may share a store. Processes open their own, on the same database.
    """

    def __init__(self, engine: sa.Engine, actor: str = "") -> None:
        self.engine, self.actor = engine, actor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.engine.url.render_as_string(hide_password=True)!r})"

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @property
    def programmes(self) -> list[str]:
        """The names of all programmes."""
        with reading(self.engine) as connection:
            check_version(connection)
            return list(connection.scalars(sa.select(PROGRAMME.c.name).order_by(PROGRAMME.c.name)))

    def create(
        self,
        name: str,
        *,
        states: Sequence[str],
        budget: int,
        every: str = "week",
        start: object = None,
        zone: str = "",
        lookahead: int = 12,
        reward: Mapping[str, float] | None = None,
        floor: int | None = None,
        control: float = 0.0,
        random_share: float = 0.0,
        fallback: str = "rotation",
        seed: int = 0,
        action: str = "action",
        engine: Engine | None = None,
        horizon: int | None = None,
        episodes: int = 100,
        key: str = "create",
    ) -> Programme:
        """Create a programme. The same call again returns the existing programme.

        Parameters
        ----------
        name : str
            The name of the programme in this store.
        states : sequence of str
            The names of the S states.
        budget : int
            Number of places per period; `set_budget` changes it.
        every, start, zone
            The rhythm of the periods, as in `Rhythm.of`: 'week', 'day', '2 weeks', '5 minutes'.
        lookahead : int
            Number of periods to plan ahead.
        reward : dict of str to float, optional
            Rewards of states: of a period that ends in them. By default rewards are reported with `tell`.
        floor : int, optional
            Every arm is on the list at least once in so many periods. An error if the budget is too small.
        control : float
            Fraction of arms that are never listed by index or at random, only by floor or by name. Drawn once per arm.
        random_share : float
            Fraction of the places to randomise: so many of the arms that the index chooses are left out, and
            as many others take their places. `benefit` needs it.
        fallback : {'rotation', 'random', 'last', 'nothing'}
            Rule if no plan is possible: the longest waiting arms, a random draw, the indices of the last plan,
            or an empty list.
        seed : int
            Random seed of ties, draws and control arms.
        action : str
            Name of an activation, for example 'call'.
        engine : str, dict or Learner, optional
            Method that computes the index: 'sampled' (the default: plans with models drawn from the posterior, so that
            uncertain actions are tried), 'mean' (plans with the estimate), or a learner, by name, with options as in
            ``{"name": "ucmd", "estimator": "fading"}``, or as an object.
        horizon : int, optional
            Number of periods of an episode: the programme runs in episodes, with cohorts of the same composition, and the
            engine may be any learner ('ucmd' by default).
        episodes : int
            Expected number of episodes; learners scale their steps by it.
        key : str
            Idempotency key.

        Returns
        -------
        Programme
            With no arms yet.
        """
        text = engine_text(engine, SAMPLED if horizon is None else engine_text("ucmd", ""))
        (check_rolling if horizon is None else check_informed)(engine_of(text))
        fields: dict[str, Any] = {"engine": text, "horizon": horizon, "episodes": episodes}
        fields |= {"lookahead": lookahead, "floor": floor, "control": control, "random_share": random_share}
        body = Create.checked(
            states=[str(one) for one in states],
            rhythm=Rhythm.of(every, start=start, zone=zone),
            budget=budget,
            reward=None if reward is None else {str(one): float(value) for one, value in reward.items()},
            fallback=fallback,
            seed=seed,
            action=action,
            **fields,
        )
        if not name or len(name) > 200 or not name.isprintable() or "/" in name or name in (".", ".."):
            what = "must be 1 to 200 printable characters without '/', as it is part of addresses"
            raise ModelError(f"the name of a programme {what}, got {name!r:.60}", field="name")
        from rmab.live.programme import Programme  # noqa: PLC0415  (a programme knows its store)

        programme = Programme(self, name)
        try:
            programme.write(body, Stamp(key, self.actor))
        except ModelError as error:
            if error.code != "key-reused":
                raise
            what = f"programme {name!r} already exists, with other settings; choose another name"
            raise ModelError(what, code="key-reused") from error
        return programme

    def programme(self, name: str) -> Programme:
        """Return a programme; StoreError if the name is unknown."""
        from rmab.live.programme import Programme  # noqa: PLC0415

        found = Programme(self, name)
        found.refresh()
        return found

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a SQLite store to a new file while it is in use; FileError if the file exists."""
        if self.engine.dialect.name != "sqlite":
            raise StoreError("backup is only for SQLite; use pg_dump for PostgreSQL", code="backup")
        target = Path(path)
        if os.path.lexists(target):
            raise FileError(f"{target}: the file exists; give a new name", path=str(target))
        beside = target.with_name(f".rmab.{secrets.token_hex(8)}")
        try:
            with reading(self.engine) as connection, sqlite3.connect(beside) as copy:
                source: Any = connection.connection.dbapi_connection
                source.backup(copy)
            copy.close()
            beside.replace(target)
        except (OSError, sqlite3.Error) as error:
            beside.unlink(missing_ok=True)
            raise FileError(f"{target}: cannot be written ({error})", path=str(target)) from error


def open_store(url: str, *, actor: str = "") -> Store:
    """Open a store, and create or migrate its tables.

    Parameters
    ----------
    url : str
        ``sqlite:///programme.db`` (a file), or ``postgresql://user@host/database``. A plain path is a SQLite file.
    actor : str
        Who writes; it is recorded with every event.

    Returns
    -------
    Store
        Close it, or use it in a `with` statement.

    Raises
    ------
    StoreError
        If the database cannot be reached, or a newer version of the library has migrated it.

    Examples
    --------
    >>> import tempfile, rmab
    >>> folder = tempfile.TemporaryDirectory()
    >>> with rmab.live.open(f"sqlite:///{folder.name}/programme.db") as store:
    ...     p = store.create("mothers", states=["lapsed", "engaged"], budget=1, reward={"engaged": 1})
    ...     _ = p.join(["ann", "bea"], state="lapsed")
    ...     p.ask("2026-W47").ids
    ('ann',)
    >>> folder.cleanup()
    """
    try:
        parsed = sa.make_url(url if "://" in url else f"sqlite:///{url}")
    except exc.ArgumentError as error:
        raise StoreError(
            f"{url!r:.80} is not a database address; use for example sqlite:///programme.db", code="bad-url"
        ) from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        require("postgres", "a PostgreSQL store")
        parsed = parsed.set(drivername="postgresql+psycopg")
    elif backend != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise StoreError(f"{url!r:.80}: not a store; use a SQLite file or a PostgreSQL database", code="bad-url")
    engine = sa.create_engine(parsed, pool_pre_ping=backend == "postgresql")
    if backend == "sqlite":
        _check_file(str(parsed.database))
        _prepare_sqlite(engine)
    try:
        migrate(engine)
        with engine.connect() as connection:
            check_version(connection)
    except exc.DBAPIError as error:
        engine.dispose()
        raise as_store_error(error) from error
    except StoreError:
        engine.dispose()
        raise
    return Store(engine, actor)


def _check_file(name: str) -> None:
    """Raise StoreError if the file is not a SQLite database, or cannot be created."""
    try:
        with Path(name).open("rb") as stream:
            head = stream.read(len(HEAD))
    except FileNotFoundError:
        head = b"" if Path(name).parent.is_dir() else b"no folder"
    except (OSError, ValueError) as error:
        raise StoreError(f"{name!s:.80}: cannot be opened ({error!s:.80})", code="bad-url") from error
    if head not in (b"", HEAD):
        raise StoreError(f"{name!s:.80}: not a store, and none can be created there", code="bad-url")


def _prepare_sqlite(engine: sa.Engine) -> None:
    """Make every commit durable, and let writing transactions wait when they begin."""

    @sa.event.listens_for(engine, "connect")
    def configure_connection(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin explicitly, not where the driver decides
        for setting in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={1000 * PATIENCE}", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}").close()

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("rmab_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
