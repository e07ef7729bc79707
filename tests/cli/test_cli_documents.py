"""What docs/cli.md says is what happens: its files are written, and its commands run, from the first to the last."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from commands import call, commands
from rmab.cli.program import BAD_INPUT, FAILED, INTERRUPTED

GUIDE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
FILES = {"json": "problem.json", "toml": "small.toml", "python": "mine.py", "csv": "tariff.csv"}


def typed(line: str) -> str:
    """Type a command of the guide, and return what it prints."""
    command, _, target = line.partition(" > ")
    program, *words = shlex.split(command)
    if program == "echo":
        printed = " ".join(words) + "\n"
    else:
        assert program == "rmab", line
        outcome = call(*words)
        assert outcome.exit_code == 0, f"{line}: {outcome.stderr}"
        printed = outcome.stdout
    if target:
        Path(target).write_text(printed)
    return "" if target else printed


@pytest.mark.slow
def test_the_guide_s_commands_run_in_order_and_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    printed = ""
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", GUIDE, re.S | re.M):
        if kind in FILES:
            Path(FILES[kind]).write_text(block)
        elif kind == "sh":
            printed = "".join(typed(line) for line in block.splitlines())
        elif not block.startswith("eval"):
            for line in block.splitlines():
                assert line in printed
    made = ["run.csv", "summary.json", "paper-copy.toml", "results/report/report.html"]
    assert all(Path(name).stat().st_size for name in made)
    assert typed("rmab study status results --json").count('"finished": 8') == 1


def test_the_guide_names_every_command_and_exit_code() -> None:
    for path in commands():
        assert f"rmab {' '.join(path)}".strip() in GUIDE
    assert re.findall(r"^\| (\d+) \|", GUIDE, re.M) == [str(code) for code in (0, FAILED, BAD_INPUT, INTERRUPTED)]
