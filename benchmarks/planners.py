"""Every policy on the published examples of other authors: `python benchmarks/planners.py` writes docs/planners.md.

Rewards are per arm and step, in brackets the standard error. Arms start in states drawn evenly, and all policies play with
the same random numbers. LP-update solves an LP at every step and plays fewer rounds. Results are stored in the folder out,
policy by policy, so that a second call resumes.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import published
from rich.console import Console

import rmab
from rmab.planners.registry import CANDIDATES
from rmab.tasks.published import EXAMPLES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "planners.md"
ARMS = 100
HORIZONS = {"conveyor": 400, "gast-1": 200, "gast-2": 200, "gast-3": 200, "non-indexable": 200, "non-sa": 400}
FEW = {"conveyor": 10, "gast-2": 10, "gast-3": 10, "non-sa": 3}  # rounds of LP-update, where few suffice or one is slow
PEERS = {  # the best policy of the authors' own code on the same instance, what it earned, and its standard error if known
    "conveyor": ("Whittle", 0.01159, 0.00014),
    "gast-1": ("LP-priority", 0.24569, None),
    "gast-2": ("ID policy", 0.11924, 0.00014),
    "gast-3": ("LP-priority", 0.36049, 0.00017),
    "non-indexable": ("LP", 0.76872, None),
    "non-sa": ("LP", 0.8623, 0.003),
}
SOFTNESS = [  # measured in the same 100 rounds
    "On non-indexable the loss is that of softening: `rolling` spreads a little of the budget over states that an LP leaves",
    "passive. With plans ten times as steep it loses 0.00004 (0.00002); with a window four times as long 0.00015 (0.00002),",
    "as more softened steps add up. `lagrangian` is level with LP-update there, and `rmab.plan` chooses it.",
]
WIDE = 2.0  # standard errors beyond which a difference is one
Row = dict[str, Any]
Rows = dict[str, Row]
Make = Callable[[], rmab.Policy]


def example(name: str) -> tuple[rmab.Problem, np.ndarray]:
    """Return a published example: 100 arms that start evenly spread over the states."""
    reward = EXAMPLES[name].reward
    own = rmab.make_task(name, arms=ARMS, horizon=HORIZONS[name]).problem
    start = np.full((ARMS, len(reward)), 1.0 / len(reward))
    return rmab.Problem(own.arms, start, own.budget, own.horizon), np.tile(reward, (ARMS, 1, 1))


def charging() -> tuple[rmab.Problem, np.ndarray]:
    """Return 100 charging spots, 25 of which may charge, over 300 slots with discount .99."""
    task = rmab.make_task("deadline", arms=ARMS, budget=25, horizon=300)
    own = task.problem
    return rmab.Problem(own.arms, own.start, own.budget, own.horizon, discount=0.99), task.base_reward


def makers(problem: rmab.Problem, reward: np.ndarray, plan: rmab.solvers.Fluid, spots: bool) -> dict[str, Make]:
    """Return how every policy is made, by name."""
    made: dict[str, Make] = {name: (lambda name=name: rmab.make_planner(name)(problem, reward)) for name in CANDIDATES}
    for rule in ("fill", "at-most"):
        ruled = partial(rmab.planners.lagrangian_index, fluid=plan, rule=rule)
        made[f"lagrangian, {rule}"] = lambda ruled=ruled: ruled(problem, reward)
    made["set-expansion"] = lambda: rmab.planners.SetExpansion(problem, reward)
    made["myopic"] = lambda: rmab.planners.myopic_index(problem, reward)
    made["random"] = lambda: rmab.planners.random_policy(problem)
    if spots:
        made["least laxity first"] = lambda: rmab.tasks.deadline.least_laxity_first(problem)
        made["Whittle, closed form"] = lambda: rmab.tasks.deadline.deadline_whittle(problem).policy()
    else:
        made["LP-update"] = lambda: rmab.planners.LpUpdate(problem, reward)
    return made


def measured(problem: rmab.Problem, reward: np.ndarray, make: Make, rounds: int, unit: float) -> Row:
    """Return what a policy earns and takes, or why it does not apply."""
    try:
        begun = time.process_time()
        policy = make()
        planned = time.process_time()
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(1), rounds)
        done = time.process_time()
    except (rmab.errors.ModelError, rmab.errors.SolverError) as error:
        return {"why": str(error)}
    times = {"planned": planned - begun, "round": (done - planned) / rounds}
    return {"mean": batch.mean / unit, "stderr": batch.stderr / unit, "each": (batch.rewards / unit).tolist(), **times}


def column(name: str, rounds: int, kept: dict[str, Rows], keep: Callable[[], None], console: Console) -> Rows:
    """Measure all policies on one instance, but for those that are known."""
    spots = name == "deadline"
    problem, reward = charging() if spots else example(name)
    unit = 1.0 if spots else float(ARMS * problem.horizon)
    rows = kept.setdefault(name, {})
    begun = time.process_time()
    plan = rmab.solvers.solve_fluid(problem, reward)
    rows["bound"] = {"mean": plan.bound / unit, "round": time.process_time() - begun}
    for label, make in makers(problem, reward, plan, spots).items():
        if label not in rows:
            console.print(f"{name}: {label}")
            rows[label] = measured(problem, reward, make, FEW.get(name, rounds) if label == "LP-update" else rounds, unit)
            keep()
    if "plan" not in rows:
        console.print(f"{name}: plan")
        best = rmab.plan(problem, reward, episodes=rounds, seed=2)
        rows["plan"] = {"mean": best.value / unit, "stderr": best.stderr / unit, "rounds": rounds, "name": best.name}
        keep()
    return rows


def cell(row: Row | None, digits: int) -> str:
    """Return one entry of a table."""
    if row is None or "why" in row:
        return "–"
    if "stderr" not in row:
        return f"{row['mean']:.{digits}f}"
    name = f"{row['name']} " if "name" in row else ""
    return f"{name}{row['mean']:.{digits}f} ({row['stderr']:.{digits}f})"


def table(names: list[str], kept: dict[str, Rows], digits: int, order: list[str]) -> list[str]:
    """Return the lines of one table, policies down, instances across."""
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for label in order:
        cells = [cell(kept[name].get(label), digits) for name in names]
        head = f"**{label}**" if label == "plan" else label
        lines.append(f"| {head} | {' | '.join(cells)} |")
    return lines


def page(kept: dict[str, Rows], rounds: int) -> str:
    """Return the page."""
    names = list(HORIZONS)
    policies = [one for one in kept[names[0]] if one not in ("bound", "plan")]
    spots = [one for one in kept["deadline"] if one not in ("bound", "plan")]
    times = [f"| {label} | " + " | ".join(_seconds(kept[n][label]) for n in names) + " |" for label in policies]
    best = table(names, kept, 5, ["bound", "plan"])
    peers = f"| the peers' best | {' | '.join(_peer(name) for name in names)} |"
    text = [
        "# Planners on everybody's examples",
        "",
        *findings(kept),
        "",
        f"Made by `python benchmarks/planners.py` with rmab {rmab.__version__}; do not edit by hand.",
        (__doc__ or "").split("\n\n")[1].strip(),
        "",
        "The same command makes [published results, reproduced](published.md), the numbers behind this figure:",
        "",
        "![Reward relative to the bound, by the number of arms: published and ours](images/published.png)",
        "",
        f"## Published examples, {ARMS} arms, {rounds} rounds",
        "",
        *best,
        peers,
        "",
        "The peers' values are those of the authors' published code (Hong, Xie, Chen & Wang 2023 and 2024, which holds the",
        "policies of Gast, Gaujal & Yan 2020, too), which we ran on these instances; they are not part of",
        "this command. `plan` is what `rmab.plan` chose, measured on rounds that had no part in the choice.",
        "",
        *table(names, kept, 5, ["bound", *policies]),
        "",
        "A dash: the policy does not apply (Whittle's index where an arm is not indexable).",
        "",
        "Rolling less LP-update in the rounds that both played, with the standard error of the mean difference:",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        f"| difference | {' | '.join('{:+.5f} ({:.5f})'.format(*_apart(kept[name])) for name in names)} |",
        f"| rounds | {' | '.join(str(len(kept[name]['LP-update']['each'])) for name in names)} |",
        *(["", *SOFTNESS] if behind_of(kept) == ["non-indexable"] else []),
        "",
        "Processor seconds a round, planning left out:",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *times,
        "",
        f"## Charging spots with discount .99: {ARMS} spots, budget 25, 300 slots, {rounds} rounds",
        "",
        *table(["deadline"], kept, 1, ["bound", "plan", *spots]),
        "",
    ]
    return "\n".join(text)


def findings(kept: dict[str, Rows]) -> list[str]:
    """Return what the tables show, for the beginning of the page."""
    names, below = list(HORIZONS), []
    for name in names:
        plan, (_, mean, stderr) = kept[name]["plan"], PEERS[name]
        if plan["mean"] - mean < -WIDE * float(np.hypot(plan["stderr"], stderr or 0.0)):
            below.append(name)
    behind = behind_of(kept)
    times = [kept[name]["rolling"]["round"] / kept[name]["LP-update"]["round"] for name in names]
    lost = [f"{-_apart(kept[name])[0] / kept[name]['LP-update']['mean']:.2%} less on {name}" for name in behind]
    worse = f", and {', '.join(lost)}" if behind else ""
    return [
        f"`rmab.plan` earns as much as the best policy of the authors' code or more on {_all_but(names, below)} published",
        f"examples. `rolling` earns as much as LP-update or more on {_all_but(names, behind)}{worse},",
        f"in {min(times):.0%} to {max(times):.0%} of its time. As much: within {WIDE:g} standard errors.",
    ]


def behind_of(kept: dict[str, Rows]) -> list[str]:
    """Return the instances on which the rolling plan earns less than LP-update, beyond errors."""
    return [name for name in HORIZONS if _apart(kept[name])[0] < -WIDE * _apart(kept[name])[1]]


def _all_but(names: list[str], some: list[str]) -> str:
    return f"all {len(names)}" if not some else f"{len(names) - len(some)} of {len(names)}"


def _peer(name: str) -> str:
    who, mean, stderr = PEERS[name]
    return f"{who} {mean:.5f}" + ("" if stderr is None else f" ({stderr:.5f})")


def _apart(rows: Rows) -> tuple[float, float]:
    """Return how far the rolling plan is ahead of LP-update in the same rounds, and the standard error of that."""
    few = np.array(rows["LP-update"]["each"])
    ahead = np.array(rows["rolling"]["each"])[: few.size] - few
    return float(ahead.mean()), float(ahead.std(ddof=1) / np.sqrt(few.size))


def _seconds(row: Row) -> str:
    return f"{row['round']:.3f}" if "round" in row else "–"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="episodes per policy")
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page goes")
    parser.add_argument("--kept", type=Path, default=ROOT / "out" / "planners.json", help="where results are kept")
    options = parser.parse_args()
    kept: dict[str, Rows] = json.loads(options.kept.read_text()) if options.kept.exists() else {}
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    published.write(options.out.parent, options.kept.parent, Console())
    for name in [*HORIZONS, "deadline"]:
        column(name, options.rounds, kept, lambda: published.store(kept, options.kept), Console())
    options.out.write_text(page(kept, options.rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
