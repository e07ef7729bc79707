"""Services of tests: started on a free port, spoken to by plain requests."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import rmab
from rmab.service import Settings, create_token, serving

STATES = ["lapsed", "engaged"]
IDS = [f"m{k:02d}" for k in range(12)]


class Answer(NamedTuple):
    """Status, headers (lower case) and content of an answer."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Caller:
    """Sends requests to a service, with a token or without."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url, self.token = url, token

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request: a body that is no bytes is sent as JSON; headers are written with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        parts = urlsplit(self.url)
        connection = HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        try:
            where = path if path.startswith("/") else f"/api/v1/{path}"
            connection.request(method, where, body, sent)
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()


class Service(NamedTuple):
    """A running service: its store, its address, and what sends requests to it."""

    store: rmab.live.Store
    url: str

    def caller(self, role: str = "", owner: str = "ann", **options: Any) -> Caller:
        """Return what sends requests with a new token of a role, or without one."""
        return Caller(self.url, create_token(self.store.engine, owner, role, **options)[0] if role else "")


@contextmanager
def service(path: Path, settings: Settings | None = None) -> Iterator[Service]:
    """Start a service on a new database, and end it."""
    with rmab.live.open(f"sqlite:///{path}/p.db") as store, serving(store, settings) as url:
        yield Service(store, url)


def fill(store: Any, name: str = "mothers", **options: Any) -> Any:
    """Create a small programme."""
    fields = {"states": STATES, "budget": 3, "reward": {"engaged": 1}, "random_share": 0.3, "action": "call", **options}
    p = store.create(name, **fields)
    p.join(IDS, group=["north", "coast"] * 6, state="lapsed", key="first")
    return p


def rows(ids: Any = IDS, state: str = "engaged") -> list[dict[str, str]]:
    """Return reports of arms."""
    return [{"arm": one, "executed": "yes" if k % 2 else "no", "state": state} for k, one in enumerate(ids)]


class Hub:
    """Starts a service for every database address, once, and connects to it; ends them all."""

    def __init__(self) -> None:
        self._stack, self._urls = ExitStack(), dict[str, str]()

    def connect(self, address: str) -> Any:
        if address not in self._urls:
            store = self._stack.enter_context(rmab.live.open(address))
            self._urls[address] = self._stack.enter_context(serving(store))
        return rmab.live.connect(self._urls[address])

    def close(self) -> None:
        self._stack.close()
