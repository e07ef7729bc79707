"""Tasks and adversaries of a user, as modules of their own would have them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import rmab


@dataclass(frozen=True, eq=False)
class Pulsing(rmab.Adversary):
    """Every third episode pays double, with a phase drawn when it is made."""

    model: rmab.RewardModel
    phase: int

    @property
    def base(self) -> Any:
        return self.model.base

    def choose(self, t: int, visits: Any) -> Any:
        return self.model.combined(np.full(self.model.parts.shape, 1.5 if (t + self.phase) % 3 else 0.5))


def pulsing(model: rmab.RewardModel, episodes: int, rng: np.random.Generator) -> Pulsing:
    return Pulsing(episodes, model.low, model.high, model.passive_zero, model, int(rng.integers(3)))


def clinic(seed: int, patients: int = 3, episodes: int = 4, feedback: Any = "bandit") -> rmab.Task:
    rng = np.random.default_rng(seed)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(2), size=(patients, 2, 2))), 0, 1, 5)
    rewards = rng.uniform(size=(episodes, patients, 2, 2))
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1, feedback=feedback, name="clinic")


def too_long(model: rmab.RewardModel, episodes: int, rng: np.random.Generator) -> Pulsing:
    return pulsing(model, episodes + 1, rng)


def failing(**_: object) -> rmab.Task:
    raise ValueError("no such\nclinic")


def number(*_: object, **__: object) -> int:
    return 3


NOT_CALLABLE = 5
