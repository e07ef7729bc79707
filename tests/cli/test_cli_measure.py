"""`rmab measure` and `rmab power` on the command line."""

import json
from pathlib import Path

import pyarrow as pa

from commands import call, refused
from rmab.common import write_table

COLUMNS = ("--arm", "id", "--period", "week", "--state", "state", "--action", "called")


def write_log(path: Path) -> None:
    ids, drawn = [f"{k}" for k in range(60)], [1, 0, 0] * 20
    columns = {"id": ids * 2, "week": [1] * 60 + [2] * 60, "state": ["ill"] * 60 + ["well" if k else "ill" for k in drawn]}
    by, chance = ["lot" if k else "" for k in drawn] + [""] * 60, [1 / 3] * 60 + [None] * 60
    write_table(pa.table(columns | {"called": [0] * 120, "chance": chance, "by": by}), path)


def test_what_lists_brought(tmp_path: Path) -> None:
    write_log(tmp_path / "log.csv")
    outcome = call("measure", tmp_path / "log.csv", *COLUMNS, "--reward", "well=1", "--chance", "chance", "--by", "by")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith("- The lists helped: 20.0 (3.0 to 37.0) weeks well, 1.000 (0.150 to 1.850) for each")
    words = ("measure", tmp_path / "log.csv", *COLUMNS, "--reward", "well=1", "--chance", "chance", "--by", "by")
    fields = json.loads(call(*words, "--json").stdout)
    assert (fields["verdict"], fields["all"]["total"], fields["listed"]) == ("more", [20.0], 20)
    assert "which state is good?" in refused("measure", tmp_path / "log.csv", *COLUMNS, "--chance", "chance")
    assert "there is no column 'p'" in call("measure", tmp_path / "log.csv", *COLUMNS, "--chance", "p").stderr


def test_a_list_from_a_log_in_one_step_is_that_of_its_model(tmp_path: Path) -> None:
    log, model = tmp_path / "log.csv", tmp_path / "m.npz"
    assert call("example-log", log, "--arms", "80", "--weeks", "12").exit_code == 0
    fitted = (*COLUMNS, "--group", "age", "--reward", "engaged=1")
    assert call("fit", log, *fitted, "--out", model).exit_code == 0
    rules = ("--budget", "8", "--random-share", "0.25", "--json")
    both = [call("list", *source, *rules) for source in ((model,), ("--log", log, *fitted))]
    assert both[0].exit_code == 0, both[0].stderr
    assert both[0].stdout == both[1].stdout
    assert "give a MODEL, or --log with its columns" in refused("list", model, "--log", log)
    assert "--log needs --arm, --period, --state and --action" in refused("list", "--log", log)
    assert "give a MODEL" in refused("list")


def test_how_many_weeks_it_takes() -> None:
    words = ("power", "--effect", "0.1", "--budget", "100", "--arms", "2000")
    fields = json.loads(call(*words, "--share", "0.1,0.3", "--json").stdout)
    assert [one["left_out"] for one in fields] == [10, 30]
    assert fields[0]["periods"] > fields[1]["periods"]
    assert "shown with probability 0.8" in call(*words).stdout
    rare = json.loads(call(*words, "--share", "0.1", "--rate", "0.1", "--json").stdout)
    assert rare[0]["periods"] < fields[0]["periods"]
    assert "expected numbers such as 0.1,0.2" in refused(*words, "--share", "many")
