"""What studies cost beyond their runs: scaling over workers, overhead per run, memory. One command, tables out.

    python benchmarks/studies.py [scaling] [overhead] [memory] [--small]

`--small` only shows that it works. Targets that are missed are named at the end, and the exit code says so.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rmab.study import BUILTIN, DaskEngine, Engine, LocalEngine, Results, Study, run_study

TINY = {"arms": 2, "budget": 1, "horizon": 1, "episodes": 1}


def tiny(rounds: int) -> Study:
    """Return a study whose runs cost next to nothing."""
    tasks, learners = [{"name": "cpap@ramp", "options": TINY}], [{"name": "random"}]
    return Study.model_validate({"name": "tiny", "rounds": rounds, "tasks": tasks, "learners": learners})


def timed(study: Study, engine: Engine) -> tuple[float, float, int]:
    """Return the seconds from the first finished run to the last, what the runs in between took, and their number."""
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run_study(study, folder, engine=engine, on_progress=lambda *_: moments.append(time.perf_counter()))
        spent = [one["seconds"] for one in Results.open(folder).provenance()]
    return moments[-1] - moments[1], sum(spent[1:]), len(spent) - 1


def scaling(small: bool) -> list[str]:
    """Play paper-cpap on one worker and on two."""
    study = BUILTIN["paper-cpap"].with_rounds(2 if small else 30)
    rows = table(f"paper-cpap, {study.rounds} rounds (target: 1.8 times)", "workers", "seconds a run", "times")
    each: list[float] = []
    for workers in (1, 2):
        seconds, _, count = timed(study, LocalEngine(workers))
        each.append(seconds / count)
        rows.add_row(str(workers), f"{each[-1]:.3f}", f"{each[0] / each[-1]:.2f}")
    CONSOLE.print(rows)
    ratio = each[0] / each[1]
    return [] if ratio >= 1.8 else [f"scaling: {ratio:.2f} times with two workers, not 1.8"]


def overhead(small: bool) -> list[str]:
    """Take the time that an engine with one worker adds to tiny runs, as a part of a CPAP run of the paper's learner."""
    from distributed import LocalCluster

    cpap = BUILTIN["paper-cpap"].with_rounds(2 if small else 10)
    cpap = Study.model_validate({**cpap.model_dump(), "learners": [{"name": "ucmd-armab"}]})
    _, spent, runs = timed(cpap, LocalEngine(1))
    unit, missed = spent / runs, []
    rows = table("added to every run (target: 5% of a cpap run)", "engine", "ms a run", "of a cpap run")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        for engine in (LocalEngine(1), DaskEngine(cluster.scheduler_address)):
            seconds, spent, count = timed(tiny(20 if small else 1000), engine)
            added = (seconds - spent) / count
            rows.add_row(engine.name, f"{1000 * added:.2f}", f"{added / unit:.2%}")
            missed += [] if added / unit < 0.05 else [f"{engine.name}: {added / unit:.1%} of a cpap run, not 5%"]
    CONSOLE.print(rows)
    return missed


def resident(process: int) -> float:
    """Return the memory of a process in MB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(small: bool) -> list[str]:
    """Watch the memory of the study and of its workers over many tiny runs."""
    rounds = 200 if small else 100_000
    rows = table(
        f"{rounds} tiny runs, two workers (target: no more than 10% above the first tenth)",
        "runs",
        "study, MB",
        "workers, MB",
    )
    seen: list[float] = []

    def look(finished: int, total: int) -> None:
        if finished and finished % (total // 10) == 0:
            workers = [resident(one.pid) for one in multiprocessing.active_children() if one.pid]
            seen.append(resident(os.getpid()) + sum(workers))
            rows.add_row(str(finished), f"{seen[-1] - sum(workers):.0f}", " ".join(f"{one:.0f}" for one in workers))

    with tempfile.TemporaryDirectory() as folder:
        run_study(tiny(rounds), folder, engine=LocalEngine(2), on_progress=look)
    CONSOLE.print(rows)
    return [] if max(seen) <= 1.1 * seen[0] else [f"memory: grew from {seen[0]:.0f} to {max(seen):.0f} MB"]


PARTS: dict[str, Callable[[bool], list[str]]] = {part.__name__: part for part in (scaling, overhead, memory)}

if __name__ == "__main__":
    sys.path += [str(Path(__file__).parents[1] / "tests" / "helpers"), str(Path(__file__).parent)]
    from projection import CONSOLE, table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--small", action="store_true", help="only show that it works")
    args = parser.parse_args()
    misses = [miss for name in args.parts or PARTS for miss in PARTS[name](args.small)]
    sys.exit("targets missed: " + "; ".join(misses) if misses else 0)
