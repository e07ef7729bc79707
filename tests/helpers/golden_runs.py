"""Runs of every learner on small tasks, as digests of all that they do: `python tests/golden_runs.py` records them.

Floating point differs between processors and releases of NumPy, Numba and HiGHS, so digests are compared where all of these
are as they were; elsewhere, record them before a change and compare after it.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

import rmab

FILE = Path(__file__).parents[1] / "golden_runs.json"
JOINT = {"step": "lazy", "confidence": "kl", "looks": 0.0}  # mirror descent on occupancies
LEARNERS: list[tuple[str, dict[str, Any]]] = [
    ("ucmd", {}),
    *[("ucmd", {"confidence": name}) for name in ("hoeffding", "bernstein", "wide-bernstein", "l1")],
    *[("ucmd", {"estimator": name, **JOINT}) for name in ("paper", "direct", "fading", "last", "implicit")],
    *[("ucmd", {"estimator": name, **JOINT, "step": "active", "scale": 4.0}) for name in ("paper", "forecast", "implicit")],
    ("ucmd", {"rule": "at-most", "rounding": "dependent", "scale": 2.0, "epsilon": 0.2}),
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
    """Return what the last bits depend on."""
    packages = ("numpy", "numba", "scipy", "highspy")
    return {"processor": binding.get_host_cpu_name(), **{name: version(name) for name in packages}}


def digest(task: rmab.Task, name: str, options: dict[str, Any]) -> str:
    """Return a digest of every plan, reward, estimate and state of a run, or the line with which it was refused."""
    try:
        run = rmab.run(task, rmab.make_learner(name, **options), seed=9)
    except rmab.RmabError as error:
        return str(error)
    arrays = [run.reward, run.activations, run.iterations, run.planned, run.believed, run.rewards]
    arrays += [] if run.estimates is None else [run.estimates]
    arrays += [run.state.arrays[key] for key in sorted(run.state.arrays)]
    whole = hashlib.sha256()
    for array in map(np.asarray, arrays):
        whole.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:16]


def case(task: str, place: int) -> tuple[str, str]:
    """Return what a case is called, and its digest."""
    name, options = LEARNERS[place]
    return f"{task}: {name} {json.dumps(options)}", digest(TASKS[task](), name, options)


if __name__ == "__main__":
    found = dict(case(task, place) for task in TASKS for place in range(len(LEARNERS)))
    FILE.write_text(json.dumps({"fingerprint": fingerprint(), "runs": found}, indent=1) + "\n")
