"""What goes wrong in the field: clients that die, full disks, restarts, restored backups, newer schemas, memory."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import rmab
from databases import Server
from rmab.errors import StoreError
from rmab.live import schema
from rmab.live.ledger import Ledger

HELPERS = Path(__file__).parents[1] / "helpers"
IDS = [f"arm {k}" for k in range(6)]


def small(store: Any, **options: Any) -> Any:
    p = store.create("p", states=["low", "high"], budget=2, reward={"high": 1}, **options)
    p.join(IDS, state="low", key="join")
    return p


def reports(state: str = "high") -> list[dict[str, str]]:
    return [{"arm": one, "state": state, "executed": "no"} for one in IDS]


@pytest.mark.slow
def test_a_client_that_is_killed_at_any_statement_leaves_all_or_nothing(fresh_url: Callable[[], str]) -> None:
    done = subprocess.run([sys.executable, HELPERS / "kills.py", fresh_url()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 70


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p = small(store)
        p.ask("2026-W47")
        before = p.head

        @sa.event.listens_for(store.engine, "connect")
        def full(connection: Any, _: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages}")

        store.engine.dispose()
        rows = [{"arm": one, "state": "high"} for one in IDS]

        def write_on() -> None:
            for k in range(2000):
                p.override("2026-W48", add=[IDS[0]], reason="x" * 1500, key=str(k))

        with pytest.raises(StoreError, match="full"):
            write_on()
        assert p.verify(before) >= 3
        sa.event.remove(store.engine, "connect", full)
        store.engine.dispose()
        p.tell("2026-W47", rows)
        assert p.verify(before) == len(p.events)


def test_a_database_that_restarts_is_found_again(postgres: Server) -> None:
    with rmab.live.open(postgres.new_database()) as store:
        p = small(store)
        p.ask("2026-W47")
        postgres.restart()
        p.tell("2026-W47", reports(), key="k")
        p.verify()
        assert p.tell("2026-W47", reports(), key="k") == 4


def test_a_connection_that_breaks_in_the_middle_is_tried_again(postgres: Server) -> None:
    with rmab.live.open(postgres.new_database()) as store:
        p = small(store)
        p.ask("2026-W47")
        broken = []

        @sa.event.listens_for(store.engine, "before_cursor_execute")
        def restart(connection: Any, cursor: Any, statement: str, *_: object) -> None:
            if statement.startswith("INSERT") and not broken:
                broken.append(statement)
                postgres.restart()

        p.tell("2026-W47", reports(), key="k")
        assert broken
        assert [one.kind for one in p.events] == ["create", "join", "decide", "tell"]
        p.verify()


def test_a_restored_backup_is_noticed_and_the_work_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = rmab.live.open(str(path))
    p = small(store)
    p.ask("2026-W47")
    store.backup(tmp_path / "yesterday.db")
    with pytest.raises(rmab.errors.FileError, match="the file exists"):
        store.backup(tmp_path / "yesterday.db")
    p.tell("2026-W47", reports(), key="monday")
    head = p.head
    store.engine.dispose()
    for old in tmp_path.glob("x.db-*"):
        old.unlink()
    shutil.copy(tmp_path / "yesterday.db", path)
    with pytest.raises(StoreError, match=r"was a backup restored\? Report again") as caught:
        p.ask("2026-W48")
    assert caught.value.code == "went-back"
    with pytest.raises(StoreError, match="does not contain event 4"):
        p.verify(head)
    p.tell("2026-W47", reports(), key="monday")  # the outside world tells again
    assert p.ask("2026-W48").period == "2026-W48"
    p.verify()
    store.close()


def test_the_same_number_with_another_content_is_noticed_too(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = rmab.live.open(str(path))
    p = small(store)
    p.ask("2026-W47")
    store.backup(tmp_path / "yesterday.db")
    p.tell("2026-W47", reports())
    store.engine.dispose()
    for old in tmp_path.glob("x.db-*"):
        old.unlink()
    shutil.copy(tmp_path / "yesterday.db", path)
    with rmab.live.open(str(path)) as other:
        for k in range(3):
            other.programme("p").override("2026-W48", add=[IDS[k]], remove=IDS[3:], reason="meanwhile")
            other.programme("p").set_budget(2 + k)
    with pytest.raises(StoreError, match="no longer has event 4"):
        p.tell("2026-W47", reports())
    store.close()


def test_no_memory_in_the_middle_of_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p = small(store)
        p.ask("2026-W47")
        usual = Ledger.advance

        def fails(self: Ledger, event: Any, change: Any) -> None:
            usual(self, event, change)
            raise MemoryError

        monkeypatch.setattr(Ledger, "advance", fails)
        with pytest.raises(MemoryError):
            p.tell("2026-W47", reports(), key="k")
        monkeypatch.setattr(Ledger, "advance", usual)
        assert p.statistics.counts.sum() == 6  # it was committed
        assert p.tell("2026-W47", reports(), key="k") == 4
        assert p.replay().events == 4

        def half(self: Ledger, event: Any, change: Any) -> None:
            change()
            raise MemoryError

        monkeypatch.setattr(Ledger, "advance", half)
        with pytest.raises(MemoryError):
            p.join(["late"], period="2026-W48", key="j")
        monkeypatch.setattr(Ledger, "advance", usual)
        assert p.head.startswith("5:")  # what was half folded is forgotten, and read again
        assert "late" in p.ask("2026-W48").arms


@pytest.mark.parametrize("column", ["content", "hash", "sequence"])
def test_a_snapshot_that_is_damaged_or_of_another_journal_is_not_used(tmp_path: Path, column: str) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p = small(store)
        p.ask("2026-W47")
        p.tell("2026-W47", reports())
        p.snapshot()
        expected = p.statistics
        with store.engine.begin() as connection:
            old = bytes(connection.scalar(sa.select(schema.SNAPSHOT.c.content)))
            where = old.rindex(b"\x01\x00" * 3)  # the states: all high, which becomes low
            wrong = {"content": old[:where] + b"\x00\x00" * 3 + old[where + 6 :], "hash": "0" * 64, "sequence": 3}
            connection.execute(sa.update(schema.SNAPSHOT).values({column: wrong[column]}))
        with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as other:
            assert other.programme("p").statistics == expected


def test_a_store_without_its_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    """Somebody copies the file of a store without what stands beside it: `head` finds out."""
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p = small(store)
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()
        p.ask("2026-W47")
        head = p.head
        shutil.copy(tmp_path / "x.db", tmp_path / "copy.db")
    with rmab.live.open(f"sqlite:///{tmp_path}/copy.db") as other:
        copied = other.programme("p")
        assert copied.verify() == 2
        with pytest.raises(StoreError, match="does not contain event 3"):
            copied.verify(head)


def test_migrations_run_once_each_in_a_transaction(fresh_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = fresh_url()
    whole = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", whole[:1])  # an old version of the library
    with rmab.live.open(url) as store, store.engine.begin() as connection:
        assert "rmab_snapshot" not in sa.inspect(connection).get_table_names()

    def breaks(connection: sa.Connection) -> None:
        whole[1](connection)
        raise StoreError("stopped")

    monkeypatch.setattr(schema, "MIGRATIONS", (whole[0], breaks))
    with pytest.raises(StoreError, match="stopped"):
        rmab.live.open(url)
    monkeypatch.setattr(schema, "MIGRATIONS", whole)
    with rmab.live.open(url) as store:
        small(store).snapshot()
    monkeypatch.setattr(schema, "MIGRATIONS", whole[:1])
    with pytest.raises(StoreError, match=r"migrated by a newer rmab \(schema 3, this one knows 1\)"):
        rmab.live.open(url)


def test_an_instance_notices_that_another_one_migrated(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p = small(store)
        with store.engine.begin() as connection:
            connection.execute(sa.insert(schema.VERSION).values(number=99))
        with pytest.raises(StoreError, match="newer rmab"):
            p.tell("2026-W47", reports())


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "http://x"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(StoreError):
        rmab.live.open(url)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none can be created there"):
        rmab.live.open(f"sqlite:///{tmp_path}/no/such/folder/x.db")
