"""The shipped contract suite, on SQLite and PostgreSQL; and both write the same journal."""

from collections.abc import Callable
from pathlib import Path

import pytest

import rmab
from databases import Server
from rmab.testing import store as suite


@pytest.mark.slow
def test_the_contract(fresh_url: Callable[[], str]) -> None:
    rmab.testing.check_store(fresh_url)


def test_the_suite_finds_a_broken_clause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(open_store: suite.Open) -> None:
        raise AssertionError("nothing is kept")

    monkeypatch.setattr(suite, "CLAUSES", (forgets,))
    with pytest.raises(AssertionError, match="clause 'forgets': nothing is kept"):
        rmab.testing.check_store(lambda: f"sqlite:///{tmp_path}/x.db")


def test_both_databases_write_the_same_journal(tmp_path: Path, postgres: Server) -> None:
    journals = []
    for url in (f"sqlite:///{tmp_path}/x.db", postgres.new_database()):
        with rmab.live.open(url, actor="nurse é") as store:
            p = suite._programme(store, seed=3)
            suite._run(p)
            p.correct(suite.WEEKS[0], [{"arm": "arm-01", "state": "high"}], reason="ü", key="c")
            p.override(suite.WEEKS[2], remove=[p.decision(suite.WEEKS[2]).ids[0]], reason="away", key="o")
            journals.append([(one.sequence, one.kind, one.key, one.actor, one.body) for one in p.events])
    assert journals[0] == journals[1]
