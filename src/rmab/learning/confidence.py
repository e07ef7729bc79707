"""Confidence sets of the kernels from counts (paper, Section 4.1, eq. confidence_ball; algorithms of other papers)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.model.view import View

__all__ = ["KINDS", "Confidence", "Kernels", "Kind", "empirical", "hoeffding_width", "kl_interval"]

Kind = Literal["hoeffding", "bernstein", "wide-bernstein", "kl", "l1"]
KINDS: tuple[Kind, ...] = ("hoeffding", "bernstein", "wide-bernstein", "kl", "l1")


@dataclass(frozen=True, eq=False)
class Kernels:
    """Sets of kernels per group: boxes low..high (G,S,2,S), or L1 balls of radius (G,S,2) around low."""

    low: FloatArray
    high: FloatArray
    radius: FloatArray | None


@dataclass(frozen=True)
class Confidence:
    """How sure, in which shape: with probability 1 - epsilon or more, every true kernel is in its set, in every episode."""

    kind: Kind = "hoeffding"
    epsilon: float = 0.05

    def kernels(self, view: View, counts: IntArray, support: BoolArray, episode: int) -> Kernels:
        """Return the sets for this episode (from 0) from the counts (G,S,2,S) of all before it."""
        mean, visits = empirical(counts, support), counts.sum(axis=3)
        if self.kind == "hoeffding":
            return _box(mean, hoeffding_width(view, visits, episode, self.epsilon)[..., np.newaxis], support)
        size = 2 * view.states * view.horizon * len(counts)
        log = float(np.log(max(view.episodes, episode + 1) * size / self.epsilon))
        many = np.maximum(visits, 1)[..., np.newaxis]
        if self.kind == "bernstein":
            less = np.maximum(visits - 1, 1)[..., np.newaxis]
            return _box(mean, np.minimum(2 * np.sqrt(mean * log / less) + 14 * log / (3 * less), 1.0), support)
        if self.kind == "wide-bernstein":  # of Luo et al. 2021
            return _box(mean, np.minimum(4 * np.sqrt(mean * log / many) + 28 * log / (3 * many), 1.0), support)
        if self.kind == "kl":
            # Two ends per next state are to hold at once; a pair that was never visited may do anything.
            low, high = kl_interval(mean, (log + np.log(2 * view.states)) / many)
            never = visits[..., np.newaxis] == 0
            low, high = np.where(never, 0.0, low), np.where(never, 1.0, high)
            return Kernels(np.where(support, low, 0.0), np.where(support, high, 0.0), None)
        radius = np.minimum(np.sqrt(2 * view.states * log / many[..., 0]), 2.0)
        return Kernels(mean, mean, radius)


def empirical(counts: IntArray, support: BoolArray) -> FloatArray:
    """P-hat (G,S,2,S) of eq. empirical_est_P; uniform over what is possible where nothing was counted."""
    visits = counts.sum(axis=3, keepdims=True)
    uniform = support / support.sum(axis=3, keepdims=True)
    mean: FloatArray = np.where(visits > 0, counts / np.maximum(visits, 1), uniform)
    return mean


def hoeffding_width(view: View, visits: IntArray, episode: int, epsilon: float) -> FloatArray:
    """Delta (G,S,2) of the paper, with N the number of arms; 1 where nothing was counted, and never more."""
    log = np.log(4 * view.states * 2 * view.arms * max(episode, 1) * view.horizon / epsilon)
    width: FloatArray = np.where(visits > 0, np.minimum(np.sqrt(log / (2 * np.maximum(visits, 1))), 1.0), 1.0)
    return width


def kl_interval(mean: FloatArray, limit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of {p: kl(mean, p) <= limit} for Bernoulli distributions, entry by entry: bisection, outwards."""
    both = np.stack([mean, mean])
    side = np.zeros_like(both)
    side[1] = 1.0
    inside, outside = both.copy(), side.copy()
    for _ in range(50):
        middle = (inside + outside) / 2
        fits = _bernoulli_kl(both, middle) <= limit
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    ends = np.where(_bernoulli_kl(both, side) <= limit, side, outside)
    return ends[0], ends[1]


def _bernoulli_kl(mean: FloatArray, other: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(mean > 0, mean * np.log(mean / other), 0.0)
        two = np.where(mean < 1, (1 - mean) * np.log((1 - mean) / (1 - other)), 0.0)
    return np.asarray(one + two)


def _box(mean: FloatArray, reach: FloatArray, support: BoolArray) -> Kernels:
    low, high = np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
    return Kernels(np.where(support, low, 0.0), np.where(support, high, 0.0), None)
