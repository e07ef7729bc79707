"""Scripts of adversaries: factors (T, K, U) of a reward model's parts and units, fixed before the first episode."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray

FACTOR_LOW, FACTOR_HIGH = 0.5, 1.5  # the span of the paper's ramp
FACTOR_LEAST = 0.1  # what an arm that does not pay still pays, under `switching`
LATE = 0.4  # of the episodes, before arms begin to pay under `late`
SURE, RISK = 0.3, 0.4  # what is paid for sure under `lock`, and the probability of the large pay


def ramp(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:  # noqa: ARG001
    """0.5 + t/(T-1) on everything alike: the paper's coefficient. The best policy is the same in every episode."""
    return np.linspace(FACTOR_LOW, FACTOR_HIGH, episodes)[:, np.newaxis, np.newaxis] * np.ones(shape)


def noisy(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A fixed quality in [0.1, 1] per unit, times independent noise in [0.3, 1.7] per episode: the stochastic case."""
    quality = rng.uniform(0.1, 1.0, shape)
    return quality * rng.uniform(0.3, 1.7, (episodes, *shape))


def iid(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A fresh factor in [0, 1.5] for every unit and episode: nothing to learn but the dynamics."""
    return rng.uniform(0.0, FACTOR_HIGH, (episodes, *shape))


def switching(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """In stretches of about sqrt(T) episodes a random half of the units pays 1.5 and the rest 0.1 (a lone unit: a coin)."""
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
    """Two halves of the units take turns: in every other episode a fixed random half pays 1.5, the rest 0.1."""
    first = _half(shape, rng)
    turn = np.arange(episodes)[:, np.newaxis, np.newaxis] % 2 == 0
    return np.where(first == turn, FACTOR_HIGH, FACTOR_LEAST)


def mixed(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units is noise, 0 or 1.5 by a fair coin in every episode; the others are as under `drifting`."""
    noise = _half(shape, rng)
    coins = rng.random((episodes, *shape)) < 0.5
    return np.where(noise, FACTOR_HIGH * coins, drifting(episodes, shape, rng))


def late(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units is as under `iid`; the others pay nothing in the first 2T/5 episodes, then 1.5."""
    early = _half(shape, rng)
    begun = np.arange(episodes)[:, np.newaxis, np.newaxis] >= round(LATE * episodes)
    return np.where(early, iid(episodes, shape, rng), FACTOR_HIGH * begun)


def lock(episodes: int, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A random half of the units pays 0.3 for sure; the others 1.5 with probability 0.4, drawn in every episode, else 0."""
    sure = _half(shape, rng)
    lucky = rng.random((episodes, *shape)) < RISK
    return np.where(sure, SURE, FACTOR_HIGH * lucky)


def _half(shape: tuple[int, int], rng: np.random.Generator) -> BoolArray:
    """(J, U) a random half of the units, rounded down, for each part."""
    return np.asarray(rng.random(shape).argsort(axis=1).argsort(axis=1) < shape[1] // 2)
