"""Built-in adversaries.

A task has a RewardModel: a sum of parts, each with a factor. A built-in adversary sets the factors of each episode: from a
script that is fixed in advance (this module), or as a reaction to the learner (answering.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, as_integer, check_memory, check_rng, expect, frozen
from rmab.errors import ModelError
from rmab.model.adversary import Adversary, RewardModel, first_of
from rmab.model.registry import ADVERSARIES

FACTOR_LOW, FACTOR_HIGH = 0.5, 1.5  # the span of the paper's ramp
FACTOR_LEAST = 0.1  # factor of units that pay little, under `switching` and others
LATE = 0.4  # share of the episodes before units start to pay under `late`
SURE, RISK = 0.3, 0.4  # the certain factor under `lock`, and the probability of the large one


def ramp(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:  # noqa: ARG001
    """0.5 + t/(T-1) for all units: the paper's coefficient. The best policy is the same in every episode."""
    return np.linspace(FACTOR_LOW, FACTOR_HIGH, episodes)[:, np.newaxis, np.newaxis] * np.ones(shape)


def noisy(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A fixed quality in [0.1, 1] per unit, times independent noise in [0.3, 1.7] per episode: the stochastic case."""
    quality = rng.uniform(0.1, 1.0, shape)
    return quality * rng.uniform(0.3, 1.7, (episodes, *shape))


def iid(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """An independent factor in [0, 1.5] for each unit and episode: only the dynamics can be learned."""
    return rng.uniform(0.0, FACTOR_HIGH, (episodes, *shape))


def switching(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units pays 1.5 and the rest 0.1 (a single unit: a coin), for about sqrt(T) episodes each."""
    length = max(1, round(episodes**0.5))
    stretches = -(-episodes // length)
    rank = rng.random((stretches, *shape)).argsort(axis=2).argsort(axis=2)
    paying = rank < shape[1] // 2 if shape[1] > 1 else rng.random((stretches, *shape)) < 0.5
    return np.repeat(np.where(paying, FACTOR_HIGH, FACTOR_LEAST), length, axis=0)[:episodes]


def drifting(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Two periods of a sinusoid between 0 and 1.5 over the T episodes, with a phase per unit."""
    angle = 4 * np.pi * np.arange(episodes) / episodes
    return FACTOR_HIGH / 2 * (1 + np.sin(angle[:, np.newaxis, np.newaxis] + rng.uniform(0, 2 * np.pi, shape)))


def alternating(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A fixed random half of the units pays 1.5 in every other episode and 0.1 otherwise; the rest is the reverse."""
    first = _half(shape, rng)
    turn = np.arange(episodes)[:, np.newaxis, np.newaxis] % 2 == 0
    return np.where(first == turn, FACTOR_HIGH, FACTOR_LEAST)


def mixed(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units is noise, 0 or 1.5 by a fair coin in each episode; the others are as under `drifting`."""
    noise = _half(shape, rng)
    coins = rng.random((episodes, *shape)) < 0.5
    return np.where(noise, FACTOR_HIGH * coins, drifting(episodes, shape, rng))


def late(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units is as under `iid`; the others pay nothing in the first 2T/5 episodes, then 1.5."""
    early = _half(shape, rng)
    begun = np.arange(episodes)[:, np.newaxis, np.newaxis] >= round(LATE * episodes)
    return np.where(early, iid(episodes, shape, rng), FACTOR_HIGH * begun)


def lock(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units always pays 0.3; the others 1.5 with probability 0.4, drawn in each episode, else 0."""
    sure = _half(shape, rng)
    paying = rng.random((episodes, *shape)) < RISK
    return np.where(sure, SURE, FACTOR_HIGH * paying)


def weekly(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Each unit pays 1.5 in two randomly chosen episodes of every seven, and 0.1 in the others."""
    return _seasonal(episodes, shape, rng, 7, 2)


def ninth(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Each unit pays 1.5 in three randomly chosen episodes of every nine, and 0.1 in the others."""
    return _seasonal(episodes, shape, rng, 9, 3)


def _seasonal(episodes: int, shape: tuple[int, int], rng: np.random.Generator, period: int, days: int) -> FloatArray:
    paying = rng.random((period, *shape)).argsort(axis=0) < days
    return np.where(paying, FACTOR_HIGH, FACTOR_LEAST)[np.arange(episodes) % period]


def weather(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A fixed quality in [0.5, 1] per unit, times a factor in [0, 1.5] per episode, the same for all units."""
    quality = rng.uniform(0.5, 1.0, shape)
    return quality * rng.uniform(0.0, FACTOR_HIGH, (episodes, 1, 1))


def _half(shape: tuple[int, int], rng: np.random.Generator) -> BoolArray:
    """(J, U) random half of the units, rounded down, for each part."""
    return np.asarray(rng.random(shape).argsort(axis=1).argsort(axis=1) < shape[1] // 2)


@dataclass(frozen=True, eq=False)
class Scripted(Adversary):
    """Uses factors (T, J, U) that are fixed in advance."""

    model: RewardModel
    factors: FloatArray

    @property
    def base(self) -> FloatArray:
        """Reward if every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare the parts and the factors of each arm with those of the first arm of its group."""
        first = first_of(groups)
        script = self.factors[:, :, self.model.unit_of]
        return np.array_equal(script, script[:, :, first]) and np.array_equal(self.model.parts, self.model.parts[:, first])

    def repeated(self, times: int) -> Scripted:
        """Return the adversary with the same factors for every copy of an arm."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the rewards under the factors of episode t."""
        return self.model.combined(self.model.by_unit(self.factors[t]))


def make_adversary(name: str, model: RewardModel, episodes: int, rng: np.random.Generator) -> Adversary:
    """Build an adversary by name.

    Parameters
    ----------
    name : str
        One of `rmab.list_adversaries()` (docs/cli.md has their formulas), or `module:function` for a custom one, which is
        called with (model, episodes, rng) and returns an Adversary.
    model : RewardModel
        Parts and range of the rewards.
    episodes : int
        T, at least 1.
    rng : numpy.random.Generator
        Source of all its random numbers.

    Returns
    -------
    Adversary

    Raises
    ------
    ModelError
        If there is no such adversary, or a custom one cannot be built.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> model = rmab.RewardModel(np.ones((1, 2, 2, 2)), low=0, high=2)
    >>> ramp = rmab.make_adversary("ramp", model, episodes=5, rng=np.random.default_rng(0))
    >>> [float(ramp.reward(t)[0, 0, 1]) for t in range(5)]
    [0.5, 0.75, 1.0, 1.25, 1.5]
    """
    number = as_integer(episodes, "episodes")
    if number < 1:
        raise ModelError(f"episodes must be at least 1, got {number}")
    expect(name, str, "the name of an adversary")
    expect(model, RewardModel, "model")
    check_rng(rng)
    if ":" in name:
        custom: Adversary = ADVERSARIES.call(name, model, number, rng)
        if custom.episodes != number:
            raise ModelError(f"adversary {name}: has {custom.episodes} episodes, the task has {number}")
        return custom
    declared = (number, model.low, model.high, model.passive_zero)
    implementation = ADVERSARIES.load(name)
    if isinstance(implementation, type):  # an adaptive adversary
        answering: Adversary = implementation(*declared, model)
        return answering
    check_memory(f"adversary {name} of {number} episodes", 16.0 * number * model.shape[0] * model.shape[1])
    return Scripted(*declared, model, frozen(implementation(number, model.shape, rng)))
