"""A controller: decisions within milliseconds from the last plan, while a new one is computed in the background.

A plan is a table: the index of every group and state. A decision looks up and chooses the highest, so it never waits for
planning or for the store. If the plan is too old or missing, a declared rule decides, and the decision is marked.
The budget is that of the current period, as last read: a change by the same process holds at once, one by another process
within about a second. Failures in the background are retried, and shown in every command.
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
from rmab.errors import FileError, ModelError, RmabError, notify
from rmab.live.observing import Observer
from rmab.live.planning import learn, plan_ahead
from rmab.live.programme import Programme

Rule = Callable[[IntArray, int], IntArray]  # states (N,) and budget -> arms to activate, in order
PAUSE, LONGEST = 0.2, 10.0  # seconds between the first two attempts after a failure, and between the last two
LOOK = 1.0  # seconds after which events of other processes are read


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
    period : str
        The period whose budget holds.
    budget : int
        Its budget, which `active` never exceeds.
    warning : str
        Why the safe rule decided, or what failed in the background; empty if nothing did.
    """

    active: tuple[str, ...]
    plan_age: float
    safe: bool
    expires: float
    period: str
    budget: int
    warning: str


@dataclass(frozen=True, eq=False)
class Table:
    """A plan: the index (G, S), the group (N,) of every arm, and when it was computed (`time.monotonic()`)."""

    index: FloatArray
    group_of: IntArray
    made: float


class Controller:
    """Decide for a fixed set of arms, again and again; a context manager that stops its thread.

    Parameters
    ----------
    p : Programme
        The programme to learn from and report to; of a local store, not of `rmab.live.connect`.
    arms : dict of str to str
        The group of every arm, in the order of the states that `decide` gets.
    safe : function
        Called with states (N,) and the budget if there is no usable plan; returns the positions of the arms to activate,
        the most urgent first.
    queue : path
        File that stores observations until the store has them.
    stale : float
        Seconds after which a plan is too old. A new one is made after a third of that time, and soon after new events.
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
        if not isinstance(p, Programme):
            hint = "a programme of rmab.live.connect answers at POST /programmes/NAME/decide"
            raise ModelError(f"Controller needs a programme of rmab.live.open, got {type(p).__name__}; {hint}")
        self.p, self.ids, self.safe = p, tuple(arms), safe
        self.group_names = list(arms.values())
        self.stale, self.lifetime = as_tolerance(stale, "stale"), as_tolerance(lifetime, "lifetime")
        self.queue = Path(queue)
        self.config = p.config
        self._budget = (0, 0)  # the last known period and its budget
        self._troubles = {"queue": "", "plan": "", "store": ""}  # what failed in the background, by task
        self._ignorance = "no plan has been made yet"
        self._table: Table | None = None
        self._states = np.zeros(len(self.ids), dtype=np.int64)
        self._wake, self._stop, self._file = threading.Event(), threading.Event(), threading.Lock()
        self._finish_lines()
        self._stored: set[int] = set()  # lines of the queue that the store has
        self._head = self._planned = 0  # the last event, and the last one of the plan
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._work, self._watch)]
        for one in self._threads:
            one.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the threads in the background; observations that the store does not have yet stay in the queue."""
        self._stop.set()
        self._wake.set()
        for one in self._threads:
            one.join()

    @property
    def error(self) -> str:
        """What failed in the background, and is retried; empty if nothing did."""
        return "; ".join(dict.fromkeys(one for one in self._troubles.values() if one))

    def decide(self, states: Any, *, period: object = None) -> Command:
        """Return what to do now, for arms in states (N,); without waiting.

        Parameters
        ----------
        states : (N,) int array
            The state of each arm, as its number in the programme's states.
        period : label, optional
            The period whose budget holds: by default the current one by the clock or, if periods are plain numbers, the
            one after the last known.
        """
        now = np.asarray(states, dtype=np.int64)
        if now.shape != (len(self.ids),) or not ((now >= 0) & (now < len(self.config.states))).all():
            raise ModelError(f"states must be {len(self.ids)} numbers in 0..{len(self.config.states) - 1}")
        rhythm = self.config.rhythm
        number = rhythm.current() if period is None else rhythm.number(period)
        at, budget = self._budget = self.p.known_budget(number) or self._budget
        self._states = now
        table, error = self._table, self.error
        shared: dict[str, Any] = {"expires": time.time() + self.lifetime, "period": rhythm.label(at), "budget": budget}
        age = np.inf if table is None else time.monotonic() - table.made
        if table is None or age > self.stale:
            order = np.asarray(self.safe(now, budget))[:budget]
            why = error or (self._ignorance if table is None else f"the last plan is {age:.0f} seconds old")
            return Command(tuple(self.ids[n] for n in order), age, True, warning=why, **shared)
        index = table.index[table.group_of, now]
        order = np.argsort(-index, kind="stable")[:budget]
        return Command(tuple(self.ids[n] for n in order if index[n] > 0), age, False, warning=error, **shared)

    def observe(self, period: object, rows: Any, *, skip: bool = False) -> None:
        """Store reports of a period on disk, as for `Programme.tell`; they are sent to the store in the background.

        A report that the store refuses stays in the queue and is named in `error`; the others are sent all the same.
        """
        line = json.dumps({"period": str(period), "rows": rows, "skip": skip})
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
        return max(len(self._lines()) - len(self._stored), 0)

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
        """Send the queue to the store, and plan, until stopped; failures are retried, less and less often."""
        pause = PAUSE
        while not self._stop.is_set():
            self._wake.clear()
            if all([self._attempt("queue", self._tell), self._attempt("plan", self._plan)]):
                pause = PAUSE
                self._wake.wait(self.stale / 3)
            else:
                self._stop.wait(pause)
                pause = min(2 * pause, LONGEST)

    def _watch(self) -> None:
        """Read what others have written, and request a plan if there is something new, but not all the time."""
        while not self._stop.wait(LOOK):
            self._attempt("store", self._look)
            table = self._table
            if self._head != self._planned and (table is None or time.monotonic() - table.made > self.stale / 30):
                self._wake.set()

    def _attempt(self, task: str, call: Callable[[], str]) -> bool:
        """Return whether a call succeeded. What failed, or what the call returns, is shown in the commands."""
        try:
            self._troubles[task] = call()
        except (RmabError, OSError) as error:  # the store is unavailable: it may come back
            self._troubles[task] = str(error)
        except Exception as error:  # noqa: BLE001  (a thread that ends unnoticed leaves the safe rule in charge)
            what = f"{type(error).__name__}: {error}"
            if self._troubles[task] != what:
                notify(f"controller of {self.p.name!r}: {what}; report this as a bug")
            self._troubles[task] = what
        else:
            return True
        return False

    def _look(self) -> str:
        with self.p.ledger() as ledger:
            self._head = ledger.sequence
        return ""

    def _tell(self) -> str:
        """Send what the store does not have yet, and return what it refuses; StoreError if it cannot be reached."""
        refused = ""
        for number, line in enumerate(self._lines()):
            if number in self._stored:
                continue
            entry = json.loads(line)
            try:
                key = f"{self.queue.name} {number}"
                self.p.tell(entry["period"], entry["rows"], key=key, skip=entry.get("skip", False))
            except ModelError as error:
                refused = refused or f"{self.queue.name}, line {number + 1}: {error}"
            else:
                self._stored.add(number)
        return refused

    def _plan(self) -> str:
        with self.p.ledger() as ledger:
            model = learn(ledger, Observer())
            groups = {name: g for g, name in enumerate(ledger.groups)}
            sequence, now = ledger.sequence, self.config.rhythm.current()
            first, _ = self.p.known_budget(now) or (0, 0)
            budgets = np.array([ledger.budget(first + k) for k in range(self.config.lookahead)], dtype=np.float64)
        self._ignorance = model.ignorance or "the first plan is not ready yet"
        if not model.ignorance:
            group_of = np.array([groups.get(one, 0) for one in self.group_names], dtype=np.int64)
            belief = np.eye(len(self.config.states))[self._states]
            plan = plan_ahead(model, group_of, belief, np.maximum(budgets, 1e-9))
            self._table = Table(plan.index, group_of, time.monotonic())
        self._head = max(self._head, sequence)
        self._planned = sequence
        return ""
