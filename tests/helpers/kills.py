"""Kill a client with SIGKILL at every statement of every operation, and look at what it left: run as a program.

Usage: python kills.py URL, of an empty database. Every point has a programme of its own. Prints how many points there were.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

import rmab

IDS = ["a", "b", "c", "d"]
WEEK = ["2026-W47", "2026-W48"]
REPORTS = [{"arm": one, "state": "high", "executed": "no"} for one in IDS]
OPERATIONS: dict[str, Callable[[Any, str], Any]] = {  # each with a key, so that it can be tried again
    "create": lambda store, p: store.create(f"{p} new", states=["low", "high"], budget=1, reward={"high": 1}),
    "join": lambda store, p: store.programme(p).join(["e", "f"], period=WEEK[1], key="kill"),
    "ask": lambda store, p: store.programme(p).ask(WEEK[1]),
    "tell": lambda store, p: store.programme(p).tell(WEEK[0], REPORTS, key="kill"),
    "override": lambda store, p: store.programme(p).override(WEEK[1], add=["a"], reason="r", key="kill"),
    "ahead": lambda store, p: store.programme(p).ask_ahead(1),
    "correct": lambda store, p: store.programme(p).correct(WEEK[0], REPORTS, reason="r", key="kill"),
    "missing": lambda store, p: store.programme(p).missing(WEEK[0], IDS, key="kill"),
    "leave": lambda store, p: store.programme(p).leave(["a"], period=WEEK[1], key="kill"),
    "budget": lambda store, p: store.programme(p).set_budget(3, key="kill"),
    "undo": lambda store, p: store.programme(p).undo(2, reason="r", key="kill"),
    "snapshot": lambda store, p: store.programme(p).snapshot(),
}


def prepare(url: str, name: str) -> None:
    with rmab.live.open(url) as store:
        p = store.create(name, states=["low", "high"], budget=1, reward={"high": 1})
        p.set_budget({WEEK[1]: 2})  # event 2, which can be undone
        p.join(IDS, state="low")
        p.ask(WEEK[0])


def child(url: str, name: str, kind: str, point: int, pipe: int) -> None:
    """Carry out an operation, and die before statement number `point` of its transaction, at or after the commit."""
    store, count = rmab.live.open(url), 0

    def step(connection: Any = None, *_: object, **__: object) -> None:
        nonlocal count
        if connection is not None and not connection.get_execution_options().get("rmab_write"):
            return
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    for moment in ("before_cursor_execute", "commit"):
        sa.event.listen(store.engine, moment, step)
    usual = rmab.live.Programme._fold

    def fold(self: Any, *args: Any) -> None:
        step()  # it is committed, and nobody knows yet
        usual(self, *args)

    rmab.live.Programme._fold = fold  # type: ignore[method-assign]
    OPERATIONS[kind](store, name)
    os.write(pipe, b"done")
    os._exit(0)


def state(url: str, start: str) -> tuple[Any, ...]:
    """Everything that a reader sees of programmes whose names begin so; the journals must verify."""
    with rmab.live.open(url) as store:
        found = []
        for name in (one for one in store.programmes if one.startswith(start)):
            p = store.programme(name)
            p.verify()
            with p.ledger() as ledger:
                facts = (len(ledger.ids), ledger.budgets, sorted(ledger.decisions), p.statistics.counts.tolist())
            found.append((name, [(one.kind, one.body) for one in p.events], facts))
        return tuple(found)


def main(url: str) -> int:
    points = 0
    for kind, operation in OPERATIONS.items():
        for point in itertools.count():
            name = f"{kind} {point:02d}"
            prepare(url, name)
            before = state(url, name)
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                child(url, name, kind, point, writer)
            os.close(writer)
            answer = os.read(reader, 10)
            os.close(reader)
            _, status = os.waitpid(pid, 0)
            after = state(url, name)
            with rmab.live.open(url) as store:
                operation(store, name)  # a client tries again what was not acknowledged
            again = state(url, name)
            if answer == b"done":
                assert after == again, f"{kind}: an acknowledged event was lost"
                break
            assert os.WIFSIGNALED(status), f"{name}: the client failed otherwise"
            assert after in (before, again), f"{name}: something was left half done"
            with rmab.live.open(url) as store:
                operation(store, name)
            assert state(url, name) == again, f"{name}: a repeated call did something twice"
            points += 1
    return points


if __name__ == "__main__":
    sys.stdout.write(str(main(sys.argv[1])))
