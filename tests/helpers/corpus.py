"""Instances from the middle of real learning runs, kept as files. `python tests/corpus.py` (in tests/) writes them anew."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rmab
from instances import Instance

FOLDER = Path(__file__).parents[1] / "corpus"
CONFIDENCE = 0.05
FLOOR = 1e-12


def learning_run(
    *,
    seed: int = 0,
    arms: int = 6,
    budget: int = 3,
    horizon: int = 15,
    episodes: int = 20,
    rate: float = 1.0,
    ball: bool = False,
) -> Iterator[Instance]:
    """Play UCMD-ARMAB, to the letter, on CPAP and yield every programme that it solves; rate multiplies the paper's eta."""
    task = rmab.make_task("cpap", seed=seed, arms=arms, budget=budget, horizon=horizon, episodes=episodes)
    view, rng = task.view(), np.random.default_rng(seed)
    states, counts = view.states, np.zeros((arms, view.states, 2, view.states))
    eta = rate * np.sqrt(np.log(2 * states**2) / episodes)
    reference = np.full((arms, horizon, states, 2, states), 1 / (2 * states**2))
    previous = None
    for t in range(episodes):
        seen = counts.sum(axis=3)
        middle = np.where(seen[..., None] > 0, counts / np.maximum(seen, 1)[..., None], 1 / states)
        log = np.log(4 * states * 2 * arms * max(t, 1) * horizon / CONFIDENCE)
        width = np.where(seen > 0, np.minimum(np.sqrt(log / (2 * np.maximum(seen, 1))), 1.0), 1.0)
        if ball:
            radius = np.where(seen > 0, np.sqrt(2 * states * log / np.maximum(seen, 1)), 2.0)
            instance = Instance(reference, middle, None, view.start, float(budget), radius)
        else:
            low, high = np.maximum(middle - width[..., None], 0.0), np.minimum(middle + width[..., None], 1.0)
            instance = Instance(reference, low, high, view.start, float(budget))
        yield instance
        previous = instance.solve(warm=previous)
        total = previous.mass.sum(axis=3)
        index = np.where(total > FLOOR, previous.mass[..., 1] / np.maximum(total, FLOOR), 0.0)
        reward = task.reward(t)
        played = rmab.simulate(task.problem, rmab.IndexPolicy(index, budget), reward, rng)
        visits = np.zeros((arms, states, 2))
        for h, n in np.ndindex(horizon, arms):
            before, after = played.states[h, n], played.states[h + 1, n]
            counts[n, before, int(played.actions[h, n]), after] += 1
            visits[n, before, int(played.actions[h, n])] += 1
        scaled = (reward - view.low) / (view.high - view.low)
        seen_now = np.minimum(scaled * horizon / np.maximum(visits, 1) + width, 1.0)
        estimate = np.where(visits > 0, seen_now, 1.0)
        reference = np.maximum(previous.z, FLOOR) * np.exp(eta * estimate)[:, None, :, :, None]


def write() -> None:
    """Write a handful of instances of every kind of run."""
    FOLDER.mkdir(exist_ok=True)
    runs = {"plain": {}, "fast": {"rate": 30.0, "seed": 1}, "ball": {"ball": True, "rate": 3.0, "seed": 2}}
    for name, options in runs.items():
        for t, instance in enumerate(learning_run(**options)):
            if t in (1, 5, 19):
                fields = {key: np.asarray(value) for key, value in vars(instance).items() if value is not None}
                np.savez_compressed(FOLDER / f"{name}-{t}.npz", **fields)


def read(path: Path) -> Instance:
    """Return a stored instance."""
    with np.load(path) as fields:
        return Instance(**{"high": None, **fields})


if __name__ == "__main__":
    write()
