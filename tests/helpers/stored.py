"""One small object of every kind that can be stored, and their files in `tests/stored`, which every later version must read.

`python tests/helpers/stored.py` (with `src` on the path) writes the files of the present format versions that do not exist.
A file that is there is never written again.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

import rmab
from logs import HEADER, read, table
from rmab.common.storage import KINDS, Stored

FOLDER = Path(__file__).parents[1] / "stored"


def task() -> rmab.Task:
    """Return a task of two phases that declares all that a task can."""
    kernels = [
        [[[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]], [[1.0, 0.0, 0.0], [0.1, 0.2, 0.7]], [[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]],
        [[[0.9, 0.1, 0.0], [0.6, 0.4, 0.0]], [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]],
    ]
    both = np.stack([kernels, np.roll(kernels, 1, axis=3)], axis=1)[[0, 1, 0]]
    both[1] = kernels[1]
    arms = rmab.Arms(both, state_names=["ill", "weak", "well"], groups=["a", "b", "a"], support=both > 0, sizes=[3, 2, 3])
    start = [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    problem = rmab.Problem(arms, start, [1, 0, 2, 1], 4, [1, 0, 0, 1], discount=0.9)
    rewards = np.arange(2 * 2 * 2 * 3 * 2).reshape(2, 2, 2, 3, 2)[:, [0, 1, 0]] / 48
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1, name="ward 7")


def state() -> rmab.State:
    """Return a state of no learner that there is, with arrays of all types."""
    arrays = {"counts": np.arange(6).reshape(2, 3), "means": np.array([[1 / 3, np.pi]]), "part.when": np.array(3)}
    arrays |= {"ever": np.array([True, False]), "small": np.array(0.1, dtype=np.float32)}
    return rmab.State("mine {}", task().view(), 5, 2, arrays)


def policy() -> rmab.IndexPolicy:
    """Return an index by step."""
    table = np.arange(24).reshape(2, 4, 3) / 24
    return rmab.IndexPolicy(table, [1, 0, 2, 1], rule="at-most", rounding="dependent")


def planned(name: str) -> Callable[[], Stored]:
    """Return the maker of a planner's policy for two arms that are not alike."""
    kernels = [[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]], [[[0.8, 0.2], [0.1, 0.9]], [[0.7, 0.3], [0.4, 0.6]]]]
    problem, reward = (
        rmab.Problem(rmab.Arms(kernels), 0, 1, 3),
        np.array([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.7, 0.6]]]),
    )
    if name == "plan":
        return lambda: rmab.plan(problem, reward, candidates=["rolling"])
    return lambda: rmab.make_planner(name)(problem, reward)  # type: ignore[return-value]


def fit() -> rmab.data.Fit:
    """Return a model of four arms in five weeks."""
    weeks = [(n, w, ["ill", "well"][(n * w + w // 2) % 2], ["no", "yes"][(n + w) % 2]) for n in range(4) for w in range(5)]
    rows = [(f"arm{n}", w, state, action, ["old", "young"][n % 2]) for n, w, state, action in weeks]
    log = read(table(*rows, names=f"{HEADER},age"), groups=["age"])
    return rmab.data.fit(log, reward={"well": 1})


SAMPLES: dict[str, Callable[[], Stored]] = {
    "rmab problem": lambda: task().problem,
    "rmab task": task,
    "rmab view": lambda: task().view(),
    "rmab learner state": state,
    "rmab policy": policy,
    **{f"rmab policy {name}": planned(name) for name in ("rolling", "lp-update", "id", "ftva", "set-expansion")},
    "rmab plan": planned("plan"),
    "rmab fit": fit,
    "rmab decision": lambda: rmab.data.decide({"ann": 0.4, "bea": 0.1, "cleo": 0.3}, budget=2),
}
# What a solver or an optimizer computed: other machines may round it otherwise.
COMPUTED = {one for one in SAMPLES if one.startswith(("rmab policy ", "rmab plan", "rmab fit"))}


def write_files() -> None:
    """Write the files that do not exist: by format version, kind and suffix."""
    for kind, sample in SAMPLES.items():
        stored = sample()
        for suffix in stored.FORMAT.suffixes:
            path = FOLDER / f"{kind.replace(' ', '-')}.{stored.FORMAT.version}{suffix}"
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                stored.save(path)


if __name__ == "__main__":
    assert SAMPLES.keys() <= KINDS.keys()
    write_files()
