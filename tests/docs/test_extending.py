"""docs/extending.md as a newcomer follows it: its code is run, checked, played in a study, and reported."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
MODULE = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S))
STUDY = re.findall(r"```toml\n(.*?)```", PAGE, re.S)[0]
COMMANDS = [line for block in re.findall(r"```\n(rmab.*?)```", PAGE, re.S) for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("extending")
    (place / "mine.py").write_text(MODULE)
    (place / "custom.toml").write_text(STUDY)
    return place


def call(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_class_is_short() -> None:
    sizes = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.parse(MODULE).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    assert {"Median", "Even", "Greedy", "Climber", "Tides", "tides", "clinic"} <= sizes.keys()
    assert max(sizes.values()) < 40


def test_the_contracts_hold(folder: Path) -> None:
    assert call(folder, sys.executable, "-c", "import mine; mine.check(); print('kept')") == "kept\n"


def test_the_commands_work_and_the_report_names_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import call as command

    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("mine", None)  # other tests have modules of this name, too
    for line in COMMANDS:
        few = ["--episodes", "5"] if line.startswith("rmab run") and "--episodes" not in line else []
        outcome = command(*line.split()[1:], *few)
        assert outcome.exit_code == 0, f"{line}: {outcome.stderr}"
    status = json.loads(command("study", "status", "results", "--json").stdout)
    assert (status["finished"], status["total"]) == (24, 24)
    page = (folder / "results" / "report" / "report.html").read_text()
    for label in ("tides", "clinic", "climber", "median and even boxes", "greedy", "careful"):
        assert label in page
    del sys.modules["mine"]
