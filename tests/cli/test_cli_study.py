"""`rmab study`: run, stop, go on, status and report, with real worker processes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import rmab
from clusters import Cluster
from commands import call, refused
from rmab.report import Report
from rmab.study import BUILTIN, Results

pytestmark = pytest.mark.slow

TINY = """
name = "tiny"
rounds = 2

[[tasks]]
name = "cpap@switching"
options = { arms = 4, budget = 2, horizon = 5, episodes = 3 }

[[learners]]
name = "random"

[[learners]]
name = "oracle"
"""


CHATTY = """
import os
from rmab.learning import RandomLearner
class Chatty(RandomLearner):
    def __init__(self):
        print("I am made", flush=True)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny study; the current folder, which commands put on the path, is its own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def counts(*words: object) -> list[int]:
    outcome = call("study", *words, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    return [found[name] for name in ("total", "finished", "missing", "damaged")]


def test_a_study_is_run_extended_looked_at_and_mended(file: Path) -> None:
    run = ("run", file, "--out", "results", "--workers", 1)
    assert counts(*run, "--rounds", 1) == [2, 2, 0, 0]
    assert counts(*run) == [4, 4, 0, 0]
    fewer = call("study", *run, "--rounds", 1).stderr
    assert "results has 2 rounds; this command ran only the first 1" in fewer
    assert "warning" not in fewer
    rewards = Results.open("results").table(["id", "episode", "reward", "regret_O1"])
    shard = min(Path("results/runs").iterdir())
    shard.write_bytes(shard.read_bytes()[:100])
    max(Path("results/runs").iterdir()).unlink()
    assert counts("status", "results") == [4, 2, 1, 1]
    shown = call("study", "status", "results")
    assert shown.exit_code == 0
    assert re.search(r"4 +2 +1 +1", shown.stdout)
    outcome = call("study", *run)
    assert outcome.exit_code == 0
    assert re.search(r"4 +4 +0 +0", outcome.stdout)
    assert "tiny: 2 of 4\n" in outcome.stderr
    assert outcome.stderr.endswith("Write the report with: rmab study report results\n")
    assert Results.open("results").table(["id", "episode", "reward", "regret_O1"]).equals(rewards)


def test_the_folder_of_another_study_is_refused(file: Path) -> None:
    run = ("run", file, "--out", "results", "--workers", 1, "--rounds", 1)
    assert counts(*run) == [2, 2, 0, 0]
    file.write_text(TINY.replace("tiny", "other") + '[[learners]]\nname = "ucmd-armab"\n')
    assert "belongs to study 'tiny'" in refused("study", *run)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "paper-cpa", "--out", "x"], "unknown study 'paper-cpa', did you mean 'paper-cpap'?"),
        (["show", "grow"], "did you mean 'growth'?"),
        (["run", "none.toml", "--out", "x"], "none.toml: cannot be read"),
        (["run", "tiny.toml"], "Missing option '--out'"),
        (["run", "tiny.toml", "--out", "x", "--engine", "dask"], "--engine dask needs --scheduler"),
        (["run", "tiny.toml", "--out", "x", "--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
        (["run", "tiny.toml", "--out", "x", "--engine", "dask", "--scheduler", "a", "--workers", "2"], "--workers is for"),
        (
            ["run", "tiny.toml", "--out", "x", "--engine", "dask", "--scheduler", "a"],
            "needs the address of a Dask scheduler",
        ),
        (["status", "nowhere"], "not the folder of a study"),
        (["report", "nowhere"], "not the folder of a study"),
        (["run", "tiny.toml", "--out", "tiny.toml"], "Directory 'tiny.toml' is a file"),
    ],
)
def test_wrong_usage_is_one_line(file: Path, words: list[str], said: str) -> None:
    assert said in refused("study", *words)
    assert not Path("x").exists()


def test_a_wrong_study_names_every_fault(file: Path) -> None:
    file.write_text(TINY.replace("rounds = 2", "rounds = 0").replace('"random"', '"rondom"'))
    said = refused("study", "run", file, "--out", "x")
    assert "rounds: " in said
    assert "learners[0].name: " in said


def test_runs_that_fail_are_named_and_the_exit_code_is_1(file: Path) -> None:
    Path("broken.py").write_text(
        "import rmab\nfrom rmab.learning import RandomLearner\n"
        "class Broken(RandomLearner):\n    def decide(self, state):\n        raise rmab.errors.SolverError('no plan')\n"
    )
    file.write_text(TINY.replace('"oracle"', '"broken:Broken"'))
    outcome = call("study", "run", file, "--out", "results", "--rounds", 1, "--workers", 1, "--json")
    assert outcome.exit_code == 1
    found = json.loads(outcome.stdout)
    assert found["missing"] == 1
    assert [("broken" in one["id"], one["message"]) for one in found["failures"]] == [(True, "SolverError: no plan")]
    assert "Traceback" not in outcome.stderr
    assert re.search(r"^failed: \S*broken\S*: .*no plan", outcome.stderr, re.M)
    assert "rmab study run" in outcome.stderr.splitlines()[-1]
    traced = call("--debug", "study", "run", file, "--out", "results", "--rounds", 1, "--workers", 1)
    assert re.search(r"Traceback(.*\n)+.*broken\.py.*in decide", traced.stderr)
    later = call("study", "status", "results")  # why is kept
    assert re.search(r"^failed: \S*broken\S*: .*no plan", later.stderr, re.M)
    assert "Traceback" not in later.stderr
    assert "in decide" in call("--debug", "study", "status", "results").stderr
    told = json.loads(call("study", "status", "results", "--json").stdout)
    assert {**told, "outdated": {}} == found
    alone = call("run", "cpap", "broken:Broken", "-t", "episodes=1")
    told = f"broken: imported from {Path('broken.py').absolute()}\n"
    assert (alone.exit_code, alone.stderr) == (1, f"{told}Error: no plan\n")


def test_a_folder_that_can_no_longer_be_written_is_a_failure_not_wrong_input(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(begun: bool) -> None:
        def run_study(*_: object, on_progress: object, **__: object) -> None:
            if begun:
                on_progress(1, 4)
            raise rmab.errors.FileError("results: cannot be written")

        monkeypatch.setattr("rmab.study.run_study", run_study)

    for begun, code in ((True, 1), (False, 2)):
        fails(begun)
        outcome = call("study", "run", file, "--out", "results")
        assert outcome.exit_code == code
        assert "Error: results: cannot be written" in outcome.stderr
        assert ("the same command resumes" in outcome.stderr) == begun
    fails(begun=True)
    assert "Traceback" in call("--debug", "study", "run", file, "--out", "results").stderr


def test_ctrl_c_leaves_a_folder_in_which_the_printed_command_goes_on(file: Path) -> None:
    file.write_text(TINY.replace("arms = 4, budget = 2, horizon = 5, episodes = 3", "episodes = 30"))
    words = ["study", "run", "tiny.toml", "--out", "my results", "--rounds", "8", "--workers", "1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "rmab", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with running:
        while not list(Path("my results").glob("runs/*.parquet")):
            assert running.poll() is None
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
        printed, errors = running.communicate(timeout=60)
    assert (running.returncode, printed) == (130, "")
    assert "Traceback" not in errors
    total, finished, missing, damaged = counts("status", "my results")
    assert (total, finished + missing, damaged) == (16, 16, 0)
    assert 1 <= finished < 16
    (again,) = re.findall(r"resume with:\n  (.*)\n", errors)
    assert again.startswith("python -m rmab ")
    assert shlex.split(again)[3:] == words
    command = [sys.executable, *shlex.split(again)[1:]]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stderr.startswith(f"tiny: {finished} of 16\n")
    assert counts("status", "my results") == [16, 16, 0, 0]


def test_another_library_or_learner_than_that_of_finished_runs_is_warned_of(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("changing.py").write_text("from rmab.learning import RandomLearner\nclass Mine(RandomLearner):\n    pass\n")
    file.write_text(TINY.replace('"oracle"', '"changing:Mine"'))
    run = ("study", "run", file, "--out", "results", "--workers", 1, "--rounds", 1)
    assert "warning" not in call(*run).stderr
    assert "warning" not in call(*run).stderr
    with Path("changing.py").open("a") as text:
        text.write("# changed\n")
    monkeypatch.setattr(rmab, "__version__", "99.0")
    warnings = [line for line in call(*run).stderr.splitlines() if line.startswith("warning: results: ")]
    assert len(warnings) == 2
    assert re.search(r"finished runs used rmab \S+ .*this is rmab 99\.0.*: results may differ", warnings[0])
    kept = "its source has changed; 1 finished run used the old source: kept (--again runs them again)"
    assert warnings[1] == f"warning: results: learner changing:Mine: {kept}"


def test_again_plays_exactly_the_runs_of_an_older_source(file: Path) -> None:
    Path("evolving.py").write_text("from rmab.learning import RandomLearner\nclass Mine(RandomLearner):\n    pass\n")
    file.write_text(TINY.replace('"oracle"', '"evolving:Mine"'))
    run = ("study", "run", file, "--out", "results", "--workers", 1)
    assert "--again has nothing to do" in call(*run, "--rounds", 2, "--again").stderr
    first = written("results")
    with Path("evolving.py").open("a") as text:
        text.write("# changed\n")
    extended = call("--debug", *run, "--rounds", 3, "--json")
    outdated = json.loads(extended.stdout)["outdated"]["learner evolving:Mine"]
    assert sorted(outdated) == sorted(one for one in first if "evolving" in one)
    assert all(f"  {one}\n" in extended.stderr for one in outdated)
    assert {one: time for one, time in written("results").items() if one in first} == first  # nothing was touched
    before = written("results")
    anew = call(*run, "--rounds", 3, "--again")
    assert f"its source has changed; {len(outdated)} finished runs used the old source: run again" in anew.stderr
    after = written("results")
    assert sorted(one for one in after if after[one] != before[one]) == sorted(outdated)
    assert json.loads(call(*run, "--rounds", 3, "--json").stdout)["outdated"] == {}


def written(folder: str) -> dict[str, int]:
    """Return when each run was written, by id."""
    return {one.stem: one.stat().st_mtime_ns for one in (Path(folder) / "runs").iterdir()}


def test_a_pipe_that_knows_fewer_letters(file: Path) -> None:
    Path("病人").mkdir()
    counts("run", file, "--out", "病人", "--workers", 1, "--rounds", 1)
    command = [sys.executable, "-m", "rmab", "study", "status", "病人"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    outcome = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert b"??: runs" in outcome.stdout


def test_on_a_dask_cluster(file: Path, start_cluster: Callable[[int], Cluster]) -> None:
    words = ["study", "run", file, "--out", "results", "--engine", "dask", "--scheduler", start_cluster(1).address, "--json"]
    command = [sys.executable, "-m", "rmab", *words]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    assert (json.loads(outcome.stdout)["finished"], "Traceback" in outcome.stderr) == (4, False)
    assert {one["engine"] for one in Results.open("results").provenance()} == {"dask"}


def test_what_learners_print_is_not_on_standard_output(file: Path) -> None:
    Path("chatty.py").write_text(CHATTY)
    file.write_text(TINY.replace('"oracle"', '"chatty:Chatty"'))
    for words in (["study", "run", file, "--out", "results"], ["run", "cpap", "chatty:Chatty", "--episodes", "1"]):
        command = [sys.executable, "-m", "rmab", *words, "--json"]
        outcome = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "I am made" in outcome.stderr
        assert isinstance(json.loads(outcome.stdout), dict)


def test_built_in_studies_are_listed_and_shown_as_they_are() -> None:
    shown = call("study", "list").stdout
    listed = json.loads(call("study", "list", "--json").stdout)
    for name, study in BUILTIN.items():
        assert re.search(rf"^ +{name} +.* {len(study.jobs()):,} *$", shown, re.M)
        assert listed[name] == study.model_dump(mode="json")


@pytest.mark.parametrize("name", BUILTIN)
def test_a_shown_study_is_a_file_to_start_from(name: str) -> None:
    text = call("study", "show", name).stdout
    assert type(BUILTIN[name]).model_validate(tomllib.loads(text)) == BUILTIN[name]


def test_the_report_is_written_and_its_headline_printed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts("run", file, "--out", "results", "--rounds", 2, "--workers", 1)
    found = json.loads(call("study", "report", "results", "--out", "public", "--json").stdout)
    assert found["html"] == "public/report.html"
    assert "<html" in Path("public/report.html").read_text()
    assert {Path(one).suffix for one in found["figures"]} == {".png", ".pdf"}
    assert all(Path(one).stat().st_size for one in found["figures"])
    folders = []

    def write_report(results: Results, folder: Path) -> Report:  # once is enough: it takes seconds
        folders.append((results.study.name, folder))
        return Report(folder / "report.html", (), tuple(found["headline"]))

    monkeypatch.setattr("rmab.report.write_report", write_report)
    shown = call("study", "report", "results").stdout.splitlines()
    assert shown == [*found["headline"], "report: results/report/report.html"]
    assert folders == [("tiny", Path("results/report"))]
