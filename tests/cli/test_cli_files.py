"""Files are written before anything is printed, and are safe to open."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rmab
from rmab.cli import main
from rmab.common import write_table
from rmab.common.storage import load_any
from rmab.common.tables import plain_text
from rmab.errors import RmabError

COLUMNS = ["--arm", "id", "--period", "week", "--state", "state", "--action", "called"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    write_table(rmab.data.example_log("mothers", arms=80, weeks=15), place / "log.csv")
    log = rmab.data.read_log(place / "log.csv", arm="id", period="week", state="state", action="called")
    rmab.data.fit(log, reward={"engaged": 1}).save(place / "model.npz")
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["fit", "log.csv", *COLUMNS, "--reward", "engaged=1", "--out", "m.npz", "--report", "r.html"], ["m.npz", "r.html"]),
        (["evaluate", "model.npz", "--replicates", "40", "--report", "e.html"], ["e.html"]),
        (["list", "model.npz", "--csv", "next.csv"], ["next.csv"]),
    ],
)
def test_files_are_there_even_where_nobody_reads_what_is_printed(
    folder: Path, arguments: list[str], written: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "rmab", *arguments],
        cwd=folder,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=300,
    )
    os.close(writer)
    assert done.returncode == 1  # nobody reads
    for name in written:
        assert (folder / name).stat().st_size > 0


def test_a_list_can_be_for_another_period(folder: Path) -> None:
    done = CliRunner().invoke(main, ["list", str(folder / "model.npz"), "--budget", "5", "--for", "2024-W16"])
    assert done.exit_code == 0
    assert "2024-W16: " in done.stdout
    done = CliRunner().invoke(main, ["list", str(folder / "model.npz"), "--budget", "5"])
    assert "for 2024-W15, the last week of the log: no action is entered in it yet" in done.stdout
    wrong = CliRunner().invoke(main, ["list", str(folder / "model.npz"), "--for", "2023-W01"])
    assert wrong.exit_code == 2
    assert "period must be 2024-W15, the last of the log, 2024-W16, or one after it" in wrong.stderr


@pytest.mark.parametrize("name", ['=HYPERLINK("http://example.org")', "+1", "-1", "@sum", "\tx", "\rx", "\uff1d1"])
def test_a_spreadsheet_computes_nothing_that_stands_in_a_name(tmp_path: Path, name: str) -> None:
    found = rmab.data.decide({name: 1.0, "b": -0.5}, 1)
    found.save(tmp_path / "list.csv")
    with (tmp_path / "list.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[1][0] == f"'{name}"
    found.save(tmp_path / "raw.csv", raw=True)
    with (tmp_path / "raw.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream))[1][0] == name


def test_nor_what_stands_in_the_name_of_a_column(tmp_path: Path) -> None:
    found = rmab.data.decide([1.0, 2.0], 1, ids=["'=1", "=1"], groups={"=cmd()": ["a", "b"]})
    found.save(tmp_path / "list.csv", None)
    with (tmp_path / "list.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0][-1] == "'=cmd()"
    assert {plain_text(row[0]) for row in rows[1:]} == {"'=1", "=1"}  # an apostrophe of its own is not lost


@pytest.mark.parametrize(
    ("name", "suffix", "words"),
    [
        ("bell\x07", ".xlsx", "an .xlsx file cannot contain the control characters of 'bell"),
        ("\ufffe", ".xlsx", "an .xlsx file cannot contain the control characters of "),
        ("\ud800", ".csv", "has half a character (a surrogate): cannot be written"),
        ("\ud800", ".xlsx", "has half a character (a surrogate): cannot be written"),
    ],
)
def test_letters_that_a_file_cannot_hold_are_refused(tmp_path: Path, name: str, suffix: str, words: str) -> None:
    with pytest.raises(RmabError, match=re.escape(words)):
        rmab.data.decide({name: 1.0}, 1).save(tmp_path / f"list{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("most", ["nan", "inf", "1.5"])
def test_a_cap_is_a_whole_number(folder: Path, most: str) -> None:
    done = CliRunner().invoke(main, ["list", str(folder / "model.npz"), "--cap", f"age=20-29={most}"])
    assert (done.exit_code, "expected a whole number" in done.stderr) == (2, True)


def test_numbers_of_a_list_stay_numbers(tmp_path: Path) -> None:
    rmab.data.decide({"a": -1.0, "b": -0.5}, 1, must=["a"]).save(tmp_path / "list.csv")
    assert "-1," in (tmp_path / "list.csv").read_text(encoding="utf-8")


def test_an_example_log_replaces_nothing_unasked(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("mine", encoding="utf-8")
    arguments = ["example-log", str(path), "--arms", "5", "--weeks", "3"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "the file exists; --force replaces it" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0
    assert path.read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize("path", [5, None, b"x.csv", ["a"], 1.5])
def test_a_path_that_is_none_is_refused_in_one_line(path: object) -> None:
    found = rmab.data.decide({"a": 1.0}, 1)
    for work in (found.save, rmab.data.Decision.load, rmab.data.Fit.load, load_any):
        with pytest.raises(rmab.errors.FileError, match=r"a path must be text or a pathlib object|must end in"):
            work(path)  # type: ignore[operator]


DEEP = "[" * 5000


@pytest.mark.parametrize("field", [f'"x": {DEEP}{"]" * 5000}', f'"format": 3, "log.factors": "{DEEP}"'])
def test_deep_json_in_a_model_is_refused_in_one_line(tmp_path: Path, field: str) -> None:
    (tmp_path / "m.json").write_text(f'{{"kind": "rmab fit", {field}}}', encoding="utf-8")
    with pytest.raises(rmab.errors.RmabError) as error:
        rmab.data.Fit.load(tmp_path / "m.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("option", ["--cost", "--since", "--must", "--must-not"])
def test_a_list_does_not_replace_a_file_that_it_reads(folder: Path, tmp_path: Path, option: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,cost\n")
    name = f"@{path}" if option.startswith("--must") else str(path)
    words = ["list", str(folder / "model.npz"), option, name, "--budget", "5", "--csv", str(tmp_path / "." / "mine.csv")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "mine.csv: the file exists and is not a list of `rmab list`; write to another file" in done.output
    assert path.read_text() == "id,cost\n"


def test_nor_a_log_nor_a_plan_its_problem(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes((folder / "log.csv").read_bytes())
    done = CliRunner().invoke(main, ["list", "--log", str(log), *COLUMNS, "--csv", str(log)])
    assert "log.csv: the file exists and is not a list of `rmab list`; write to another file" in done.output
    assert log.read_bytes() == (folder / "log.csv").read_bytes()
    task = rmab.make_task("cpap", arms=4, budget=2, horizon=3, episodes=2)
    task.problem.save(tmp_path / "problem.npz")
    before = (tmp_path / "problem.npz").read_bytes()
    done = CliRunner().invoke(main, ["plan", str(tmp_path / "problem.npz"), "--save", str(tmp_path / "problem.npz")])
    assert "problem.npz: the file exists and is not a policy of `rmab plan`; write to another file" in done.output
    assert (tmp_path / "problem.npz").read_bytes() == before
