"""Result of a run: rewards, plans and estimates of each episode, and the regret computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray, ReadOnly, cached_property
from rmab.learning.state import State
from rmab.runs.comparators import Comparator, Comparators
from rmab.tasks.definition import Task

ROUNDING = 1e-9  # relative to the reward: a smaller regret of the random policy counts as 0


@dataclass(frozen=True, eq=False)
class RunResult(ReadOnly):
    """Result of a run, episode by episode, as returned by `run`.

    Attributes
    ----------
    task : Task
        The task, with the feedback that the learner got.
    learner : str
        Name and options of the learner.
    privileged : str
        What the learner knew that a real programme would not, including full feedback; empty otherwise.
    seed : int
        Random seed of the run.
    reward : ndarray, shape (T,)
        Reward of each episode.
    activations, visited, iterations : ndarray of int, shape (T,)
        Number of activations; of pairs (n, s, a), in each phase, visited at least once so far; of iterations of the plan's
        solver.
    seconds : ndarray, shape (T,)
        Wall time of the whole episode.
    rewards : ndarray, shape (T, N, S, 2), or (T, N, K, S, 2) with phases
        Rewards set by the adversary.
    planned, believed : ndarray, shape (T,)
        Reward of the plan's occupancy under the true rewards, and under the learner's estimates; NaN for learners without
        occupancies.
    estimates : ndarray, shape of rewards, or None
        The learner's estimates of the rewards.
    state : State
        The learner's state after the last episode.

    Examples
    --------
    >>> import rmab
    >>> run = rmab.run(rmab.make_task("cpap", episodes=3), "random")
    >>> run.reward.shape, run.regret("O1").shape
    ((3,), (3,))
    """

    task: Task
    learner: str
    privileged: str
    seed: int
    reward: FloatArray
    activations: IntArray
    visited: IntArray
    iterations: IntArray
    seconds: FloatArray
    rewards: FloatArray
    planned: FloatArray
    believed: FloatArray
    estimates: FloatArray | None
    state: State

    @cached_property
    def comparators(self) -> Comparators:
        """Comparators O1, O2 and O3 of the rewards."""
        return Comparators.of(self.task.problem, self.rewards, self.task.change)

    def regret(self, to: Comparator = "O1") -> FloatArray:
        """(T,) accumulated regret against a comparator, signed."""
        return np.asarray(np.cumsum(self.comparators.per_episode(to) - self.reward))

    def relative_regret(self, to: Comparator = "O1") -> float:
        """Return the regret of the whole run as a part of what the comparator earns in all (its size)."""
        total = float(self.comparators.per_episode(to).sum())
        lost = total - float(self.reward.sum())
        return lost / abs(total) if total else float(np.sign(lost)) * np.inf if lost else 0.0

    def random_regret(self, to: Comparator = "O1") -> float:
        """Return the mean regret of the random policy to a comparator, over the whole run."""
        return float((self.comparators.per_episode(to) - self.comparators.random()).sum())

    def relative_to_random(self, to: Comparator = "O1") -> float:
        """Return the regret of the whole run relative to the random policy: 0 is the comparator, 1 is the random policy.

        NaN if the random policy has no regret.
        """
        return relative_regret_of(float(self.regret(to)[-1]), self.random_regret(to), float(np.abs(self.reward).sum()))

    def terms(self) -> FloatArray:
        """(4, T) Term0..Term3 of each episode: they add up to its regret against O1 (Xiong & Li 2024, regret decomposition).

        They are over-estimation, mirror descent, the estimator, and the index policy in the true model. NaN if the learner
        has no occupancies or estimates.
        """
        if self.estimates is None or self.task.change is not None:  # the terms are defined for one model
            return np.full((4, self.reward.size), np.nan)
        bound = self.comparators.o1()
        visits = self.comparators.visits
        hoped = np.tensordot(self.estimates, visits, axes=visits.ndim)
        return np.stack([bound - hoped, hoped - self.believed, self.believed - self.planned, self.planned - self.reward])

    def to_table(self, comparators: Sequence[Comparator] = ("O1", "O2", "O3")) -> dict[str, FloatArray | IntArray]:
        """Return columns (T,) by name: the episode's results, the mean rewards of O1 (`bound`) and of the random policy
        (`random`), accumulated regret against each comparator, and the four terms.
        """
        columns: dict[str, FloatArray | IntArray] = {
            "episode": np.arange(self.reward.size),
            "reward": self.reward,
            "bound": self.comparators.o1(),
            "random": self.comparators.random(),
            "activations": self.activations,
            "visited": self.visited,
            "iterations": self.iterations,
            "seconds": self.seconds,
        }
        columns |= {f"regret_{which}": self.regret(which) for which in comparators}
        return columns | {f"term{k}": row for k, row in enumerate(self.terms())}

    def summary(self) -> dict[str, Any]:
        """Return totals over all episodes; NaN for terms that the learner does not have.

        `budget_use` is the fraction of the slots that was used; NaN if costs differ.
        """
        problem, learner = self.task.problem, self.learner.partition(" ")[0]
        comparators: tuple[Comparator, ...] = ("O1", "O2", "O3")
        slots = int(problem.slots.sum()) * self.reward.size
        used = float(self.activations.sum()) / slots if slots else 0.0
        return {
            "task": self.task.name,
            "learner": learner,
            "feedback": self.task.feedback,
            "privileged": self.privileged,
            "adversary": self.task.stronger,
            "seed": self.seed,
            "episodes": self.reward.size,
            "reward": float(self.reward.sum()),
            "regret": {to: float(self.regret(to)[-1]) for to in comparators},
            "relative_regret": {to: self.relative_regret(to) for to in comparators},
            "relative_to_random": {to: self.relative_to_random(to) for to in comparators},
            "terms": {f"Term{k}": float(term.sum()) for k, term in enumerate(self.terms())},
            "budget_use": used if problem.weights is None else float("nan"),
            "seconds": float(self.seconds.sum()),
        }

    def __repr__(self) -> str:
        learner, earned = self.learner.partition(" ")[0], float(self.reward.sum())
        notes = f", privileged: {self.privileged}" if self.privileged else ""
        notes += f", adversary: {self.task.stronger}" if self.task.stronger else ""
        who = f"{learner} on {self.task.name}, seed {self.seed}"
        return f"Run({who}, {self.reward.size} episodes, reward {earned:.6g}{notes})"


def relative_regret_of(lost: float, gap: float, size: float) -> float:
    """Return regret relative to that of the random policy; NaN if that is negligible beside rewards of this size."""
    return lost / gap if gap > ROUNDING * size and gap > 0 else float("nan")
