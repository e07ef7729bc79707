"""What changed since the last list: every reason in a case made by hand, and from files as they were written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from logs import mothers
from rmab.data import Decision, decide
from rmab.decisions.candidates import Candidates
from rmab.errors import LogError, ModelError

STATES = {"ann": "low", "bea": "low", "cleo": "ok", "dora": "low", "eve": "ok", "fay": "ok"}
INDEX = {"ann": 0.9, "bea": 0.8, "cleo": 0.3, "dora": 0.7, "eve": 0.2, "fay": 0.1}


def arms(index: dict[str, float], states: dict[str, str], **more: Any) -> Candidates:
    return Candidates.of(index, states=[states[one] for one in index], period="2", **more)


def last(**options: Any) -> Decision:
    return decide(Candidates.of(INDEX, states=list(STATES.values()), period="1"), 3, **options)


def since(now: Decision) -> dict[str, str]:
    assert now.changes is not None
    return dict(zip(now.arms, now.changes.words, strict=True))


def test_every_reason_by_hand() -> None:
    """The last list: ann, bea, dora. Now ann is well, bea's group is worth less, and cleo has lapsed."""
    index = {"ann": 0.1, "bea": 0.25, "cleo": 0.9, "dora": 0.7, "eve": 0.4, "fay": 0.1}
    now = decide(arms(index, STATES | {"ann": "ok", "cleo": "low"}), 3, since=last())
    assert since(now) == {
        "ann": "dropped: state changed (low to ok)",
        "bea": "dropped: the estimate changed (worth 0.8 to 0.25)",
        "cleo": "new: state changed (ok to low)",
        "dora": "again",
        "eve": "new: the estimate changed (worth 0.2 to 0.4)",
        "fay": "",
    }
    assert now.changes is not None
    assert now.changes.counts == {
        "again": {"": 1},
        "new": {"state changed": 1, "the estimate changed": 1},
        "dropped": {"state changed": 1, "the estimate changed": 1},
    }
    assert now.changes.sentences() == [
        "Since the list for 1: 1 again; 2 new (state changed: 1, the estimate changed: 1); "
        "2 dropped (state changed: 1, the estimate changed: 1)"
    ]


def test_others_may_pass_an_arm() -> None:
    now = decide(arms(INDEX | {"cleo": 0.75}, STATES), 3, since=last())
    assert since(now)["dora"] == "dropped: others changed (was 3rd, is 4th)"
    back = decide(arms(INDEX, STATES), 3, since=now)
    assert since(back)["dora"] == "new: others changed (was 4th, is 3rd)"


def test_rules_leaving_and_joining() -> None:
    index = {"ann": 0.9, "bea": 0.8, "cleo": 0.3, "eve": 0.2, "fay": 0.1, "gus": 0.85}
    states = STATES | {"gus": "low"}
    now = decide(arms(index, states), 3, must=["fay"], must_not=["ann"], since=last())
    found = since(now)
    assert found["ann"] == "dropped: excluded by name"
    assert found["fay"] == "new: by name"
    assert found["gus"] == "new: joined since"
    assert found["bea"] == "again"
    assert now.changes is not None
    assert now.changes.gone == ("dora",)
    assert now.changes.counts["dropped"] == {"excluded by name": 1, "left": 1}
    assert now.changes.sentences()[1] == "On the last list, but no longer in the programme: dora"
    again = decide(arms(index, states), 3, since=now)
    assert since(again)["fay"] == "dropped: on the last list only by name"
    assert (
        since(again)["ann"] == "new: rules or places changed (was 1st, is 1st)"
    )  # it was excluded, and nothing else changed


def test_floors_caps_and_draws() -> None:
    waited = [0, 0, 0, 0, 9, 0]
    floor = decide(arms(INDEX, STATES, waited=waited), 3, floor=8, since=last())
    assert since(floor)["eve"] == "new: due by the floor"
    assert since(floor)["dora"] == "dropped: rules or places changed (was 3rd, is 3rd)"
    groups = {"site": ["a", "a", "b", "a", "b", "b"]}
    capped = decide(arms(INDEX, STATES, groups=groups), 3, caps={"site=a": 1}, since=last())
    assert since(capped)["bea"] == "dropped: no place left under a cap"
    drawn = decide(arms(INDEX, STATES), 3, random_share=0.34, since=last())
    words = set(since(drawn).values())
    assert {"dropped: left out by the draw this time", "new: drawn at random", "again"} <= words
    back = decide(arms(INDEX, STATES), 3, since=drawn)
    assert {"new: left out by the draw last time", "dropped: on the last list only by the draw"} <= set(since(back).values())


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ".npz", ".json"])
def test_files_say_the_same_as_the_decision(tmp_path: Path, suffix: str) -> None:
    fitted = mothers(120, 20)
    first = decide(fitted, 12, random_share=0.25, period="2024-W20")
    path = tmp_path / f"last{suffix}"
    first.save(path, upcoming=None)
    then = {"random_share": 0.25, "period": "2024-W21"}
    found, again = decide(fitted, 12, since=path, **then), decide(fitted, 12, since=first, **then)
    assert found.changes == again.changes
    assert found.changes is not None
    assert found.changes.period == "2024-W20"
    assert sum(found.changes.counts["again"].values()) == len(set(first.ids) & set(found.ids))


def test_the_list_has_the_column_and_everybody_who_was_dropped(tmp_path: Path) -> None:
    now = decide(arms(INDEX, STATES | {"ann": "ok"}), 1, must_not=["ann"], since=last())
    rows = {one["id"]: one["since"] for one in now.to_table(upcoming=1).to_pylist()}
    assert rows == {
        "bea": "again",
        "dora": "dropped: rules or places changed (was 3rd, is 3rd)",
        "ann": "dropped: excluded by name",
    }
    assert "since" not in last().to_table().column_names
    now.save(tmp_path / "now.npz")
    assert Decision.load(tmp_path / "now.npz").changes == now.changes


def test_a_list_without_everybody_cannot_show_why_some_are_new(tmp_path: Path) -> None:
    index = {f"a{k}": float(k) for k in range(40)}
    decide(index, 5, period="1").save(tmp_path / "short.csv", upcoming=0)
    now = decide({one: -value + 50 for one, value in index.items()}, 5, period="2", since=tmp_path / "short.csv")
    assert now.changes is not None
    assert now.changes.counts["new"] == {"not in the last list's file": 5}
    assert now.changes.sentences()[-1].endswith("write it with --all")


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    lines = ["id,period,state,rank,index,by,reason", "ann,1,ok,1,0.3,index,x", "ann,1,ok,2,0.2,,x", ",1,ok,3,0.1,,x"]
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    with pytest.raises(LogError, match="line 4: a line of a list needs id, rank and index"):
        decide(INDEX, 2, since=tmp_path / "bad.csv")
    with pytest.raises(LogError, match="lines 2, 3: duplicate id"):
        decide(INDEX, 2, since=tmp_path / "bad.csv")
    (tmp_path / "two.csv").write_text("\n".join([*lines[:2], "bea,2,ok,2,0.2,,x"]))
    with pytest.raises(LogError, match="expected a list for one period, found 1, 2"):
        decide(INDEX, 2, since=tmp_path / "two.csv")
    with pytest.raises(ModelError, match="since must be the file of a list, or a Decision"):
        decide(INDEX, 2, since=3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="changes must have 6 entries"):
        replace(last(), changes=rmab.decisions.changes.Changes("1", ("again",)))


def test_counts_are_those_of_the_two_lists() -> None:
    """Whatever the rules: again, new and dropped are what sets say."""
    rng = np.random.default_rng(0)
    ids = [f"a{k}" for k in range(30)]
    for _ in range(20):
        lists = []
        for period in ("1", "2"):
            index = dict(zip(ids, rng.normal(size=30), strict=True))
            lists.append(decide(index, 8, period=period, random_share=0.25, since=lists[0] if lists else None))
        old, new = (set(one.ids) for one in lists)
        kinds = {name: {one.partition(":")[0]} for name, one in since(lists[1]).items()}
        assert {name for name, one in kinds.items() if one == {"again"}} == old & new
        assert {name for name, one in kinds.items() if one == {"new"}} == new - old
        assert {name for name, one in kinds.items() if one == {"dropped"}} == old - new
