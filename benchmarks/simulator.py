"""The simulator against NumPy, its growth with the number of arms, and its memory. One command, tables out.

Peers, in the same run and on one thread: an episode vectorised over arms (the loop that one would write), and the same
vectorised over rounds as well (the fastest NumPy that we know of).
"""

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import rmab

REPEATS = 5


def instance(count: int, states: int = 3, horizon: int = 50) -> tuple[rmab.Problem, rmab.IndexPolicy, np.ndarray]:
    """A random problem with all different arms, an index policy without ties, a reward."""
    rng = np.random.default_rng(0)
    kernels = rng.dirichlet(np.ones(states), size=(count, states, 2))
    problem = rmab.Problem(rmab.Arms(kernels), 0, int(0.3 * count), horizon)
    policy = rmab.IndexPolicy(rng.random((count, horizon, states)), problem.budget)
    return problem, policy, rng.random((count, states, 2))


def numpy_over_arms(problem: rmab.Problem, policy: rmab.IndexPolicy, reward: np.ndarray, rounds: int) -> np.ndarray:
    """One round after the other, each step vectorised over the arms."""
    rng = np.random.default_rng(1)
    table, cumulative, arms = policy.table, problem.arms.kernels.cumsum(axis=3), np.arange(problem.arms.count)
    totals = np.empty(rounds)
    for r in range(rounds):
        states, total = problem.start.copy(), 0.0
        for h in range(problem.horizon):
            active = np.zeros(arms.size, dtype=np.int64)
            active[np.argpartition(table[arms, h, states], -problem.budget)[-problem.budget :]] = 1
            total += reward[arms, states, active].sum()
            states = (cumulative[arms, states, active] <= rng.random((arms.size, 1))).sum(axis=1)
        totals[r] = total
    return totals


def numpy_over_rounds(problem: rmab.Problem, policy: rmab.IndexPolicy, reward: np.ndarray, rounds: int) -> np.ndarray:
    """All rounds at once, each step vectorised over rounds and arms."""
    rng = np.random.default_rng(1)
    table, cumulative, arms = policy.table, problem.arms.kernels.cumsum(axis=3), np.arange(problem.arms.count)
    states, totals = np.tile(problem.start, (rounds, 1)), np.zeros(rounds)
    for h in range(problem.horizon):
        chosen = np.argpartition(table[arms, h, states], -problem.budget, axis=1)[:, -problem.budget :]
        active = np.zeros(states.shape, dtype=np.int64)
        np.put_along_axis(active, chosen, 1, axis=1)
        totals += reward[arms, states, active].sum(axis=1)
        states = (cumulative[arms, states, active] <= rng.random((*states.shape, 1))).sum(axis=2)
    return totals


def compiled(problem: rmab.Problem, policy: rmab.IndexPolicy, reward: np.ndarray, rounds: int) -> np.ndarray:
    """Run our simulator on one thread."""
    return rmab.simulate_many(problem, policy, reward, np.random.default_rng(1), rounds, threads=1).rewards


def seconds_per_round(play: Callable[..., np.ndarray], model: tuple[object, ...], rounds: int) -> tuple[float, float]:
    """Return the best of a few timings, per round, and the mean reward (peers must agree)."""
    play(*model, 2)
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        rewards = play(*model, rounds)
        best = min(best, (time.perf_counter() - begin) / rounds)
    return best, float(rewards.mean())


def speed(console: Console) -> bool:
    """N = 100, S = 3, H = 50: our simulator and its two peers."""
    model = instance(100)
    rows = Table(title="one episode, N=100 S=3 H=50, one thread (target: 20x NumPy over arms)")
    for column in ("simulator", "µs per episode", "ns per arm-step", "times ours", "mean reward"):
        rows.add_column(column, justify="left" if column == "simulator" else "right")
    ours, mean = seconds_per_round(compiled, model, 2000)
    peers = {"NumPy over arms": (numpy_over_arms, 50), "NumPy over arms and rounds": (numpy_over_rounds, 500)}
    rows.add_row("rmab", f"{ours * 1e6:.0f}", f"{ours / 5000 * 1e9:.1f}", "1.0", f"{mean:.1f}")
    ratios = []
    for name, (play, rounds) in peers.items():
        taken, mean = seconds_per_round(play, model, rounds)
        ratios.append(taken / ours)
        rows.add_row(name, f"{taken * 1e6:.0f}", f"{taken / 5000 * 1e9:.1f}", f"{taken / ours:.1f}", f"{mean:.1f}")
    console.print(rows)
    return ratios[0] >= 20


def growth(console: Console) -> bool:
    """Arm-steps per second as the number of arms grows."""
    rows = Table(title="growth with N, S=3 H=50, one thread (target: no worse than N log N)")
    for column in ("arms", "million arm-steps per second", "time over N log N, relative to N=100"):
        rows.add_column(column, justify="right")
    units = []
    for count in (100, 1000, 10_000, 100_000):
        taken, _ = seconds_per_round(compiled, instance(count), max(2, 200_000 // count))
        units.append(taken / (count * np.log(count)))
        rows.add_row(f"{count:,}", f"{count * 50 / taken / 1e6:.1f}", f"{units[-1] / units[0]:.2f}")
    console.print(rows)
    return max(units) <= 1.1 * units[0]


def peak(rounds: int) -> int:
    """Return the most memory, in bytes, that a batch of so many rounds held at once."""
    model = instance(10, horizon=5)
    compiled(*model, 2)  # what loading the machine code takes is not the batch's
    tracemalloc.start()
    compiled(*model, rounds)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def memory(console: Console) -> bool:
    """Peak memory of a batch against what it returns."""
    rows = Table(title="peak memory of a batch, N=10 S=3 H=5 (one trajectory would be 310 bytes)")
    for column in ("rounds", "MiB", "bytes per round", "bytes returned per round"):
        rows.add_column(column, justify="right")
    for rounds in (10_000, 100_000, 1_000_000):
        held = peak(rounds)
        rows.add_row(f"{rounds:,}", f"{held / 2**20:.2f}", f"{held / rounds:.1f}", "16")
    console.print(rows)
    return held <= 20 * rounds


if __name__ == "__main__":
    screen = Console(width=110)
    missed = [part.__name__ for part in (speed, growth, memory) if not part(screen)]
    sys.exit(f"target missed: {', '.join(missed)}" if missed else 0)
