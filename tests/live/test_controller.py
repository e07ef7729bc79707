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
