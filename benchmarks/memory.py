"""How much memory many arms of two groups need, beside as many of one group: kernels are kept per group.

One command, a table out: the peak of a fresh process for every row, less that of a process that only imports rmab. The limit
is named in the title: two groups have two kernels, so twice the memory of one is what must be expected.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

LIMIT = 2.5  # times the memory of one group
SETUP = """
import resource, sys
from pathlib import Path
import numpy as np
import rmab

def spots(groups):
    classes = [{"arms": 50}, {"arms": 50, "arrival": 0.4}] if groups == 2 else None
    stays = {"dwell": [1 / 24] * 24, "load": [1 / 19] * 19}
    return rmab.make_task("deadline", arms=100, phases=24, horizon=288, episodes=1, classes=classes, **stays).problem

def drawn(groups):
    kernels = np.random.default_rng(0).dirichlet(np.ones(240), size=(groups, 24, 240, 2))
    return rmab.Problem(rmab.Arms.of_groups(kernels, np.arange(60) % groups), 0, 10, 24)

def mothers(groups):
    kernels = np.random.default_rng(0).dirichlet(np.ones(30), size=(groups, 30, 2))
    return rmab.Problem(rmab.Arms.of_groups(kernels, np.arange(100_000) % groups), 0, 1000, 2)

def stored(problem):
    path = Path(sys.argv[1]) / "problem.npz"
    problem.save(path)
    return rmab.Problem.load(path)

def simulated(problem):
    reward = np.zeros((problem.arms.count, problem.arms.states, 2))
    return rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(0))

def bounded(problem):
    reward = np.tile(np.random.default_rng(1).random((problem.arms.states, 2)), (problem.arms.count, 1, 1))
    return rmab.solvers.solve_fluid(problem, reward, tolerance=1e-2)
"""
LAST = "\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
CASES = {
    "60 arms, 24 phases, 240 states": "drawn",
    "deadline, 100 arms, 24 phases, 480 states": "spots",
    "100,000 arms, 30 states": "mothers",
}
USES = {"build": "{}", "save and load": "stored({})", "simulate": "simulated({})", "bound": "bounded({})"}


def peak(line: str) -> float:
    """Return the most megabytes that a process has which runs this line."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", SETUP + line + LAST, str(Path(folder))]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> int:
    """Print the table; return 1 where a row is above the limit."""
    title = f"MB beyond `import rmab`; limit: two groups need {LIMIT:g} times what one needs"
    table, bare, worst = Table(title=title), peak(""), 0.0
    for column in ("arms", "use", "one group", "two groups", "ratio"):
        table.add_column(column, justify="left" if column in ("arms", "use") else "right")
    for words, maker in CASES.items():
        for use, form in USES.items():
            if use == "bound" and maker == "spots":  # minutes, and no other story than that of the drawn arms
                continue
            one, two = (peak(form.format(f"{maker}({groups})")) - bare for groups in (1, 2))
            row: list[Any] = [words, use, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.1f}"]
            table.add_row(*row)
            worst = max(worst, two / one)
    Console(width=110).print(table)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
