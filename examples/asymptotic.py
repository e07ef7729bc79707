"""Endless horizon, ever more arms: whose average reward gets to the bound, on published examples, and who stays away.

Prints a table and saves a picture: reward per step in the second half of long episodes, relative to the bound.
"""

import argparse
import contextlib
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.style import context
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rmab
from rmab.report.figures import COLOURS, MARKERS, WHOLE
from rmab.report.output import ASSETS

EXAMPLES = ("gast-2", "conveyor", "non-sa")
LABELS = ("ID policy", "FTVA", "LP priorities (auto)", "LP priorities (fill)", "Whittle (fill)")
Share = tuple[float, float]  # of the bound, and its standard error
LOW = 85  # % of the bound: who never gets there is named instead of drawn


def policies(problem: rmab.Problem, reward: np.ndarray) -> dict[str, rmab.Policy]:
    """Every policy by name; without Whittle's where an arm has several classes, which leaves it without average indices."""
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    index = (rmab.planners.stationary_index(problem, reward, average=plan, rule=rule) for rule in ("auto", "fill"))
    draws = (make(problem, reward, average=plan) for make in (rmab.planners.IdPolicy, rmab.planners.Ftva))
    known = (*draws, *index)
    found: dict[str, rmab.Policy] = dict(zip(LABELS, known, strict=False))
    with contextlib.suppress(rmab.errors.ModelError):
        found[LABELS[-1]] = rmab.planners.whittle_index(problem, reward).policy()
    return found


def share(problem: rmab.Problem, policy: rmab.Policy, reward: np.ndarray, rounds: int, seed: int) -> Share:
    """Play some episodes, on the same random numbers for all policies; reward of the second half, relative to the bound."""
    bound, arms = rmab.solvers.solve_average_fluid(problem, reward).bound, np.arange(problem.arms.count)
    each = np.empty(rounds)
    for k in range(rounds):
        seen = rmab.simulate(problem, policy, reward, np.random.default_rng((seed, k)))
        late = range(problem.horizon // 2, problem.horizon)
        each[k] = np.mean([reward[arms, seen.states[h], seen.actions[h].astype(int)].sum() for h in late]) / bound
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(rounds))


def measured(name: str, sizes: list[int], options: argparse.Namespace, console: Console) -> dict[str, list[Share]]:
    """Measure every policy on an example with every number of arms, and print it."""
    found: dict[str, list[Share]] = {}
    for count in track(sizes, description=f"simulating {name}", console=console, transient=True):
        task = rmab.make_task(name, arms=count, horizon=options.steps)
        for label, policy in policies(task.problem, task.base_reward).items():
            found.setdefault(label, []).append(share(task.problem, policy, task.base_reward, options.rounds, options.seed))
    rows = Table(title=f"{name}: average reward in % of the bound ± standard error, {options.steps} steps")
    for column in ("policy", *(f"{count} arms" for count in sizes)):
        rows.add_column(column, justify="left" if column == "policy" else "right")
    for label, shares in found.items():
        rows.add_row(label, *(f"{100 * mean:.1f}±{100 * error:.1f}" for mean, error in shares))
    console.print(rows)
    return found


def picture(results: dict[str, dict[str, list[Share]]], sizes: list[int], path: Path) -> None:
    """Save one panel per example: shares of the bound by the number of arms, with standard errors."""
    with context(str(ASSETS / "figures.mplstyle")):
        figure = Figure(figsize=(WHOLE, 2.5), layout="constrained")
        panels = figure.subplots(1, len(results), sharex=True, squeeze=False)[0]
        for axes, (name, found) in zip(panels, results.items(), strict=True):
            low = 0
            for label, shares in found.items():
                k, (means, errors) = LABELS.index(label), 100 * np.array(shares).T
                look = {"color": COLOURS[k], "marker": MARKERS[k], "linestyle": "-" if k < 2 else (0, (3, 1.5))}
                shift = 1 + 0.03 * (k - 2)  # side by side, where they are equal
                axes.errorbar(
                    shift * np.array(sizes), means, errors, markersize=3, elinewidth=0.8, linewidth=1, label=label, **look
                )
                if means.max() < LOW:
                    place = {"ha": "center", "transform": axes.transAxes, "fontsize": 7}
                    axes.text(0.5, 0.04 + 0.09 * low, f"{label}: {means.max():.0f}%", color=COLOURS[k], **place)
                    low += 1
            axes.set_ylim(LOW, 101)
            axes.axhline(100, color="#555555", linewidth=0.6, zorder=1)
            axes.set(xscale="log", title=name, xlabel="arms $N$")
            axes.set_xticks(sizes, [str(count) for count in sizes])
            axes.minorticks_off()
        panels[0].set_ylabel("average reward, % of the bound")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arms", type=int, nargs="+", default=[100, 200, 400, 800, 1600], help="numbers of arms")
    parser.add_argument("--steps", type=int, default=2000, help="steps of an episode, of which the second half counts")
    parser.add_argument("--rounds", type=int, default=5, help="episodes per policy, at least 2")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--out", type=Path, default=Path("out/asymptotic.png"), help="where the picture goes")
    options = parser.parse_args()
    console = Console()
    picture({name: measured(name, options.arms, options, console) for name in EXAMPLES}, options.arms, options.out)
    console.print(f"picture: {options.out}")


if __name__ == "__main__":
    main()
