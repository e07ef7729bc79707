"""Live programmes at scale: asking, telling and starting again, on SQLite in a temporary folder.

    python benchmarks/live.py [--arms 100000] [--periods 12] [--reports 10000000]

Seconds are those of the clock, as people wait for them, and of the processor, which a busy machine does not change; targets
stand beside. Optuna's ask and tell are measured in the same
run on the same disk, where it is installed. `--reports 0` leaves out the long journal.
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


class Seconds(float):
    """Seconds of the clock, with those of the processor."""

    processor = 0.0


def timed(call: Callable[[], Any]) -> tuple[Seconds, Any]:
    """Return the seconds that a call takes, and what it returns."""
    start, processor = time.perf_counter(), time.process_time()
    found = call()
    took = Seconds(time.perf_counter() - start)
    took.processor = time.process_time() - processor
    return took, found


def row(what: str, seconds: Any, target: str) -> None:
    """Print one line: median and 99th percentile of seconds."""
    several = seconds if isinstance(seconds, list) else [seconds]
    processor = np.quantile([one.processor for one in several], 0.99)
    clock = f"{np.median(several):>8.3f} s  p99 {np.quantile(several, 0.99):>7.3f} s (processor {processor:.3f} s)"
    print(f"  {what:<40}{clock}   target {target}")


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


def scale(arms: int, groups: int, periods: int, target: str) -> None:
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
        print(f"  the first plan, with compiled code to load: {asks[1]:.2f} s")
        row("ask", asks[2:], f"p99 {target}")
        row(f"tell of {arms:,} rows", tells, "1 s for 100,000")
        row(f"start from {arms * periods:,} reports", timed(lambda: start(folder))[0], "3 s")
        p.snapshot()
        row("start from a snapshot", timed(lambda: start(folder))[0], "3 s")
        row("verify", timed(p.verify)[0], "none")
        print(f"  the store has {Path(f'{folder}/x.db').stat().st_size / 1e6:.0f} MB")


def start(folder: str) -> Any:
    """Open a store as a new process would, and read its statistics."""
    with rmab.live.open(f"{folder}/x.db") as store:
        return store.programme("p").statistics


def long_journal(arms: int, groups: int, total: int) -> None:
    """Replay a long journal, and start again."""
    with tempfile.TemporaryDirectory() as folder:
        p = programme(rmab.live.open(f"{folder}/x.db"), arms, groups)
        rng, asks = np.random.default_rng(1), []
        for t in range(max(total // arms, 3)):
            asks.append(timed(lambda t=t: p.ask(t))[0])
            p.tell(t, reports(p, t, rng))
        print(f"{arms * (t + 1):,} reports of {arms:,} arms in {t + 1} periods")
        row("ask", asks[2:], "p99 1 s")
        row("replay of all reports to counts", timed(lambda: p.replay(verify=False))[0], "30 s")
        row("start from all events", timed(lambda: start(folder))[0], "none")
        p.snapshot()
        row("start from a snapshot", timed(lambda: start(folder))[0], "3 s")
        print(f"  the store has {Path(f'{folder}/x.db').stat().st_size / 1e6:.0f} MB")


def single(count: int) -> None:
    """Tell one arm at a time, and ask and tell beside Optuna."""
    with tempfile.TemporaryDirectory() as folder:
        p = programme(rmab.live.open(f"{folder}/x.db"), 5000, 40)
        p.ask(0)
        arms = p.decision(0).arms
        took, _ = timed(lambda: [p.tell(0, [{"arm": one, "state": "low"}], key=one) for one in arms[:count]])
        print(f"one durable tell at a time, 5,000 arms: {count / took:.0f} a second   target 200")
    with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/x.db") as store:
        p = store.create("p", states=STATES, budget=1, reward={"high": 1}, every="number")
        p.join(["a", "b"], state="low")

        def loop() -> None:
            for t in range(count // 3):
                p.ask(t)
                p.tell(t, [{"arm": "a", "state": "low", "executed": 0}])

        loop_took, _ = timed(loop)
        print(f"ask and tell, two arms: {count // 3 / loop_took:.0f} pairs a second")
    optuna(count // 3)


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
    """Ask and tell with Optuna on the same disk."""
    try:
        import optuna as peer
    except ImportError:
        print("Optuna is not installed: it is left out")
        return
    peer.logging.set_verbosity(peer.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        study = peer.create_study(storage=f"sqlite:///{folder}/o.db", sampler=peer.samplers.RandomSampler())

        def loop() -> None:
            for _ in range(count):
                trial = study.ask()
                trial.suggest_float("x", 0, 1)
                study.tell(trial, 0.0)

        took, _ = timed(loop)
        print(f"Optuna {peer.__version__}, ask and tell on the same disk: {count / took:.0f} pairs a second")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("arms", 100_000), ("periods", 12), ("reports", 10_000_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    single(300)
    controller()
    scale(5000, 40, max(given.periods, 4), "0.2 s")
    scale(given.arms, 100, max(given.periods, 4), "1 s")
    if given.reports:
        long_journal(given.arms, 100, given.reports)


if __name__ == "__main__":
    main()
