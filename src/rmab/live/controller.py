"""A controller: decisions within milliseconds from the last plan, while a new one is computed in the background.

A plan is a table: the index of every group and state. A decision looks up and chooses the highest, so it never waits for
planning or for the store. If the plan is too old or missing, a declared rule decides, and the decision is marked.
Observations go to a file first, and from there to the store when it can be reached: observations while the store was
unavailable are not lost, and keys make sure that nothing is reported twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from rmab.common import FloatArray, IntArray, as_tolerance
from rmab.errors import FileError, ModelError, RmabError
from rmab.live.observing import Observer
from rmab.live.planning import learn, plan_ahead
from rmab.live.programme import Programme

Rule = Callable[[IntArray, int], IntArray]  # states (N,) and budget -> arms to activate, in order
PAUSE = 0.2  # seconds between two attempts to reach the store


@dataclass(frozen=True)
class Command:
    """A command: what to do now.

    Attributes
    ----------
    active : tuple of str
        The arms to activate, the most urgent first.
    plan_age : float
        Age of the plan in seconds; infinite if there is none.
    safe : bool
        Whether the safe rule decided, because the plan is missing or too old.
    expires : float
        Time (`time.time()`) after which the device must fall back to a safe default.
    """

    active: tuple[str, ...]
    plan_age: float
    safe: bool
    expires: float


@dataclass(frozen=True, eq=False)
class Table:
    """A plan: the index (G, S), its groups, and when it was computed (`time.monotonic()`)."""

    index: FloatArray
    groups: dict[str, int]
    made: float


class Controller:
    """Decide for a fixed set of arms, again and again; a context manager that stops its thread.

    Parameters
    ----------
    p : Programme
        The programme to learn from and report to.
    arms : dict of str to str
        The group of every arm, in the order of the states that `decide` gets.
    safe : function
        Called with states (N,) and the budget if there is no usable plan; returns arms to activate, in order.
    queue : path
        File that stores observations until the store has them.
    stale : float
        Seconds after which a plan is too old.
    lifetime : float
        Seconds after which a command expires.

    Examples
    --------
    >>> import tempfile, rmab
    >>> with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/p.db") as store:
    ...     p = store.create("park", states=["idle", "waiting"], every="5 minutes", budget=1, reward={"idle": 1})
    ...     _ = p.join(["a", "b"])
    ...     busiest = lambda states, budget: (-states).argsort()
    ...     with Controller(p, {"a": "", "b": ""}, queue=f"{folder}/queue", safe=busiest) as c:
    ...         c.decide([0, 1]).active
    ('b',)
    """

    def __init__(
        self,
        p: Programme,
        arms: Mapping[str, str],
        *,
        safe: Rule,
        queue: str | os.PathLike[str],
        stale: float = 900.0,
        lifetime: float = 30.0,
    ) -> None:
        self.p, self.ids, self.safe = p, tuple(arms), safe
        self.group_names = list(arms.values())
        self.stale, self.lifetime = as_tolerance(stale, "stale"), as_tolerance(lifetime, "lifetime")
        self.queue = Path(queue)
        self.config = p.config
        self.budget = self.config.budget
        self.error = ""  # why the last attempt in the background failed
        self._table: Table | None = None
        self._group_of = np.zeros(len(self.ids), dtype=np.int64)
        self._states = np.zeros(len(self.ids), dtype=np.int64)
        self._wake, self._stop, self._file = threading.Event(), threading.Event(), threading.Lock()
        self._finish_lines()
        self._told = 0  # lines of the queue that the store has
        self._thread = threading.Thread(target=self._work, name="rmab controller", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread in the background; observations that the store does not have yet stay in the queue."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def decide(self, states: Any) -> Command:
        """Return what to do now, for arms in states (N,); without waiting."""
        now = np.asarray(states, dtype=np.int64)
        if now.shape != (len(self.ids),) or not ((now >= 0) & (now < len(self.config.states))).all():
            raise ModelError(f"states must be {len(self.ids)} numbers in 0..{len(self.config.states) - 1}")
        self._states = now
        table, expires = self._table, time.time() + self.lifetime
        age = np.inf if table is None else time.monotonic() - table.made
        if table is None or age > self.stale:
            order = np.asarray(self.safe(now, self.budget))[: self.budget]
            return Command(tuple(self.ids[n] for n in order), age, True, expires)
        index = table.index[self._group_of, now]
        order = np.argsort(-index, kind="stable")[: self.budget]
        return Command(tuple(self.ids[n] for n in order if index[n] > 0), age, False, expires)

    def observe(self, period: object, rows: Any) -> None:
        """Store reports of a period, as for `Programme.tell`, on disk; they are sent to the store in the background."""
        line = json.dumps({"period": str(period), "rows": rows})
        try:
            with self._file, self.queue.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{self.queue}: cannot be written ({error})", path=str(self.queue)) from error
        self._wake.set()

    @property
    def waiting(self) -> int:
        """Number of observations that the store does not have yet."""
        return max(len(self._lines()) - self._told, 0)

    def replan(self) -> None:
        """Request a new plan; the old one is used until then."""
        self._wake.set()

    def _finish_lines(self) -> None:
        """Cut off a last line that was not finished when a process died: its caller got no confirmation."""
        if self.queue.exists():
            content = self.queue.read_bytes()
            if not content.endswith(b"\n"):
                os.truncate(self.queue, content.rfind(b"\n") + 1)

    def _lines(self) -> list[str]:
        try:
            with self._file:
                text = self.queue.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return text.splitlines()

    def _work(self) -> None:
        """Send the queue to the store, and plan, until stopped; failures are retried."""
        while not self._stop.is_set():
            try:
                self._tell()
                self._plan()
                self.error = ""
                self._wake.wait(self.stale / 3)
            except (RmabError, OSError) as error:  # the store is unavailable: it may come back
                self.error = str(error)
                self._stop.wait(PAUSE)
                continue
            self._wake.clear()

    def _tell(self) -> None:
        for number, line in enumerate(self._lines()):
            if number >= self._told:
                entry = json.loads(line)
                self.p.tell(entry["period"], entry["rows"], key=f"{self.queue.name} {number}")
                self._told = number + 1

    def _plan(self) -> None:
        with self.p.ledger() as ledger:
            model = learn(ledger, Observer())
            groups = {name: g for g, name in enumerate(ledger.groups)}
            budgets = np.full(self.config.lookahead, float(ledger.usual_budget))
        if not model.knows_effect or np.ptp(model.reward) <= 0:
            return
        group_of = np.array([groups.get(one, 0) for one in self.group_names], dtype=np.int64)
        plan = plan_ahead(model, group_of, np.eye(len(self.config.states))[self._states], budgets)
        self._group_of = group_of
        self._table, self.budget = Table(plan.index, groups, time.monotonic()), ledger.usual_budget
