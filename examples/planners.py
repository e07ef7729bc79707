"""Plan the CPAP case study with every planner, and compare what each policy earns with the bound.

Prints a table and saves a figure of the fluid plans: calls, states of the patients, and the price of a call.
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


def policies(problem: rmab.Problem, reward: np.ndarray, plan: rmab.solvers.Fluid) -> dict[str, tuple[rmab.Policy, float]]:
    """Every planner's policy by name, with the part of the rounds that it is given (LP-update solves 50 LPs a round)."""
    return {
        "LP-update": (rmab.planners.LpUpdate(problem, reward), 0.03),
        "Lagrangian index": (rmab.planners.lagrangian_index(problem, reward, fluid=plan), 1),
        "occupancy index, top-B": (rmab.planners.occupancy_index(problem, reward, fluid=plan), 1),
        "occupancy index, dependent": (rmab.planners.occupancy_index(problem, reward, fluid=plan, rounding="dependent"), 1),
        "myopic": (rmab.planners.myopic_index(problem, reward), 1),
        "random": (rmab.planners.random_policy(problem), 1),
        "round robin": (rmab.planners.round_robin(problem), 1),
    }


def table(name: str, rounds: int, seed: int, console: Console) -> rmab.solvers.Fluid:
    """Simulate every policy on the same random numbers and print its reward and the bound."""
    task = rmab.make_task(name, seed=seed)
    problem, reward = task.problem, task.base_reward
    plan = rmab.solvers.solve_fluid(problem, reward)
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


def picture(plans: dict[str, rmab.solvers.Fluid], path: Path) -> None:
    """Save the plans: the probability of a call, the states of the patients, and the price of the budget."""
    figure, axes = plt.subplots(
        3, len(plans), figsize=(11, 7.2), sharex=True, squeeze=False, height_ratios=(3, 1.6, 1), layout="constrained"
    )
    for (above, middle, below), (name, plan) in zip(axes.T, plans.items(), strict=True):
        occupancy = plan.occupancy
        count, horizon = occupancy.shape[:2]
        image = above.imshow(occupancy[..., 1].sum(axis=2), aspect="auto", cmap="viridis", vmin=0, vmax=1)
        above.axhline(count / 2 - 0.5, color="white", linewidth=1)
        above.set_yticks([count / 4 - 0.5, 3 * count / 4 - 0.5], ["adherent", "non-adherent"], rotation=90, va="center")
        above.tick_params(axis="y", length=0)
        above.set_title(f"{name}: at most {plan.bound:.1f} an episode", loc="left", fontsize=11)
        names = plan.problem.arms.state_names
        shades = plt.get_cmap("Blues")(np.linspace(0.3, 0.9, len(names)))
        middle.stackplot(np.arange(horizon), occupancy.sum(axis=(0, 3)).T, labels=names, colors=shades)
        middle.set_ylim(0, count)
        middle.set_ylabel("patients")
        below.step(np.arange(horizon), plan.prices, where="mid", color="tab:red")
        below.set_ylim(bottom=0)
        below.set_ylabel("price of\none more call")
        below.set_xlabel("step of the episode")
        below.spines[["top", "right"]].set_visible(False)
    axes[1, 0].legend(loc="lower right", fontsize=8, title="adherence", title_fontsize=8)
    figure.colorbar(image, ax=axes[0], label="probability of a call", pad=0.01)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000, help="simulated episodes per policy")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--out", type=Path, default=Path("out/planners.png"), help="where the picture goes")
    options = parser.parse_args()
    console = Console()
    plans = {name: table(name, options.rounds, options.seed, console) for name in ("cpap", "cpap-adherence")}
    picture(plans, options.out)
    console.print(f"picture: {options.out}")


if __name__ == "__main__":
    main()
