"""Tariffs from CSV files: what they say, and one line with path and line number for everything that is wrong with one."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rmab
from rmab.cli import main
from rmab.errors import FileError, ModelError
from rmab.study import LocalEngine, Results, Study, run_study
from rmab.tasks.tariff import read_tariff

DAY = "time,price\n00:00,0.10\n06:00,0.20\n17:00,0.35\n21:00,0.2\n22:00,0.10\n"
SMALL: dict[str, Any] = {"arms": 3, "budget": 1, "horizon": 48, "episodes": 2, "dwell": [0.5, 0.5], "load": [1.0]}


def written(folder: Path, text: str, name: str = "tariff.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def price(task: rmab.Task) -> np.ndarray:
    """(K,) what energy costs, from what charging earns."""
    assert task.problem.arms.state_names is not None
    return 0.5 - task.base_reward[0, :, task.problem.arms.state_names.index("2,1"), 1]


def test_prices_reach_their_hours(tmp_path: Path) -> None:
    file = written(tmp_path, DAY)
    hours = [0.1] * 6 + [0.2] * 11 + [0.35] * 4 + [0.2] + [0.1] * 2
    for options in ({}, {"minutes": 30}, {"horizon": 288, "minutes": 5}, {"horizon": 100}, {"tariff": Path(file)}):
        task = rmab.make_task("deadline", **{**SMALL, "phases": 24, "tariff": file, **options})
        np.testing.assert_allclose(price(task), hours, atol=1e-15)
    listed = rmab.make_task("deadline", **SMALL, phases=24, tariff=hours)
    assert listed.problem == rmab.make_task("deadline", **SMALL, phases=24, tariff=file).problem
    np.testing.assert_array_equal(
        listed.base_reward, rmab.make_task("deadline", **SMALL, phases=24, tariff=file).base_reward
    )


def test_the_call_of_the_issue_works(tmp_path: Path) -> None:
    arrival = [0.1] * 12 + [0.6] * 12
    task = rmab.make_task("deadline", arrival=arrival, tariff=written(tmp_path, DAY), phases=24)
    assert (task.problem.phases, task.problem.horizon, task.problem.arms.states) == (24, 100, 120)


def test_a_part_of_the_day_has_the_first_prices(tmp_path: Path) -> None:
    file = written(tmp_path, DAY)
    task = rmab.make_task("deadline", **SMALL, phases=2, tariff=file, minutes=15)  # 48 quarters are 12 hours
    np.testing.assert_allclose(price(task), [0.1, 0.2])


@pytest.mark.parametrize(
    "text",
    [
        "time,price\n00:00,0.1",
        "time,price\r\n00:00,0.1\r\n12:00,0.1\r\n",
        "\ufefftime,price\n00:00,.1\n\n",
        " time , price \n 00:00 , 1e-1 \n",
        '"time","price"\n"00:00","+0.1"\n',
    ],
)
def test_what_is_no_fault(tmp_path: Path, text: str) -> None:
    tariff = read_tariff(written(tmp_path, text))
    np.testing.assert_allclose(tariff.by_phase(3, 60.0), 0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the header must be time,price, got ''"),
        ("00:00,0.1\n", "line 1: the header must be time,price, got '00:00,0.1'"),
        ("time;price\n00:00;0,1\n", "line 1: the header must be time,price, got 'time;price'"),
        ("price,time\n0.1,00:00\n", "line 1: the header must be time,price, got 'price,time'"),
        ("time,price\n", "line 2: the price from 00:00 on is missing"),
        ("time,price\n01:00,0.1\n", "line 2: the first time must be 00:00, got 01:00"),
        ("time,price\n00:00,0.1\n07:00,0.2\n06:00,0.3\n", "line 4: 06:00 is not after 07:00"),
        ("time,price\n00:00,0.1\n07:00,0.2\n07:00,0.3\n", "line 4: 07:00 is given twice"),
        ("time,price\n00:00,0.1\n07:00,\n", "line 3: the price is missing; gaps are not filled"),
        ("time,price\n00:00,0.1\n\n07:00,0.2\n", "line 3: is empty"),
        ("time,price\n00:00,0.1\n07:00\n", "line 3: has 1 field, not 2 (time,price)"),
        ("time,price\n00:00,12 ct\n", "line 2: the price must be a plain number per unit of load, without currency or unit"),
        ("time,price\n00:00,0.12 EUR/kWh\n", "line 2: the price must be a plain number per unit of load"),
        ("time,price\n00:00,$0.12\n", "line 2: the price must be a plain number per unit of load"),
        ("time,price\n00:00,nan\n", "line 2: the price must be a plain number"),
        ("time,price\n00:00,1e999\n", "line 2: the price must be a plain number"),
        ("time,price\n00:00,1_000\n", "line 2: the price must be a plain number"),
        ('time,price\n00:00,"0,12"\n', "line 2: the price '0,12' has a decimal comma; write 0.12"),
        ("time,price\n00:00,0,12\n", "line 2: has 3 fields, not 2 (time,price); a decimal comma? write 0.12"),
        ("time,price\n00:00,0.1\n24:00,0.2\n", "line 3: the time must be HH:MM from 00:00 to 23:59, got '24:00'"),
        ("time,price\n00:00,0.1\n7:00,0.2\n", "line 3: the time must be HH:MM from 00:00 to 23:59, got '7:00'"),
        ("time,price\n00:00,0.1\n07:60,0.2\n", "line 3: the time must be HH:MM from 00:00 to 23:59, got '07:60'"),
        ("time,price\n00:00,0.1\n07:00:00,0.2\n", "line 3: the time must be HH:MM"),
        (
            "time,price\n00:00,\n08:00,3 ct\n07:00,0.1\n",
            "line 2: the price is missing; gaps are not filled; line 3: the price must be a plain number per unit of load, "
            "without currency or unit, got '3 ct'; line 4: 07:00 is not after 08:00",
        ),
        ("time,price\n" + "".join(f"{h:02d}:00,\n" for h in range(9)), "line 2: the price is missing"),
    ],
)
def test_what_is_wrong_is_said_with_path_and_line(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ModelError, match=f"^{re.escape(f'{file}: {message}')}") as caught:
        rmab.make_task("deadline", **SMALL, phases=24, tariff=file)
    assert "\n" not in str(caught.value)


def test_many_faults_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"line 6: .*; and 4 more$"):
        read_tariff(written(tmp_path, "time,price\n" + "".join(f"{h:02d}:00,\n" for h in range(9))))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("missing.csv", "", "nul\0.csv"):
        with pytest.raises((FileError, ModelError), match=r"cannot be read|should be the path"):
            rmab.make_task("deadline", **SMALL, phases=24, tariff=name and str(tmp_path / name))
    (tmp_path / "latin.csv").write_bytes("time,price\n00:00,0.1 \xa3".encode("latin-1"))
    with pytest.raises(FileError, match=r"latin\.csv: not a text file in UTF-8"):
        read_tariff(str(tmp_path / "latin.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"line 3: the price changes at 06:00, within phase 0 \(00:00 to 24:00\); choose phases that start"),
        ({"phases": 16}, r"line 4: the price changes at 17:00, within phase 11 \(16:30 to 18:00\)"),
        ({"phases": 24, "minutes": 31}, r"a tariff covers one day, but the steps take 24:48; set minutes \(per step\)"),
        ({"phases": 24, "minutes": 0}, r"^task deadline: minutes: Input should be greater than 0 \(got 0\)"),
    ],
)
def test_a_tariff_that_does_not_fit_the_steps(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        rmab.make_task("deadline", **SMALL, tariff=written(tmp_path, DAY), **options)


class TestCommandsAndStudies:
    OPTIONS = ("arms=3", "budget=1", "horizon=24", "episodes=2", "dwell=[0.5, 0.5]", "load=[1.0]", "phases=24")

    def call(self, *words: str) -> Any:
        options = [part for one in self.OPTIONS for part in ("-t", one)]
        return CliRunner().invoke(main, [*words, *options])

    def test_lists_and_paths_on_the_command_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path, DAY)
        outcome = self.call("run", "deadline", "random", "--json", "-t", "tariff=tariff.csv")
        assert outcome.exit_code == 0, outcome.output
        assert json.loads(outcome.stdout)["episodes"] == 2
        written(tmp_path, "time,price\n00:00,1 ct\n")
        outcome = self.call("run", "deadline", "random", "-t", "tariff=tariff.csv")
        assert outcome.exit_code == 2
        assert "tariff.csv: line 2: the price must be a plain number" in outcome.output

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ("arrival=[0.5", "arrival: Input should be a number, or one per phase (got '[0.5')"),
            ("arrival=2", "arrival: phase 0 must be a probability, got 2"),
            ('classes=[{"arms": 1}]', "classes: their arms add up to 1, expected arms=3"),
            ("arival=2", "did you mean 'arrival'?"),
        ],
    )
    def test_wrong_values_on_the_command_line(self, option: str, message: str) -> None:
        outcome = self.call("run", "deadline", "random", "-t", option)
        assert outcome.exit_code == 2
        assert message in " ".join(outcome.output.split())

    def test_a_day_is_planned_with_options(self, tmp_path: Path) -> None:
        file = written(tmp_path, DAY)
        words = ["bound", "deadline-day", "-t", "arms=3", "-t", "budget=1", "-t", "horizon=24", "-t", f"tariff={file}"]
        outcome = CliRunner().invoke(main, [*words, "--json"])
        assert outcome.exit_code == 0, outcome.output
        told = json.loads(outcome.stdout)
        task = rmab.make_task("deadline-day", arms=3, budget=1, horizon=24, tariff=file)
        assert told["bound"] == pytest.approx(rmab.solvers.solve_fluid(task.problem, task.base_reward).bound)
        shown = CliRunner().invoke(main, ["bound", "deadline-day", "-t", "arms=100", "-t", "horizon=24", "-t", "jobs=[[1]]"])
        assert "100 arms with 2 states each, budget 24 to 32, 24 steps" in shown.output
        assert "arivals: no such option." in CliRunner().invoke(main, ["plan", "cpap", "-t", "arivals=1"]).output

    def test_the_options_of_a_task_are_shown(self) -> None:
        shown = CliRunner().invoke(main, ["tasks", "deadline"]).output
        assert re.search(r"arrival +0\.7 +a number, or one per phase +probability that a vehicle arrives", shown)
        assert re.search(r"budget +24 numbers ", CliRunner().invoke(main, ["tasks", "deadline-day@iid"]).output)
        fields = json.loads(CliRunner().invoke(main, ["tasks", "deadline-day", "--json"]).output)["properties"]
        assert len(fields["jobs"]["default"]) == 12
        assert fields["tariff"]["values"] == "path of a file, or a number, or one per phase"
        assert "JSON" not in CliRunner().invoke(main, ["tasks", "cpap"]).output

    @pytest.mark.slow
    def test_a_study_of_job_mixes_is_run(self, tmp_path: Path) -> None:
        sizes = {"arms": 3, "budget": 1, "horizon": 4, "episodes": 2, "load": [1.0]}
        mixes = {"short": [1.0], "long": [0.0, 0.5, 0.5]}
        tasks = [{"name": "deadline", "label": name, "options": {**sizes, "dwell": mix}} for name, mix in mixes.items()]
        study = Study.model_validate({"name": "mixes", "rounds": 1, "tasks": tasks, "learners": [{"name": "random"}]})
        run_study(study, tmp_path, engine=LocalEngine(1))
        assert {one["task"] for one in Results.open(tmp_path).to_pandas().to_dict("records")} == {"short", "long"}

    def test_a_study_with_lists_tables_and_a_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path, DAY)
        text = """
name = "charging"
rounds = 1
[[tasks]]
name = "deadline"
[tasks.options]
arms = 3
budget = [1, 2]
horizon = 4
episodes = 2
phases = 2
arrival = [0.2, 0.8]
dwell = [[0.5, 0.5], [1.0, 0.0]]
load = [1.0]
classes = [{ arms = 1, pay = 2 }, { arms = 2, jobs = [[0.5, 0.5]] }]
[[tasks]]
name = "deadline-day"
label = "dear"
options = { arms = 3, budget = 1, horizon = 24, episodes = 2, tariff = "tariff.csv" }
[[learners]]
name = "random"
"""
        study = Study.load(written(tmp_path, text, "study.toml"))
        first, second = study.jobs()
        task = rmab.make_task(first.task.name, seed=first.seed, **first.task.options)
        np.testing.assert_array_equal(task.problem.budgets, [1, 1, 2, 2])
        again = type(first).from_text(first.to_text())
        assert (again.id, again.task) == (first.id, first.task)
        changed = Study.load(written(tmp_path, text.replace("[0.2, 0.8]", "[0.2, 0.7]"), "other.toml")).jobs()
        assert changed[0].id != first.id
        assert changed[1].id == second.id
        (tmp_path / "tariff.csv").unlink()
        with pytest.raises(ModelError, match=r"tasks\[1\]\.options: tariff\.csv: cannot be read"):
            Study.load(str(tmp_path / "study.toml"))

    def test_runs_of_another_tariff_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from rmab.study.build import source_of
        from rmab.study.entries import TaskSpec

        monkeypatch.chdir(tmp_path)
        spec = TaskSpec.model_validate({"name": "deadline", "options": {"tariff": "tariff.csv"}})
        assert source_of(spec) is None
        written(tmp_path, DAY)
        then = source_of(spec)
        written(tmp_path, DAY.replace("0.35", "0.4"))
        assert then != source_of(spec)
        assert None not in (then, source_of(spec))
