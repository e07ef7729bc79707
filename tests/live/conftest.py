"""Databases: SQLite files, and a PostgreSQL server of its own where Debian's is installed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from databases import NUMBER, Server, find_postgres, serve_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Return a server that ends with the tests."""
    binaries, why = find_postgres()
    if binaries is None:
        (pytest.fail if os.environ.get("RMAB_REQUIRE_POSTGRES") else pytest.skip)(why)
    with serve_postgres(binaries) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Return what makes addresses of new, empty databases."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{next(NUMBER)}.db"
    server: Server = request.getfixturevalue("postgres")
    return server.new_database
