"""Runs that never end: a time limit stops them, and no worker outlives its study."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rmab
from clusters import ENVIRONMENT, gone, until
from commands import call, refused
from rmab.study import LocalEngine, Results, run_study
from studies import HERE, small_study

HUNG = {"name": "studies:Hung", "label": "hung"}


@pytest.mark.slow
def test_a_hung_run_is_stopped_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    note, out = tmp_path / "pid", tmp_path / "out"
    study = small_study(2, learners=[{**HUNG, "options": {"note": str(note)}}, {"name": "random"}])
    run_study(small_study(1, ("random",)), tmp_path / "warm", engine=LocalEngine(1))  # compiled before the clock runs
    begin = time.monotonic()
    status = run_study(study, out, engine=LocalEngine(2, time_limit=8))  # both hang at once: they are waited for once
    assert time.monotonic() - begin < 200
    assert (status.total, status.finished, status.missing) == (4, 2, 2)
    said = "stopped: the run took longer than the time limit of 8 seconds"
    assert {one.message for one in status.failures} == {said}
    assert Results.open(out).status() == status
    assert gone(int(note.read_text()))
    outcome = call("study", "status", out)
    assert outcome.stderr.count(said) == 2


@pytest.mark.parametrize("deep", [False, True])
def test_a_hung_worker_ends_with_a_study_that_is_killed(tmp_path: Path, deep: bool) -> None:
    note, script = tmp_path / "pid", tmp_path / "run.py"
    learner = {**HUNG, "options": {"note": str(note), "deep": deep}}
    script.write_text(
        f"import sys; sys.path.append({HERE!r})\nfrom rmab.study import LocalEngine, run_study\n"
        f"from studies import small_study\nif __name__ == '__main__':\n"
        f"    run_study(small_study(1, learners=[{learner!r}]), {str(tmp_path / 'out')!r}, engine=LocalEngine(1))\n"
    )
    process = subprocess.Popen([sys.executable, script], env=ENVIRONMENT, start_new_session=True)
    try:
        until(lambda: note.exists() and note.read_text(), "the learner is playing")
        worker = int(note.read_text())
        assert not gone(worker)
    finally:
        process.kill()
        process.wait()
    for _ in range(100):
        if gone(worker):
            return
        time.sleep(0.1)
    os.kill(worker, 9)
    pytest.fail("the worker lives on")


@pytest.mark.slow
def test_the_settings_of_workers_are_not_those_of_what_learners_start(tmp_path: Path) -> None:
    note = tmp_path / "environment"
    learners = [{"name": "studies:Telling", "label": "telling", "options": {"note": str(note)}}]
    assert run_study(small_study(1, learners=learners), tmp_path / "out", engine=LocalEngine(1)).complete
    assert ("PYTHONSAFEPATH" in json.loads(note.read_text())) == ("PYTHONSAFEPATH" in os.environ)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1", True])
def test_wrong_limits(limit: object) -> None:
    with pytest.raises(rmab.errors.ModelError, match="time_limit must be a number of seconds above 0"):
        LocalEngine(1, limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon"])
def test_wrong_limits_of_the_command(limit: str) -> None:
    said = refused("study", "run", "paper-cpap", "--out", "out", "--time-limit", limit)
    assert "is not in the range x>0" in said or "is not a valid float range" in said or "time_limit must be a number" in said


def test_dask_has_no_limit_and_says_so() -> None:
    words = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--time-limit", "5"]
    assert "--time-limit is for the local engine" in refused("study", "run", "paper-cpap", "--out", "out", *words)


@pytest.mark.slow
def test_the_command_that_goes_on_has_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(HERE)
    task = 'name = "cpap"\noptions = { arms = 2, budget = 1, horizon = 3, episodes = 2 }'
    Path("x.toml").write_text(f'name = "x"\nrounds = 1\n[[tasks]]\n{task}\n[[learners]]\nname = "studies:Hung"\n')
    outcome = call("study", "run", "x.toml", "--out", "out", "--time-limit", "2.5", "--json")
    assert outcome.exit_code == 1
    assert "rmab study run x.toml --out out --time-limit 2.5 --json" in outcome.stderr
    assert "time limit of 2.5 seconds" in json.loads(outcome.stdout)["failures"][0]["message"]
