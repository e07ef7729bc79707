"""Programmes of a service, over HTTP: the same methods as those of a local store."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import pyarrow as pa

from rmab.common import as_integer
from rmab.common.files import write_atomically
from rmab.decisions.decision import Decision
from rmab.errors import ModelError
from rmab.estimation.fit import Fit
from rmab.estimation.statistics import Statistics
from rmab.live import wire
from rmab.live.ahead import Issue
from rmab.live.benefit import Benefit
from rmab.live.events import Create, Event
from rmab.live.link import Link
from rmab.live.planning import as_warm_start
from rmab.live.programme import Programme
from rmab.live.reader import Replay
from rmab.live.rows import as_columns
from rmab.live.shadows import Shadow
from rmab.live.status import Status

TOKEN = "RMAB_TOKEN"  # variable of the environment
PART = 1000  # events that are read at a time
T = TypeVar("T", bound=type)


class RemoteStore(Link):
    """Programmes of a service, as `rmab.live.connect` returns it; a context manager that closes its connections.

    Threads may share it: each has its own connection.
    """

    @property
    def programmes(self) -> list[str]:
        """The names of all programmes that the token may see."""
        names: list[str] = []
        after: str | None = ""
        while after is not None:
            part = self.call("GET", "programmes", {"after": after, "limit": PART})
            names += part["programmes"]
            after = part["next"]
        return names

    def create(self, name: str, **options: Any) -> RemoteProgramme:
        """Create a programme, as `Store.create` does. The same call again returns the existing programme."""
        if not isinstance(options.get("engine"), str | None):
            raise ModelError("engine: over HTTP only a name is supported, without options", field="engine")
        body = {one: list(value) if one == "states" else value for one, value in options.items() if value is not None}
        self.call("POST", "programmes", json_body={"name": name, **body})
        return RemoteProgramme(self, name)

    def programme(self, name: str) -> RemoteProgramme:
        """Return a programme; StoreError if the token has no access to a programme of this name."""
        found = RemoteProgramme(self, name)
        _ = found.head
        return found


def documented_by(source: type) -> Callable[[T], T]:
    """Return a decorator of a class: public members without a docstring have that of the same name of another class."""

    def decorate(target: T) -> T:
        for name, member in vars(target).items():
            if not name.startswith("_") and not member.__doc__:
                member.__doc__ = getattr(source, name).__doc__
        return target

    return decorate


@documented_by(Programme)
class RemoteProgramme:
    """A programme of a service: reads and writes like `Programme`, with the same errors."""

    def __init__(self, store: RemoteStore, name: str, *, frozen_at: int | None = None) -> None:
        self.store, self.name, self._frozen_at = store, name, frozen_at
        self._path = f"programmes/{quote(name, safe='')}"
        self._config: Create | None = None

    def __repr__(self) -> str:
        at = "" if self._frozen_at is None else f", as of {self._frozen_at}"
        return f"RemoteProgramme({self.name!r}{at})"

    def _get(self, path: str = "", **query: Any) -> Any:
        return self.store.call("GET", f"{self._path}{path}", {"as_of": self._frozen_at, **query})

    def _post(self, path: str, body: Mapping[str, Any], key: str | None) -> int:
        if self._frozen_at is not None:
            raise ModelError(f"this is the programme as of event {self._frozen_at}, which is read-only")
        given = {name: value for name, value in body.items() if value is not None}
        found = self.store.call("POST", f"{self._path}{path}", json_body=given, key=uuid4().hex if key is None else key)
        return int(found["event"])

    @property
    def config(self) -> Create:
        if self._config is None:
            self._config = Create.model_validate(self._get()["config"], strict=False)
        return self._config

    @property
    def head(self) -> str:
        return str(self._get()["head"])

    @property
    def statistics(self) -> Statistics:
        return wire.statistics_from_json(self._get("/statistics"))

    @property
    def reach(self) -> dict[str, float]:
        return dict(self._get("/statistics")["reach"])

    @property
    def events(self) -> list[Event]:
        found: list[Event] = []
        after: int | None = 0
        while after is not None:
            part = self._get("/events", after=after, limit=PART)
            found += [Event(**one) for one in part["events"]]
            after = part["next"]
        return found

    def decision(self, period: object) -> Decision:
        return wire.decision_from_json(self._get(f"/decisions/{quote(str(period), safe='')}", everybody=True))

    def benefit(self, *, alpha: float = 0.05, fallback: bool = False) -> Benefit:
        return wire.benefit_from_json(self._get("/benefit", alpha=alpha, fallback=fallback))

    def status(self) -> Status:
        return wire.status_from_json(self._get("/status"))

    def export(self) -> pa.Table:
        with pa.ipc.open_stream(io.BytesIO(self._get("/export.arrow"))) as stream:
            return stream.read_all()

    def as_of(self, sequence: int) -> RemoteProgramme:
        found = RemoteProgramme(self.store, self.name, frozen_at=as_integer(sequence, "sequence"))
        _ = found.head
        return found

    def verify(self, head: str | None = None) -> int:
        return int(self._get("/verify", head=head)["events"])

    def replay(self, *, verify: bool = True) -> Replay:
        found = self._get("/replay", decisions=verify)
        return Replay(found["events"], found["decisions"], tuple(found["differences"]))

    def shadow(self, learner: str) -> Shadow:
        return wire.shadow_from_json(self._get("/shadow", engine=learner))

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        write_atomically(path, self._get("/report"))
        return Path(path)

    def join(
        self,
        arms: Sequence[str],
        *,
        group: str | Sequence[str] | None = None,
        state: str | Sequence[str | None] | None = None,
        period: object = None,
        key: str | None = None,
    ) -> int:
        body = {"arms": [str(one) for one in arms], "group": _plain(group), "state": _plain(state), "period": _label(period)}
        return self._post("/arms", body, key)

    def leave(self, arms: Sequence[str], *, period: object, reason: str = "", key: str | None = None) -> int:
        body = {"arms": [str(one) for one in arms], "period": str(period), "reason": reason}
        return self._post("/departures", body, key)

    def set_budget(self, budget: int | Mapping[Any, int], *, key: str | None = None) -> int:
        if isinstance(budget, Mapping):
            return self._post("/budgets", {"budget": {str(one): int(many) for one, many in budget.items()}}, key)
        return self._post("/budgets", {"budget": as_integer(budget, "budget")}, key)

    def warm_start(
        self, source: Fit | Statistics, *, trust: float = 20.0, groups: Sequence[str] = (), key: str | None = None
    ) -> int:
        body = as_warm_start(source, groups, trust, self.config.states)
        return self._post("/warm-starts", body.model_dump(), key)

    def ask(self, period: object, *, skip: bool = False, issued: int | None = None) -> Decision:
        path = f"{self._path}/decisions/{quote(str(period), safe='')}"
        if self._frozen_at is not None:
            return self.decision(period)
        return wire.decision_from_json(self.store.call("PUT", path, {"skip": skip, "everybody": True, "issued": issued}))

    def ask_ahead(self, periods: int) -> tuple[Issue, ...]:
        found = self.store.call("POST", f"{self._path}/lists-ahead", json_body={"periods": as_integer(periods, "periods")})
        return tuple(Issue(one["event"], wire.decision_from_json(one)) for one in found["lists"])

    def override(
        self, period: object, *, add: Sequence[str] = (), remove: Sequence[str] = (), reason: str, key: str | None = None
    ) -> int:
        label = period.period if isinstance(period, Decision) else str(period)
        names = {"add": [str(one) for one in add], "remove": [str(one) for one in remove]}
        return self._post("/overrides", {"period": label, **names, "reason": reason}, key)

    def tell(self, period: object, rows: Any, *, key: str | None = None, client_at: str = "", skip: bool = False) -> int:
        return self.record(period, rows, key=key, client_at=client_at, skip=skip)

    def correct(self, period: object, rows: Any, *, reason: str, key: str | None = None, skip: bool = False) -> int:
        return self.record(period, rows, reason=reason, key=key, skip=skip)

    def record(
        self,
        period: object,
        rows: Any,
        *,
        reason: str | None = None,
        key: str | None = None,
        client_at: str = "",
        dry_run: bool = False,
        skip: bool = False,
    ) -> int:
        columns = {name: [_value(one) for one in values] for name, values in as_columns(rows).items()}
        body = {"period": str(period), "rows": columns, "reason": reason, "client_at": client_at, "dry_run": dry_run}
        return self._post("/observations", {**body, "skip": skip}, key)

    def missing(
        self, period: object, arms: Sequence[str] | None = None, *, key: str | None = None, skip: bool = False
    ) -> int:
        ids = None if arms is None else [str(one) for one in arms]
        return self._post("/missing", {"period": str(period), "arms": ids, "skip": skip}, key)

    def undo(self, event: int, *, reason: str, key: str | None = None) -> int:
        return self._post("/undo", {"event": as_integer(event, "event"), "reason": reason}, key)

    def snapshot(self) -> None:
        self.store.call("POST", f"{self._path}/snapshots")


def connect(url: str, *, token: str | None = None, timeout: float = 60.0) -> RemoteStore:
    """Connect to a service that `rmab live serve` runs.

    Parameters
    ----------
    url : str
        ``http://127.0.0.1:8321``, or ``https://...`` if it is behind TLS.
    token : str, optional
        From `rmab live token create`; by default the environment variable `RMAB_TOKEN`.
    timeout : float
        Seconds to wait for an answer.

    Returns
    -------
    RemoteStore
        With the methods of `Store`; its programmes have those of `Programme`.

    Examples
    --------
    >>> import rmab
    >>> rmab.live.connect("http://127.0.0.1:8321", token="rmab_...")
    RemoteStore('http://127.0.0.1:8321')
    """
    return RemoteStore(url, os.environ.get(TOKEN, "") if token is None else token, timeout=timeout)


def _plain(value: str | Sequence[str | None] | None) -> Any:
    return value if value is None or isinstance(value, str) else list(value)


def _label(period: object) -> str | None:
    return None if period is None else str(period)


def _value(value: Any) -> Any:
    """Return a cell for JSON: empty if it is not a number."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float):
        return wire.finite(plain) if plain != plain else plain  # noqa: PLR0124  (NaN)
    return plain if plain is None or isinstance(plain, str | int | bool) else str(plain)
