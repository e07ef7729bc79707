"""What studies of made-up programmes share: repetitions that resume, shares and means with intervals, quick evaluations."""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmab.estimation import evaluation, one_step, optimism, repeats

Line = dict[str, Any]


def hurry() -> None:
    """Make evaluations quicker where no interval depends on it."""
    evaluation.REPLAN = False  # what a plan would earn that knew the world takes most of the time
    evaluation.WORK = 200_000  # arm-periods a replicate: its noise is small beside the width of the intervals
    one_step.REPLICATES = 40  # of a check that says nothing of intervals
    optimism.LOGS = 8  # of 16
    repeats.MOST = 2  # episodes of a scenario that is only stated


def parse(description: str | None, kinds: Iterable[str], repetitions: int) -> argparse.ArgumentParser:
    """Return the options that all these studies have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition")
    parser.add_argument("--kinds", default=",".join(kinds), help="names, with commas")
    return parser


def repeat(options: argparse.Namespace, repetition: Callable[[str, int], Line], show: Callable[[list[Line]], str]) -> None:
    """Resume the study: one line of JSON for each repetition is stored in the folder; then print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "repetitions.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(one["kind"], one["repetition"]) for one in lines}
    for number in range(options.first, options.first + options.repetitions):
        for name in options.kinds.split(","):
            if (name, number) not in done:
                lines.append(repetition(name, number))
                with results.open("a") as stream:
                    stream.write(json.dumps(lines[-1]) + "\n")
    print(show(lines))  # noqa: T201


def tabulate(heads: Sequence[str], rows: Iterable[Sequence[str]], *, last: str = "---:") -> str:
    """Return a table in Markdown; last: how its last column is set."""
    rule = "|---|" + "---:|" * (len(heads) - 2) + f"{last}|"
    return "\n".join(["| " + " | ".join(heads) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def share(hits: Sequence[bool]) -> str:
    """Return '38 of 40 (84 to 99%)', by the interval of Wilson (1927)."""
    n, k, z = len(hits), sum(hits), 1.96
    if not n:
        return ""
    centre, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return f"{k} of {n} ({100 * max(centre - half, 0):.0f} to {100 * min(centre + half, 1):.0f}%)"


def mean(values: Sequence[float]) -> str:
    """Return '-0.31 ± 0.23': the mean, and 1.96 standard errors."""
    if not values:
        return ""
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):+.2f} ± {half:.2f}"
