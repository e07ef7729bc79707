"""Tuned presets of the rivals: a small grid on held-out seeds (from 1000 on). Prints one table per learner, best first.

    python studies/tuning_rivals.py [uc-o-reps] [uob-reps] ... [--seeds 1]

Score: mean regret to O1, relative, on cpap@noisy and cpap@switching; for learners that keep the budget on average only, plus
their violation of it. The presets (`TUNED` of the options) were chosen from these tables; docs/tuning.md keeps them.
"""

import argparse
from itertools import product

import numpy as np
from rich.console import Console

import rmab

FIRST = 1000
AGAINST = ("noisy", "switching")
GRIDS: dict[str, dict[str, list[float]]] = {
    "uc-o-reps": {"rate": [1, 4, 16, 64]},
    "shifted-uc-o-reps": {"rate": [1, 4, 16, 64], "shift": [0.13, 0.27, 1]},
    "uob-reps": {"rate": [1, 4, 16, 64], "gamma": [0.03, 0.1, 1]},
    "dilated-po": {"rate": [0.01, 0.03, 0.1, 0.3], "gamma": [0.01, 0.1], "bonus": [0, 0.001]},
    "ucpd": {"v": [0.003, 0.01, 0.03, 1], "alpha": [0.0003, 0.001, 0.003, 0.1, 1]},
    "pdgd-ops": {"primal": [1, 4, 16, 64], "dual": [1, 100, 1000, 3000]},
}


def score(name: str, options: dict[str, float], seeds: int) -> tuple[list[float], float]:
    """Mean regret per adversary, and violation."""
    regrets, violations = [], []
    for against in AGAINST:
        runs = []
        for seed in range(FIRST, FIRST + seeds):
            learner = rmab.learner(name, **options)
            played = rmab.run(rmab.task(f"cpap@{against}", seed=seed, feedback=learner.feedback), learner, seed)
            runs.append(played.relative_regret("O1"))
            violations.append(learner.violation(played.state) if hasattr(learner, "violation") else 0.0)
        regrets.append(float(np.mean(runs)))
    return regrets, float(np.mean(violations))


def main() -> None:
    """Run the grids that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learners", nargs="*", default=[], choices=[[], *GRIDS])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    console = Console()
    for name in args.learners or GRIDS:
        rows = []
        for values in product(*GRIDS[name].values()):
            options = dict(zip(GRIDS[name], values, strict=True))
            regrets, violation = score(name, options, args.seeds)
            cells = [f"{value:g}" for value in values] + [f"{100 * one:.1f}" for one in (*regrets, violation)]
            rows.append((float(np.mean(regrets)) + violation, " | ".join(cells)))
        heads = [*GRIDS[name], *(f"{one}, %" for one in AGAINST), "violation, %"]
        lines = [f"## {name}", "", f"| {' | '.join(heads)} |", f"|{' ---: |' * len(heads)}"]
        console.print("\n".join([*lines, *(f"| {row} |" for _, row in sorted(rows)), ""]), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
