"""How regret grows with the number of episodes: regret ~ T^alpha, fitted over T = 25 .. 1600 on a small instance.

    python studies/growth.py [--rounds 10] [--longest 1600]

Regret is to O2, the best executable fixed policy, because O1's own gap grows with T whatever is learned. The interval of
alpha is a bootstrap over rounds. Where the mean regret of some T is not positive, no power can be fitted,
and the table says so.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rmab

LENGTHS = (25, 50, 100, 200, 400, 800, 1600)
LEARNERS = (("ucmd-armab", "bandit"), ("ucmd-armab", "full"), ("ucmd", "bandit"), ("ucmd", "full"), ("random", "bandit"))


def regret(job: tuple[str, str, str, int, int]) -> float:
    """Return the regret to O2 of one run on a CPAP-like instance of 4 arms and 10 steps."""
    name, feedback, against, episodes, seed = job
    sizes = {"arms": 4, "budget": 2, "horizon": 10, "episodes": episodes}
    task = rmab.task(f"cpap@{against}", seed=seed, feedback=feedback, **sizes)  # type: ignore[arg-type]
    return float(rmab.run(task, name, seed).regret("O2")[-1])


def exponent(lengths: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Least squares of ln(mean regret) on ln T, and its 95% bootstrap interval; values (L, R)."""

    def fit(sample: np.ndarray) -> float:
        means = sample.mean(axis=1)
        return float(np.polyfit(np.log(lengths), np.log(means), 1)[0]) if (means > 0).all() else np.nan

    draws = [fit(values[:, rng.integers(0, values.shape[1], values.shape[1])]) for _ in range(1000)]
    if np.isnan(draws).all():
        return np.nan, np.nan, np.nan
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return fit(values), float(low), float(high)


def main() -> None:
    """Run everything, print the table and write docs/growth.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--longest", type=int, default=1600)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    lengths = [one for one in LENGTHS if one <= args.longest]
    jobs = [
        (name, feedback, against, episodes, seed)
        for against in ("noisy", "switching")
        for name, feedback in LEARNERS
        for episodes in lengths
        for seed in range(args.rounds)
    ]
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        values = dict(zip(jobs, track(pool.map(regret, jobs), "runs", total=len(jobs)), strict=True))
    rows = Table("adversary", "learner", "alpha", "95%", *(f"T={one}" for one in lengths))
    lines = ["| adversary | learner | alpha (95%) | " + " | ".join(f"T={one}" for one in lengths) + " |"]
    lines.append("| --- | --- | --- |" + " ---: |" * len(lengths))
    for against in ("noisy", "switching"):
        for name, feedback in LEARNERS:
            sample = np.array(
                [[values[name, feedback, against, one, seed] for seed in range(args.rounds)] for one in lengths]
            )
            alpha, low, high = exponent(np.array(lengths), sample, np.random.default_rng(0))
            label = f"{name}, full (privileged)" if feedback == "full" else name
            fitted = f"{alpha:.2f} ({low:.2f} to {high:.2f})" if np.isfinite(alpha) else "no power: not positive"
            means = [f"{one:.0f}" for one in sample.mean(axis=1)]
            rows.add_row(against, label, f"{alpha:.2f}", f"{low:.2f} to {high:.2f}", *means)
            lines.append(f"| {against} | {label} | {fitted} | " + " | ".join(means) + " |")
    Console(width=140).print(rows)
    head = f"# Growth of regret to O2\n\nMade by `python studies/growth.py --rounds {args.rounds} "
    text = f"--longest {args.longest}`: a CPAP instance of 4 arms, budget 2, 10 steps; mean regret per length.\n\n"
    (Path(__file__).parents[1] / "docs" / "growth.md").write_text(head + text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
