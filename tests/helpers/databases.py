"""Databases of tests: a PostgreSQL server of its own, where Debian's is installed, and new databases in it."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NUMBER = itertools.count()


def find_postgres() -> tuple[Path | None, str]:
    """Return the folder of its programs, or None and why there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    where = shutil.which("pg_ctl")
    binaries = found[-1].parent if found else Path(where).parent if where else None
    if binaries is None:
        return None, "PostgreSQL is not installed (apt-get install postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return None, "there is no user postgres that PostgreSQL could run as: it refuses to run as root"
    return binaries, ""


@dataclass(frozen=True)
class Server:
    """A running server: the folder of its socket, and what starts and stops it."""

    folder: str
    control: tuple[str, ...]

    def run(self, *words: str) -> None:
        done = subprocess.run([*words], capture_output=True, text=True, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stderr

    def restart(self) -> None:
        """End all connections at once, and start again."""
        self.run(*self.control, "-m", "immediate", "restart")

    def new_database(self) -> str:
        """Return the address of a new, empty database."""
        import psycopg

        name = f"test{next(NUMBER)}"
        with psycopg.connect(host=self.folder, user="rmab", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return f"postgresql://rmab@/{name}?host={self.folder}"


@contextmanager
def serve_postgres(binaries: Path) -> Iterator[Server]:
    """Start a server on a socket in a temporary folder; as root, as the user postgres."""
    root = os.geteuid() == 0
    become = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups") if root else ()
    with tempfile.TemporaryDirectory(prefix="rmab-pg-", dir="/tmp") as folder:  # a socket's path must be short
        Path(folder).chmod(0o755)
        home = Path(folder) / "data"
        home.mkdir()
        for place in (folder, home) if root else ():
            shutil.chown(place, "postgres", "postgres")
        options = f"-c listen_addresses='' -k {folder} -c max_connections=200"
        where = ("-D", str(home), "-w", "-o", options, "-l", f"{folder}/log")
        server = Server(folder, (*become, str(binaries / "pg_ctl"), *where))
        initdb = (*become, str(binaries / "initdb"), "-D", str(home), "-A", "trust", "-U", "rmab", "--no-sync", "-E", "UTF8")
        server.run(*initdb)
        server.run(*server.control, "start")
        try:
            yield server
        finally:
            server.run(*server.control, "-m", "immediate", "stop")


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
