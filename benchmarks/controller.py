"""The latency of `IndexPolicy.act`, which a controller calls at every step: `python benchmarks/controller.py`.

Median and 99th percentile of many calls, alone and while another thread plans; and the first call of a fresh process, with
compiled code in the cache. The peer is a plain NumPy `argpartition` of the same table, without checks and ties.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

import rmab

CALLS = 3000
SIZES = ((100, 30, 288, 120), (1_000, 100, 50, 3), (10_000, 500, 50, 3))  # arms, budget, horizon, states
FRESH = """
import time, numpy as np, rmab
policy = rmab.IndexPolicy(np.random.default_rng(0).random((100, 288, 120)), 30)
states, rng = np.zeros(100, dtype=np.int64), np.random.default_rng(0)
begin = time.perf_counter(); policy.act(0, states, rng); print(time.perf_counter() - begin)
"""


def latencies(act: Callable[[int], object], horizon: int) -> np.ndarray:
    """Return the microseconds of CALLS calls, step after step."""
    taken = np.empty(CALLS)
    for k in range(CALLS):
        begin = time.perf_counter()
        act(k % horizon)
        taken[k] = 1e6 * (time.perf_counter() - begin)
    return taken


def while_planning(measure: Callable[[], np.ndarray]) -> np.ndarray:
    """Measure while another thread solves the fluid LP of the task `deadline`, again and again."""
    game, stop = rmab.make_task("deadline"), threading.Event()

    def plan() -> None:
        while not stop.is_set():
            rmab.solvers.solve_fluid(game.problem, game.base_reward)

    thread = threading.Thread(target=plan)
    thread.start()
    try:
        return measure()
    finally:
        stop.set()
        thread.join()


def row(name: str, taken: np.ndarray) -> str:
    """Return one line of the table."""
    return f"{name:<44}{np.median(taken):>10.1f}{np.quantile(taken, 0.99):>10.1f}{taken.max():>10.1f}"


def main() -> None:
    """Print the table."""
    print(f"{'microseconds':<44}{'median':>10}{'p99':>10}{'slowest':>10}")
    for arms, budget, horizon, states in SIZES:
        rng = np.random.default_rng(0)
        policy = rmab.IndexPolicy(rng.random((arms, horizon, states)), budget)
        now, everyone = rng.integers(0, states, size=arms), np.arange(arms)
        table = np.ascontiguousarray(policy.table.transpose(1, 0, 2))
        size = f"{arms:,} arms, {horizon} steps, {states} states"

        def ours(h: int, policy: rmab.IndexPolicy = policy, now: np.ndarray = now, rng: np.random.Generator = rng) -> None:
            policy.act(h, now, rng)

        def peer(
            h: int, table: np.ndarray = table, now: np.ndarray = now, everyone: np.ndarray = everyone, budget: int = budget
        ) -> None:
            active = np.zeros(now.size, dtype=bool)
            active[np.argpartition(table[h, everyone, now], -budget)[-budget:]] = True

        ours(0)
        alone = latencies(ours, horizon)
        print(row(f"act: {size}", alone))
        print(row("  while another thread plans", while_planning(lambda: latencies(ours, horizon))))  # noqa: B023
        plain = latencies(peer, horizon)
        print(row("  NumPy, no checks, no ties", plain))
        print(f"  ratio of the medians {np.median(alone) / np.median(plain):.2f}")
    first = [float(subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout)]
    first += [float(subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout)]
    print(f"first call of a fresh process: {1e3 * min(first):.0f} ms")


if __name__ == "__main__":
    main()
