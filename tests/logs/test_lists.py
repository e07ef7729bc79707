"""Lists that were kept are joined to the log by arm and period."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rmab
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
