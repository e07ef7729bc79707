"""`rmab measure` and `rmab power` on the command line."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from commands import call, refused
from rmab.common import write_table
from rmab.data import Fit, example_log

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
    assert "name the good state" in refused("measure", tmp_path / "log.csv", *COLUMNS, "--chance", "chance")
    assert "unknown column 'p'" in call("measure", tmp_path / "log.csv", *COLUMNS, "--chance", "p").stderr


def test_a_list_from_a_log_in_one_step_is_that_of_its_model(tmp_path: Path) -> None:
    log, model = tmp_path / "log.csv", tmp_path / "m.npz"
    assert call("example-log", log, "--arms", "80", "--weeks", "12").exit_code == 0
    fitted = (*COLUMNS, "--group", "age", "--reward", "engaged=1")
    assert call("fit", log, *fitted, "--out", model).exit_code == 0
    rules = ("--budget", "8", "--random-share", "0.25", "--json")
    both = [call("list", *source, *rules) for source in ((model,), ("--log", log, *fitted))]
    assert both[0].exit_code == 0, both[0].stderr
    assert both[0].stdout == both[1].stdout
    assert "give either MODEL, or --log with its columns" in refused("list", model, "--log", log)
    assert "--log needs --arm, --period, --state and --action" in refused("list", "--log", log)
    assert "give either MODEL" in refused("list")


def test_recorded_chances_reach_the_model(tmp_path: Path) -> None:
    write_log(tmp_path / "log.csv")
    words = ("fit", tmp_path / "log.csv", *COLUMNS, "--reward", "well=1", "--out", tmp_path / "m.npz")
    assert call(*words, "--chance", "chance").exit_code == 0
    known = Fit.load(tmp_path / "m.npz").require_log().chance
    np.testing.assert_array_equal(np.isnan(known), [False, True] * 60)
    np.testing.assert_allclose(known[::2], 1 / 3)
    assert call(*words).exit_code == 0
    assert Fit.load(tmp_path / "m.npz").require_log().chance is None


def test_how_many_weeks_it_takes() -> None:
    words = ("power", "--effect", "0.1", "--budget", "100", "--arms", "2000")
    fields = json.loads(call(*words, "--share", "0.1,0.3", "--json").stdout)
    assert [one["left_out"] for one in fields] == [10, 30]
    assert fields[0]["periods"] > fields[1]["periods"]
    assert "shown with probability 0.8" in call(*words).stdout
    rare = json.loads(call(*words, "--share", "0.1", "--rate", "0.1", "--json").stdout)
    assert rare[0]["periods"] < fields[0]["periods"]
    assert "expected numbers such as 0.1,0.2" in refused(*words, "--share", "many")


def test_three_weeks_with_semicolons_other_words_and_the_last_list(tmp_path: Path) -> None:
    """An analyst's routine: a log with a byte-order mark, German words and dates with dots; lists are written alike."""
    words = {"engaged": "aktiv", "wavering": "wackelig", "lapsed": "weg"}
    rows = example_log("mothers", arms=80, weeks=14).to_pylist()
    weeks = sorted({one["week"] for one in rows})
    log, names, lists = tmp_path / "log.csv", tmp_path / "names.csv", []
    lines = [*(f"Zustand;{new};{old}" for old, new in words.items()), "angerufen;ja;yes", "angerufen;nein;no"]
    names.write_text("\n".join(["column;from;to", *lines]), encoding="utf-8-sig")
    columns = ("--arm", "Nummer", "--period", "Tag", "--state", "Zustand", "--action", "angerufen", "--rename", names)
    called: dict[tuple[str, str], bool] = {}
    for k in range(11, 14):
        text = ["Nummer;Tag;Zustand;angerufen;Ort"]
        for one in (one for one in rows if one["week"] <= weeks[k]):
            day = date.fromisocalendar(2024, int(one["week"][6:]), 1)
            known = called.get((one["id"], one["week"]), one["called"] == "yes")
            done = "" if one["week"] == weeks[k] else "ja" if known else "nein"
            text.append(f"{one['id']};{day:%d.%m.%Y};{words[one['state']]};{done};{one['district']}")
        log.write_text("\n".join(text), encoding="utf-8-sig")
        out = tmp_path / f"{k}.csv"
        since = ("--since", lists[-1]) if lists else ()
        rules = ("--budget", "8", "--random-share", "0.25", "--all", "--csv", out, "--group", "Ort", "--reward", "engaged=1")
        made = call("list", "--log", log, *columns, *rules, *since, "--json")
        assert made.exit_code == 0, made.stderr
        changes = json.loads(made.stdout)["changes"]
        assert (changes is None) == (not lists)
        if changes is not None:
            assert sum(changes["again"].values()) + sum(changes["new"].values()) == 8
        content = out.read_bytes().decode("utf-8-sig")
        assert out.read_bytes().startswith(b"\xef\xbb\xbf")
        assert '"0,75"' in content
        assert content.splitlines()[0].startswith('"id";"period";"state"')
        called |= {(row.split(";")[0].strip('"'), weeks[k]): ';"yes";' in row for row in content.splitlines()[1:]}
        lists.append(out)
    kept = [part for one in lists for part in ("--list", one)]
    found = json.loads(call("measure", log, *columns, "--reward", "engaged=1", *kept, "--json").stdout)
    assert len(found["periods"]) == 2
    assert found["listed"] + found["left_out"] + found["unrecorded"] > 100
    assert found["pending"] > 0
    assert not found["problems"]
    first = json.loads(call("measure", log, *columns, "--reward", "engaged=1", "--list", lists[-1], "--json").stdout)
    assert "the outcomes of the last draw will be known in the week after it" in first["sentences"][0]


def test_what_changed_is_on_the_console_and_on_the_page(tmp_path: Path) -> None:
    log, model = tmp_path / "log.csv", tmp_path / "m.npz"
    assert call("example-log", log, "--arms", "80", "--weeks", "12").exit_code == 0
    assert call("fit", log, *COLUMNS, "--reward", "engaged=1", "--out", model).exit_code == 0
    assert call("list", model, "--budget", "8", "--all", "--csv", tmp_path / "last.csv").exit_code == 0
    after = ("--for", "2024-W13", "--budget", "10", "--since", tmp_path / "last.csv")
    shown = call("list", model, *after).stdout
    assert "Since the list for 2024-W12: 8 again; 2 new (" in shown
    page = ("--report", tmp_path / "plan.html", "--since", tmp_path / "last.csv", "--replicates", "40", "--budget", "10")
    assert call("evaluate", model, *page).exit_code == 0
    html = (tmp_path / "plan.html").read_text()
    assert "What changed since the last list" in html
    assert "Since the list for 2024-W12:" in html
    assert "unknown column 'rank'" in call("list", model, "--since", log).stderr


def test_since_without_a_report_is_refused_before_any_work(tmp_path: Path) -> None:
    columns = ("--arm", "id", "--period", "week", "--state", "state", "--action", "called")
    for words in (("fit", tmp_path / "no.csv", *columns), ("evaluate", tmp_path / "no.npz", "--budget", "10")):
        made = call(*words, "--since", tmp_path / "last.csv")
        assert made.exit_code == 2
        assert "--since is shown in the report" in made.stderr
