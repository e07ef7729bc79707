"""The study behind the tuned presets: nine points for every learner, the same tasks, seeds and criterion for all.

    python studies/pages.py tuning       runs it (resumable), and writes docs/tuning.md

The first point of every grid is the theory's. Seeds are those of the study's own seed, 1000, which no table uses.
"""

from itertools import product
from typing import Any

from rmab.learning.registry import LEARNERS
from rmab.study import Study

POINTS, ROUNDS, SEED = 9, 10, 1000
AGAINST = ("noisy", "switching", "drifting", "ramp")
SIZE = {"arms": 4, "budget": 2, "horizon": 50, "episodes": 50}  # few enough joint states for colored-ucrl2
SHRUNK = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01, 0.0)
RATES = (1.0, 0.25, 0.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
Grid = list[dict[str, float]]


def grid(**values: tuple[float, ...]) -> Grid:
    """Return all combinations of the values of some options."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


GRIDS: dict[str, Grid] = {
    "ucmd-armab": grid(scale=RATES),
    "rmab-ucrl": grid(optimism=SHRUNK),
    "restless-ucb": grid(exploration=(1.0, 0.4, 0.15), optimism=(1.0, 0.3, 0.0)),
    "r2mab-ucb": grid(optimism=SHRUNK),
    "colored-ucrl2": grid(optimism=SHRUNK),
    "uc-whittle": grid(optimism=SHRUNK),
    "thompson": grid(prior=(1.0, 3.0, 2.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)),
    "q-whittle": grid(fast=(1.0, 3.0, 10.0), exploration=(1.0, 0.3, 0.1)),
    "uc-o-reps": grid(rate=RATES),
    "shifted-uc-o-reps": grid(rate=(1.0, 8.0, 64.0), shift=(1.0, 0.3, 0.1)),
    "uob-reps": grid(rate=(1.0, 8.0, 64.0), gamma=(1.0, 0.2, 0.03)),
    "dilated-po": [
        {},  # the theory's rate has its own formula
        *({"rate": rate, "gamma": gamma, "bonus": bonus} for rate, (gamma, bonus) in product(
            (0.3, 0.1), ((1.0, 0.1), (0.1, 0.01), (0.01, 0.001), (0.01, 0.0)))),
    ],
    "ucpd": grid(v=(1.0, 0.1, 0.01), alpha=(1.0, 0.01, 0.0003)),
    "pdgd-ops": grid(primal=(1.0, 8.0, 64.0), dual=(1.0, 30.0, 1000.0)),
}  # fmt: skip


def tuning() -> Study:
    """Return the study."""
    learners: list[dict[str, Any]] = [
        {"name": name, "label": f"{name}: {said(point)}", "options": point}
        for name, points in GRIDS.items()
        for point in points
    ]
    tasks = [{"name": f"cpap@{against}", "options": SIZE} for against in AGAINST]
    title = "Nine points of every learner, on seeds that no table uses"
    return Study.model_validate(
        {"name": "tuning", "title": title, "rounds": ROUNDS, "seed": SEED, "tasks": tasks, "learners": learners}
    )


def said(point: dict[str, float]) -> str:
    """Return the options of a point in words."""
    return ", ".join(f"{name} {value:g}" for name, value in point.items()) or "theory"


def presets() -> dict[str, dict[str, float]]:
    """Return the presets that the library has, by learner."""
    return {name: dict(LEARNERS.load(name).TUNED) for name in GRIDS}
