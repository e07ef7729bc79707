"""`rmab fit`, `rmab list`, `rmab evaluate`, `rmab example-log`: from a file to a list, and errors that name lines."""

import json
import re
from pathlib import Path

import pyarrow.csv
import pytest

from commands import call, refused
from logs import csv
from rmab.cli.program import BAD_INPUT

COLUMNS = ("--arm", "id", "--period", "week", "--state", "state", "--action", "called")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    assert call("example-log", str(folder / "log.csv"), "--arms", "200", "--weeks", "20").exit_code == 0
    outcome = call(
        "fit",
        str(folder / "log.csv"),
        *COLUMNS,
        "--group",
        "age,district",
        "--reward",
        "engaged=1",
        "--out",
        str(folder / "m.npz"),
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert "Next list: 2024-W20" in outcome.stdout
    assert "Checks" in outcome.stdout
    return folder / "m.npz"


def test_a_list_is_printed_and_written(model: Path) -> None:
    out = model.with_name("next.csv")
    outcome = call("list", str(model), "--budget", "12", "--csv", str(out), "--next", "4")
    assert outcome.exit_code == 0, outcome.stderr
    assert "2024-W20: 12 of 186" in outcome.stdout
    table = pyarrow.csv.read_csv(out)
    assert table["action"].to_pylist() == ["yes"] * 12 + ["no"] * 4
    assert f"The list is in {out}: the 12 on it (action: yes) and 4 others after them (action: no)." in outcome.stdout
    half = call("list", str(model), "--budget", "12", "--random-share", "0.8").stdout
    assert "left out at random: 6 of those chosen (at most half are); drawn from the others: 6." in half
    assert "at most half" not in call("list", str(model), "--budget", "12", "--random-share", "0.25").stdout


def test_costs_reach_the_list(model: Path, tmp_path: Path) -> None:
    lines = [f"M{k:03d},{(7.5, 22, 50)[k % 3]}" for k in range(1, 201)]
    (tmp_path / "costs.csv").write_text("\n".join(["id,cost", *lines]))
    words = ("list", str(model), "--cost", str(tmp_path / "costs.csv"))
    outcome = call(*words, "--budget", "99.5", "--csv", str(tmp_path / "list.csv"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "per unit of cost" in outcome.stdout
    rows = pyarrow.csv.read_csv(tmp_path / "list.csv").to_pylist()
    assert 99.5 - 7.5 < sum(row["cost"] for row in rows if row["action"] == "yes") <= 99.5
    assert "with costs, give the amount to spend" in call(*words).stderr
    assert "budget must be a whole number" in call("list", str(model), "--budget", "2.5").stderr


def test_wishes_reach_the_list(model: Path, tmp_path: Path) -> None:
    (tmp_path / "away.txt").write_text("M002\nM003\n")
    words = (
        "--must",
        "M001",
        "--must-not",
        f"@{tmp_path / 'away.txt'}",
        "--cap",
        "district=centre=6",
        "--random-share",
        "0.25",
    )
    outcome = call("list", str(model), "--budget", "12", "--floor", "40", *words, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    rows = json.loads(outcome.stdout)["rows"]
    active = [one for one in rows if one["action"] == "yes"]
    assert len(active) <= 12
    assert any(one["id"] == "M001" and one["by"] == "name" for one in active)
    assert not {"M002", "M003"} & {one["id"] for one in active}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--must", "nobody"), "unknown arm 'nobody'"),
        (("--floor", "3"), "floor: 186 arms cannot each have a turn"),
        (("--cap", "east=3"), "unknown group 'east'"),
        (("--cap", "east"), "expected name=number"),
        (("--cap", "district=centre=1.5"), "expected a whole number"),
        (("--must", "@missing.txt"), "cannot be read"),
        (("--csv", "next.ods"), "must end in .csv or .parquet or .xlsx"),
    ],
)
def test_what_cannot_be_is_refused(model: Path, words: tuple[str, ...], said: str) -> None:
    outcome = call("list", str(model), "--budget", "12", *words)
    assert outcome.exit_code == BAD_INPUT
    assert said in outcome.stderr


def test_every_fault_of_a_log_is_printed_on_a_line(tmp_path: Path) -> None:
    path = csv(tmp_path, "A,1,ok,yes", "A,1,ok,no", "B,x,ok,no", "B,2,ok,maybe")
    outcome = call("fit", str(path), *COLUMNS)
    assert outcome.exit_code == BAD_INPUT
    lines = outcome.stderr.splitlines()
    assert lines[0] == f"Error: {path}: 3 problems; nothing was read"
    assert [line.strip().partition(":")[0] for line in lines[1:]] == ["lines 2, 3", "line 4", "line 5"]


def test_a_single_fault_is_one_line(tmp_path: Path) -> None:
    outcome = call("fit", str(csv(tmp_path, "A,1,ok,maybe")), *COLUMNS)
    assert outcome.stderr.count("\n") == 1
    assert "line 2: action 'maybe'" in outcome.stderr


@pytest.mark.slow
def test_an_evaluation_with_its_report(model: Path) -> None:
    page = model.with_name("plan.html")
    outcome = call("evaluate", str(model), "--budget", "12", "--horizon", "6", "--replicates", "40", "--report", str(page))
    assert outcome.exit_code == 0, outcome.stderr
    assert re.match(r"Standing: (conditional|not shown|problem); ", outcome.stdout)
    assert re.search("(than by|from) rotation", outcome.stdout)
    assert "Who gets a call" in page.read_text()
    assert f"<p>{outcome.stdout.splitlines()[0]}</p>" in page.read_text()
    assert page.with_name("plan-figures").is_dir()


def test_numbers_for_programs(model: Path) -> None:
    outcome = call("evaluate", str(model), "--budget", "12", "--horizon", "4", "--replicates", "40", "--json")
    fields = json.loads(outcome.stdout)
    assert set(fields["model"]["benefits"]) == {"nothing", "rotation", "random", "as logged"}
    again = call("fit", str(model.with_name("log.csv")), *COLUMNS, "--json", "--states", "lapsed,wavering,engaged")
    assert json.loads(again.stdout)["states"] == ["lapsed", "wavering", "engaged"]


@pytest.mark.parametrize("command", ["list", "evaluate"])
def test_files_that_are_no_models_are_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "m.json").write_text("{}")
    outcome = call(command, str(tmp_path / "m.json"))
    assert outcome.exit_code == BAD_INPUT
    assert "the kind of a model fitted to a log is 'rmab fit'" in outcome.stderr


def test_options_are_checked_before_any_work(tmp_path: Path) -> None:
    for words, said in (
        (("--reward", "engaged"), "expected name=number"),
        (("--clusters", "many"), "expected a whole number or auto"),
        (("--out", str(tmp_path / "none" / "m.npz")), "there is no folder"),
        (("--report", "plan.pdf"), "must end in .html"),
    ):
        outcome = call("fit", "missing.csv", *COLUMNS, *words)
        assert outcome.exit_code == BAD_INPUT
        assert said in outcome.stderr
    assert "cannot be read" in call("fit", "missing.csv", *COLUMNS).stderr


def test_where_no_call_was_ever_made_a_report_is_refused_after_what_is_known(tmp_path: Path) -> None:
    log = csv(tmp_path, *(f"a{n},{week},{'xy'[n * week % 2]},no" for n in range(15) for week in range(10)))
    files = ("--out", str(tmp_path / "m.npz"), "--report", str(tmp_path / "fit.html"))
    outcome = call("fit", str(log), *COLUMNS, "--reward", "y=1", *files)
    assert outcome.exit_code == BAD_INPUT
    assert "no records of 'x' with a call" in outcome.stdout
    assert "the effect of a call is unknown" in outcome.stderr
    assert not (tmp_path / "fit.html").exists()
    outcome = call("list", str(tmp_path / "m.npz"), "--budget", "5")
    assert "0 of 5 places are used: a call is not known to help anybody else." in outcome.stdout
    drawn = call("list", str(tmp_path / "m.npz"), "--budget", "5", "--random-share", "1", "--json")
    assert [one["by"] for one in json.loads(drawn.stdout)["rows"]] == ["lot"] * 5


@pytest.mark.parametrize(
    "words",
    [
        "--group district",
        "--chance p",
        "--rename names.csv",
        "--decimal .",
        "--encoding cp1252",
        "--reached r",
        "--reward-column r",
        "--states a,b",
        "--reward engaged=1",
        "--arm id",
    ],
)
def test_columns_are_for_a_log_and_not_for_a_model(model: Path, words: str) -> None:
    told = refused("list", model, *words.split())
    assert words.partition(" ")[0] in told
    assert "the MODEL was fitted with its own columns" in told


@pytest.mark.parametrize("flag", ["--all", "--raw", "--force"])
def test_what_changes_the_file_only_needs_a_file(model: Path, flag: str) -> None:
    assert f"{flag} changes only the file of the list; add --csv FILE" in refused("list", model, flag)


def test_a_budget_of_the_report_needs_a_report() -> None:
    assert "add --report FILE.html" in refused("fit", "no.csv", *COLUMNS, "--budget", "5")


def test_a_list_with_draws_that_lacks_arms_is_warned_of(model: Path, tmp_path: Path) -> None:
    words = ("list", model, "--budget", "8", "--csv")
    draw = ("--random-share", "0.25")
    outcome = call(*words, tmp_path / "few.csv", *draw)
    assert "warning: the file has only 18 of 186 arms, so the list cannot be measured; add --all." in outcome.stderr
    assert "states all chances" not in outcome.output
    fields = json.loads(call(*words, tmp_path / "few.csv", *draw, "--json").stdout)
    assert any("add --all" in one for one in fields["notes"])
    for other in ((*draw, "--all"), ()):
        assert "add --all" not in call(*words, tmp_path / "other.csv", *other, "--force").output
