"""A live programme: join, ask, tell, correct, undo. Every call that changes something is one event of its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import sqlalchemy as sa

from rmab.common import as_integer
from rmab.decisions.decision import Decision
from rmab.errors import ModelError, StoreError, raise_as
from rmab.estimation.fit import Fit
from rmab.estimation.statistics import Statistics
from rmab.live.ahead import MOST_AHEAD, Issue, make_ahead, make_list, newest_ahead
from rmab.live.changes import Change
from rmab.live.deciding import check_past, check_period, check_report, is_same, to_decision
from rmab.live.events import Body, Budget, Correct, Event, Join, Leave, Missing, Override, Tell, Undo
from rmab.live.journal import HeadMovedError, Stamp, writing
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.live.planning import as_warm_start
from rmab.live.reader import Reader
from rmab.live.reporting import find_wrong
from rmab.live.rows import as_ids, per_arm, report_columns, state_codes
from rmab.live.snapshots import write_snapshot

TRIES = 5  # attempts beside other writers; then the writers wait


class Programme(Reader):
    """A live programme, as `Store.create` and `Store.programme` return it. Threads may share it.

    Three facts are stored per arm and period: whether it was **decided** (on the list), whether it was **executed** (the
    call was made), and the **state** in which the period ended.
    """

    def write(self, body: Body, stamp: Stamp, *, expected: int | None = None) -> Event:
        """Append one event, checked, and fold it."""
        with self._lock:
            if self._frozen_at is not None:
                raise ModelError(f"this is the programme as of event {self._frozen_at}, which is read-only")

            change: Change | None = None
            without: Ledger | None = None  # the ledger without the event that is undone

            def check(connection: sa.Connection, head: int, digest: str) -> None:
                nonlocal change, without
                self._catch_up(connection, head, digest)
                change = self._ledger.check(body)
                if isinstance(body, Undo):
                    with raise_as(ModelError, f"undo of event {body.event}: "):
                        without = Ledger.replay(self.journal.read(connection), self._ledger.undone | {body.event})

            event, is_new = self.journal.append(body, stamp, check, expected=expected)
            if is_new:
                self._fold(event, change, without)
            return event

    def _fold(self, event: Event, change: Change | None, without: Ledger | None) -> None:
        """Fold an event that is committed: the journal already has it, and is read again if folding fails."""
        try:
            if without is None:
                self._ledger.advance(event, change)
            else:
                without.advance(event, None)
                self._ledger, self._observer = without, Observer()
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
        """Add arms. A new arm uses the estimates of its group; a new group those of all arms.

        Parameters
        ----------
        arms : sequence of str
            Their ids; no names or phone numbers.
        group : str or sequence of str, optional
            Group of all arms, or of each.
        state : str or sequence of str, optional
            State in which they enter, if known.
        period : label, optional
            Their first period. Optional until the first period is decided.
        key : str, optional
            Idempotency key: the same call with the same key is one event.

        Returns
        -------
        int
            The number of the event.
        """
        return self.write(self.make_join(arms, group, state, period), self._stamp(key)).sequence

    def make_join(
        self,
        arms: Sequence[str],
        group: str | Sequence[str] | None,
        state: str | Sequence[str | None] | None,
        period: object,
    ) -> Join:
        """Return the event of new arms, without writing it."""
        config = self.config
        ids = as_ids(arms)
        states = state_codes(config.states)
        given = per_arm(state, len(ids), "state")
        codes = [-1 if one is None else states.get(one, states.get(str(one).casefold())) for one in given]
        unknown = [one for one, code in zip(given, codes, strict=True) if code is None]
        if unknown:
            raise ModelError(f"unknown state {unknown[0]!r:.60}; available: {', '.join(config.states)}")
        return Join.checked(
            period=None if period is None else config.rhythm.number(period),
            arms=ids,
            group=["" if one is None else str(one) for one in per_arm(group, len(ids), "group")],
            state=codes,
        )

    def leave(self, arms: Sequence[str], *, period: object, reason: str = "", key: str | None = None) -> int:
        """Remove arms: `period` is the first one without them. Their last transition is not counted."""
        body = Leave.checked(period=self._number(period), arms=as_ids(arms), reason=reason)
        return self.write(body, self._stamp(key)).sequence

    def set_budget(self, budget: int | Mapping[Any, int], *, key: str | None = None) -> int:
        """Change the budget: from now on, or in single periods ``{"2026-W48": 150}``."""
        if isinstance(budget, Mapping):
            body = Budget.checked(periods=[(self._number(one), as_integer(many, "budget")) for one, many in budget.items()])
        else:
            body = Budget.checked(usual=as_integer(budget, "budget"))
        return self.write(body, self._stamp(key)).sequence

    def warm_start(
        self, source: Fit | Statistics, *, trust: float = 20.0, groups: Sequence[str] = (), key: str | None = None
    ) -> int:
        """Start from other data: a model fitted to a log, or statistics of `groups`.

        Each group, state and action counts as at most `trust` visits.
        """
        body = as_warm_start(source, groups, trust, self.config.states)
        return self.write(body, self._stamp(key)).sequence

    def ask(self, period: object, *, skip: bool = False, issued: int | None = None) -> Decision:
        """Return the decision of a period, and make it if there is none: every caller gets the same.

        Parameters
        ----------
        period : label
            The period, such as '2026-W47'. It is rejected if a later one is decided, or if it is far after all known ones:
            by more than 4 periods and more than a day.
        skip : bool
            Allow a period that is far from all known ones.
        issued : int, optional
            Event of a list that `ask_ahead` issued for this period and that was used: it becomes the decision.

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
                        self._decide(number, issued, patient=attempt < TRIES)
                    except HeadMovedError:
                        continue
                elif issued is not None and ledger.decisions[number].body.issued != issued:
                    raise ModelError(f"{ledger.label(number)} is already decided, by another list", code="decided")
                return self.decision(period)
        raise StoreError("too many concurrent writes; try again", code="busy")  # pragma: no cover

    def _decide(self, number: int, issued: int | None, *, patient: bool) -> None:
        if patient:
            body = make_list(self._ledger, self._observer, number, issued=issued)
            stamp = self._stamp(f"decide/{self._ledger.label(number)}")
            self.write(body, stamp, expected=body.through)
            return
        with writing(self.store.engine) as connection:  # the others wait here, so that a plan can be finished
            self._catch_up(connection, *self.journal.lock(connection))
            if number not in self._ledger.decisions:
                body = make_list(self._ledger, self._observer, number, issued=issued)
                self._ledger.check(body)
                stamp = self._stamp(f"decide/{self._ledger.label(number)}")
                self.journal.insert(connection, body, stamp, self._ledger.sequence, self._ledger.hash)

    def ask_ahead(self, periods: int) -> tuple[Issue, ...]:
        """Issue lists for the next periods ahead, for people who may be offline; they decide nothing yet.

        Each is made as if those before it were carried out. Call it again when data have arrived: newer lists replace the
        older ones. When a period comes, `ask` decides it from current data; if a list that was issued ahead was
        used, ``ask(period, issued=event)`` records which one.

        Parameters
        ----------
        periods : int
            Number of periods, starting after the last decided one.

        Returns
        -------
        tuple of Issue
            The event of every list, and the list.
        """
        count = as_integer(periods, "periods")
        if not 1 <= count <= MOST_AHEAD:
            raise ModelError(f"periods must be in 1..{MOST_AHEAD}, got {count}")
        found = []
        for k in range(1, count + 1):
            with self.ledger() as ledger:
                if ledger.last_period is None:
                    raise ModelError("ask_ahead: no period is decided yet; decide the first one with ask")
                body = make_ahead(ledger, self._observer, ledger.last_period + k)
                newest = newest_ahead(ledger, body.period)
                if newest is not None and is_same(newest.body, body):
                    found.append(Issue(newest.sequence, to_decision(ledger, newest)))
                    continue
                event = self.write(body, self._stamp(None)).sequence
            with self.ledger() as ledger:
                found.append(Issue(event, to_decision(ledger, ledger.ahead[event])))
        return tuple(found)

    def override(
        self, period: object, *, add: Sequence[str] = (), remove: Sequence[str] = (), reason: str, key: str | None = None
    ) -> int:
        """Add arms to the list of a period, or remove them; also before the period is decided.

        Arms that people add use the budget first. The original probabilities stay on record.
        """
        label = period.period if isinstance(period, Decision) else period
        ids = {"add": as_ids(add, "add"), "remove": as_ids(remove, "remove")}
        body = Override.checked(period=self._number(label), **ids, reason=reason)
        with self.ledger() as ledger:
            if body.period not in ledger.decisions:
                check_past(ledger, body.period)
        return self.write(body, self._stamp(key)).sequence

    def tell(self, period: object, rows: Any, *, key: str | None = None, client_at: str = "", skip: bool = False) -> int:
        """Report what happened in a period: late, in parts, repeated, in any order.

        Parameters
        ----------
        period : label
            The period.
        rows : list of dict, dict of columns, DataFrame or Arrow table
            `arm`, and any of: `state` in which the period ended, `executed` yes or no, `reward`. Empty cells are not
            reported, and never count as 0 or no.
        key : str, optional
            Idempotency key.
        client_at : str, optional
            Time of the client's clock; it is recorded only.
        skip : bool
            Allow a period that is far from all known ones.

        Raises
        ------
        LogError
            Lists every wrong row, and every row that contradicts an earlier report; use `correct` for these.
        """
        return self.record(period, rows, key=key, client_at=client_at, skip=skip)

    def correct(self, period: object, rows: Any, *, reason: str, key: str | None = None, skip: bool = False) -> int:
        """Replace earlier reports of a period; rows and `skip` as in `tell`. Empty cells change nothing."""
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
        """Like `tell`, or like `correct` if a reason is given; dry_run: only check, and return 0."""
        config = self.config
        columns, findings = report_columns(rows, config.states)
        kind, fields = Tell if reason is None else Correct, {**columns, "reason": reason or ""}
        number = config.rhythm.number(period)
        with self.ledger() as ledger:
            check_report(ledger, number, skip=skip)
            if findings.errors:  # with all conflicts of these rows with the journal
                find_wrong(ledger, kind.model_construct(period=number, **fields), findings)
                findings.stop()
            body = kind.checked(period=number, **fields)
            if dry_run:
                ledger.check(body)
                return 0
        return self.write(body, self._stamp(key, client_at)).sequence

    def missing(
        self, period: object, arms: Sequence[str] | None = None, *, key: str | None = None, skip: bool = False
    ) -> int:
        """Declare that reports of arms will never arrive; by default of all arms without one. Late ones still count.

        skip: allow a period that is far from all known ones.
        """
        number = self._number(period)
        with self.ledger() as ledger:
            check_report(ledger, number, skip=skip)
            silent = ledger.is_present(number) & (ledger.cell(number).states(len(ledger.ids)) < 0)
            ids = [ledger.ids[n] for n in np.flatnonzero(silent)] if arms is None else as_ids(arms)
        if not ids:
            raise ModelError(f"all reports of {period} have arrived; none can be declared missing")
        return self.write(Missing.checked(period=number, arms=ids), self._stamp(key)).sequence

    def undo(self, event: int, *, reason: str, key: str | None = None) -> int:
        """Undo an event; rejected if later events depend on it."""
        return self.write(Undo.checked(event=as_integer(event, "event"), reason=reason), self._stamp(key)).sequence

    def snapshot(self) -> None:
        """Store all reports in one piece, so that the next start is fast."""
        with self._lock, writing(self.store.engine) as connection:
            self._catch_up(connection, *self.journal.head(connection))
            write_snapshot(connection, self.name, self._ledger)
