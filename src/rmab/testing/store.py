"""Contract test of stores of live programmes, for any database."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rmab.errors import LogError, ModelError, StoreError

if TYPE_CHECKING:
    from rmab.live import Programme, Store

CHANGES = {"body": '{"event":1}', "body_hash": "0" * 64, "actor": "somebody", "server_at": "2020-01-01", "key": "other"}
CLIENTS = 16
IDS = [f"arm-{k:02d}" for k in range(24)]
STATES = ["low", "high"]
WEEKS = ["2026-W50", "2026-W51", "2026-W52", "2026-W53", "2027-W01"]


def check_store(url: Callable[[], str], connect: Callable[[str], Any] | None = None) -> None:
    """Check a database against the contract of a store; raise AssertionError with the broken clause.

    Parameters
    ----------
    url : function
        Returns the address of a new, empty database at each call, for example ``sqlite:///3.db``.
    connect : function, optional
        Opens the store at such an address, as a context manager; `rmab.live.open` by default. It may, for example, start a
        service on the database and return `rmab.live.connect` to it.

    Examples
    --------
    >>> import itertools, tempfile, rmab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     number = itertools.count()
    ...     rmab.testing.check_store(lambda: f"sqlite:///{folder}/{next(number)}.db")
    """
    for clause in CLAUSES:
        with ExitStack() as stack:
            address = url()

            def open_it(address: str = address, stack: ExitStack = stack, *, directly: bool = False) -> Store:
                from rmab.live import open as open_store  # noqa: PLC0415  (an extra)

                found: Store = stack.enter_context((open_store if directly else connect or open_store)(address))
                return found

            try:
                clause(open_it)
            except AssertionError as error:
                name = clause.__name__.removeprefix("_").replace("_", " ")
                raise AssertionError(f"check_store, clause '{name}': {error}") from error


Open = Callable[..., Any]


def _programme(store: Store, name: str = "test", **options: Any) -> Programme:
    fields: dict[str, Any] = {"budget": 4, "reward": {"high": 1}, "random_share": 0.25, "control": 0.1, "lookahead": 4}
    p = store.create(name, states=STATES, **{**fields, **options})
    if not p.statistics.counts.any() and len(p.events) == 1:
        p.join(IDS, group=["a", "b"] * 12, state=STATES * 12, key="join")
    return p


def _rows(week: int, seed: int = 0) -> list[dict[str, Any]]:
    draw = random.Random(1000 * week + seed)
    return [{"arm": one, "state": draw.choice(STATES), "executed": draw.choice(["yes", "no"])} for one in IDS]


def _run(p: Programme, weeks: int = 3) -> None:
    for k in range(weeks):
        p.ask(WEEKS[k])
        p.tell(WEEKS[k], _rows(k), key=f"week {k}")


def _refuses(kind: type[Exception], code: str, call: Callable[[], object]) -> None:
    try:
        call()
    except kind as refusal:
        error: Exception | None = refusal
    else:
        error = None
    codes = {getattr(error, "code", ""), *(getattr(one, "code", "") for one in getattr(error, "problems", ()))}
    assert code in codes, f"refused with {codes}, not with {code!r}: {error}" if error else f"not refused ({code})"


def _a_key_is_one_event(open_store: Open) -> None:
    p = _programme(open_store())
    p.ask(WEEKS[0])
    first = p.tell(WEEKS[0], _rows(0), key="k")
    assert p.tell(WEEKS[0], _rows(0), key="k") == first, "the same key and body gave a different event"
    before = p.statistics
    _refuses(ModelError, "key-reused", lambda: p.tell(WEEKS[0], _rows(1), key="k"))
    assert p.statistics == before, "a refused report changed something"


def _reports_that_differ_are_refused(open_store: Open) -> None:
    p = _programme(open_store())
    p.ask(WEEKS[0])
    p.tell(WEEKS[0], [{"arm": "arm-00", "state": "low"}])
    before = len(p.events)
    several = [{"arm": "arm-01", "state": "low"}, {"arm": "arm-00", "state": "high"}]
    _refuses(LogError, "conflict", lambda: p.tell(WEEKS[0], several))
    assert len(p.events) == before, "some rows of a refused report were written"


def _the_order_of_reports_does_not_matter(open_store: Open) -> None:
    store, found = open_store(), []
    pieces = [(week, _rows(week)[k::3]) for week in range(3) for k in range(3)]
    for seed in range(3):
        p = _programme(store, f"order {seed}")
        for week in WEEKS[:3]:
            p.ask(week)
        mixed = pieces + pieces[:2]
        random.Random(seed).shuffle(mixed)
        for number, rows in mixed:
            p.tell(WEEKS[number], rows)
        found.append(p.statistics)
    assert found[0] == found[1] == found[2], "statistics depend on the order"
    assert found[0].counts.sum() > 0, "nothing was counted"


def _corrections_and_undo_leave_no_trace(open_store: Open) -> None:
    p = _programme(open_store())
    _run(p)
    before = p.statistics
    event = p.correct(
        WEEKS[1], [{"arm": "arm-03", "state": "high"}, {"arm": "arm-04", "state": "low"}], reason="typing error"
    )
    changed = p.statistics
    p.undo(event, reason="it was right")
    assert p.statistics == before, "undo left changes"
    assert changed != before or _rows(1)[3]["state"] == "high", "the correction changed nothing"
    _refuses(ModelError, "undo", lambda: p.undo(event, reason="again"))


def _concurrent_asks_are_one_decision(open_store: Open) -> None:
    _run(_programme(open_store()), 2)
    stores, found, errors = [open_store() for _ in range(CLIENTS)], [], []
    barrier = threading.Barrier(CLIENTS)

    def ask(store: Store, k: int) -> None:
        try:
            p = store.programme("test")
            barrier.wait()
            p.tell(WEEKS[1], _rows(1)[k : k + 1], key=f"late {k}")
            found.append(p.ask(WEEKS[2]))
        except Exception as error:  # noqa: BLE001  (reported below, from the main thread)
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(store, k)) for k, store in enumerate(stores)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not errors, f"a client failed: {errors[0]!r}"
    assert len({one.ids for one in found}) == 1, "clients got different lists"
    p = open_store().programme("test")
    assert sum(one.kind == "decide" for one in p.events) == 3, "a period was decided twice"
    p.verify()


def _the_budget_is_never_exceeded(open_store: Open) -> None:
    p = _programme(open_store(), floor=8)
    p.override(WEEKS[0], add=IDS[:2], remove=IDS[2:4], reason="known to the nurse")
    first = p.ask(WEEKS[0])
    assert set(IDS[:2]) <= set(first.ids), "a forced arm is not listed"
    assert not set(IDS[2:4]) & set(first.ids), "an excluded arm is listed"
    assert len(first.ids) <= 4, "over budget"
    others = [one for one in IDS if one not in first.ids]
    for one in others[:2]:
        p.override(WEEKS[0], add=[one], reason="more of them")
        assert len(p.decision(WEEKS[0]).ids) <= 4, "over budget after an override"
    _refuses(ModelError, "budget", lambda: p.override(WEEKS[0], add=others[:5], reason="too many"))
    p.set_budget({WEEKS[1]: 1})
    p.tell(WEEKS[0], _rows(0))
    assert len(p.ask(WEEKS[1]).ids) <= 1, "the budget of the period was not used"


def _a_report_on_a_superseded_list_counts_as_executed(open_store: Open) -> None:
    p = _programme(open_store())
    first = p.ask(WEEKS[0])
    removed = first.ids[0]
    p.override(WEEKS[0], remove=[removed], reason="moved away")
    p.tell(WEEKS[0], [{"arm": removed, "state": "high", "executed": "yes"}])
    assert p.statistics.counts[:, :, 1].sum() == 1, "an executed action is not counted as executed"


def _as_of_never_sees_the_future(open_store: Open) -> None:
    p = _programme(open_store())
    seen = []
    for k in range(3):
        p.ask(WEEKS[k])
        last = p.tell(WEEKS[k], _rows(k))
        seen.append((last, p.statistics, p.decision(WEEKS[k]).ids))
    event = p.correct(WEEKS[0], [{"arm": "arm-05", "state": "low"}, {"arm": "arm-06", "state": "high"}], reason="late")
    p.undo(event, reason="no")
    for k, (last, statistics, ids) in enumerate(seen):
        then = p.as_of(last)
        assert then.statistics == statistics, f"as_of({last}) differs from what was known then"
        assert then.decision(WEEKS[k]).ids == ids, "as_of shows a different list"


def _a_snapshot_and_what_follows_are_the_whole(open_store: Open) -> None:
    p = _programme(open_store())
    _run(p, 2)
    p.leave(IDS[20:22], period=WEEKS[2], reason="moved")
    p.snapshot()
    p.join(IDS[20:21], group="a", state="low", period=WEEKS[3])
    p.ask(WEEKS[2])
    undone = p.tell(WEEKS[2], _rows(2)[:10])
    fresh = open_store().programme("test")
    assert fresh.statistics == p.statistics, "a snapshot and its tail differ from the whole"
    p.undo(undone, reason="wrong week")
    p.undo(4, reason="an event in the snapshot")
    fresh = open_store().programme("test")
    assert fresh.statistics == p.statistics, "an undo of what is in a snapshot is not seen"
    assert not p.replay().differences, "decisions differ on replay"


def _a_changed_byte_is_found(open_store: Open) -> None:
    import sqlalchemy as sa  # noqa: PLC0415  (an extra)

    store = open_store(directly=True)
    p = _programme(open_store())
    _run(p, 2)
    count = p.verify()
    head = p.head
    for column, value in CHANGES.items():
        with store.engine.begin() as connection:
            table = sa.table("rmab_event", sa.column("sequence"), sa.column(column))
            where = table.c.sequence == 3
            old = connection.scalar(sa.select(table.c[column]).where(where))
            connection.execute(sa.update(table).where(where).values({column: value}))
        _refuses(StoreError, "tampered", p.verify)
        with store.engine.begin() as connection:
            connection.execute(sa.update(table).where(where).values({column: old}))
    one = p.events[2]
    for event in (replace(one, actor="somebody"), one):  # sealed again, as somebody would who knows how
        with store.engine.begin() as connection:
            table = sa.table("rmab_event", *(sa.column(name) for name in ("sequence", "actor", "hash")))
            sealed = {"actor": event.actor, "hash": event.expected_hash()}
            connection.execute(sa.update(table).where(table.c.sequence == 3).values(sealed))
        if event is not one:
            _refuses(StoreError, "tampered", p.verify)
    assert p.verify(head) == count, "the journal was not restored"
    with store.engine.begin() as connection:
        connection.execute(sa.text(f"DELETE FROM rmab_event WHERE sequence = {count}"))
    _refuses(StoreError, "tampered", p.verify)


def _clocks_decide_nothing(open_store: Open) -> None:
    store, found = open_store(), []
    for name, times in (
        ("right", ("2026-12-20T10:00", "2026-12-27T10:00")),
        ("wrong", ("2031-01-01T00:00", "1999-01-01T00:00")),
    ):
        p = _programme(store, name)
        for k, at in enumerate(times):
            p.ask(WEEKS[k])
            p.tell(WEEKS[k], _rows(k), client_at=at)
        found.append((p.statistics, [one.body for one in p.events if one.kind != "join"]))
    assert found[0] == found[1], "the clock of a client changed something"


def _two_programmes_do_not_mix(open_store: Open) -> None:
    store = open_store()
    one, other = _programme(store, "one"), _programme(store, "other", budget=2)
    _run(one)
    assert not other.statistics.counts.any(), "reports went to another programme"
    assert store.programmes == ["one", "other"], "names are lost"


CLAUSES = (
    _a_key_is_one_event,
    _reports_that_differ_are_refused,
    _the_order_of_reports_does_not_matter,
    _corrections_and_undo_leave_no_trace,
    _concurrent_asks_are_one_decision,
    _the_budget_is_never_exceeded,
    _a_report_on_a_superseded_list_counts_as_executed,
    _as_of_never_sees_the_future,
    _a_snapshot_and_what_follows_are_the_whole,
    _a_changed_byte_is_found,
    _clocks_decide_nothing,
    _two_programmes_do_not_mix,
)
