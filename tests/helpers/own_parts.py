"""Tasks and adversaries of a user, as modules of their own would have them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import rmab
from rmab.learning import Direct, RandomLearner, configured, option


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


def ward(seed: int, patients: int = 3) -> tuple[rmab.Problem, rmab.RewardModel]:
    """Pose a problem, and what is at stake."""
    rng = np.random.default_rng(seed)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(2), size=(patients, 2, 2))), 0, 1, 5)
    return problem, rmab.RewardModel(rng.uniform(size=(1, patients, 2, 2)), low=0, high=2)


def three() -> tuple[int, int, int]:
    return 1, 2, 3


@configured
class Fade(Direct):
    """A component with an option."""

    speed: float = option(default=1.0, ge=0, help="how fast")


@configured
class Mine(RandomLearner):
    """A learner with an option."""

    name = "mine"
    boldness: float = option(default=0.5, ge=0, help="how bold")


class Plain(RandomLearner):
    """A learner that cannot be rebuilt from its attributes."""

    def __init__(self, one: int = 1) -> None:
        object.__setattr__(self, "two", 2 * one)


def too_long(model: rmab.RewardModel, episodes: int, rng: np.random.Generator) -> Pulsing:
    return pulsing(model, episodes + 1, rng)


def failing(**_: object) -> rmab.Task:
    raise ValueError("no such\nclinic")


def number(*_: object, **__: object) -> int:
    return 3


NOT_CALLABLE = 5


def greedy(problem: rmab.Problem, reward: object) -> rmab.IndexPolicy:
    """Plan for the next reward alone."""
    return rmab.planners.myopic_index(problem, reward)  # type: ignore[arg-type]
