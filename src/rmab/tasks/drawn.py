"""Tasks drawn at random, for tests and comparisons: nothing about them is special, which is the point.

    random-dense    every row of every arm is uniform on the simplex (Dirichlet with weights 1).
    random-sparse   every row has a few successors, which are drawn, and is uniform on their simplex. Some states may be left
                    for good: indices of an endless horizon need not exist.
    random-types    a few types of dense arms, and about as many arms of each: the budget alone couples them.
    good-bad        the synthetic domain of UCWhittle (Wang, Xu, Taneja & Tambe, AAAI 2023): two states, the good one pays 1,
                    being active and having been good always help. It brings its own rewards, which never change.

Rewards of the others are uniform on [0, 1], pair by pair. Kernels and rewards follow from the seed and the sizes: another
budget, horizon or adversary leaves them as they are.
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
    """Arms drawn at random, each of its own: every move is possible."""
    _check(arms, states, arms)
    rng = model_rng(seed)
    kernels = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    return _posed(Arms(kernels), rng, np.arange(arms), budget, horizon)


def random_sparse(
    seed: int,
    *,
    arms: ArmCount = 20,
    budget: Budget = 5,
    horizon: Horizon = 50,
    states: States = 8,
    successors: Annotated[int, Field(ge=1, description="number of states that follow on a pair")] = 2,
) -> Posed:
    """Arms drawn at random, each of its own: few moves are possible."""
    _check(arms, states, arms)
    if successors > states:
        raise ModelError(f"successors must be at most {states} (the number of states), got {successors}")
    rng = model_rng(seed)
    place = rng.random((arms, states, 2, states)).argsort(axis=3)[..., :successors]
    kernels = np.zeros((arms, states, 2, states))
    np.put_along_axis(kernels, place, rng.dirichlet(np.ones(successors), size=(arms, states, 2)), axis=3)
    return _posed(Arms(kernels), rng, np.arange(arms), budget, horizon)


def random_types(
    seed: int,
    *,
    arms: ArmCount = 60,
    budget: Budget = 15,
    horizon: Horizon = 50,
    states: States = 5,
    types: Annotated[int, Field(ge=1, description="number of types of arms")] = 3,
) -> Posed:
    """A few types of arms drawn at random, and many arms of each."""
    if types > arms:
        raise ModelError(f"types must be at most {arms} (the number of arms), got {types}")
    _check(arms, states, types)
    rng = model_rng(seed)
    kind = np.arange(arms) * types // arms
    kernels = rng.dirichlet(np.ones(states), size=(types, states, 2))
    return _posed(Arms(kernels[kind], groups=kind), rng, kind, budget, horizon)


def good_bad(seed: int, *, arms: ArmCount = 8, budget: Budget = 3, horizon: Horizon = 20, episodes: Episodes = 30) -> Task:
    """A good and a bad state, rewards that never change: the synthetic domain of UCWhittle (Wang et al. 2023).

    The probability of a good next state is uniform; where being active would harm, it is drawn again above that of being
    passive; then, where having been good would harm, above that of having been bad. Arms begin in either state.
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


def _posed(arms: Arms, rng: np.random.Generator, kind: IntArray, budget: int, horizon: int) -> Posed:
    """Return these arms and what they pay; those of a kind (N,) are paid alike."""
    pays: FloatArray = rng.random((int(kind.max()) + 1, arms.states, 2))
    return Problem(arms, 0, budget, horizon), RewardModel(pays[kind][np.newaxis], 0.0, 2.0, units=kind)
