"""How long the command line takes to answer: `rmab --help` beside an empty Python. One command, a table out."""

import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

REPEATS = 7
TARGET = 0.5


def seconds(*words: str) -> float:
    """Return the best of a few timings of a fresh Python with these arguments."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    """Measure, print, and fail where help is slow."""
    rows = Table(title=f"start-up, best of {REPEATS} (target: help within {TARGET} s)")
    for column in ("command", "ms"):
        rows.add_column(column, justify="left" if column == "command" else "right")
    helps = (["--help"], ["run", "--help"], ["study", "run", "--help"])
    taken = {" ".join(["rmab", *words]): seconds("-m", "rmab", *words) for words in helps}
    lists = {" ".join(["rmab", *words]): seconds("-m", "rmab", *words) for words in (["tasks"], ["learners"])}
    for command, time_taken in {"an empty Python": seconds("-c", ""), **taken, **lists}.items():
        rows.add_row(command, f"{time_taken * 1e3:.0f}")
    Console(width=110).print(rows)
    sys.exit("target missed: start-up" if max(taken.values()) > TARGET else 0)


if __name__ == "__main__":
    main()
