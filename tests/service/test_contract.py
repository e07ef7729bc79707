"""The shipped contract of stores, over HTTP; and the client raises what a local store raises."""

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rmab
from rmab.errors import LogError, ModelError, StoreError
from services import Hub, fill, rows, service


@pytest.mark.slow
def test_a_service_keeps_the_contract_of_a_store(fresh_url: Callable[[], str]) -> None:
    hub = Hub()
    try:
        rmab.testing.check_store(fresh_url, hub.connect)
    finally:
        hub.close()


def test_the_client_returns_what_a_local_programme_returns(tmp_path: Path) -> None:
    with service(tmp_path) as running, rmab.live.connect(running.url) as store:
        p = fill(store)
        for week in ("2026-W47", "2026-W48"):
            p.ask(week)
            p.tell(week, [{**one, "reward": None} for one in rows(state="engaged")])
        local = running.store.programme("mothers")
        assert store.programmes == ["mothers"]
        assert (p.head, p.config, p.reach) == (local.head, local.config, local.reach)
        assert p.events == local.events
        assert p.status() == local.status()
        assert p.export().equals(local.export())
        for name in ("shown", "low", "high", "promised", "listed", "left_out"):
            np.testing.assert_array_equal(getattr(p.benefit(), name), getattr(local.benefit(), name))
        one, other = p.decision("2026-W48"), local.decision("2026-W48")
        assert (one.arms, one.rule, one.reasons, one.notes, one.words) == (
            other.arms,
            other.rule,
            other.reasons,
            other.notes,
            other.words,
        )
        np.testing.assert_array_equal(one.index, other.index)
        np.testing.assert_array_equal(one.probability, other.probability)
        assert str(p.shadow("mean")) == str(local.shadow("mean"))
        issued = p.ask_ahead(2)
        assert [one.decision.period for one in issued] == ["2026-W49", "2026-W50"]
        assert [one.event for one in local.ask_ahead(2)] == [one.event for one in issued]
        assert p.report(tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
        p.snapshot()
        p.warm_start(local.statistics, groups=["north", "coast"], key="w")
        assert p.missing("2026-W49") == 10
        assert p.as_of(3).decision("2026-W47").ids == local.decision("2026-W47").ids


def test_the_client_raises_what_a_local_programme_raises(tmp_path: Path) -> None:
    with service(tmp_path) as running, rmab.live.connect(running.url) as store:
        p = fill(store)
        local = running.store.programme("mothers")
        for call in (
            lambda p: p.tell("2026-W47", [{"arm": "m99", "state": "engaged"}]),
            lambda p: p.tell("2026-W47", [{"arm": "m01", "state": "asleep"}, {"arm": "m02", "executed": "perhaps"}]),
            lambda p: p.decision("2026-W47"),
            lambda p: p.undo(1, reason="no"),
            lambda p: p.as_of(99),
            lambda p: p.as_of(1).undo(1, reason="no"),
        ):
            found = []
            for one in (p, local):
                with pytest.raises((LogError, ModelError)) as refused:
                    call(one)
                found.append(refused.value)
            assert str(found[0]) == str(found[1])
            assert found[0].code == found[1].code or found[1].code == "bad-model"
        with pytest.raises(StoreError, match="no programme 'x'"):
            store.programme("x")
    with pytest.raises(StoreError, match="cannot be reached"):
        _ = rmab.live.connect("http://127.0.0.1:9").programmes
    with pytest.raises(StoreError, match="is not an address"):
        rmab.live.connect("ftp://somewhere")


def test_the_client_has_every_method_of_a_local_programme() -> None:
    """With the same parameters, and the same words; what only a database has is left out."""
    own = {"journal", "ledger", "refresh", "known_budget", "write", "is_superseded", "make_join"}
    for name in sorted(one for one in dir(rmab.live.Programme) if not one.startswith("_") and one not in own):
        local, remote = (getattr(kind, name) for kind in (rmab.live.Programme, rmab.live.RemoteProgramme))
        assert remote.__doc__ == local.__doc__
        if not isinstance(local, property):
            one, other = (list(inspect.signature(method).parameters.values()) for method in (local, remote))
            assert [(k.name, k.kind, k.default) for k in one] == [(k.name, k.kind, k.default) for k in other], name
    sketch = "ask_ahead shadow report as_of replay benefit override correct undo warm_start set_budget join leave ask tell"
    assert all(hasattr(kind, one) for kind in (rmab.live.Programme, rmab.live.RemoteProgramme) for one in sketch.split())
