"""Theorem 1: does the index policy reach the fluid bound as arms and budget grow together?

    python studies/asymptotic.py [--rounds 4000] [--largest 64]

Arms and budget of a small problem are multiplied by rho. The fluid LP does not grow: copies are one block. The table has
what each policy loses to the bound per arm, with 95% intervals; out/asymptotic.png has the same on logarithmic axes.

On CPAP the loss vanishes. On `split` it does not: the plan activates 0.6 of one kind of arm and 0.4 of another at the same
step, and top-B, which ranks these shares, takes 1 and 0 of them, however many arms there are. There, dependent rounding is
what the theorem needs.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rmab

mpl.use("Agg")

from matplotlib import pyplot as plt

GROWTH = (1, 2, 4, 8, 16, 32, 64)
HORIZON = 20


@dataclass(frozen=True)
class Loss:
    """What a policy loses to the bound, per arm: mean, half of its 95% interval, and the bound itself."""

    mean: float
    half: float
    bound: float


def cpap() -> tuple[rmab.Problem, np.ndarray]:
    """Six patients, four calls, twenty steps; only patients who are called pay."""
    task = rmab.task("cpap", seed=0, arms=6, budget=4, horizon=HORIZON)
    return task.problem, task.base_reward


def split() -> tuple[rmab.Problem, np.ndarray]:
    """Two steps, budget 10, the best plan earns 16: 0.6 of A and 0.4 of B at the first step. Top-B takes all of A.

    10 arms A: activated in state 0 they go to state 2, where activating pays 1; otherwise to state 1, where nothing pays.
    10 arms B: activating in state 0 pays 0.5 at once, and that is all.   4 arms C: they go to state 2, which pays 2.
    So the second step has room for 6 of A beside the 4 of C: more of A is of no use, and B is worth 0.5. With all of A, 14
    is the most; and as A and C have index 1 both, ties leave 2 * 4 * 10/14 + 10 * 10/14 = 12.86.
    """
    kind = np.repeat([0, 1, 2], [10, 10, 4])
    kernels, reward = np.zeros((3, 3, 2, 3)), np.zeros((3, 3, 2))
    kernels[:, 1:, :, 1] = 1.0
    kernels[0, 0, 0, 1] = kernels[0, 0, 1, 2] = 1.0
    kernels[1, 0, :, 1] = kernels[2, 0, :, 2] = 1.0
    reward[0, 2, 1], reward[1, 0, 1], reward[2, 2, 1] = 1.0, 0.5, 2.0
    arms = rmab.Arms(kernels[kind], groups=kind)
    return rmab.Problem(arms, 0, 10, 2), reward[kind]


CASES = {
    "cpap": (cpap, "top"),
    "split": (split, "top"),
    "split, dependent": (split, "dependent"),
}


def grown(problem: rmab.Problem, reward: np.ndarray, rho: int) -> tuple[rmab.Problem, np.ndarray]:
    """Return rho copies of every arm under rho times the budget."""
    arms, start = problem.arms.repeated(rho), np.repeat(problem.start, rho)
    return rmab.Problem(arms, start, rho * problem.budget, problem.horizon), np.repeat(reward, rho, axis=0)


def loss(problem: rmab.Problem, reward: np.ndarray, policy: rmab.Policy, bound: float, rounds: int, seed: int = 0) -> Loss:
    """Simulate the policy and hold it against the bound."""
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds, threads=1)
    count = problem.arms.count
    return Loss((bound - batch.mean) / count, 1.96 * batch.stderr / count, bound / count)


def index_loss(name: str, rho: int, rounds: int) -> Loss:
    """Return what the index of the fluid LP's vertex loses in one case, rho times enlarged."""
    make, rounding = CASES[name]
    problem, reward = grown(*make(), rho)
    plan = rmab.fluid(problem, reward, method="highs")
    rule = "fill" if rounding == "top" else "at-most"
    policy = rmab.occupancy_index(problem, reward, plan=plan, rule=rule, rounding=rounding)
    return loss(problem, reward, policy, plan.bound, rounds, seed=rho)


def draw(sizes: list[int], losses: dict[str, list[Loss]], path: Path) -> None:
    """Save the losses on logarithmic axes, with the slopes of theory."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, row in losses.items():
        means, halves = np.array([one.mean for one in row]), np.array([one.half for one in row])
        shown = means > halves  # what cannot be told from 0 has no place on a logarithmic axis
        if shown.any():
            axes.errorbar(np.array(sizes)[shown], means[shown], halves[shown], marker="o", capsize=3, label=name)
    first = losses["cpap"][0].mean
    for power, style in ((0.5, ":"), (1.0, "--")):
        axes.plot(sizes, first / np.array(sizes) ** power, style, color="grey", label=f"rho^-{power:g}")
    axes.set(xscale="log", yscale="log", xlabel="rho: arms and budget times", ylabel="lost to the fluid bound, per arm")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure every case, print the table and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--largest", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("out/asymptotic.png"))
    args = parser.parse_args()
    console = Console()
    sizes = [rho for rho in GROWTH if rho <= args.largest]
    jobs = [(name, rho) for name in CASES for rho in sizes]
    losses: dict[str, list[Loss]] = {name: [] for name in CASES}
    for name, rho in track(jobs, "Simulating", console=console, transient=True):
        losses[name].append(index_loss(name, rho, args.rounds))
    table = Table(
        title=f"Lost to the fluid bound per arm, {args.rounds} rounds, 95% intervals", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("rho", justify="right", no_wrap=True)
    for name in CASES:
        table.add_column(name, justify="right", no_wrap=True)
    for k, rho in enumerate(sizes):
        cells = [losses[name][k] for name in CASES]
        table.add_row(str(rho), *[f"{one.mean:.4f} ± {one.half:.4f}" for one in cells])
    table.add_section()
    table.add_row("bound", *[f"{losses[name][0].bound:.3f}" for name in CASES])
    console.print(table)
    draw(sizes, losses, args.out)
    console.print(f"Picture: {args.out}")


if __name__ == "__main__":
    main()
