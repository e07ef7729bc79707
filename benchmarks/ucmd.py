"""Episodes of `ucmd`, outside simulation: plan, and learn from feedback. One command, tables out.

    python benchmarks/ucmd.py [cpap] [deadline] [growth]

Times are of the processor, all threads counted, the least of some repeats, because machines are busy. The deadline class is
compared with one joint-KL projection of its size in the same run. Targets that are missed are named at the end, and the exit
code says so.
"""

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

import rmab
from rmab.play.simulation import play_episode
from rmab.runs.running import Game

sys.path += [str(Path(__file__).parents[1] / "tests" / "helpers"), str(Path(__file__).parent)]

from priced import CONSOLE, PASSES, spent, table
from projection import deadline_sized

EPISODE = 2.5e-3  # seconds of an episode of the case study, everything switched on
LARGE, TABLES = 5.0, 5.0  # seconds of an episode of 100,000 arms, and memory in tables of all arms, steps and states


def episodes(task: rmab.Task, repeats: int = 3) -> tuple[float, float]:
    """Return processor seconds an episode, planning and learning alone, after the first two, and passes an episode.

    Episodes are played as `rmab.run` plays them: feedback of the simulator is trusted, and not checked again.
    """
    learner = rmab.make_learner("ucmd")
    best, passes = np.inf, 0.0
    for _ in range(repeats):
        game = Game(task, [0])
        state, taken, iterations = learner.begin(game.view), [], []
        for t in range(task.episodes):
            begin = time.process_time()
            plan = learner.plan(state)
            used = time.process_time() - begin
            streams = game.begin(t, plan.policy)
            seen = game.feedback(play_episode(task.problem, plan.policy, game.reward(), streams[:, :2]))
            iterations.append(plan.iterations)
            del plan
            begin = time.process_time()
            state = learner.learn(state, seen)
            taken.append(used + time.process_time() - begin)
        best, passes = min(best, float(np.mean(taken[2:]))), float(np.mean(iterations[2:])) + 1.0  # one more to read it off
    return best, passes


def cpap() -> list[str]:
    """Both case studies of adherence."""
    title = f"CPAP, 50 episodes (targets: {1e3 * EPISODE:g} ms, {PASSES:g} passes)"
    rows, missed = table(title, "task", "ms an episode", "passes"), []
    for name in ("cpap@noisy", "cpap@switching", "cpap@weekly", "cpap-adherence@noisy"):
        seconds, passes = episodes(rmab.make_task(name))
        rows.add_row(name, f"{1e3 * seconds:.2f}", f"{passes:.1f}")
        missed += [] if seconds <= EPISODE else [f"{name}: {1e3 * seconds:.2f} ms, not {1e3 * EPISODE:g}"]
        missed += [] if passes <= PASSES else [f"{name}: {passes:.1f} passes, not {PASSES:g}"]
    CONSOLE.print(rows)
    return missed


def deadline() -> list[str]:
    """The deadline class beside one projection of its size."""
    arguments = deadline_sized(masked=False)
    rmab.solvers.project(*arguments, weights=[100.0])
    joint = spent(lambda: rmab.solvers.project(*arguments, weights=[100.0]), 2)
    title = f"deadline, 10 episodes (target: a tenth of a projection, {1e3 * joint:.0f} ms; aim a fiftieth)"
    rows, missed = table(title, "task", "ms an episode", "of a projection", "passes"), []
    for name in ("deadline@ramp", "deadline@noisy"):
        seconds, passes = episodes(rmab.make_task(name, episodes=10))
        rows.add_row(name, f"{1e3 * seconds:.1f}", f"1 / {joint / seconds:.0f}", f"{passes:.1f}")
        missed += [] if seconds <= joint / 10 else [f"{name}: 1 / {joint / seconds:.0f} of a projection, not 1 / 10"]
        missed += [] if passes <= PASSES else [f"{name}: {passes:.1f} passes, not {PASSES:g}"]
    CONSOLE.print(rows)
    return missed


def growth() -> list[str]:
    """Separate arms of 3 states over 50 steps."""
    columns = ("arms", "s an episode", "microseconds an arm", "passes", "tables (N,H,S)")
    rows, missed = table(f"separate arms (targets: {LARGE:g} s, linear within 1.3, {TABLES:g} tables)", *columns), []
    each = {}
    for arms in (1_000, 10_000, 100_000):
        task = rmab.make_task("cpap@noisy", arms=arms, budget=arms // 2, episodes=5)
        seconds, passes = episodes(task, 1)
        few = rmab.make_task("cpap@noisy", arms=arms, budget=arms // 2, episodes=3)
        tracemalloc.start()  # what the learner, its state, and the episode need: not the arms themselves
        episodes(few, 1)
        used = tracemalloc.get_traced_memory()[1] / (8.0 * arms * 50 * 3)
        tracemalloc.stop()
        each[arms] = seconds / arms
        rows.add_row(f"{arms:,}", f"{seconds:.2f}", f"{1e6 * each[arms]:.1f}", f"{passes:.1f}", f"{used:.1f}")
    ratio = each[100_000] / each[1_000]
    missed += [] if 1e5 * each[100_000] <= LARGE else [f"100,000 arms: {1e5 * each[100_000]:.1f} s, not {LARGE:g}"]
    missed += [] if ratio <= 1.3 else [f"growth from 1,000 to 100,000 arms: {ratio:.2f} times linear, not 1.3"]
    missed += [] if used <= TABLES else [f"100,000 arms: {used:.1f} tables, not {TABLES:g}"]
    CONSOLE.print(rows)
    return missed


PARTS = {part.__name__: part for part in (cpap, deadline, growth)}

if __name__ == "__main__":
    misses = [miss for name in sys.argv[1:] or PARTS for miss in PARTS[name]()]
    sys.exit("targets missed: " + "; ".join(misses) if misses else 0)
