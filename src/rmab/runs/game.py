"""A task in play: random streams, the adversary's rewards, the visits that it answers to, and feedback.

`rmab.run` and the environments of `rmab.gym` play through it: with the same seed, the same decisions earn the same, to the
last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.checks import check_magnitude, is_builtin
from rmab.model.problem import Problem
from rmab.model.time import shape_of
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.outcomes import Trajectory, pairs_of
from rmab.play.policy import Policy
from rmab.play.simulation import play_episode, random_streams
from rmab.runs.randomness import REHEARSAL, sequence_of, streams_of
from rmab.tasks import Task

REHEARSALS = 32  # of an episode, for an adversary that foresees


class Game:
    """R rounds of a task, one per seed, episode by episode.

    Parameters
    ----------
    task : Task
        The task.
    seeds : sequence of int
        One for each round, 0 or more.
    view : View, optional
        What a learner may know of the task; by default, `task.view()`.

    Attributes
    ----------
    rewards : list of ndarray
        What the episode pays, (N, [K,] S, 2): one table per round, or one for all rounds where the adversary is scripted.
    visits : ndarray of int, shape (R, N, [K,] S, 2)
        How often each pair was visited before the episode, as far as `count` was called.
    """

    def __init__(self, task: Task, seeds: Sequence[int], view: View | None = None) -> None:
        arms, adversary, horizon = task.problem.arms, task.adversary, task.problem.horizon
        size = f" times {arms.count} arms times {horizon} steps"
        check_magnitude(np.array([adversary.low, adversary.high]), "reward", arms.count * horizon, size)
        self.task, self.seeds, self.view = task, tuple(seeds), task.view() if view is None else view
        self.rewards: list[FloatArray] = []
        self.visits = np.zeros((len(self.seeds), *_shape(task.problem)), dtype=np.int64)

    def begin(self, t: int, policy: Policy | None = None, game: int = 0) -> NDArray[np.uint64]:
        """Let the adversary choose what episode t pays; return the streams of the episode, as `streams_of` does.

        policy: what will be played, for an adversary that foresees it.
        """
        adversary, self.episode = self.task.adversary, t
        seen: Sequence[IntArray | None] = list(self.visits) if adversary.adaptive else [None]
        if adversary.foresees and policy is not None:
            generators = (np.random.default_rng(sequence_of(seed, REHEARSAL, t, game)) for seed in self.seeds)
            seen = [rehearse_visits(self.task.problem, policy, rng) for rng in generators]
        self.rewards = [self.task.reward(t, one) for one in seen]
        return streams_of(self.seeds, t, game)

    def reward(self, r: int = 0) -> FloatArray:
        """Return what the episode pays in a round."""
        return self.rewards[r if len(self.rewards) > 1 else 0]

    def count(self, episode: Trajectory, r: int = 0) -> None:
        """Add the visits of an episode."""
        self.visits[r] += visits_of(self.task.problem, episode)

    def feedback(self, episode: Trajectory, r: int = 0) -> Feedback:
        """Return what a learner sees of the episode; a custom adversary is not trusted to keep what it declares."""
        reveal = Feedback.of_simulation if is_builtin(self.task.adversary) else Feedback.reveal
        return reveal(self.view, self.episode, episode, self.reward(r))


def rehearse_visits(problem: Problem, policy: Policy, rng: np.random.Generator, rounds: int = REHEARSALS) -> IntArray:
    """Return how often each pair is visited, (N, S, 2) or (N, K, S, 2), when a policy plays so many episodes.

    Any policy can be rehearsed, since a policy has no memory: one that needs a memory begins every episode with a new one.
    """
    visits, unpaid = np.zeros(_shape(problem), dtype=np.int64), np.zeros(_shape(problem))
    for _ in range(rounds):
        visits += visits_of(problem, play_episode(problem, policy, unpaid, random_streams(rng, 1)))
    return visits


def visits_of(problem: Problem, episode: Trajectory) -> IntArray:
    """(N, S, 2), or (N, K, S, 2) with phases: how often an episode visited each pair."""
    shape = _shape(problem)
    pairs = pairs_of(episode.states, episode.actions, (problem.phases, problem.arms.states), problem.phase_of)
    return np.bincount(pairs.reshape(-1), minlength=int(np.prod(shape))).reshape(shape)


def _shape(problem: Problem) -> tuple[int, ...]:
    return shape_of(problem.phases, problem.arms.count, problem.arms.states, 2)
