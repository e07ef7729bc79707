"""Live programmes at scale: asking, telling and starting again, on SQLite in a temporary folder.

    python benchmarks/live.py [--arms 100000] [--periods 6] [--optuna]

Seconds are those of the processor, except for single tells and Optuna, which wait for the disk. `--optuna` adds ask and tell
of Optuna on the same disk, where it is installed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rmab

STATES = ["low", "middle", "high"]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of processor time that a call takes, and what it returns."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def waited(call: Callable[[], Any]) -> float:
    """Return the seconds of the clock that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def programme(store: Any, arms: int, groups: int) -> Any:
    """Return a programme with this many arms."""
    p = store.create("p", states=STATES, budget=arms // 25, reward={"high": 1}, every="number", random_share=0.1)
    rng = np.random.default_rng(0)
    ids, states = [f"arm-{k:07d}" for k in range(arms)], [STATES[s] for s in rng.integers(3, size=arms)]
    p.join(ids, group=[f"g{g}" for g in rng.integers(groups, size=arms)], state=states)
    return p


def reports(p: Any, t: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return reports of a period, as columns."""
    listed = p.decision(t)
    high = rng.integers(3, size=len(listed.arms)) + listed.active * (rng.random(len(listed.arms)) < 0.5)
    states = np.array(STATES)[np.minimum(high, 2)].tolist()
    return {"arm": list(listed.arms), "state": states, "executed": [int(one) if one else None for one in listed.active]}


def scale(arms: int, groups: int, periods: int) -> None:
    """Ask, tell and start again, period after period."""
    with tempfile.TemporaryDirectory() as folder:
        store = rmab.live.open(f"{folder}/x.db")
        took, p = timed(lambda: programme(store, arms, groups))
        print(f"{arms:,} arms in {groups} groups, 3 states, 12 periods ahead; joining took {took:.2f} s")
        rng, asks, tells = np.random.default_rng(1), [], []
        for t in range(periods):
            asks.append(timed(lambda t=t: p.ask(t))[0])
            rows = reports(p, t, rng)
            tells.append(timed(lambda t=t, rows=rows: p.tell(t, rows))[0])
        later = np.array(asks[2:])
        print(f"  ask: median {np.median(later):.3f} s, slowest {later.max():.3f} s; the first, compiling: {asks[1]:.2f} s")
        print(f"  tell of {arms:,} rows: median {np.median(tells):.3f} s")
        took, _ = timed(lambda: rmab.live.open(f"{folder}/x.db").programme("p").statistics)
        print(f"  start from {arms * periods:,} reports: {took:.2f} s", end="")
        p.snapshot()
        took, _ = timed(lambda: rmab.live.open(f"{folder}/x.db").programme("p").statistics)
        print(f"; from a snapshot: {took:.2f} s; the store has {Path(f'{folder}/x.db').stat().st_size / 1e6:.0f} MB")
        took, _ = timed(p.verify)
        print(f"  verify: {took:.2f} s")


def single(count: int) -> None:
    """Tell one arm at a time."""
    with tempfile.TemporaryDirectory() as folder:
        p = programme(rmab.live.open(f"{folder}/x.db"), 5000, 40)
        p.ask(0)
        arms = p.decision(0).arms
        took = waited(lambda: [p.tell(0, [{"arm": one, "state": "low"}], key=one) for one in arms[:count]])
        print(f"one durable tell at a time: {count / took:.0f} a second")


def controller(steps: int = 300, calls: int = 2000) -> None:
    """Decide while a plan over many steps is made again and again."""
    with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/x.db") as store:
        p = store.create("p", states=STATES, every="5 minutes", budget=20, reward={"high": 1}, lookahead=steps)
        ids = {f"spot {k}": f"g{k % 5}" for k in range(100)}
        p.join(list(ids), group=list(ids.values()))
        counts = np.random.default_rng(0).integers(1, 50, (5, 3, 2, 3))
        p.warm_start(rmab.data.Statistics.from_counts(counts), groups=[f"g{k}" for k in range(5)], trust=1000)
        rng, took = np.random.default_rng(0), []
        with rmab.live.Controller(p, ids, queue=f"{folder}/queue", safe=lambda states, _: states.argsort()) as found:
            while found.decide(np.zeros(100, dtype=int)).safe:
                time.sleep(0.1)
            for _ in range(calls):
                found.replan()
                states = rng.integers(3, size=100)
                start = time.perf_counter()
                found.decide(states)
                took.append(time.perf_counter() - start)
                time.sleep(0.001)
        low, high = np.quantile(took, [0.5, 0.99])
        print(f"controller of 100 arms while replanning {steps} steps: median {1e3 * low:.2f} ms, p99 {1e3 * high:.2f} ms")


def optuna(count: int) -> None:
    """Do the same with Optuna."""
    import optuna as peer

    peer.logging.set_verbosity(peer.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        study = peer.create_study(storage=f"sqlite:///{folder}/o.db", sampler=peer.samplers.RandomSampler())

        def loop() -> None:
            for _ in range(count):
                trial = study.ask()
                trial.suggest_float("x", 0, 1)
                study.tell(trial, 0.0)

        took = waited(loop)
        print(f"Optuna, ask and tell on the same disk: {count / took:.0f} a second")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=100_000)
    parser.add_argument("--periods", type=int, default=6)
    parser.add_argument("--optuna", action="store_true")
    given = parser.parse_args()
    single(300)
    if given.optuna:
        optuna(100)
    controller()
    scale(5000, 40, max(given.periods, 4))
    scale(given.arms, 100, max(given.periods, 4))


if __name__ == "__main__":
    main()
