"""Plan a day at a fast charger: the bound, what policies earn, when power is drawn, and planning again every hour.

Prints two tables and saves a figure. The first table compares simple rules with the plan. In the second, arrivals
differ from the forecast, and the morning's plan is compared with plans that are recomputed every hour, on the same
random numbers. With the same wrong forecast, recomputing need not help: it treats a crowd as temporary, serves those
who leave first, and misses more units an hour later. It helps once the forecast is corrected by the arrivals so far.
"""

import argparse
import time
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rmab
from rmab.tasks.charging import COMING, RATES

mpl.use("Agg")

from matplotlib import pyplot as plt

HOUR = 12  # steps
AHEAD = 3 * HOUR  # steps that a new plan covers: no vehicle stays for longer than an hour
SHIFTS, LEVELS = (-2, -1, 0, 1, 2), (0.7, 0.85, 1.0, 1.15, 1.3, 1.45)  # days that a forecaster thinks of
PRIOR = 3.0  # nats that a day must be likelier by, per hour of shift or step of level


def vehicles(problem: rmab.Problem) -> tuple[np.ndarray, np.ndarray]:
    """Slots until departure and units of load left, (S,) each, of every state."""
    pairs = [(0, 0) if name == "empty" else tuple(map(int, name.split(","))) for name in problem.arms.state_names]
    slots, left = np.array(pairs).T
    return slots, left


def metered(problem: rmab.Problem, run: rmab.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Chargers that gave power, and units that were missing at departures, (H,) each."""
    slots, left = vehicles(problem)
    states, active = run.states[:-1], run.actions
    drawn = (active & (left[states] > 0)).sum(axis=1)
    missing = np.where(slots[states] == 1, np.maximum(left[states] - active, 0), 0).sum(axis=1)
    return drawn, missing


def with_ties(policy: rmab.IndexPolicy, problem: rmab.Problem) -> rmab.IndexPolicy:
    """Break ties by laxity: where power is not scarce in the plan, its index does not care when a vehicle is charged.

    Empty and charged spots get a negative index, so that they are never switched on.
    """
    laxity = rmab.tasks.deadline.least_laxity_first(problem).table
    small = 1e-3 * np.where(laxity > 0, laxity / laxity.max(), -1.0)
    return policy.with_table(policy.table + small[:, np.newaxis])


class Replanner:
    """Plans the coming hours again at every full hour, from where the vehicles are.

    learns: it also asks what was seen so far whether today is busier, earlier or later than the forecast.
    """

    def __init__(self, reward: np.ndarray, learns: bool) -> None:
        self.reward, self.learns, self.seconds, self.plans = reward, learns, 0.0, 0

    def act(self, h: int, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Count who came, plan if the hour is full, and charge."""
        slots, _ = vehicles(day())
        if h == 0:
            self.free, self.came = np.zeros(24), np.zeros(24)
        else:
            could = slots[self.last] <= 1
            self.free[(h - 1) // HOUR] += could.sum()
            self.came[(h - 1) // HOUR] += (could & (states != 0)).sum()
        self.last = np.array(states)
        if h % HOUR == 0:
            since = time.process_time()
            forecast = day(*likeliest(self.free, self.came)) if self.learns else day()
            self.policy, self.begun = planned_ahead(forecast, self.reward, h, states), h
            self.seconds, self.plans = self.seconds + time.process_time() - since, self.plans + 1
        return self.policy.act(h - self.begun, states, rng)


@lru_cache(maxsize=64)
def day(shift: int = 0, level: float = 1.0) -> rmab.Problem:
    """The day as forecast, or so many hours later and so many times as busy."""
    return rmab.make_task("deadline-day", arrival=level * np.roll(COMING, shift), episodes=1).problem


def likeliest(free: np.ndarray, came: np.ndarray) -> tuple[int, float]:
    """Shift and level under which the vehicles that came (24,) to free spots (24,) are likeliest, near the forecast."""
    best, found = -np.inf, (0, 1.0)
    for shift in SHIFTS:
        for place, level in enumerate(LEVELS):
            chance = level * np.roll(COMING, shift)
            told = (came * np.log(chance) + (free - came) * np.log1p(-chance)).sum()
            told -= PRIOR * (abs(shift) + abs(place - LEVELS.index(1.0)))
            best, found = max((best, found), (told, (shift, level)))
    return found


def planned_ahead(problem: rmab.Problem, reward: np.ndarray, h: int, states: np.ndarray) -> rmab.IndexPolicy:
    """Plan the steps from h on. Spots are alike: each is in one of today's states with the same probability."""
    steps, count = slice(h, h + AHEAD), len(states)
    phases, phase_of = np.unique(problem.phase_of[steps], return_inverse=True)
    arms = rmab.Arms.identical(problem.arms.kernels[0, phases], count, state_names=problem.arms.state_names)
    where = np.bincount(states, minlength=arms.states) / count
    rest = rmab.Problem(arms, np.tile(where, (count, 1)), problem.budgets[steps], phase_of.size, phase_of)
    pays = reward[:, phases] if len(phases) > 1 else reward[:, phases[0]]
    return with_ties(rmab.planners.lagrangian_index(rest, pays), rest)


def rules_table(
    task: rmab.Task, rounds: int, seed: int, console: Console
) -> tuple[rmab.solvers.Fluid, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Print what every rule earns; return the plan, and of each rule the power drawn and the units missing, (H,) each."""
    problem, reward = task.problem, task.base_reward
    since = time.perf_counter()
    plan = rmab.solvers.solve_fluid(problem, reward)
    index = rmab.planners.lagrangian_index(problem, reward, fluid=plan)
    took = time.perf_counter() - since
    policies = {
        "Lagrangian index": index,
        "the same, ties by laxity": with_ties(index, problem),
        "least laxity first": rmab.tasks.deadline.least_laxity_first(problem),
        "earliest deadline first": rmab.tasks.deadline.earliest_deadline_first(problem),
        "random": rmab.planners.random_policy(problem),
    }
    rows = Table(title=f"deadline-day: {problem.arms.count} spots, {problem.horizon} steps; {rounds} days")
    for column in ("policy", "reward", "s.e.", "of the bound", "units missing a day"):
        rows.add_column(column, justify="left" if column == "policy" else "right")
    rows.add_row("fluid bound (no policy earns more)", f"{plan.bound:.1f}", "", "100.00 %", "")
    days = {}
    for name, policy in track(policies.items(), description="simulating", console=console, transient=True):
        runs = [rmab.simulate(problem, policy, reward, np.random.default_rng((seed, r))) for r in range(rounds)]
        earned = rmab.Batch(np.array([run.reward for run in runs]), np.array([run.actions.sum() for run in runs]))
        drawn, missing = (np.mean(one, axis=0) for one in zip(*(metered(problem, run) for run in runs), strict=True))
        days[name] = drawn, missing
        share = f"{100 * earned.mean / plan.bound:.2f} %"
        rows.add_row(name, f"{earned.mean:.1f}", f"{earned.stderr:.1f}", share, f"{missing.sum():.1f}")
    console.print(rows)
    console.print(f"planned in {took:.1f} s, compiling or loading included")
    return plan, days


def surprises_table(task: rmab.Task, days: int, seed: int, console: Console) -> None:
    """Let arrivals differ from the forecast, and compare hourly plans with the morning's plan."""
    reward = task.base_reward
    morning = with_ties(rmab.planners.lagrangian_index(day(), reward), day())
    truths = {"as forecast": (0, 1.0), "30% more vehicles": (0, 1.3), "all two hours earlier": (-2, 1.0)}
    rows = Table(title=f"Planning again every hour; {days} days, the same random numbers for all")
    for column in ("arrivals", "plan", "reward", "more than the morning's", "s.e."):
        rows.add_column(column, justify="left" if column in ("arrivals", "plan") else "right")
    for name, truth in track(truths.items(), description="replanning", console=console, transient=True):
        world = day(*truth)
        policies = {
            "of the morning": morning,
            "again, the same forecast": Replanner(reward, learns=False),
            "again, forecast corrected": Replanner(reward, learns=True),
            "of the morning, with true arrivals": with_ties(rmab.planners.lagrangian_index(world, reward), world),
        }
        first = None
        for label, policy in policies.items():
            earned = rmab.simulate_many(world, policy, reward, np.random.default_rng(seed), days).rewards
            first = earned if first is None else first
            more = earned - first
            told = (f"{more.mean():+.1f}", f"{more.std(ddof=1) / np.sqrt(days):.1f}") if more.any() else ("", "")
            rows.add_row(name if label == "of the morning" else "", label, f"{earned.mean():.1f}", *told)
        rows.add_section()
    console.print(rows)
    again = policies["again, forecast corrected"]
    console.print(f"a new plan takes {again.seconds / again.plans:.2f} s")


def picture(
    problem: rmab.Problem, plan: rmab.solvers.Fluid, days: dict[str, tuple[np.ndarray, np.ndarray]], path: Path
) -> None:
    """Save the day: prices, power drawn under the site's limit, and units missing at departures."""
    plt.rcParams.update({"font.size": 11})
    hours = np.arange(problem.horizon + 1) / HOUR
    figure, (above, middle, below) = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    shown = {"the same, ties by laxity": "Lagrangian index", "least laxity first": "least laxity first"}
    shown["earliest deadline first"] = "earliest deadline first"
    colors = ("tab:blue", "tab:orange", "tab:green")
    above.stairs(np.repeat(RATES, HOUR), hours, label="tariff: a unit of energy", color="black", linewidth=1.5)
    above.stairs(plan.prices, hours, label="budget: one more charger", color="tab:red", fill=True, alpha=0.35)
    above.set_ylabel("price")
    above.set_ylim(0, 1.1 * max(plan.prices.max(), *RATES))
    above.set_title(f"A day at a fast charger: no policy earns more than {plan.bound:.0f}", loc="left")
    middle.stairs(problem.budgets, hours, label="site limit", color="black", linewidth=1.5, baseline=None, zorder=4)
    for (name, label), color in zip(shown.items(), colors, strict=True):
        drawn, missing = days[name]
        width, order = 1.2 + colors.index(color), 3 - colors.index(color)  # where all are the same, all are seen
        middle.plot(hours[:-1] + 0.5 / HOUR, drawn, label=label, color=color, linewidth=width, zorder=order)
        by_hour = missing.reshape(24, HOUR).sum(axis=1)
        place = np.arange(24) + 0.2 + 0.3 * colors.index(color)
        below.bar(place, by_hour, width=0.3, label=label, color=color)
    middle.set_ylabel("chargers that give power")
    middle.set_ylim(0, 1.35 * problem.budgets.max())
    below.set_ylabel("units missing\nat departures, per hour")
    below.set_xlabel("time of day")
    below.set_xticks(range(0, 25, 3), [f"{h:02d}:00" for h in range(0, 25, 3)])
    below.set_xlim(0, 24)
    for axes in (above, middle, below):
        axes.legend(loc="upper left", frameon=False, fontsize=9, ncols=4 if axes is middle else 1)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="simulated days per rule")
    parser.add_argument("--days", type=int, default=20, help="days with other arrivals than forecast; 2 or more")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--out", type=Path, default=Path("out/day.png"), help="where the picture goes")
    options = parser.parse_args()
    console = Console()
    task = rmab.make_task("deadline-day")
    plan, days = rules_table(task, options.rounds, options.seed, console)
    picture(task.problem, plan, days, options.out)
    console.print(f"picture: {options.out}")
    surprises_table(task, options.days, options.seed, console)


if __name__ == "__main__":
    main()
