"""The controller: it answers from the last plan, fails safe, and loses no observation while the store is away."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import ModelError, StoreError
from rmab.live.controller import Controller

ARMS = {f"spot {k}": "ab"[k % 2] for k in range(10)}


@pytest.fixture
def p(tmp_path: Path) -> Iterator[Any]:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        found = store.create("p", states=["low", "high"], every="number", budget=3, reward={"high": 1}, lookahead=5)
        found.join(list(ARMS), group=list(ARMS.values()), state="low")
        yield found


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 seconds")


def control(p: Any, tmp_path: Path, **options: Any) -> Controller:
    return Controller(p, ARMS, queue=tmp_path / "queue.jsonl", safe=lambda states, _: np.argsort(states), **options)


def learned(p: Any) -> None:
    counts = np.zeros((2, 2, 2, 2), dtype=int)
    counts[:, :, 0], counts[:, :, 1] = [90, 10], [10, 90]
    p.warm_start(rmab.data.Statistics.from_counts(counts), groups=["a", "b"], trust=1000)


def test_without_a_plan_the_safe_rule_decides(p: Any, tmp_path: Path) -> None:
    with control(p, tmp_path) as c:
        found = c.decide([1] * 9 + [0])
        assert found.safe
        assert found.active[0] == "spot 9"
        assert found.plan_age == np.inf
        assert 0 < found.expires - time.time() <= 30
        with pytest.raises(ModelError, match=r"states must be 10 numbers in 0\.\.1"):
            c.decide([2] * 10)


def test_a_plan_answers_until_it_is_too_old(p: Any, tmp_path: Path) -> None:
    learned(p)
    with control(p, tmp_path) as c:
        until(lambda: not c.decide([0] * 10).safe)
        found = c.decide([0] * 5 + [1] * 5)
        assert len(found.active) == 3
        assert found.plan_age < 30
        assert found.active == c.decide([0] * 5 + [1] * 5).active
        c.stale = 1e-9
        assert c.decide([0] * 10).safe


def test_nothing_is_lost_while_the_store_is_away(p: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(p)
    usual = p.write
    away = [True]

    def write(*args: Any, **kwargs: Any) -> Any:
        if away[0]:
            raise StoreError("away")
        return usual(*args, **kwargs)

    monkeypatch.setattr(p, "write", write)
    with control(p, tmp_path) as c:
        for k in range(4):
            c.observe(0, [{"arm": f"spot {k}", "state": "high", "executed": 1}])
        until(lambda: c.error == "away")
        assert c.waiting == 4
        assert c.decide([0] * 10).active  # it answers all the same
        away[0] = False
        until(lambda: c.waiting == 0)
    assert p.statistics.counts.sum() == 4
    with (tmp_path / "queue.jsonl").open("a") as file:
        file.write('{"period": "0", "rows": [{"arm": "spot 5", "st')  # it died in the middle of a line
    with control(p, tmp_path) as again:
        again.observe(0, [{"arm": "spot 6", "state": "high"}])
        until(lambda: again.waiting == 0)
    assert p.statistics.counts.sum() == 4
    assert [one.kind for one in p.events].count("tell") == 5  # what was told before is not told twice


def test_a_lowered_budget_holds_at_once(p: Any, tmp_path: Path) -> None:
    """With the safe rule, and with a plan that was made before the budget changed."""
    with control(p, tmp_path) as c:
        assert len(c.decide([0] * 10).active) == 3
        p.set_budget(1)
        found = c.decide([0] * 10)
        assert (found.safe, len(found.active), found.budget) == (True, 1, 1)
        p.set_budget(3)
        learned(p)
        until(lambda: not c.decide([0] * 10).safe)
        assert len(c.decide([0] * 10).active) == 3
        event = p.set_budget(2)
        assert len(c.decide([0] * 10).active) == 2
        p.undo(event, reason="a mistake")
        assert len(c.decide([0] * 10).active) == 3


def test_a_budget_of_a_single_period_holds_in_that_period(p: Any, tmp_path: Path) -> None:
    learned(p)
    p.set_budget({7: 1, 8: 0})
    with control(p, tmp_path) as c:
        until(lambda: not c.decide([0] * 10).safe)
        assert [len(c.decide([0] * 10, period=k).active) for k in (6, 7, 8, 9)] == [3, 1, 0, 3]
        c.observe(6, [{"arm": "spot 1", "state": "high", "executed": 1}])
        until(lambda: c.waiting == 0)
        assert (c.decide([0] * 10).period, len(c.decide([0] * 10).active)) == ("7", 1)  # the one after the last known
        with pytest.raises(ModelError, match="must be a whole number such as 12"):
            c.decide([0] * 10, period="2026-W47")


def test_the_clock_says_which_period_it_is(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/t.db") as store:
        p = store.create("t", states=["low", "high"], every="24 hours", budget=3, reward={"high": 1})
        p.join(list(ARMS), group=list(ARMS.values()), state="low")
        now = p.config.rhythm.current()
        assert now == int(time.time()) // 86400
        p.set_budget({p.config.rhythm.label(k): 1 for k in (now, now + 1)})
        with control(p, tmp_path) as c:
            assert len(c.decide([0] * 10).active) == 1


def test_a_budget_that_another_process_lowers_is_noticed(p: Any, tmp_path: Path) -> None:
    learned(p)
    with control(p, tmp_path) as c, rmab.live.open(f"sqlite:///{tmp_path}/x.db") as other:
        until(lambda: not c.decide([0] * 10).safe)
        other.programme("p").set_budget(1)
        until(lambda: len(c.decide([0] * 10).active) == 1)
        assert not c.decide([0] * 10).safe


def test_a_programme_of_a_service_is_refused(tmp_path: Path) -> None:
    remote = rmab.live.remote.RemoteProgramme(rmab.live.connect("http://127.0.0.1:9"), "p")
    with pytest.raises(ModelError, match=r"needs a programme of rmab\.live\.open"):
        Controller(remote, ARMS, queue=tmp_path / "queue", safe=lambda states, _: states)  # type: ignore[arg-type]


def test_a_failure_in_the_background_is_shown_and_retried(p: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AttributeError("no such thing")

    learned(p)
    with monkeypatch.context() as broken:
        broken.setattr("rmab.live.controller.plan_ahead", fail)
        c = control(p, tmp_path)
        until(lambda: "AttributeError: no such thing" in c.error)
        found = c.decide([0] * 10)
        assert found.safe
        assert found.warning == c.error
    with c:
        until(lambda: not c.decide([0] * 10).safe)
        until(lambda: c.decide([0] * 10).warning == "")


def test_a_refused_observation_stops_neither_planning_nor_the_others(p: Any, tmp_path: Path) -> None:
    with control(p, tmp_path) as c:
        assert "no report shows the effect of an action yet" in c.decide([0] * 10).warning or c.decide([0] * 10).safe
        c.observe(0, [{"arm": "nobody", "state": "high"}])
        c.observe(0, [{"arm": "spot 1", "state": "high", "executed": 1}])
        until(lambda: c.waiting == 1)
        until(lambda: "queue.jsonl, line 1: " in c.decide([0] * 10).warning)
        learned(p)
        until(lambda: not c.decide([0] * 10).safe)
    assert p.statistics.counts.sum() == 1


def test_events_of_others_trigger_a_plan(p: Any, tmp_path: Path) -> None:
    """Without a call of observe or replan, long before the plan is due again."""
    with control(p, tmp_path) as c:
        until(lambda: c.decide([0] * 10).warning == "no report shows the effect of an action yet")
        p.tell(0, [{"arm": f"spot {k}", "state": ("low", "high")[k % 2], "executed": k % 2} for k in range(10)])
        until(lambda: not c.decide([0] * 10).safe)
        assert c.decide([0] * 10).warning == ""
