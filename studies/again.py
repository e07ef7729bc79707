"""Does this version find what an earlier one found? A sample of finished runs is played again and compared.

    python studies/again.py results/rivals [results/growth ...] [--runs 20]

Every learner of a study comes up about equally often. What was played must be equal to the last bit; what it is held against
(O1, O2, O3, random, regret against them) to 1e-12 of what is at stake, as other solvers round otherwise; wall times are left
out. It says how many runs are equal, names those that are not, with the first column and episode that differ, and exits with
1 if there are any. On another kind of processor sums are rounded otherwise, and ties may fall otherwise.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from rmab.errors import RmabError, StudyError
from rmab.study import Job, Results
from rmab.study.origin import short
from rmab.study.shards import provenance_of, read_shard, shard_path
from rmab.study.single_run import play

SAY = Console(highlight=False, soft_wrap=True)
HELD = ("bound", "random", "regret_", "term", "theory")  # columns of what runs are held against
SOLVED = 1e-12  # by how much these may differ, relative to what O1 earns in the run


def finished(folder: Path) -> list[tuple[Job, pa.Table]]:
    """Return the finished runs of a study's folder with what they found, in the study's order."""
    results = Results.open(folder)
    found = ((job, read_shard(shard_path(folder, job.id), job.id)) for job in results.study.jobs())
    return [(job, table) for job, table in found if table is not None]


def sample(runs: list[tuple[Job, pa.Table]], number: int, seed: int = 0) -> list[tuple[Job, pa.Table]]:
    """Return so many runs, or all: drawn at random, but every learner in turn."""
    rng, by_learner = np.random.default_rng(seed), dict[str, list[tuple[Job, pa.Table]]]()
    for i in rng.permutation(len(runs)):
        by_learner.setdefault(runs[i][0].learner.label, []).append(runs[i])
    taken: list[tuple[Job, pa.Table]] = []
    while len(taken) < min(number, len(runs)):
        for each in (one for one in by_learner.values() if one):
            taken.append(each.pop())
    return taken[:number]


def difference(then: pa.Table, now: pa.Table) -> str:
    """Return the first column and episode in which two runs differ, and both values; empty where they are equal."""
    if (then.num_rows, then.column_names) != (now.num_rows, now.column_names):
        return f"{then.num_rows} episodes of {then.num_columns} columns then, {now.num_rows} of {now.num_columns} now"
    allowed = SOLVED * float(np.abs(then["bound"].to_numpy()).sum())
    for name in (one for one in then.column_names if one != "seconds"):
        for t, (a, b) in enumerate(zip(then[name].to_pylist(), now[name].to_pylist(), strict=True)):
            near = name.startswith(HELD) and abs(a - b) <= allowed
            if repr(a) != repr(b) and not near:  # NaN is equal to itself so, and no digit is left out
                return f"{name}, episode {t}: {a!r} then, {b!r} now"
    return ""


def compared(folder: Path, number: int) -> int:
    """Play a sample of a folder again; return how many runs differ."""
    runs = sample(finished(folder), number)
    if not runs:
        raise StudyError(f"{folder}: no run is finished")
    versions = sorted({short(provenance_of(table.schema).get("revision") or "unknown") for _, table in runs})
    others = [(job, said) for job, table in runs if (said := difference(table, play(job)))]
    SAY.print(f"{folder.name}: {len(runs) - len(others)} of {len(runs)} runs of revision {', '.join(versions)} are equal")
    for job, said in others:
        SAY.print(f"  {job.id}: {said}")
    return len(others)


def main() -> int:
    """Compare every folder; return 1 where a run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="of studies")
    parser.add_argument("--runs", type=int, default=20, help="of each study")
    args = parser.parse_args()
    try:
        return int(sum([compared(folder, args.runs) for folder in args.folders]) > 0)
    except RmabError as error:
        SAY.print(f"Error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
