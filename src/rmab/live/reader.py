"""The read side of a live programme: decisions, evidence, journal, and the lists of another engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import sqlalchemy as sa

from rmab.common import as_integer
from rmab.decisions.decision import Decision
from rmab.errors import ModelError, RmabError, StoreError
from rmab.estimation.statistics import Statistics
from rmab.learning import Learner
from rmab.live.ahead import make_list
from rmab.live.benefit import Benefit, measure_benefit
from rmab.live.deciding import is_same, make_decision, to_decision
from rmab.live.engines import Engine, check_informed, check_rolling, engine_of, engine_text
from rmab.live.events import Ahead, Body, Correct, Create, Decide, Event, Undo
from rmab.live.journal import Journal, reading
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.live.shadows import Shadow, compare_lists
from rmab.live.snapshots import load_ledger
from rmab.live.status import Status, find_status
from rmab.live.tables import export_table

if TYPE_CHECKING:
    from rmab.live.store import Store

LONGEST = 19  # most digits of a number in a database


@dataclass(frozen=True)
class Replay:
    """What a replay found: the number of events, of decisions, and the periods whose decision would now be different."""

    events: int
    decisions: int
    differences: tuple[str, ...]


class Reader:
    """The read side of a live programme. Threads may share it.

    Three facts are stored per arm and period: whether it was **decided** (on the list), whether it was **executed** (the
    call was made), and the **state** in which the period ended.
    """

    def __init__(self, store: Store, name: str, *, frozen_at: int | None = None) -> None:
        self.store, self.name = store, name
        self.journal = Journal(store.engine, name)
        self._frozen_at = frozen_at
        self._ledger, self._observer = Ledger(), Observer()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        at = "" if self._frozen_at is None else f", as of {self._frozen_at}"
        return f"{type(self).__name__}({self.name!r}{at})"

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Yield the current ledger; no other thread changes it meanwhile."""
        with self._lock:
            self.refresh()
            yield self._ledger

    def refresh(self) -> None:
        """Read what other processes have written."""
        with self._lock, reading(self.store.engine) as connection:
            self._catch_up(connection, *self.journal.head(connection))

    def known_budget(self, period: int | None) -> tuple[int, int] | None:
        """Return a period and its budget as last read, without waiting for the store or for other threads.

        None stands for the period after all known ones. The answer is None if nothing has been read.
        """
        ledger = self._ledger
        if ledger.config is None:
            return None
        if period is None:
            period = max([*ledger.decisions, *ledger.cells], default=(ledger.stays.last_first or 0) - 1) + 1
        return period, ledger.budget(period)

    def _catch_up(self, connection: sa.Connection, head: int, digest: str) -> None:
        """Fold the events that are new; StoreError if the journal does not continue what was read before."""
        ledger = self._ledger
        if self._frozen_at is not None:
            if ledger.sequence == 0:
                self._ledger = load_ledger(connection, self.journal, self._frozen_at)
            return
        if (ledger.sequence, ledger.hash) == (head, digest):
            return
        try:
            if ledger.sequence == 0 or self.journal.undone(connection, ledger.sequence):
                self._check_continues(connection, head)
                self._ledger, self._observer = load_ledger(connection, self.journal), Observer()
                return
            self._check_continues(connection, head)
            for event in self.journal.read(connection, ledger.sequence):
                ledger.step(event)
        except BaseException as error:  # whatever stopped it: a half-folded ledger must not be used again
            self._ledger, self._observer = Ledger(), Observer()
            if isinstance(error, RmabError):
                self.journal.verify()  # a changed event is reported as such
            raise

    def _check_continues(self, connection: sa.Connection, head: int) -> None:
        known = self._ledger.sequence
        if known == 0:
            return
        there = list(self.journal.read(connection, known - 1, known)) if known <= head else []
        if not there or there[0].hash != self._ledger.hash:
            what = f"the journal no longer has event {known} as it was read before; was a backup restored?"
            raise StoreError(f"{what} Report again what was reported since the backup", code="went-back", event=known)

    @property
    def config(self) -> Create:
        """The settings of the programme; they never change."""
        with self._lock:
            if self._ledger.config is None:
                self.refresh()
            return self._ledger.declared

    @property
    def head(self) -> str:
        """Number and hash of the last event, as `verify` takes it: store it elsewhere to detect a journal that was reset."""
        with self.ledger() as ledger:
            return f"{ledger.sequence}:{ledger.hash}"

    @property
    def statistics(self) -> Statistics:
        """Observed transitions by group, state, executed action and next state, and rewards by period."""
        with self.ledger() as ledger:
            return self._observer.statistics(ledger)

    @property
    def reach(self) -> dict[str, float]:
        """Fraction of decisions that were carried out, by group."""
        with self.ledger() as ledger:
            rates = self._observer.reach(ledger)
            return {name: float(rates[g]) for g, name in enumerate(ledger.groups)}

    def is_superseded(self, key: str) -> bool:
        """Return whether the event with a key no longer counts: it was undone, or corrected again since."""
        with self.ledger() as ledger, reading(self.store.engine) as connection:
            event = self.journal.find(connection, key)
            if event is None or event.sequence in ledger.undone:
                return event is not None
            body = event.parse()
            if not isinstance(body, Correct):
                return False
            later = [one for one in self.journal.read(connection, event.sequence) if one.kind == Correct.KIND]
            others = [one.parse() for one in later if one.sequence not in ledger.undone]
            return any(
                isinstance(one, Correct) and one.period == body.period and not set(one.arms).isdisjoint(body.arms)
                for one in others
            )

    @property
    def events(self) -> list[Event]:
        """The journal."""
        with reading(self.store.engine) as connection:
            return list(self.journal.read(connection, through=self._frozen_at))

    def decision(self, period: object) -> Decision:
        """Return the current decision of a period; ModelError if it is not decided."""
        with self.ledger() as ledger:
            number = ledger.declared.rhythm.number(period)
            if number not in ledger.decisions:
                raise ModelError(f"{ledger.label(number)} is not decided yet; ask for it first", code="not-decided")
            return to_decision(ledger, ledger.decisions[number])

    def benefit(self, *, alpha: float = 0.05, fallback: bool = False) -> Benefit:
        """Return the measured benefit of the lists, without a model, beside the model's prediction.

        Parameters
        ----------
        alpha : float
            Probability that the interval misses the truth in any period.
        fallback : bool
            Whether to measure the lists of the fallback, which is another policy, instead of planned ones.
        """
        with self.ledger() as ledger:
            return measure_benefit(ledger, alpha, fallback=fallback)

    def status(self) -> Status:
        """Return what is due, what is missing, and what looks wrong."""
        with self.ledger() as ledger:
            return find_status(ledger)

    def export(self) -> pa.Table:
        """Return one row per arm and decided period, for analysis in other tools."""
        with self.ledger() as ledger:
            return export_table(ledger)

    def as_of(self, sequence: int) -> Self:
        """Return the programme as it was known after an event; read-only."""
        with self.ledger() as ledger:
            last = ledger.sequence
        at = as_integer(sequence, "sequence")
        if not 1 <= at <= last:
            raise ModelError(f"as_of must be in 1..{last}, got {at}")
        return type(self)(self.store, self.name, frozen_at=at)

    def verify(self, head: str | None = None) -> int:
        """Recompute the chain of hashes, and return the number of events.

        Parameters
        ----------
        head : str, optional
            An earlier `head` that the journal must still contain.

        Raises
        ------
        StoreError
            At the first event that was changed, or if the journal is shorter than before.
        """
        count = self.journal.verify()
        if head is not None:
            number, _, digest = head.partition(":")
            at = int(number) if number.isdecimal() and len(number) < LONGEST else 0
            with reading(self.store.engine) as connection:
                there = list(self.journal.read(connection, at - 1, at)) if at else []
            if not there or there[0].hash != digest:
                raise StoreError(f"the journal does not contain event {number} as it was", code="went-back")
        return count

    def replay(self, *, verify: bool = True) -> Replay:
        """Read the whole journal again; verify: also recompute every decision, as of its time, and compare.

        Raises
        ------
        StoreError
            If the journal was changed, or does not reproduce the current statistics.
        """
        count, differences, decisions = self.journal.verify(), [], 0
        ledger = Ledger()
        for ledger, observer, body in self._history():
            if isinstance(body, Decide) and not isinstance(body, Ahead):
                decisions += 1
                again = make_list(ledger, observer, body.period, issued=body.issued) if verify else body
                if not is_same(again, body):
                    differences.append(ledger.label(body.period))
        if Observer().statistics(ledger) != self.statistics:
            raise StoreError("the journal does not reproduce the current statistics; report this as a bug", code="diverged")
        return Replay(count, decisions, tuple(differences))

    def _history(self) -> Iterator[tuple[Ledger, Observer, Body | None]]:
        """Yield every event with the ledger as it was before it; and finally the current ledger, and None."""
        ledger, observer, undone = Ledger(), Observer(), set[int]()
        with reading(self.store.engine) as connection:
            for event in self.journal.read(connection, through=self._frozen_at):
                body = event.parse()
                yield ledger, observer, body
                if isinstance(body, Undo):
                    undone.add(body.event)
                    events = self.journal.read(connection, through=event.sequence)
                    ledger, observer = Ledger.replay(events, set(undone)), Observer()
                else:
                    ledger.step(event)
        yield ledger, observer, None

    def shadow(self, learner: Engine) -> Shadow:
        """Return what another engine would have decided, period by period, as of the time of every decision.

        It decides nothing and is not stored: everything is rebuilt from the journal.

        Parameters
        ----------
        learner : str, dict or Learner
            'mean', 'sampled', the name of a learner, ``{"name": "ucmd", "estimator": "fading"}``, or a learner.

        Returns
        -------
        Shadow
            Its lists, and how far they agree with those that were decided.
        """
        engine = learner if isinstance(learner, Learner) else engine_of(engine_text(learner, ""))
        (check_rolling if self.config.horizon is None else check_informed)(engine)
        pairs = []
        own = Observer()  # separate caches, as the engine differs
        for ledger, _, body in self._history():
            if isinstance(body, Undo):
                own = Observer()
            if isinstance(body, Decide) and not isinstance(body, Ahead):
                pairs.append((ledger.label(body.period), body, make_decision(ledger, own, body.period, engine)))
        return compare_lists(pairs)

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Write a page for the programme's managers, and return its path: status, benefit, and who gets places.

        FileError if it cannot be written; the page is written atomically.
        """
        from rmab.live.page import write_report  # noqa: PLC0415  (an extra)

        with self.ledger() as ledger:
            return write_report(ledger, self._observer, self.name, path)
