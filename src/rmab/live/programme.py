"""A live programme: join, ask, tell, correct, undo. Every call that changes something is one event of its journal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from rmab.common import as_integer
from rmab.decisions.decision import Decision
from rmab.errors import ModelError, StoreError, raised_as
from rmab.estimation.fit import Fit
from rmab.estimation.statistics import Statistics
from rmab.live.benefit import Benefit, measure_benefit
from rmab.live.changes import Change
from rmab.live.deciding import check_period, is_same, make_decision, to_decision
from rmab.live.events import (
    Body,
    Budget,
    Correct,
    Create,
    Decide,
    Event,
    Join,
    Leave,
    Missing,
    Override,
    Tell,
    Undo,
    WarmStart,
)
from rmab.live.journal import HeadMovedError, Journal, Stamp, reading, writing
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.live.rows import per_arm, report_columns
from rmab.live.snapshots import load_ledger, write_snapshot
from rmab.live.status import Status, find_status
from rmab.live.tables import export_table

if TYPE_CHECKING:
    from rmab.live.store import Store

LONGEST = 19  # digits of a number that a database can hold
TRIES = 5  # plans beside other writers; then one is made while they wait


@dataclass(frozen=True)
class Replay:
    """What a replay found: the number of events, of decisions, and the periods of those that would now be made otherwise."""

    events: int
    decisions: int
    differences: tuple[str, ...]


class Programme:
    """A live programme, as `Store.create` and `Store.programme` return it. Threads may share it.

    Three facts are kept for every arm and period: whether it was **decided** (on the list), whether it was **executed** (the
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
        return f"Programme({self.name!r}{at})"

    # --- reading -------------------------------------------------------------------------------------------------------

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Yield what the journal says now; no other thread changes it meanwhile."""
        with self._lock:
            self.refresh()
            yield self._ledger

    def refresh(self) -> None:
        """Read what others have written."""
        with self._lock, reading(self.store.engine) as connection:
            self._catch_up(connection, *self.journal.head(connection))

    def _catch_up(self, connection: sa.Connection, head: int, digest: str) -> None:
        """Fold the events that are new; StoreError where the journal is not a continuation of what was read before."""
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
        except BaseException:  # whatever stopped it: a half-folded ledger must not be used again
            self._ledger, self._observer = Ledger(), Observer()
            raise

    def _check_continues(self, connection: sa.Connection, head: int) -> None:
        known = self._ledger.sequence
        if known == 0:
            return
        there = list(self.journal.read(connection, known - 1, known)) if known <= head else []
        if not there or there[0].hash != self._ledger.hash:
            what = f"the journal no longer has event {known} as it was read before; was a backup restored?"
            raise StoreError(f"{what} Tell again what was told since", code="went-back", event=known)

    @property
    def config(self) -> Create:
        """What was declared when the programme was created; it never changes."""
        with self._lock:
            if self._ledger.config is None:
                self.refresh()
            return self._ledger.declared

    @property
    def head(self) -> str:
        """Number and hash of the last event, as `verify` takes it: keep it elsewhere, to find out if a journal went back."""
        with self.ledger() as ledger:
            return f"{ledger.sequence}:{ledger.hash}"

    @property
    def statistics(self) -> Statistics:
        """What was seen: transitions by group, state, executed action and next state, and rewards by period."""
        with self.ledger() as ledger:
            return self._observer.statistics(ledger)

    @property
    def reach(self) -> dict[str, float]:
        """How often a decision was carried out, by group."""
        with self.ledger() as ledger:
            rates = self._observer.reach(ledger)
            return {name: float(rates[g]) for g, name in enumerate(ledger.groups)}

    @property
    def events(self) -> list[Event]:
        """The journal."""
        with reading(self.store.engine) as connection:
            return list(self.journal.read(connection, through=self._frozen_at))

    def decision(self, period: object) -> Decision:
        """Return the decision of a period as it stands; ModelError where it is not decided."""
        with self.ledger() as ledger:
            number = ledger.declared.rhythm.number(period)
            if number not in ledger.decisions:
                raise ModelError(f"{ledger.label(number)} is not decided: ask for it", code="not-decided")
            return to_decision(ledger, ledger.decisions[number])

    def benefit(self, *, alpha: float = 0.05) -> Benefit:
        """Return what the list has brought, shown without a model, beside what the model had promised.

        Parameters
        ----------
        alpha : float
            The probability that the interval misses the truth at any of all periods.
        """
        with self.ledger() as ledger:
            return measure_benefit(ledger, alpha)

    def status(self) -> Status:
        """Return what is due, what is missing, and what looks wrong."""
        with self.ledger() as ledger:
            return find_status(ledger)

    def export(self) -> pa.Table:
        """Return one row per arm and decided period, for an analysis elsewhere."""
        with self.ledger() as ledger:
            return export_table(ledger)

    def as_of(self, sequence: int) -> Programme:
        """Return the programme as it was known after an event; it can be read, not written to."""
        with self.ledger() as ledger:
            last = ledger.sequence
        at = as_integer(sequence, "sequence")
        if not 1 <= at <= last:
            raise ModelError(f"as_of: there are events 1..{last}, not {at}")
        return Programme(self.store, self.name, frozen_at=at)

    def verify(self, head: str | None = None) -> int:
        """Recompute the chain of hashes, and return the number of events.

        Parameters
        ----------
        head : str, optional
            An earlier `head` that the journal must still contain.

        Raises
        ------
        StoreError
            At the first event that was changed, or where the journal is shorter than it was.
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
        """Read the whole journal again; verify: and make every decision again, as of its time, and compare.

        Raises
        ------
        StoreError
            Where the journal was changed, or does not lead to the statistics that are in use.
        """
        count = self.journal.verify()
        events = self.events
        ledger, observer = Ledger(), Observer()
        differences, decisions = [], 0
        for k, event in enumerate(events):
            body = event.parse()
            if isinstance(body, Decide):
                decisions += 1
                if verify and not is_same(make_decision(ledger, observer, body.period), body):
                    differences.append(ledger.label(body.period))
            if isinstance(body, Undo):
                undone = {one.event for other in events[: k + 1] if isinstance(one := other.parse(), Undo)}
                ledger, observer = Ledger.replay(events[: k + 1], undone), Observer()
            else:
                ledger.step(event)
        if Observer().statistics(ledger) != self.statistics:
            raise StoreError("the journal leads to other statistics than those in use: report this", code="diverged")
        return Replay(count, decisions, tuple(differences))

    # --- writing -------------------------------------------------------------------------------------------------------

    def write(self, body: Body, stamp: Stamp, *, expected: int | None = None) -> Event:
        """Append one event, checked, and fold it."""
        with self._lock:
            if self._frozen_at is not None:
                raise ModelError(f"this is the programme as of event {self._frozen_at}: it cannot be written to")

            change: Change | None = None

            def check(connection: sa.Connection, head: int, digest: str) -> None:
                nonlocal change
                self._catch_up(connection, head, digest)
                change = self._ledger.check(body)
                if isinstance(body, Undo):
                    with raised_as(ModelError, f"undo of event {body.event}: "):
                        Ledger.replay(self.journal.read(connection), self._ledger.undone | {body.event})

            event, is_new = self.journal.append(body, stamp, check, expected=expected)
            if is_new:
                self._fold(event, change)
            return event

    def _fold(self, event: Event, change: Change | None) -> None:
        """Fold an event that is committed: whatever happens now, the journal has it, and is read again if need be."""
        try:
            if event.kind == "undo":
                self._ledger, self._observer = Ledger(), Observer()
            else:
                self._ledger.advance(event, change)
        except BaseException:
            self._ledger, self._observer = Ledger(), Observer()
            raise

    def _stamp(self, key: str | None, client_at: str = "") -> Stamp:
        return Stamp(uuid4().hex if key is None else key, self.store.actor, client_at)

    def _number(self, period: object) -> int:
        return self.config.rhythm.number(period)

    def join(
        self,
        arms: Sequence[str],
        *,
        group: str | Sequence[str] | None = None,
        state: str | Sequence[str | None] | None = None,
        period: object = None,
        key: str | None = None,
    ) -> int:
        """Let arms take part. An arm inherits what its group has taught; a new group what all have.

        Parameters
        ----------
        arms : sequence of str
            Their ids; no names or phone numbers.
        group : str or sequence of str, optional
            The group of all, or of each.
        state : str or sequence of str, optional
            The state in which they enter, where it is known.
        period : label, optional
            The first period with them. It can be left out until the first period is decided.
        key : str, optional
            Idempotency key: the same call with the same key is one event.

        Returns
        -------
        int
            The number of the event.
        """
        config = self.config
        ids = [str(one) for one in arms]
        states = {name: k for k, name in enumerate(config.states)}
        given = per_arm(state, len(ids), "state")
        unknown = [one for one in given if one is not None and one not in states]
        if unknown:
            raise ModelError(f"state: there is no state {unknown[0]!r:.60}; the states are {', '.join(config.states)}")
        body = Join.checked(
            period=None if period is None else config.rhythm.number(period),
            arms=ids,
            group=["" if one is None else str(one) for one in per_arm(group, len(ids), "group")],
            state=[-1 if one is None else states[one] for one in given],
        )
        return self.write(body, self._stamp(key)).sequence

    def leave(self, arms: Sequence[str], *, period: object, reason: str = "", key: str | None = None) -> int:
        """Let arms leave: `period` is the first one without them. Their last transition is not counted."""
        body = Leave.checked(period=self._number(period), arms=[str(one) for one in arms], reason=reason)
        return self.write(body, self._stamp(key)).sequence

    def set_budget(self, budget: int | Mapping[Any, int], *, key: str | None = None) -> int:
        """Change how many can be activated: from now on, or in single periods ``{"2026-W48": 150}``."""
        if isinstance(budget, Mapping):
            body = Budget.checked(periods=[(self._number(one), as_integer(many, "budget")) for one, many in budget.items()])
        else:
            body = Budget.checked(usual=as_integer(budget, "budget"))
        return self.write(body, self._stamp(key)).sequence

    def warm_start(
        self, source: Fit | Statistics, *, trust: float = 20.0, groups: Sequence[str] = (), key: str | None = None
    ) -> int:
        """Begin with what was seen elsewhere: a model fitted to a log, or statistics of `groups`.

        Each group, state and action counts as at most `trust` visits.
        """
        with self.ledger() as ledger:
            names = tuple(ledger.declared.states)
        if isinstance(source, Fit):
            if set(source.state_names) != set(names):
                raise ModelError(f"warm_start: the model has states {', '.join(source.state_names)}, not {', '.join(names)}")
            order = [source.state_names.index(one) for one in names]
            counts = source.statistics.counts[:, order][..., order]
            labels: Sequence[str] = source.groups if source.groups != ("everybody",) else ("",)
        else:
            counts, labels = source.counts, groups or ("",)
        body = WarmStart.checked(groups=list(labels), counts=counts.astype(np.float64).tolist(), trust=float(trust))
        return self.write(body, self._stamp(key)).sequence

    def ask(self, period: object, *, skip: bool = False) -> Decision:
        """Return the decision of a period, and make it if nobody has: whoever asks gets the same.

        Parameters
        ----------
        period : label
            The period, such as '2026-W47'. Earlier ones than the last decided are refused, and so are those far ahead.
        skip : bool
            Ask for a period far ahead on purpose.

        Returns
        -------
        Decision
            Rows with arm, action, index, probability and reason.
        """
        for attempt in range(TRIES + 1):
            with self.ledger() as ledger:
                number = ledger.declared.rhythm.number(period)
                if number not in ledger.decisions and self._frozen_at is None:
                    check_period(ledger, number, skip=skip)
                    try:
                        self._decide(number, patient=attempt < TRIES)
                    except HeadMovedError:
                        continue
                return self.decision(period)
        raise StoreError("others write so fast that no decision could be made", code="busy")  # pragma: no cover

    def _decide(self, number: int, *, patient: bool) -> None:
        if patient:
            body = make_decision(self._ledger, self._observer, number)
            stamp = self._stamp(f"decide/{self._ledger.label(number)}")
            self.write(body, stamp, expected=body.through)
            return
        with writing(self.store.engine) as connection:  # the others wait here, so that a plan can be finished
            self._catch_up(connection, *self.journal.lock(connection))
            if number not in self._ledger.decisions:
                body = make_decision(self._ledger, self._observer, number)
                self._ledger.check(body)
                stamp = self._stamp(f"decide/{self._ledger.label(number)}")
                self.journal.insert(connection, body, stamp, self._ledger.sequence, self._ledger.hash)

    def override(
        self, period: object, *, add: Sequence[str] = (), remove: Sequence[str] = (), reason: str, key: str | None = None
    ) -> int:
        """Put arms on the list of a period, or take them off it; of a period that is not decided yet, too.

        Arms that people add use the budget first. The probabilities that were drawn stay on record.
        """
        label = period.period if isinstance(period, Decision) else period
        ids = {"add": [str(one) for one in add], "remove": [str(one) for one in remove]}
        body = Override.checked(period=self._number(label), **ids, reason=reason)
        return self.write(body, self._stamp(key)).sequence

    def tell(self, period: object, rows: Any, *, key: str | None = None, client_at: str = "") -> int:
        """Report what happened in a period: late, in parts, repeated, in any order.

        Parameters
        ----------
        period : label
            The period.
        rows : list of dict, dict of columns, DataFrame or Arrow table
            `arm`, and any of: `state` in which the period ended, `executed` yes or no, `reward`. What is empty is not
            reported, and never taken for 0 or no.
        key : str, optional
            Idempotency key.
        client_at : str, optional
            The time of the client's clock; it is recorded and decides nothing.

        Raises
        ------
        LogError
            With every row that is wrong, or says something else than an earlier report: that takes `correct`.
        """
        return self.report(period, rows, key=key, client_at=client_at)

    def correct(self, period: object, rows: Any, *, reason: str, key: str | None = None) -> int:
        """Replace what was reported of a period; rows as in `tell`. What is empty stays as it is."""
        return self.report(period, rows, reason=reason, key=key)

    def report(
        self,
        period: object,
        rows: Any,
        *,
        reason: str | None = None,
        key: str | None = None,
        client_at: str = "",
        dry_run: bool = False,
    ) -> int:
        """Do what `tell` does, or `correct` where a reason is given; dry_run: check it, write nothing, and return 0."""
        config = self.config
        kind, columns = Tell if reason is None else Correct, report_columns(rows, config.states)
        body = kind.checked(period=config.rhythm.number(period), **columns, reason=reason or "")
        if dry_run:
            with self.ledger() as ledger:
                ledger.check(body)
            return 0
        return self.write(body, self._stamp(key, client_at)).sequence

    def missing(self, period: object, arms: Sequence[str] | None = None, *, key: str | None = None) -> int:
        """Declare that the reports of arms will not come; by default of all that have none. Late ones still count."""
        number = self._number(period)
        with self.ledger() as ledger:
            silent = ledger.is_present(number) & (ledger.cell(number).states(len(ledger.ids)) < 0)
            ids = [ledger.ids[n] for n in np.flatnonzero(silent)] if arms is None else [str(one) for one in arms]
        if not ids:
            raise ModelError(f"no report of {period} is missing")
        return self.write(Missing.checked(period=number, arms=ids), self._stamp(key)).sequence

    def undo(self, event: int, *, reason: str, key: str | None = None) -> int:
        """Let an event count as if it had never happened; refused where later events build on it."""
        return self.write(Undo.checked(event=as_integer(event, "event"), reason=reason), self._stamp(key)).sequence

    def snapshot(self) -> None:
        """Store the reports in one piece, so that the next start need not read them one by one."""
        with self._lock, writing(self.store.engine) as connection:
            self._catch_up(connection, *self.journal.head(connection))
            write_snapshot(connection, self.name, self._ledger)
