"""The command line as a whole: help, errors, exit codes, start-up; and the lists of tasks and learners."""

import contextlib
import importlib
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import rmab
from commands import call, commands, refused
from rmab.cli import main
from rmab.cli.names import key_values
from rmab.cli.screen import as_json
from rmab.learning.registry import ESTIMATORS

HEAVY = {"numpy", "numba", "pydantic", "pyarrow", "scipy", "highspy", "rich", "matplotlib"}


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help_with_examples_that_parse(path: tuple[str, ...]) -> None:
    outcome = call(*path, "--help")
    assert outcome.exit_code == 0
    assert re.search(r"^ +Examples:$", outcome.stdout, re.M)
    shown = outcome.stdout.partition("Examples:\n")[2]
    examples = re.findall(r"^ +rmab (.*?)(?: +# \w.*)?$", shown, re.M)
    assert len(examples) == len(re.findall(r"# \w", shown)) > 0  # each says what it does
    for example in examples:
        words = shlex.split(example.partition(">")[0])
        command: click.Command = main
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        options = command.make_parser(click.Context(command))
        _, rest, _ = options.parse_args(words)
        assert not rest


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for line in call(*path, "--help").stdout.splitlines():
        assert len(line) <= 80 or line.startswith("    rmab ")  # a command is not broken


@pytest.mark.parametrize("path", [("live",), ("live", "token"), ("study",), ()], ids=" ".join)
def test_the_help_of_a_group_lists_every_command_once_with_a_summary_that_is_not_cut(path: tuple[str, ...]) -> None:
    shown = call(*path, "--help").stdout.partition("Examples:")[0]
    for name in (one[-1] for one in commands() if one and one[:-1] == path):
        assert len(re.findall(rf"^  {name} +[A-Z].*\.$", shown, re.M)) == 1, name
    assert "..." not in shown.replace("[ARGS]...", "").replace("postgresql://...", "")


def test_options_say_what_they_are() -> None:
    for path, command in commands().items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{' '.join(path)}: {parameter.name}"


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["study", "run", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = f"""
import sys
from rmab.cli import main
try:
    main({words!r})
except SystemExit as end:
    print(end.code, sorted({HEAVY!r} & sys.modules.keys()))
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "0 []"


def test_python_m_rmab_is_the_same_program() -> None:
    outcome = subprocess.run([sys.executable, "-m", "rmab", "--version"], capture_output=True, text=True, check=True)
    assert outcome.stdout == f"rmab, version {rmab.__version__}\n"


def test_the_installed_script_is_this_program() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["rmab"].partition(":")
    assert getattr(importlib.import_module(module), name) is main


def test_without_a_command_the_help_is_printed_as_wrong_usage() -> None:
    outcome = call()
    assert outcome.exit_code == 2
    assert "A programme and its records:" in outcome.stderr


def test_unknown_names_suggest_the_nearest() -> None:
    assert "did you mean 'switching'?" in refused("run", "cpap@swiching", "ucmd")
    assert "did you mean 'ucmd-armab'?" in refused("run", "cpap", "ucmd-armb")
    assert "did you mean 'epsilon'?" in refused("run", "cpap", "ucmd-armab", "-o", "epsilo=1")
    assert "did you mean 'arms'?" in refused("run", "cpap", "ucmd", "-t", "arm=2")
    assert "task greener has fixed rewards; leave out @noisy" in refused("run", "greener@noisy", "ucmd")
    far = refused("learners", "zzzzz")
    assert "did you mean" not in far
    assert "`rmab learners` lists them" in far


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "No such command"),
        (["run", "cpap"], "Missing argument 'LEARNER'"),
        (["run", "cpap", "ucmd", "--nonsense"], "No such option"),
        (["run", "cpap", "ucmd", "--seed", "-1"], "'--seed': -1 is not in the range x>=0."),
        (["run", "cpap", "ucmd", "--episodes", "two"], "'--episodes': 'two' is not a valid integer range."),
        (["run", "cpap", "ucmd", "--episodes", "0"], "'--episodes': 0 is not in the range x>=1."),
        (["bound", "cpap", "--arm", "1.5"], "'--arm': '1.5' is not a valid integer range."),
        (["study", "run", "growth", "--out", "x", "--rounds", "two"], "'--rounds': 'two' is not a valid integer range."),
        (["run", "cpap", "uc-o-reps", "--feedback", "bandit"], "uc-o-reps needs full feedback, got 'bandit'"),
        (["run", "no_such:maker", "ucmd"], "task no_such:maker: there is no module 'no_such'; is its folder on PYTHONPATH?"),
        (["run", "cpap", "ucmd", "-o", "epsilon"], "expected key=value, for example arms=40, got 'epsilon'"),
        (["run", "cpap", "ucmd", "-o", "epsilon=.1", "-o", "epsilon=.2"], "epsilon is given twice"),
        (["run", "cpap", "ucmd-armab", "-o", "epsilon=2"], "epsilon: Input should be less than 1 (got 2)"),
        (["run", "cpap", "ucmd", "-t", "arms=3"], "arms: Input should be a multiple of 2"),
        (
            ["run", "cpap", "random", "-o", "epsilon=1"],
            "learner random: epsilon: no such option (got 1); `rmab learners random` lists the options",
        ),
        (["run", "missing.json", "ucmd"], "missing.json: cannot be read"),
        (["run", "cpap", "ucmd", "--save", "run.txt"], "run.txt: the name must end in .parquet or .csv"),
        (["run", "cpap", "ucmd", "--save", "no/such/folder/run.csv"], "there is no folder"),
        (["plan", "missing.npz"], "missing.npz: cannot be read"),
        (["plan", "cpap", "--seed", "two"], "Invalid value for '--seed': 'two' is not a valid integer range."),
        (["bound", "cpap", "--arm", "-1"], "Invalid value for '--arm': -1 is not in the range x>=0."),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(words: list[str], said: str) -> None:
    assert said in refused(*words)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (rmab.errors.SolverError("no answer"), 1, "no answer"),
        (rmab.errors.PolicyError("a wrong table"), 1, "a wrong table"),
        (rmab.errors.ModelError("a wrong model"), 2, "a wrong model"),
        (OSError(28, "No space left on device", "x.csv"), 1, "x.csv: No space left on device"),
        (ZeroDivisionError("by chance"), 1, "ZeroDivisionError: by chance (rmab --debug shows where)"),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_errors_of_the_work_have_their_exit_codes(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("rmab.runs.running.run", fails)
    outcome = call("run", "cpap", "random")
    assert outcome.exit_code == code
    assert outcome.stderr.strip().removeprefix("Error: ") == line
    assert "Traceback" not in outcome.stderr
    traced = call("--debug", "run", "cpap", "random")
    assert traced.exit_code == code
    assert ("Traceback" in traced.stderr) == isinstance(error, Exception)


@pytest.mark.parametrize("number", [28, 13])
@pytest.mark.parametrize("machine", [False, True])
def test_a_run_that_cannot_be_saved_after_all_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, machine: bool
) -> None:
    def fails(path: Path, content: bytes) -> None:
        raise rmab.errors.FileError(f"{path}: cannot be written") from OSError(number, os.strerror(number))

    monkeypatch.setattr("rmab.common.tables.write_atomically", fails)
    outcome = call("run", "cpap", "random", "--episodes", "1", "--save", tmp_path / "x.csv", *["--json"] * machine)
    assert outcome.exit_code == 1
    assert outcome.stderr == f"Error: {tmp_path / 'x.csv'}: cannot be written; the run is not saved\n"
    assert json.loads(outcome.stdout)["saved"] is None if machine else "reward" in outcome.stdout
    assert "saved:" not in outcome.stdout


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make a file")
def test_where_chance_loses_nothing_regret_has_no_percentage_of_it() -> None:
    """In turns every fixed policy earns what chance earns; one episode is one."""
    shown = call("run", "turns", "random", "--episodes", 2).stdout
    assert "- %" not in shown
    assert ", 2 episodes, " in shown
    assert ", 1 episode, " in call("run", "greener", "random", "--episodes", 1).stdout


def test_a_place_that_cannot_be_written_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(*_: object, **__: object) -> None:
        pytest.fail("it was played")

    monkeypatch.setattr("rmab.runs.running.run", played)
    said = refused("run", "cpap", "random", "--episodes", "1", "--save", "/proc/x.csv")
    assert "/proc/x.csv: cannot be written" in said


@pytest.mark.slow
def test_ctrl_c_ends_a_run_with_130() -> None:
    code = """
import rmab.runs.running
from rmab.cli import main
print("ready", flush=True)
main(["run", "cpap", "random", "-t", "episodes=1000000"])
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        time.sleep(1)
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        printed, errors = running.communicate(timeout=60)
    assert (running.returncode, printed) == (130, "")
    assert errors.strip() == "stopped"


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_and_keeps_out_of_the_output() -> None:
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "rmab", "run", "cpap", "random", "--episodes", "3", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that there is no one on the other side
            while part := os.read(terminal, 1 << 16):
                shown += part
        assert running.stdout is not None
        assert json.loads(running.stdout.read())["episodes"] == 3
    os.close(terminal)
    assert running.returncode == 0
    assert b"random on cpap@ramp" in shown
    assert b"3/3" in shown


@pytest.mark.parametrize(("words", "line"), [("tasks --json", "["), ("tasks", "Tasks"), ("bound cpap", "cpap: 20 arms")])
def test_a_reader_that_goes_away_is_no_trace(words: str, line: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m rmab {words} | head -n 1"
    outcome = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert outcome.stdout.startswith(line)
    assert outcome.stderr == ""


def test_tasks_lists_every_family_and_what_json_says_can_be_made() -> None:
    shown = call("tasks").stdout
    for family in ("cpap", "cpap-adherence", "deadline"):
        assert re.search(rf"^ +{family} ", shown, re.M)
    assert re.search(r"^ +switching +a random half", shown, re.M)
    listed = json.loads(call("tasks", "--json").stdout)
    assert [one["task"] for one in listed] == list(rmab.list_tasks())
    small = next(one for one in listed if one["task"] == "cpap@iid")
    assert small["options"] == {"arms": 20, "budget": 10, "horizon": 50, "episodes": 50, "copies": 1}
    assert rmab.make_task(small["task"], **small["options"]).episodes == 50


def test_copies_are_an_option_of_every_task() -> None:
    assert re.search(r"copies +1 +integer >= 1", call("tasks", "split").stdout)
    outcome = call("run", "split", "oracle", "-t", "copies=4", "--episodes", 1)
    assert (outcome.exit_code, "96 arms, budget 40" in outcome.stdout) == (0, True), outcome.output


def test_learners_lists_all_with_feedback_privilege_and_paper() -> None:
    shown = call("learners").stdout
    assert all(re.search(rf"^ +{name} ", shown, re.M) for name in rmab.list_learners())
    listed = {one["learner"]: one for one in json.loads(call("learners", "--json").stdout)}
    assert list(listed) == list(rmab.list_learners())
    assert listed["oracle"]["privileged"]
    assert listed["ucmd-armab"]["paper"] == "Xiong & Li, ICML 2024"
    for name, one in listed.items():
        learner = rmab.make_learner(name)
        assert (one["feedback"], one["privileged"]) == (learner.feedback, learner.privileged)
        assert learner.name == name


def test_the_options_of_a_learner_are_shown_with_defaults_and_descriptions() -> None:
    shown = call("learners", "ucmd").stdout
    assert re.search(r"estimator.doubt +4.0 +number >= 0, <= 1e\+06 +if most rewards", shown)
    assert re.search(r"rounding.rule +fill +fill \| at-most", shown)
    other = call("learners", "ucmd-armab").stdout
    assert re.search(r"epsilon +0.05 +number >= 1e-12, < 1 +probability that a kernel", other)
    schema = json.loads(call("learners", "ucmd", "--json").stdout)
    defaults = {"confidence": "estimated", "estimator": "forecast", "step": "priced", "rounding": "top"}
    defaults |= {"refresh": "every-episode", "probes": "overdue"}
    assert {key: one["default"] for key, one in schema["properties"].items()} == defaults
    assert schema["properties"]["estimator"]["options"]["doubt"]["default"] == 4.0
    assert schema["properties"]["estimator"]["names"] == [*ESTIMATORS, "module:Class"]
    assert call("learners", "random").stdout == "random has no options.\n"


def test_names_are_completed() -> None:
    shell = ShellComplete(main, {}, "rmab", "_RMAB_COMPLETE")
    assert {one.value for one in shell.get_completions(["run"], "cpap@s")} >= {"cpap@switching"}
    assert [one.value for one in shell.get_completions(["run", "cpap"], "ucmd-")] == ["ucmd-armab"]
    assert "file" in {one.type for one in shell.get_completions(["plan"], "mine")}


def test_values_of_options_are_read_as_json_or_text() -> None:
    parameter = click.Option(["-o"])
    given = ("a=1", "b=.5", "c=true", "d=at-most", "e=1.5", "f=x=y", "g=")
    context = click.Context(main)
    read = key_values(context, parameter, given)
    assert read == {"a": 1, "b": ".5", "c": True, "d": "at-most", "e": 1.5, "f": "x=y", "g": ""}
    table = {"estimator": {"name": "mine:Fade", "speed": 0.5}}
    assert key_values(context, parameter, ("estimator=mine:Fade", "estimator.speed=0.5")) == table
    assert key_values(context, parameter, ("estimator.speed=0.5", "estimator=mine:Fade")) == table
    assert key_values(context, parameter, ('estimator={"name": "mine:Fade", "speed": 0.5}',)) == table
    for twice in (("a=1", "a=2"), ("a.b=1", "a.b=2"), ("a.b=1", "a=x", "a=y"), ("a=x", "a.b=1", "a=y")):
        with pytest.raises(click.BadParameter, match="is given twice; keep one"):
            key_values(context, parameter, twice)


def test_json_has_null_for_what_is_no_number() -> None:
    import numpy as np

    given = {"a": np.array([1.0, np.nan]), "b": (float("inf"), np.float64(2)), 3: np.int64(4), "d": None}
    assert as_json(given) == {"a": [1.0, None], "b": [None, 2.0], "3": 4, "d": None}
    assert json.dumps(as_json(given), allow_nan=False)
