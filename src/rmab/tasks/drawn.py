"""Random tasks, for tests and comparisons.

    random-dense    every row of every arm is uniform on the simplex (Dirichlet with weights 1).
    random-sparse   every row has a few random successors, and is uniform on their simplex. Some states may never be reached
                    again, so indices of an infinite horizon may not exist.
    random-types    a few types of dense arms, with about equally many arms of each.
    good-bad        the synthetic domain of UCWhittle (Wang, Xu, Taneja & Tambe, AAAI 2023): two states, the good one pays 1,
                    and being active and being in the good state always help. Its rewards are constant.

Rewards of the others are uniform on [0, 1], independent for each pair. Kernels and rewards depend only on the seed and the
sizes, not on budget, horizon or adversary.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, Episodes, FloatArray, Horizon, IntArray, check_memory
from rmab.errors import ModelError
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, Task, model_rng

States = Annotated[int, Field(ge=1, description="number of states")]


def random_dense(seed: int, *, arms: ArmCount = 20, budget: Budget = 5, horizon: Horizon = 50, states: States = 5) -> Posed:
    """Build random arms, all different, with all transitions possible."""
    _check(arms, states, arms)
    rng = model_rng(seed)
    kernels = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    return _build(Arms(kernels), rng, np.arange(arms), budget, horizon)


def random_sparse(
    seed: int,
    *,
    arms: ArmCount = 20,
    budget: Budget = 5,
    horizon: Horizon = 50,
    states: States = 8,
    successors: Annotated[int, Field(ge=1, description="number of possible next states of a pair")] = 2,
) -> Posed:
    """Build random arms, all different, with few transitions possible."""
    _check(arms, states, arms)
    if successors > states:
        raise ModelError(f"successors must be at most {states} (the number of states), got {successors}")
    rng = model_rng(seed)
    place = rng.random((arms, states, 2, states)).argsort(axis=3)[..., :successors]
    kernels = np.zeros((arms, states, 2, states))
    np.put_along_axis(kernels, place, rng.dirichlet(np.ones(successors), size=(arms, states, 2)), axis=3)
    return _build(Arms(kernels), rng, np.arange(arms), budget, horizon)


def random_types(
    seed: int,
    *,
    arms: ArmCount = 60,
    budget: Budget = 15,
    horizon: Horizon = 50,
    states: States = 5,
    types: Annotated[int, Field(ge=1, description="number of types of arms")] = 3,
) -> Posed:
    """Build a few random types of arms, with many arms of each."""
    if types > arms:
        raise ModelError(f"types must be at most {arms} (the number of arms), got {types}")
    _check(arms, states, types)
    rng = model_rng(seed)
    kind = np.arange(arms) * types // arms
    kernels = rng.dirichlet(np.ones(states), size=(types, states, 2))
    return _build(Arms(kernels[kind], groups=kind), rng, kind, budget, horizon)


def good_bad(seed: int, *, arms: ArmCount = 8, budget: Budget = 3, horizon: Horizon = 20, episodes: Episodes = 30) -> Task:
    """Build the synthetic domain of UCWhittle (Wang et al. 2023): a good and a bad state, with constant rewards.

    The probability of a good next state is uniform. If being active would harm, it is drawn again above that of being
    passive; then, if the good state would harm, above that of the bad state. Arms start in either state.
    """
    _check(arms, 2, arms)
    check_memory(f"a task of {episodes} episodes", 64.0 * episodes * arms)
    rng = model_rng(seed)
    good = rng.random((arms, 2, 2))  # by state and action
    good[..., 1] = np.where(good[..., 1] < good[..., 0], rng.uniform(good[..., 0], 1.0), good[..., 1])
    good[:, 1] = np.where(good[:, 1] < good[:, 0], rng.uniform(good[:, 0], 1.0), good[:, 1])
    problem = Problem(Arms(np.stack([1.0 - good, good], axis=3)), np.full((arms, 2), 0.5), budget, horizon)
    rewards = np.zeros((episodes, arms, 2, 2))
    rewards[:, :, 1] = 1.0
    return Task.from_rewards(problem, rewards, low=0, high=1, name="good-bad")


def _check(arms: int, states: int, kinds: int) -> None:
    check_memory(f"a task of {arms} arms", 64.0 * (arms + kinds) * states**2 + 100.0 * arms * states)


def _build(arms: Arms, rng: np.random.Generator, kind: IntArray, budget: int, horizon: int) -> Posed:
    """Return these arms with random rewards, equal for arms of the same kind (N,)."""
    pays: FloatArray = rng.random((int(kind.max()) + 1, arms.states, 2))
    return Problem(arms, 0, budget, horizon), RewardModel(pays[kind][np.newaxis], 0.0, 2.0, units=kind)
