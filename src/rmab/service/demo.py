"""A simulated programme: weekly calls in four districts, a year of events, then one more week per click.

Nobody in it is real. Groups respond to calls differently; some reports never arrive, some are late, some are wrong and
corrected; people join and leave; calls do not reach everybody; lists are changed by hand now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rmab.common import FloatArray
from rmab.live.periods import Rhythm
from rmab.live.programme import Programme
from rmab.live.store import Store
from rmab.service.pages.frame import Sent, go, programme_path
from rmab.service.shared import acting

NAME = "mothers"
STATES = ("lapsed", "wavering", "engaged")
DISTRICTS = ("coast", "hills", "north", "river")
GAIN = (0.15, 0.3, 0.45, 0.6)  # effect of a call, by district
REACHED, REPORTED, LATE, WRONG = 0.7, 0.88, 0.05, 0.01
ACTOR = "simulation"
router = APIRouter(include_in_schema=False)


class Demo:
    """A simulated world and its programme.

    Parameters
    ----------
    store : Store
        An empty one.
    arms, budget : int
        Number of people at first, and calls per week.
    seed : int
        Random seed of the world.
    """

    def __init__(self, store: Store, *, arms: int = 300, budget: int = 24, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._states: dict[str, int] = {}
        self._district: dict[str, int] = {}
        self._late: list[dict[str, Any]] = []
        store.actor = ACTOR
        self.p: Programme = store.create(
            NAME,
            states=STATES,
            budget=budget,
            reward={"engaged": 1},
            random_share=0.25,
            control=0.05,
            floor=30,
            seed=seed,
            action="call",
        )
        self._rhythm = Rhythm.of("week")
        self._enter(arms, None)

    def play(self, weeks: int = 52, show: Callable[[int], None] = lambda _: None) -> None:
        """Play so many weeks, the last of which is this week; its list is made, its reports are outstanding."""
        today = datetime.now(UTC).isocalendar()
        first = self._rhythm.number(f"{today.year}-W{today.week:02d}") - weeks + 1
        for k in range(weeks):
            self._ask(first + k)
            if k < weeks - 1:
                self._report(first + k)
            show(k + 1)

    def next(self, actor: str = ACTOR) -> None:
        """Play one more week: the reports of the last one arrive, and the next list is made."""
        with acting(actor), self.p.ledger() as ledger:
            last = ledger.last_period
            assert last is not None
            self._report(last)
            self._ask(last + 1)

    def _enter(self, count: int, period: int | None) -> None:
        ids = [f"m{len(self._states) + k + 1:04d}" for k in range(count)]
        districts, states = self._rng.integers(4, size=count), self._rng.choice(3, size=count, p=[0.45, 0.3, 0.25])
        for one, district, state in zip(ids, districts, states, strict=True):
            self._district[one], self._states[one] = int(district), int(state)
        groups, names = [DISTRICTS[d] for d in districts], [STATES[s] for s in states]
        self.p.join(ids, group=groups, state=names, period=None if period is None else self._rhythm.label(period))

    def _ask(self, period: int) -> None:
        label, rng = self._rhythm.label(period), self._rng
        listed = list(self.p.ask(label).ids)
        if rng.random() < 0.3 and listed:
            others = sorted(set(self._here(period)) - set(listed))
            out, new = str(rng.choice(listed)), str(rng.choice(others))
            reason = str(rng.choice(["called last Friday", "asked not to be called this week", "in hospital"]))
            self.p.override(label, remove=[out], add=[new], reason=reason)

    def _here(self, period: int) -> list[str]:
        with self.p.ledger() as ledger:
            return [ledger.ids[n] for n in np.flatnonzero(ledger.is_present(period))]

    def _report(self, period: int) -> None:
        """Simulate a week, and report most of it."""
        label, rng, here = self._rhythm.label(period), self._rng, self._here(period)
        listed = set(self.p.decision(label).ids)
        reached = {one for one in listed if rng.random() < REACHED}
        for one in here:
            chances = _kernel(self._district[one], self._states[one], called=one in reached)
            self._states[one] = int(rng.choice(3, p=chances))
        rows: list[dict[str, Any]] = []
        for one in here:
            if rng.random() > REPORTED and one not in listed:
                continue
            row: dict[str, Any] = {
                "arm": one,
                "state": STATES[self._states[one]],
                **({"executed": one in reached} if one in listed else {}),
            }
            is_late = rng.random() < LATE and one not in listed
            (self._late if is_late else rows).append({**row, "period": label} if is_late else row)
        self.p.tell(label, rows)
        self._correct(label, rows)
        for earlier in {one["period"] for one in self._late} - {label}:
            old = [one for one in self._late if one["period"] == earlier]
            self.p.tell(earlier, [{name: value for name, value in one.items() if name != "period"} for one in old])
        self._late = [one for one in self._late if one["period"] == label]
        self._turn_over(period + 1, here)

    def _correct(self, label: str, rows: list[dict[str, Any]]) -> None:
        wrong = [one for one in rows if self._rng.random() < WRONG][:2]
        if wrong:
            fixed = [{"arm": one["arm"], "state": str(self._rng.choice(STATES))} for one in wrong]
            self.p.correct(label, fixed, reason="misread form")

    def _turn_over(self, period: int, here: list[str]) -> None:
        leaving = [str(one) for one in self._rng.choice(here, size=int(self._rng.integers(0, 3)), replace=False)]
        if leaving:
            self.p.leave(leaving, period=self._rhythm.label(period), reason="moved away")
        if self._rng.random() < 0.6:
            self._enter(int(self._rng.integers(1, 4)), period)


def _kernel(district: int, state: int, *, called: bool) -> FloatArray:
    base = np.array([[0.8, 0.15, 0.05], [0.3, 0.5, 0.2], [0.06, 0.16, 0.78]])[state]
    gain = GAIN[district] if called else 0.0
    return np.asarray((1 - gain) * base + gain * np.array([0.05, 0.25, 0.7]))


@router.post("/demo/next")
async def play_on(request: Request, sent: Sent) -> Response:
    """Play one more week of the simulated programme."""
    await run_in_threadpool(request.app.state.demo.next, sent.visitor.account.owner)
    return go(programme_path(NAME), done="made")
