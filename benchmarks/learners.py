"""One full CPAP run of every learner, and a deadline episode: what learning costs. One command, tables out.

    python benchmarks/learners.py [cpap] [deadline] [every] (and literal, which takes minutes and 10 GB)

The peer of the first table is the same loop with the projection done by CVXPY + Clarabel: its solver time on the projections
of some episodes (those that it solves), extrapolated to all of them. Targets that are missed are named at the end, and the
exit code says so.
"""

import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from rmab.learning.components import steps
from rmab.solvers.projection.program import make_program

sys.path += [str(Path(__file__).parents[1] / "tests" / "helpers"), str(Path(__file__).parent)]

from projection import CONSOLE, table


class Watched:
    """Stands in for `project_onto`: adds up its processor time, and keeps the arguments of some calls."""

    def __init__(self) -> None:
        self.project, self.seconds, self.calls, self.kept = steps.project_onto, 0.0, 0, list[tuple[object, ...]]()

    def __call__(self, *arguments: object, **options: object) -> object:
        """Project, and take the time."""
        begin = time.process_time()
        answer = self.project(*arguments, **options)  # type: ignore[arg-type]
        self.seconds += time.process_time() - begin
        self.calls += 1
        if self.calls % 4 == 1:
            reference, sets, start, budget = arguments
            self.kept.append((reference, sets, start, budget, options["weights"]))
        return answer


def watched_run(task: rmab.Task, learner: rmab.Learner) -> tuple[float, Watched]:
    """Return the processor seconds of a run, everything included, and what was seen of its projections."""
    watch = Watched()
    steps.project_onto = watch  # type: ignore[assignment]
    begin = time.process_time()
    try:
        rmab.run(task, learner)
    finally:
        steps.project_onto = watch.project
    return time.process_time() - begin, watch


def peer_seconds(arguments: tuple[Any, ...]) -> float | None:
    """Return Clarabel's own time, in seconds of the processor, for one projection, or None where it gives up."""
    import cvxpy

    from oracle import clarabel

    try:
        return clarabel(make_program(*arguments)).seconds
    except cvxpy.error.SolverError:
        return None


def cpap() -> list[str]:
    """Runs of 50 episodes."""
    task, missed = rmab.make_task("cpap@noisy"), []
    rows = table(
        "cpap@noisy, 50 episodes (targets: 400 times faster than with Clarabel, 20% outside the projection)",
        "learner", "s of the processor", "outside the projection", "projections", "with Clarabel, s", "times", "it solved",
    )  # fmt: skip
    for name in ("ucmd-armab",):
        rmab.run(task, name)
        seconds, watch = min((watched_run(task, rmab.make_learner(name)) for _ in range(3)), key=lambda one: one[0])
        taken = [one for one in map(peer_seconds, watch.kept) if one is not None]
        slow = float(np.mean(taken)) * watch.calls + seconds - watch.seconds
        outside = 1 - watch.seconds / seconds
        cells = (f"{seconds:.2f}", f"{outside:.0%}", str(watch.calls), f"{slow:.0f}", f"{slow / seconds:.0f}")
        rows.add_row(name, *cells, f"{len(taken)} of {len(watch.kept)}")
        missed += [] if slow / seconds >= 400 else [f"{name}: {slow / seconds:.0f} times, not 400"]
        missed += [] if outside <= 0.2 else [f"{name}: {outside:.0%} outside the projection, not 20%"]
    for name, options in (("rmab-ucrl", {}), ("rmab-ucrl", {"version": "finite"}), ("random", {}), ("oracle", {})):
        begin = time.process_time()
        rmab.run(task, rmab.make_learner(name, **options))
        rows.add_row(f"{name} {options.get('version', '')}", f"{time.process_time() - begin:.2f}", "", "", "", "", "")
    CONSOLE.print(rows)
    return missed


def deadline(episodes: int = 20) -> list[str]:
    """Episodes of the deadline class, one block of weight 100: all that a run does, in processor time."""
    rows = table(
        "deadline@ramp, groups (targets: 60 ms of the processor for an episode of ucmd-armab, and less than 1 GB)",
        "learner", "ms an episode", "peak GB",
    )  # fmt: skip
    missed = []
    for name, target in (("ucmd-armab", 60.0), ("ucmd", 60.0)):
        taken = []
        for many in (2, 2, episodes):  # the first one compiles
            begin = time.process_time()
            rmab.run(rmab.make_task("deadline@ramp", episodes=many), name)
            taken.append(time.process_time() - begin)
        each = 1e3 * (taken[2] - taken[1]) / (episodes - 2)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rows.add_row(name, f"{each:.0f}", f"{most:.2f}")
        missed += [] if each <= target else [f"deadline, {name}: {each:.0f} ms, not {target:.0f}"]
        missed += [] if most < 1 else [f"deadline, {name}: {most:.2f} GB, not 1"]
    CONSOLE.print(rows)
    return missed


def every(episodes: int = 10) -> list[str]:
    """Seconds per episode of every learner, in those of `ucmd`; colored-ucrl2, and ucmd beside it, on a small task."""
    small = {"arms": 4, "budget": 2, "horizon": 20}
    rows = table("cpap@noisy, every learner", "learner", "task", "ms an episode", "times ucmd")
    units = {}
    for name in ("ucmd", *(one for one in rmab.list_learners() if one != "ucmd")):
        sizes = [small] if name == "colored-ucrl2" else [{}, small] if name == "ucmd" else [{}]
        for size in sizes:
            learner = rmab.make_learner(name)
            task = rmab.make_task("cpap@noisy", feedback=learner.feedback, episodes=episodes, **size)  # type: ignore[arg-type]
            rmab.run(task, learner)
            each = float(np.median(rmab.run(task, learner).seconds))
            unit = units.setdefault(bool(size), each)
            rows.add_row(name, "4 arms" if size else "20 arms", f"{1000 * each:.1f}", f"{each / unit:.2f}")
    CONSOLE.print(rows)
    return []


def literal() -> list[str]:
    """One deadline episode as the paper has it, 100 separate spots: 288 million variables. Target: 20 s."""
    rows = table("deadline@noisy, 100 separate arms, one episode", "learner", "seconds", "iterations", "peak GB")
    run = rmab.run(rmab.make_task("deadline@noisy", episodes=1, grouped=False), "ucmd-armab")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows.add_row(
        "ucmd-armab", f"{run.seconds[0]:.0f}", str(int(run.iterations[0] + run.state.arrays["iterations"])), f"{most:.1f}"
    )
    CONSOLE.print(rows)
    return [] if run.seconds[0] <= 20 else [f"literal: {run.seconds[0]:.0f} s, not 20"]


PARTS = {part.__name__: part for part in (cpap, deadline, every, literal)}
USUAL = [name for name in PARTS if name != "literal"]

if __name__ == "__main__":
    misses = [miss for name in sys.argv[1:] or USUAL for miss in PARTS[name]()]
    sys.exit("targets missed: " + "; ".join(misses) if misses else 0)
