"""The content of a journal: the events of a programme folded into arms, budgets, decisions and reports.

The journal is the truth, and a ledger is rebuilt from it at any time. `rmab.live.changes` has the effect of events: each is
checked completely before anything changes, on writing and on reading, so that nothing is ever half applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rmab.common import BoolArray, IntArray
from rmab.errors import StoreError
from rmab.live.cells import Cells
from rmab.live.changes import Change, change_of
from rmab.live.events import START, Body, Create, Event, Override, WarmStart
from rmab.live.listing import Record
from rmab.live.rows import find_duplicates, row_findings
from rmab.live.stays import Stays
from rmab.logs.findings import Findings, list_some, quote


class Ledger:
    """The state of a programme after some of its events."""

    def __init__(self) -> None:
        self.sequence, self.hash = 0, START
        self.config: Create | None = None
        self.ids: list[str] = []
        self.place: dict[str, int] = {}
        self.groups: list[str] = []
        self.group_of: IntArray = np.zeros(0, dtype=np.int64)  # (N,) the group of every arm that ever joined
        self.stays = Stays()
        self.usual_budget = 0
        self.budgets: dict[int, int] = {}
        self.warm: list[WarmStart] = []
        self.decisions: dict[int, Record] = {}
        self.ahead: dict[int, Record] = {}  # by event, lists that were issued ahead of periods that are not decided yet
        self.pending: dict[int, list[Override]] = {}  # overrides of periods that are not decided yet
        self.cells: dict[int, Cells] = {}
        self.kinds: dict[int, str] = {}
        self.undone: set[int] = set()

    # --- folding -------------------------------------------------------------------------------------------------------

    @classmethod
    def replay(cls, events: Iterable[Event], undone: set[int]) -> Ledger:
        """Return the ledger of events without those that were undone."""
        ledger = cls()
        ledger.undone = undone
        for event in events:
            ledger.step(event, skip=event.sequence in undone)
        return ledger

    def step(self, event: Event, *, skip: bool = False) -> None:
        """Apply the next event of a journal; skip: count it, but change nothing."""
        silent = skip or event.kind == "undo"
        self.advance(event, None if silent else change_of(self, event.parse(), event.sequence))

    def check(self, body: Body) -> Change:
        """Return what the next event would change; ModelError or LogError if it does not fit."""
        return change_of(self, body, self.sequence + 1)

    def advance(self, event: Event, change: Change | None) -> None:
        """Apply the change of the next event, None for no change."""
        if change is not None:
            change()
        self.kinds[event.sequence] = event.kind
        self.sequence, self.hash = event.sequence, event.hash

    # --- what is known -------------------------------------------------------------------------------------------------

    @property
    def declared(self) -> Create:
        """The declaration of the programme; StoreError if the journal does not begin with one."""
        if self.config is None:
            raise StoreError("the journal does not begin with the creation of a programme", code="damaged")
        return self.config

    @property
    def last_period(self) -> int | None:
        """The last period that was decided."""
        return max(self.decisions, default=None)

    @property
    def first_period(self) -> int | None:
        """The first known period."""
        return min([*self.decisions, *self.cells], default=None)

    def label(self, period: int) -> str:
        """Return the label of a period."""
        return self.declared.rhythm.label(period)

    def is_present(self, period: int) -> BoolArray:
        """(N,) who takes part in a period; not to be written to."""
        return self.stays.present(period, len(self.ids))

    def entries(self, period: int) -> IntArray:
        """(N,) the state in which an arm entered, if this is the first period of its stay; otherwise -1."""
        begin = self.first_period if self.first_period is not None else period
        return self.stays.entries(period, begin, len(self.ids))

    def budget(self, period: int) -> int:
        """Return the budget of a period."""
        return self.budgets.get(period, self.usual_budget)

    def cell(self, period: int) -> Cells:
        """Return the reports of a period; empty if there are none."""
        return self.cells.get(period, Cells())

    def enter(self, ids: Sequence[str], groups: Sequence[str], states: Sequence[int], first: int) -> None:
        """Begin a stay of every arm; new arms get a number, and so do new groups."""
        self.add_groups(groups)
        number = {name: g for g, name in enumerate(self.groups)}
        new = [(one, group) for one, group in zip(ids, groups, strict=True) if one not in self.place]
        self.place.update(zip((one for one, _ in new), range(len(self.ids), len(self.ids) + len(new)), strict=True))
        self.ids += [one for one, _ in new]
        self.group_of = np.concatenate([self.group_of, np.array([number[group] for _, group in new], dtype=np.int64)])
        arms = np.array([self.place[one] for one in ids], dtype=np.int64)
        self.stays.begin(arms, first, np.array(states, dtype=np.int64), len(self.ids))

    def add_groups(self, names: Iterable[str]) -> None:
        """Number new groups."""
        known = set(self.groups)
        self.groups += [one for one in dict.fromkeys(names) if one not in known]

    def forced_arms(self, period: int, overrides: Iterable[Override] | None = None) -> tuple[set[int], set[int]]:
        """Return the arms that people added to, and removed from, the list of an undecided period."""
        must: set[int] = set()
        must_not: set[int] = set()
        for one in self.pending.get(period, []) if overrides is None else overrides:
            add, remove = ({self.place[name] for name in ids} for ids in (one.add, one.remove))
            must, must_not = (must - remove) | add, (must_not - add) | remove
        return must, must_not

    # --- looking up ----------------------------------------------------------------------------------------------------

    def find(self, ids: Sequence[str], period: int) -> list[int]:
        """Return the numbers of arms, all of which must take part in a period."""
        findings = row_findings("arms")
        found = self.places(ids, period, findings)
        findings.stop()
        return [int(n) for n in found]

    def places(self, ids: Sequence[str], period: int, findings: Findings) -> IntArray:
        """(M,) the numbers of arms, -1 if unknown; errors are added to findings."""
        arms = np.array([self.place.get(one, -1) for one in ids], dtype=np.int64)
        here = self.is_present(period)
        unknown = np.array([row for row in np.flatnonzero(arms < 0).tolist() if ids[row]], dtype=np.int64)
        for row in unknown[:20].tolist():
            findings.add(f"unknown arm {quote(ids[row])}", row, "unknown-arm")
        if unknown.size > 20:
            findings.add(f"{unknown.size - 20:,} more unknown arms", unknown[20:], "unknown-arm")
        absent = np.flatnonzero((arms >= 0) & ~here[arms]) if here.size else np.zeros(0, dtype=np.int64)
        if absent.size:
            names = list_some([quote(ids[int(row)]) for row in absent])
            findings.add(f"not in the programme in {self.label(period)}: {names}", absent, "absent")
        findings.add_each(*find_duplicates(ids))
        return arms
