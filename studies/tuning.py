"""Tuned presets of the index learners: the options of a small grid that regret least to O1, on held-out seeds.

    python studies/tuning.py [learner ...] [--rounds 3] [--workers 2]

Tasks: cpap against four adversaries; for colored-ucrl2, which needs few joint states, a cpap of 4 arms. Seeds are 1000 and
up, which no table uses. The mean is over adversaries, negative regret counting as none: to beat the fixed O1 by following
rewards that change does not make up for losses elsewhere. Prints every grid, best first; the winners were written into the
TUNED of each learner by hand.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np

import rmab

ADVERSARIES = ("noisy", "switching", "drifting", "ramp")
SMALL = {"arms": 4, "budget": 2, "horizon": 20, "episodes": 30}
SHRUNK = [1.0, 0.3, 0.1, 0.03, 0.0]
GRIDS: dict[str, dict[str, list[object]]] = {
    "rmab-ucrl": {"version": ["stationary"], "optimism": list(SHRUNK)},
    "restless-ucb": {"exploration": [0.15, 0.3, 0.6, 1.0], "optimism": [1.0, 0.3, 0.0]},
    "r2mab-ucb": {"optimism": list(SHRUNK)},
    "colored-ucrl2": {"optimism": list(SHRUNK)},
    "uc-whittle": {"optimism": list(SHRUNK)},
    "thompson": {"prior": [1.0, 0.5, 0.2, 0.05]},
    "q-whittle": {"fast": [1.0, 3.0, 10.0], "slow": [0.1, 1.0, 10.0], "exploration": [1.0, 0.3]},
}
Job = tuple[str, tuple[tuple[str, object], ...], str, int]


def regret(job: Job) -> float:
    """Return one run's regret to O1, relative."""
    name, options, against, seed = job
    size = SMALL if name == "colored-ucrl2" else {}
    task = rmab.task(f"cpap@{against}", seed=seed, **size)  # type: ignore[arg-type]
    return rmab.run(task, rmab.learner(name, **dict(options)), seed).relative_regret("O1")


def main() -> None:
    """Run the grids and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learners", nargs="*", default=[], choices=[[], *GRIDS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        for name in args.learners or GRIDS:
            cells = [tuple(zip(GRIDS[name], values, strict=True)) for values in product(*GRIDS[name].values())]
            seeds = range(1000, 1000 + args.rounds)
            jobs: list[Job] = [(name, cell, *rest) for cell in cells for rest in product(ADVERSARIES, seeds)]
            table = np.reshape(list(pool.map(regret, jobs)), (len(cells), len(ADVERSARIES), args.rounds))
            score = np.maximum(table.mean(axis=2), 0.0).mean(axis=1)
            for k in np.argsort(score):
                by = "  ".join(f"{a} {100 * v:.2f}" for a, v in zip(ADVERSARIES, table[k].mean(axis=1), strict=True))
                print(f"{name} {dict(cells[k])}: {100 * score[k]:.2f} % ({by})", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
