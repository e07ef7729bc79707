"""Runs of every learner on small tasks: digests of all that they compute, and the numbers that a user sees.

Floating point differs between processors and releases of NumPy, Numba and HiGHS. The file holds the digests for each
processor that was recorded, and for all others the numbers with a tolerance. See `test_golden_runs.py` for both.

`python tests/helpers/golden_runs.py` records this processor. It adds digests, and marks as forks the cases whose numbers
differ from those that are stored; with `--forks`, it only does the latter. An x86-64 machine can stand in for another one:

    NUMBA_CPU_NAME=znver3 NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" python -m pytest tests/runs

The recorded digests are of OpenBLAS's kernels for Intel: a processor of AMD needs OPENBLAS_CORETYPE=SkylakeX as well.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding
from numba import config
from numpy._core import _multiarray_umath as simd

import rmab

FILE = Path(__file__).parents[1] / "golden_runs.json"
SEED, OTHERS = 9, range(100, 120)  # the seed of every run, and those that show how far a fork can lead
NUMBERS = ("reward", "planned", "believed")  # by episode
CLOSE = 1e-9  # between processors, relative to the largest number of a run: what differs by more is a fork
JOINT = {"step": "lazy", "confidence": "kl", "probes": {"every": 0.0}}  # mirror descent on occupancies
LEARNERS: list[tuple[str, dict[str, Any]]] = [
    ("ucmd", {}),
    *[("ucmd", {"confidence": name}) for name in ("hoeffding", "bernstein", "wide-bernstein", "l1")],
    *[("ucmd", {"estimator": name, **JOINT}) for name in ("paper", "direct", "fading", "last", "implicit")],
    *[("ucmd", {"estimator": name, **JOINT, "step": "active", "scale": 4.0}) for name in ("paper", "forecast", "implicit")],
    ("ucmd", {"rule": "at-most", "rounding": "dependent", "scale": 2.0}),
    ("ucmd-armab", {}),
    ("ucmd-armab", {"scale": 10.0, "epsilon": 0.2, "rounding": "dependent", "rule": "at-most"}),
    *[("rmab-ucrl", {"version": name}) for name in ("stationary", "finite", "window", "generator")],
    ("restless-ucb", {"preset": "tuned"}),
    *[("r2mab-ucb", {"version": name}) for name in ("online", "generator")],
    ("r2mab-ucb", {"version": "explore", "index": "weighted", "optimism": 0.3}),
    ("colored-ucrl2", {}),
    *[(name, {}) for name in ("uc-whittle", "thompson", "q-whittle", "uc-o-reps", "shifted-uc-o-reps", "uob-reps")],
    ("dilated-po", {"rate": 0.3, "gamma": 0.01, "bonus": 0.001}),
    *[(name, {"preset": "tuned"}) for name in ("ucpd", "pdgd-ops")],
    ("random", {}),
    ("oracle", {"index": "occupancy", "rounding": "dependent"}),
]


def mixed(feedback: Any) -> rmab.Task:
    """Six arms in two groups of different size; being passive pays nothing."""
    rng, groups = np.random.default_rng(5), [0, 1, 0, 0, 1, 1]
    pair, triple = rng.dirichlet(np.ones(2), size=(2, 2)), rng.dirichlet(np.ones(3), size=(3, 2))
    arms = rmab.Arms.of_sizes([(triple, pair)[g] for g in groups], groups=groups)
    rewards = rng.uniform(-1, 2, size=(5, 2, 3, 2))[:, groups]
    rewards[..., 0] = 0.0
    problem = rmab.Problem(arms, [0, 1, 2, 0, 1, 1], 2, 4)
    return rmab.Task.from_rewards(problem, rewards, low=-1, high=2, passive_zero=True, feedback=feedback)


def timed() -> rmab.Task:
    """Five arms in two groups, three phases, budgets by step, starts that are drawn."""
    rng, groups = np.random.default_rng(6), [0, 1, 0, 1, 1]
    kernels = rng.dirichlet(np.ones(3), size=(2, 3, 3, 2))[groups]
    start = rng.dirichlet(np.ones(3), size=5)
    problem = rmab.Problem(rmab.Arms(kernels, groups=groups), start, [2, 1, 3, 0, 2, 1], 6, [0, 2, 1, 1, 0, 2])
    return rmab.Task.from_rewards(problem, rng.uniform(size=(4, 5, 3, 3, 2)), low=0, high=1)


SIZES = {"arms": 4, "budget": 2, "horizon": 6, "episodes": 5}
TASKS = {
    "cpap@noisy": lambda: rmab.make_task("cpap@noisy", seed=3, **SIZES),
    "cpap-adherence@adaptive, full": lambda: rmab.make_task("cpap-adherence@adaptive", seed=4, feedback="full", **SIZES),
    "deadline": lambda: rmab.make_task("deadline", seed=1, known_support=True, arms=6, budget=2, horizon=7, episodes=3),
    "split@iid": lambda: rmab.make_task("split@iid", seed=2, episodes=3),
    "mixed, active": lambda: mixed("active"),
    "timed": timed,
}


def fingerprint() -> dict[str, str]:
    """Return what the last bits depend on: the targets of Numba's and NumPy's machine code, and versions."""
    packages = ("numpy", "numba", "scipy", "highspy")
    lanes = [name for name in simd.__cpu_dispatch__ if simd.__cpu_features__[name]]
    target = {"processor": config.CPU_NAME or binding.get_host_cpu_name(), "lanes": " ".join(lanes)}
    return target | {name: version(name) for name in packages}


def play(task: str, place: int, seed: int = SEED) -> rmab.RunResult | None:
    """Return the run of a learner on a task, or None where the learner refuses the task."""
    name, options = LEARNERS[place]
    try:
        return rmab.run(TASKS[task](), rmab.make_learner(name, **options), seed=seed)
    except rmab.RmabError:
        return None


def digest(run: rmab.RunResult | None) -> str:
    """Return a digest of every plan, reward, estimate and state of a run, whatever the names of the arrays are.

    Iterations of solvers are left out: they are work, not a result.
    """
    if run is None:
        return "refused"
    arrays = [run.reward, run.activations, run.planned, run.believed, run.rewards, run.estimates]
    arrays += run.state.arrays.values()
    each = [np.asarray(array) for array in arrays if array is not None]
    digests = [hashlib.sha256(f"{a.dtype.str}{a.shape}".encode() + np.ascontiguousarray(a).tobytes()).digest() for a in each]
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:16]


def numbers(run: rmab.RunResult | None) -> dict[str, list[float]] | None:
    """Return reward, planned and believed value by episode, to ten digits; None of a run that was refused."""
    if run is None:
        return None
    found = {name: [float(f"{x:.10g}") for x in getattr(run, name)] for name in NUMBERS}
    return {name: row for name, row in found.items() if not np.isnan(row).all()}  # some learners plan no value


def distance(found: dict[str, list[float]], recorded: dict[str, list[float]]) -> float:
    """Return the largest difference of two runs' numbers, relative to the largest number of its kind."""
    gaps = [np.abs(np.subtract(found[name], row)).max() / max(np.abs(row).max(), 1e-12) for name, row in recorded.items()]
    return float(max(gaps))


def spread(task: str, place: int) -> list[list[float]]:
    """Return mean and standard deviation, over other seeds, of each number's sum over episodes."""
    sums = [[sum(row) for row in numbers(play(task, place, seed)).values()] for seed in OTHERS]
    return [[float(f"{x:.10g}") for x in row] for row in (np.mean(sums, axis=0), np.std(sums, axis=0, ddof=1))]


def cases() -> Iterator[tuple[str, str, int]]:
    """Yield the name of every case, its task and the place of its learner."""
    for task in TASKS:
        for place, (name, _) in enumerate(LEARNERS):
            yield f"{task}: {name}-{place}", task, place


def record(*, with_digests: bool) -> None:
    """Add this processor to the file: its forks and, if asked for, its digests."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"fingerprints": [], "runs": {}}
    known, runs = stored["fingerprints"], stored["runs"]
    if with_digests and fingerprint() not in known:
        known.append(fingerprint())
    for name, task, place in cases():
        run = play(task, place)
        entry = runs.setdefault(name, {"digests": [], "numbers": numbers(run)})
        if with_digests:
            here = known.index(fingerprint())
            entry["digests"][here : here + 1] = [digest(run)]
        if run is not None and "spread" not in entry and distance(numbers(run), entry["numbers"]) > CLOSE:
            entry["spread"] = spread(task, place)
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in runs.items())
    FILE.write_text(f'{{\n "fingerprints": {json.dumps(known)},\n "runs": {{\n{rows}\n }}\n}}\n')


if __name__ == "__main__":
    record(with_digests="--forks" not in sys.argv)
