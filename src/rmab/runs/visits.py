"""Visits that an adversary may answer to: of the episodes so far, and of rehearsals of the coming one."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import IntArray
from rmab.model.problem import Problem
from rmab.model.time import shape_of
from rmab.play.outcomes import Trajectory
from rmab.play.policy import Policy
from rmab.play.simulation import simulate

REHEARSALS = 32  # of an episode, for an adversary that foresees


def rehearsed(problem: Problem, policy: Policy, rng: np.random.Generator, rounds: int = REHEARSALS) -> IntArray:
    """Return how often each pair is visited, (N, S, 2) or (N, K, S, 2), when a policy plays so many episodes.

    Any policy can be rehearsed, since a policy has no memory: one that needs a memory begins every episode anew.
    """
    arms = problem.arms
    visits = np.zeros(shape_of(problem.phases, arms.count, arms.states, 2), dtype=np.int64)
    unpaid = np.zeros(visits.shape)
    for _ in range(rounds):
        count_visits(problem, simulate(problem, policy, unpaid, rng), visits)
    return visits


def count_visits(problem: Problem, episode: Trajectory, visits: IntArray) -> None:
    """Add the visits of an episode."""
    arm = np.arange(problem.arms.count)
    where = (arm,) if problem.phases == 1 else (arm, problem.phase_of[:, np.newaxis])
    np.add.at(visits, (*where, episode.states[:-1], episode.actions.astype(np.int64)), 1)
