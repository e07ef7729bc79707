"""Lists that were kept are joined to the log by arm and period."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rmab
from rmab.common import write_table
from rmab.errors import LogError

GROUPS = {"district": ["north", "coast"] * 20}


def read(weeks: int = 3) -> rmab.data.Log:
    rows = [(f"a{k}", week, "ok" if (k + week) % 3 else "low", 0) for k in range(40) for week in range(1, weeks + 1)]
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("id", "week", "state", "called"))})
    return rmab.data.read_log(table, arm="id", period="week", state="state", action="called")


def draw(period: str) -> rmab.data.Decision:
    index = {f"a{k}": float(k) for k in range(40)}
    return rmab.data.decide(index, 10, random_share=0.3, period=period, groups=GROUPS)


def test_everybody_s_chance_comes_back(tmp_path: Path) -> None:
    made = {period: draw(period) for period in ("1", "2")}
    for period, one in made.items():
        one.save(tmp_path / f"{period}.csv", upcoming=None)
    log = rmab.data.join_lists(read(), [tmp_path / "1.csv", tmp_path / "2.csv"])
    assert log.chance is not None
    assert log.listed is not None
    for n, arm in enumerate(log.arms):
        for t, period in enumerate(("1", "2")):
            row = np.flatnonzero((log.arm_of == n) & (log.period == t))[0]
            place = made[period].arms.index(arm)
            assert log.chance[row] == pytest.approx(made[period].probability[place], abs=1e-12)
            assert log.listed[row] == made[period].active[place]
    assert np.isnan(log.chance[log.period == 2]).all()
    assert (log.listed[log.period == 2] == -1).all()
    found = rmab.data.measure(log, reward={"ok": 1})
    assert found.periods == ("1", "2")
    assert not found.problems


def test_a_list_has_its_period_and_groups_and_says_who_was_left_out() -> None:
    table = draw("2").to_table(None)
    assert table.column_names[:3] == ["id", "period", "state"]
    assert table.num_rows == 40
    assert set(table["period"].to_pylist()) == {"2"}
    district = dict(zip((f"a{k}" for k in range(40)), GROUPS["district"], strict=True))
    rows = table.to_pylist()
    assert all(row["district"] == district[row["id"]] for row in rows)
    out = [row for row in rows if row["reason"].startswith("left out at random, to measure")]
    assert len(out) == 3
    assert all(row["action"] == "no" and row["chance"] == pytest.approx(0.7) for row in out)


def test_lists_that_do_not_go_with_the_log_are_refused(tmp_path: Path) -> None:
    draw("9").save(tmp_path / "9.csv", upcoming=None)
    with pytest.raises(LogError, match="the list is for '9', which is no period of the log"):
        rmab.data.join_lists(read(), [tmp_path / "9.csv"])
    draw("1").save(tmp_path / "1.csv", upcoming=None)
    with pytest.raises(LogError, match="an arm has a period more than once"):
        rmab.data.join_lists(read(), [tmp_path / "1.csv"] * 2)


def write(path: Path, made: rmab.data.Decision, change: dict[str, str]) -> Path:
    table = made.to_table(None)
    ids = [change.get(one, one) for one in table["id"].to_pylist()]
    write_table(table.set_column(0, "id", pa.array(ids)), path)
    return path


def test_ids_that_lost_their_zeros_are_refused(tmp_path: Path) -> None:
    rows = [(f"{k:03d}", week, "ok" if (k + week) % 3 else "low", 0) for k in range(40) for week in (1, 2)]
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("id", "week", "state", "called"))})
    log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called")
    made = rmab.data.decide({f"{k:03d}": float(k) for k in range(40)}, 10, random_share=0.3, period="1")
    for lost in (1, 40):
        path = write(tmp_path / f"{lost}.csv", made, {f"{k:03d}": str(k) for k in range(lost)})
        with pytest.raises(LogError) as caught:
            rmab.data.join_lists(log, [path])
        assert "ids differ from those of the log only in leading zeros" in str(caught.value)
        assert f"'{lost - 1}' is '{lost - 1:03d}' there" in str(caught.value)
    other = write(tmp_path / "other.csv", made, {"001": "x1"})
    assert "not in the log, and are left out" in str(rmab.data.join_lists(log, [other]).notes[-2])


def test_actions_that_differ_from_the_list_are_noted(tmp_path: Path) -> None:
    draw("1").save(tmp_path / "1.csv", upcoming=None)
    log = read()
    on = set(draw("1").ids)
    followed = np.array([t == 0 and log.arms[n] in on for n, t in zip(log.arm_of, log.period, strict=True)])
    assert not rmab.data.join_lists(replace(log, action=followed.astype(np.int64)), [tmp_path / "1.csv"]).notes
    note = str(rmab.data.join_lists(log, [tmp_path / "1.csv"]).notes[-1])
    assert "differ from the list for 10 of 40 arms (10 on the list without an action, 0 not on it with one)" in note
    assert "right column" not in note
    note = str(rmab.data.join_lists(replace(log, action=1 - followed), [tmp_path / "1.csv"]).notes[-1])
    assert "40 of 40 arms (10 on the list without an action, 30 not on it with one)" in note
    assert "is it the right list, and the right column?" in note
