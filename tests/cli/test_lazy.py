"""What a command imports: no more of the library than it needs."""

import json
import subprocess
import sys

import pytest

MEASURE = """
import json, sys
from click.testing import CliRunner
from rmab.cli import main
outcome = CliRunner().invoke(main, sys.argv[1:])
assert outcome.exit_code == 0, outcome.output
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in ("rmab", "numpy", "pydantic"))))
"""


def imported(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True, timeout=120)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_run_imports_its_learner_and_task_and_no_other() -> None:
    ours = [name for name in imported("run", "cpap", "ucmd", "--episodes", "2") if name.startswith("rmab")]
    assert len(ours) <= 94  # about half of the 185 before imports were lazy
    for rest in ("solvers.projection", "solvers.stationary", "solvers.whittle", "planners.whittle", "tasks.charging"):
        assert not any(name.startswith(f"rmab.{rest}") for name in ours), rest
    assert [name for name in ours if name.startswith("rmab.learning.algorithms.")] == ["rmab.learning.algorithms.ucmd"]


def test_lists_of_names_import_no_implementation() -> None:
    for command in ("learners", "tasks"):
        names = imported(command)
        assert not {"numpy", "pydantic", "rmab.learning.base", "rmab.tasks.cpap", "rmab.tasks.definition"} & set(names)
