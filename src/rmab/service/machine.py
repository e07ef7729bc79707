"""The endpoint for machines: states in, commands out, within milliseconds.

It runs on the event loop and waits neither for planning nor for the database: a `Controller` plans in its own thread.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from rmab.common import IntArray
from rmab.errors import ModelError
from rmab.live.controller import Command, Controller
from rmab.live.programme import Programme
from rmab.live.wire import finite
from rmab.service import schemas
from rmab.service.access import Name, find_programme
from rmab.service.accounts import Account
from rmab.service.auth import find_caller
from rmab.service.problems import Problem

router = APIRouter(tags=["machines"])
SHOWN = 5  # most arms in a message


class Machine:
    """The endpoint of one programme. Without a plan its fallback decides: the longest waiting, random arms, or nobody."""

    def __init__(self, p: Programme, arms: Mapping[str, str], folder: Path, lifetime: float) -> None:
        self.ids, self.known = tuple(arms), frozenset(arms)
        self.states = {one: k for k, one in enumerate(p.config.states)}
        self._fallback, self._turn = p.config.fallback, 0
        self._last = np.zeros(len(self.ids), dtype=np.int64)
        self._draws = random.Random(p.config.seed)
        queue = folder / f"{abs(hash(p.name))}.queue"
        self.controller = Controller(p, arms, safe=self._choose, queue=queue, lifetime=lifetime)

    def decide(self, states: Mapping[str, str], period: str | None = None) -> Command:
        """Return what to do, for arms in these states; all arms must be given. period: whose budget holds."""
        self._check(states)
        found = self.controller.decide([self.states[states[one]] for one in self.ids], period=period)
        self._turn += 1
        place = {one: n for n, one in enumerate(self.ids)} if found.active else {}
        self._last[[place[one] for one in found.active]] = self._turn
        return found

    def _check(self, states: Mapping[str, str]) -> None:
        if states.keys() != self.known:
            absent = [one for one in self.ids if one not in states][:SHOWN]
            unknown = [one for one in states if one not in self.known][:SHOWN]
            what = f"missing: {', '.join(absent)}" if absent else f"unknown arms: {', '.join(unknown)}"
            raise ModelError(f"states: {what}", code="unknown-arm", field="states")
        for one in self.ids:
            if states[one] not in self.states:
                raise ModelError(
                    f"states: {states[one]!r:.60} of {one!r:.60} is not a state; available: {', '.join(self.states)}",
                    arm=one,
                )

    def _choose(self, states: IntArray, budget: int) -> IntArray:
        if self._fallback == "nothing":
            return np.zeros(0, dtype=np.int64)
        if self._fallback == "random":
            return np.array(self._draws.sample(range(len(states)), min(budget, len(states))), dtype=np.int64)
        return np.argsort(self._last, kind="stable")


class Machines:
    """The machines of all programmes; each is created on first use."""

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # folder of queues, created on demand
        self._machines: dict[str, Machine] = {}
        self._lock = threading.Lock()

    def find(self, name: str, states: Mapping[str, str]) -> Machine | None:
        """Return the machine of a programme, if it exists and has these arms."""
        found = self._machines.get(name)
        return found if found is not None and states.keys() == found.known else None

    def make(self, p: Programme, states: Mapping[str, str]) -> Machine:
        """Return the machine of a programme, for the current arms."""
        with self._lock:
            found = self.find(p.name, states)
            if found is not None:
                return found
            with p.ledger() as ledger:
                now = ledger.last_period
                begins = ledger.stays.last_first
                known = max([*ledger.cells, *([] if begins is None else [begins])], default=0) if now is None else now + 1
                here = np.flatnonzero(ledger.is_present(known))
                arms = {ledger.ids[n]: ledger.groups[ledger.group_of[n]] for n in here}
            if not arms:
                raise ModelError("the programme has no arms yet; join arms first")
            old = self._machines.get(p.name)
            if old is not None and tuple(arms) == old.ids:
                return old
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="rmab-machines-")
            machine = Machine(p, arms, Path(self._folder.name), self._lifetime)
            self._machines[p.name] = machine
        if old is not None:
            old.controller.close()
        return machine

    def close(self) -> None:
        """Stop all threads."""
        for one in self._machines.values():
            one.controller.close()
        if self._folder is not None:
            self._folder.cleanup()


@router.post("/programmes/{name}/decide", response_model=schemas.CommandOut)
async def decide(
    request: Request, name: Name, body: schemas.States, account: Annotated[Account, Depends(find_caller)]
) -> dict[str, Any]:
    """Return what to do now, for arms in these states, from the last plan and within the budget of the period.

    Nothing is recorded: report what was executed.
    """
    if not account.may("operator", name):
        await run_in_threadpool(find_programme, request, account, name, "operator")
        raise Problem(403, "role", "this needs the role 'operator'")
    machines: Machines = request.app.state.machines
    machine = machines.find(name, body.states)
    if machine is None:
        p = await run_in_threadpool(find_programme, request, account, name, "operator")
        machine = await run_in_threadpool(machines.make, p, body.states)
    found = machine.decide(body.states, body.period)
    return {**vars(found), "active": list(found.active), "plan_age": finite(found.plan_age)}
