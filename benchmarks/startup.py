"""How long the command line takes to answer: `rmab --help` beside an empty Python, and what compiling costs a first run.

One command, a table out. Compiling is measured in CPU seconds, from an empty folder of machine code; beside it stands a loop
of plain Python, which tells a busy or slow machine. `--all` measures `rmab warm`, too: some minutes.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

REPEATS = 7
TARGET = 0.5
FIRST = 20.0  # CPU seconds up to the first result
LOOP = "s = 0\nfor i in range(10**7):\n    s += i"
RUN = ("-m", "rmab", "run", "cpap", "ucmd")


def seconds(*words: str) -> float:
    """Return the best of a few timings of a fresh Python with these arguments."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - begin)
    return best


def cpu(*words: str, home: str | None = None) -> float:
    """Return the CPU seconds of a fresh Python with these arguments, whose machine code lies in a folder."""
    given = os.environ if home is None else {**os.environ, "XDG_CACHE_HOME": home}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=given)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiling(everything: bool) -> float:
    """Print what compiling costs; return the CPU seconds of a first run."""
    rows = Table(title=f"CPU seconds, from an empty folder of machine code (target: {FIRST:g} for a first run)")
    for column in ("command", "s"):
        rows.add_column(column, justify="left" if column == "command" else "right")
    rows.add_row("10 million additions in plain Python", f"{cpu('-c', LOOP):.2f}")
    with tempfile.TemporaryDirectory() as home:
        first = cpu(*RUN, home=home)
        rows.add_row("rmab run cpap ucmd", f"{first:.1f}")
        rows.add_row("the same again", f"{cpu(*RUN, home=home):.1f}")
    if everything:
        with tempfile.TemporaryDirectory() as home:
            rows.add_row("rmab warm", f"{cpu('-m', 'rmab', 'warm', home=home):.1f}")
            rows.add_row("rmab run cpap ucmd after it", f"{cpu(*RUN, home=home):.1f}")
    Console(width=110).print(rows)
    return first


def main() -> None:
    """Measure, print, and fail where help or a first run is slow."""
    rows = Table(title=f"start-up, best of {REPEATS} (target: help within {TARGET} s)")
    for column in ("command", "ms"):
        rows.add_column(column, justify="left" if column == "command" else "right")
    helps = (["--help"], ["run", "--help"], ["study", "run", "--help"])
    taken = {" ".join(["rmab", *words]): seconds("-m", "rmab", *words) for words in helps}
    lists = {" ".join(["rmab", *words]): seconds("-m", "rmab", *words) for words in (["tasks"], ["learners"])}
    for command, time_taken in {"an empty Python": seconds("-c", ""), **taken, **lists}.items():
        rows.add_row(command, f"{time_taken * 1e3:.0f}")
    Console(width=110).print(rows)
    first = compiling("--all" in sys.argv[1:])
    sys.exit("target missed: start-up" if max(taken.values()) > TARGET or first > FIRST else 0)


if __name__ == "__main__":
    main()
