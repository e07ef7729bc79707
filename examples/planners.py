"""Plan the CPAP case study with every planner: what the budget allows at most, and what each policy really earns.

Prints a table and saves a picture of the fluid plan: which patients it calls, and what a call is worth at each step.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rmab

mpl.use("Agg")

from matplotlib import pyplot as plt


def policies(problem: rmab.Problem, reward: np.ndarray, plan: rmab.Fluid) -> dict[str, tuple[rmab.Policy, float]]:
    """Every planner's policy by name, with the part of the rounds that it is given (LP-update solves 50 LPs a round)."""
    return {
        "LP-update": (rmab.LpUpdate(problem, reward), 0.02),
        "Lagrangian index": (rmab.lagrangian_index(problem, reward, plan=plan), 1),
        "occupancy index, top-B": (rmab.occupancy_index(problem, reward, plan=plan), 1),
        "occupancy index, dependent": (rmab.occupancy_index(problem, reward, plan=plan, rounding="dependent"), 1),
        "myopic": (rmab.myopic_index(problem, reward), 1),
        "random": (rmab.random_policy(problem), 1),
        "round robin": (rmab.round_robin(problem), 1),
    }


def table(name: str, rounds: int, seed: int, console: Console) -> rmab.Fluid:
    """Simulate every policy on the same luck and print what it earns against the bound."""
    task = rmab.task(name, seed=seed)
    problem, reward = task.problem, task.base_reward
    plan = rmab.fluid(problem, reward)
    size = f"{problem.arms.count} arms, budget {problem.budget}, {problem.horizon} steps"
    rows = Table(title=f"{name}, seed {seed}: {size}")
    for column in ("policy", "reward", "s.e.", "of the bound", "rounds"):
        rows.add_column(column, justify="left" if column == "policy" else "right")
    rows.add_row("fluid bound (no policy earns more)", f"{plan.bound:.2f}", "", "100.00 %", "")
    for label, (policy, part) in track(
        policies(problem, reward, plan).items(), description=f"simulating {name}", console=console, transient=True
    ):
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), max(2, int(part * rounds)))
        share = f"{100 * batch.mean / plan.bound:.2f} %"
        rows.add_row(label, f"{batch.mean:.2f}", f"{batch.stderr:.2f}", share, str(batch.rewards.size))
    console.print(rows)
    return plan


def picture(plan: rmab.Fluid, title: str, path: Path) -> None:
    """Save the plan: the chance that each patient is called at each step, above the price of the budget."""
    active = plan.occupancy[..., 1].sum(axis=2)
    figure, (above, below) = plt.subplots(2, 1, figsize=(7.5, 5.6), sharex=True, height_ratios=(3, 1), layout="constrained")
    image = above.imshow(active, aspect="auto", cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    figure.colorbar(image, ax=above, label="probability of a call", pad=0.01)
    half = len(active) / 2
    above.axhline(half - 0.5, color="white", linewidth=1)
    above.set_yticks([half / 2 - 0.5, 1.5 * half - 0.5], ["adherent", "non-adherent"], rotation=90, va="center")
    above.tick_params(axis="y", length=0)
    above.set_title(title, loc="left", fontsize=11)
    below.step(np.arange(plan.prices.size), plan.prices, where="mid", color="tab:red")
    below.set_ylim(bottom=0)
    below.set_ylabel("price of\none more call")
    below.set_xlabel("step of the episode")
    below.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000, help="simulated episodes per policy")
    parser.add_argument("--seed", type=int, default=0, help="seed of the model and of the luck")
    parser.add_argument("--out", type=Path, default=Path("out/planners.png"), help="where the picture goes")
    options = parser.parse_args()
    console = Console()
    table("cpap", options.rounds, options.seed, console)
    plan = table("cpap-adherence", options.rounds, options.seed, console)
    picture(plan, "CPAP adherence: whom the fluid plan calls, and what a call is worth", options.out)
    console.print(f"picture: {options.out}")


if __name__ == "__main__":
    main()
