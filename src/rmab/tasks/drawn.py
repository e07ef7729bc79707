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

from collections.abc import Callable
from typing import Annotated

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.model.adversaries import make_adversary
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.rewards import RewardModel
from rmab.tasks.definition import Task
from rmab.tasks.options import whole

STATES = whole("number of states")


def random_dense(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 20,
    budget: int = 5,
    horizon: int = 50,
    episodes: int = 50,
    states: Annotated[int, STATES] = 5,
) -> Task:
    """Arms drawn at random, each of its own: every move is possible."""
    _check(arms, states, arms)
    model_seed, adversary_seed = seeds.spawn(2)
    rng = np.random.default_rng(model_seed)
    kernels = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    name = f"random-dense@{against}"
    return _task(name, Arms(kernels), rng, np.arange(arms), budget, horizon, episodes, adversary_seed)


def random_sparse(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 20,
    budget: int = 5,
    horizon: int = 50,
    episodes: int = 50,
    states: Annotated[int, STATES] = 8,
    successors: Annotated[int, whole("number of states that follow on a pair")] = 2,
) -> Task:
    """Arms drawn at random, each of its own: few moves are possible."""
    _check(arms, states, arms)
    if not 1 <= successors <= states:
        raise ModelError(f"successors must be in 1..{states} (the number of states), got {successors}")
    model_seed, adversary_seed = seeds.spawn(2)
    rng = np.random.default_rng(model_seed)
    place = rng.random((arms, states, 2, states)).argsort(axis=3)[..., :successors]
    kernels = np.zeros((arms, states, 2, states))
    np.put_along_axis(kernels, place, rng.dirichlet(np.ones(successors), size=(arms, states, 2)), axis=3)
    name = f"random-sparse@{against}"
    return _task(name, Arms(kernels), rng, np.arange(arms), budget, horizon, episodes, adversary_seed)


def random_types(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 60,
    budget: int = 15,
    horizon: int = 50,
    episodes: int = 50,
    states: Annotated[int, STATES] = 5,
    types: Annotated[int, whole("number of types of arms")] = 3,
) -> Task:
    """A few types of arms drawn at random, and many arms of each."""
    if not 1 <= types <= arms:
        raise ModelError(f"types must be in 1..{arms} (the number of arms), got {types}")
    _check(arms, states, types)
    model_seed, adversary_seed = seeds.spawn(2)
    rng = np.random.default_rng(model_seed)
    kind = np.arange(arms) * types // arms
    kernels = rng.dirichlet(np.ones(states), size=(types, states, 2))
    name = f"random-types@{against}"
    return _task(name, Arms(kernels[kind], groups=kind), rng, kind, budget, horizon, episodes, adversary_seed)


def good_bad(
    seeds: np.random.SeedSequence, *, arms: int = 8, budget: int = 3, horizon: int = 20, episodes: int = 30
) -> Task:
    """A good and a bad state, rewards that never change: the synthetic domain of UCWhittle (Wang et al. 2023).

    The probability of a good next state is uniform; where being active would harm, it is drawn again above that of being
    passive; then, where having been good would harm, above that of having been bad. Arms begin in either state.
    """
    _check(arms, 2, arms)
    check_memory(f"a task of {episodes} episodes", 64.0 * max(episodes, 0) * arms)
    rng = np.random.default_rng(seeds.spawn(1)[0])
    good = rng.random((arms, 2, 2))  # by state and action
    good[..., 1] = np.where(good[..., 1] < good[..., 0], rng.uniform(good[..., 0], 1.0), good[..., 1])
    good[:, 1] = np.where(good[:, 1] < good[:, 0], rng.uniform(good[:, 0], 1.0), good[:, 1])
    problem = Problem(Arms(np.stack([1.0 - good, good], axis=3)), np.full((arms, 2), 0.5), budget, horizon)
    rewards = np.zeros((max(episodes, 1), arms, 2, 2))
    rewards[:, :, 1] = 1.0
    return Task.from_rewards(problem, rewards, low=0, high=1, name="good-bad")


def _check(arms: int, states: int, kinds: int) -> None:
    if arms < 1 or states < 1:
        raise ModelError(f"arms and states must be at least 1, got {arms} and {states}")
    check_memory(f"a task of {arms} arms", 64.0 * (arms + kinds) * states**2 + 100.0 * arms * states)


def _task(
    name: str,
    arms: Arms,
    rng: np.random.Generator,
    kind: IntArray,
    budget: int,
    horizon: int,
    episodes: int,
    adversary_seed: np.random.SeedSequence,
) -> Task:
    """Return the task of these arms; those of a kind (N,) are paid alike."""
    pays: FloatArray = rng.random((int(kind.max()) + 1, arms.states, 2))
    stakes = RewardModel(pays[kind][np.newaxis], 0.0, 2.0, units=kind)
    opponent = make_adversary(name.partition("@")[2], stakes, episodes, np.random.default_rng(adversary_seed))
    return Task(name, Problem(arms, 0, budget, horizon), opponent)


DRAWN: dict[str, Callable[..., Task]] = {
    "random-dense": random_dense,
    "random-sparse": random_sparse,
    "random-types": random_types,
    "good-bad": good_bad,
}
