"""Whittle indices of one arm against markovianbandit-pkg, side by side in one run, on one thread. One command, a table out.

    python benchmarks/whittle.py

Random dense arms, indexability checked by both, best of some repeats; each repeat is a new arm, as the peer remembers old
ones. A size at which the peer is faster is named at the end, and the exit code says so.
"""

import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import numpy as np
from rich.console import Console
from rich.table import Table

from rmab.solvers.whittle.index import arm_whittle

REPEATS = {10: 30, 100: 10, 1000: 2}


def pair(states: int, discount: float, seed: int) -> tuple[float, float, float]:
    """Seconds of ours, seconds of theirs, and the largest difference of an index."""
    before = np.geterr()
    import markovianbandit

    np.seterr(**before)  # importing it makes NumPy raise on divisions
    rng = np.random.default_rng(seed)
    kernel, reward = rng.dirichlet(np.ones(states), size=(states, 2)), rng.random((states, 2))
    begin = time.perf_counter()
    ours, _ = arm_whittle(kernel, reward, discount)
    between = time.perf_counter()
    arm = markovianbandit.restless_bandit_from_P0P1_R0R1(kernel[:, 0], kernel[:, 1], reward[:, 0], reward[:, 1])
    theirs = arm.whittle_indices(discount=discount, check_indexability=True)
    end = time.perf_counter()
    return between - begin, end - between, float(np.abs(ours - theirs).max())


def main() -> int:
    """Measure, print, and say what was missed."""
    rows, missed = Table(title="Whittle indices of one arm (target: not slower)"), []
    for column in ("states", "discount", "rmab, ms", "markovianbandit, ms", "times faster", "largest difference"):
        rows.add_column(column, justify="right")
    for discount in (0.9, 1.0):
        pair(10, discount, 0)  # compiles, both
        for states, repeats in REPEATS.items():
            ours, theirs, apart = zip(*(pair(states, discount, seed) for seed in range(repeats)), strict=True)
            ratio = min(theirs) / min(ours)
            cells = (f"{1e3 * min(ours):.3g}", f"{1e3 * min(theirs):.3g}", f"{ratio:.1f}", f"{max(apart):.0e}")
            rows.add_row(str(states), str(discount), *cells)
            missed += [] if ratio >= 1 else [f"{states} states, discount {discount}: {ratio:.2f}"]
    Console(width=125).print(rows)
    if missed:
        print("targets missed: " + "; ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
