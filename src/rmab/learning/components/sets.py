"""Transition sets from counts (Xiong & Li 2024, Section 4.1; sets of other papers): where the true kernels may lie.

All sets contain every true kernel with probability 1 - epsilon or more, in every episode (unless they are scaled down);
`Estimated` contains only the estimate.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Self

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, frozen, log_over
from rmab.errors import ModelError
from rmab.learning.components.base import ConfidenceSets, Refresh
from rmab.learning.options import configured, option
from rmab.learning.pools import Pools, empirical
from rmab.learning.state import ArraySpecs, Memory, whole
from rmab.model import Problem, View, cells
from rmab.solvers.transitions import TransitionSets


@configured
class Doubling(Refresh):
    """New sets, and a new epoch, when the count of some pair has doubled since the epoch began (UCRL2)."""

    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        """Keep the counts with which the epoch began."""
        if not memory or has_doubled(memory["epoch"].sum(axis=3), counts.sum(axis=3)):
            return {"epoch": counts}
        return memory

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the counts of the epoch."""
        return {"epoch": whole(*pools.support.shape)}

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:  # noqa: ARG002
        """The counts of the epoch."""
        return memory["epoch"]

    def until(self, pools: Pools, episode: int) -> int:  # noqa: ARG002
        """To the end: the length of an epoch is unknown."""
        return pools.view.episodes - 1


def has_doubled(epoch: IntArray, visits: IntArray) -> bool:
    """Whether the visits (G, S, 2) of some pair have doubled since the epoch began."""
    return bool((visits >= np.maximum(2 * epoch, 1)).any())


EPSILON = "probability that a kernel lies outside its set"


@configured
class Hoeffding(ConfidenceSets):
    """Boxes of one width per row: the paper's sets (Xiong & Li 2024, Section 4.1)."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    scale: float = option(default=1.0, ge=0, le=100, help="factor on every distance to the empirical kernel")

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return the empirical kernels, plus and minus the width."""
        mean = empirical(counts, pools.support)
        width = hoeffding_width(pools.view, counts.sum(axis=3), episode, self.epsilon)[..., np.newaxis]
        low, high = _ends(mean, width, pools.support)
        if self.scale != 1.0:
            low, high = mean + self.scale * (low - mean), mean + self.scale * (high - mean)
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        return TransitionSets.boxes(low, high)


@configured
class Bernstein(ConfidenceSets):
    """Boxes that are tighter for rare transitions (Jin et al. 2020, Section 3.1)."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return the empirical kernels, plus and minus a width for every transition."""
        mean = empirical(counts, pools.support)
        reach = self.reach(mean, counts.sum(axis=3)[..., np.newaxis], union_log(pools, counts, episode, self.epsilon))
        return TransitionSets.boxes(*_ends(mean, np.minimum(reach, 1.0), pools.support))

    def reach(self, mean: FloatArray, visits: IntArray, log: float) -> FloatArray:
        """(G, S, 2, S) the widths, given mean (G, S, 2, S), visits (G, S, 2, 1) and the logarithm of the union bound."""
        less = np.maximum(visits - 1, 1)
        return np.asarray(2 * np.sqrt(mean * log / less) + 14 * log / (3 * less))


@configured
class WideBernstein(Bernstein):
    """Boxes with the constants of Luo, Wei & Lee (2021, Section 2)."""

    def reach(self, mean: FloatArray, visits: IntArray, log: float) -> FloatArray:
        """(G, S, 2, S) the widths."""
        many = np.maximum(visits, 1)
        return np.asarray(4 * np.sqrt(mean * log / many) + 28 * log / (3 * many))


@configured
class Kl(ConfidenceSets):
    """Boxes by the divergence of Bernoulli variables: far tighter where a transition is nearly certain."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return an interval for every transition; any distribution for rows that were never visited."""
        mean, visits = empirical(counts, pools.support), counts.sum(axis=3)
        # Union bound over two ends per next state.
        log = union_log(pools, counts, episode, self.epsilon) + np.log(2 * pools.view.states)
        low, high = kl_interval(mean, log / np.maximum(visits, 1)[..., np.newaxis])
        never = visits[..., np.newaxis] == 0
        low, high = np.where(never, 0.0, low), np.where(never, 1.0, high)
        return TransitionSets.boxes(np.where(pools.support, low, 0.0), np.where(pools.support, high, 0.0))


@configured
class L1(ConfidenceSets):
    """L1 balls around the empirical kernels (Rosenberg & Mansour 2019, Section 3)."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return a ball for every row."""
        log = union_log(pools, counts, episode, self.epsilon)
        many = np.maximum(counts.sum(axis=3), 1)
        radius = np.minimum(np.sqrt(2 * pools.view.states * log / many), 2.0)
        return TransitionSets.balls(empirical(counts, pools.support), radius, pools.support)


@configured
class TrueKernels(ConfidenceSets):
    """The true kernels: privileged. Compare with it to measure the cost of not knowing them.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import TrueKernels, Ucmd
    >>> rmab.run(rmab.make_task("cpap", episodes=2, arms=4, budget=2, horizon=5), Ucmd(confidence=TrueKernels())).privileged
    'knows the kernels'
    """

    privileged = "knows the kernels"
    _kernels: ClassVar[FloatArray | None] = None

    def inform(self, problem: Problem) -> Self:
        """Return a component that knows the kernels of this problem: the only way to inform it."""
        informed, kernels = copy(self), problem.arms.group_kernels
        object.__setattr__(informed, "_kernels", frozen(cells(kernels, problem.phases)))
        return informed

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:  # noqa: ARG002
        """Return the kernels."""
        if self._kernels is None:
            raise ModelError("TrueKernels must be informed of the problem first: rmab.run does, or call `inform`")
        return TransitionSets.known(self._kernels)


def union_log(pools: Pools, counts: IntArray, episode: int, epsilon: float) -> float:
    """Return the logarithm of the union bound over all rows, steps and episodes."""
    size = 2 * pools.view.states * pools.view.horizon * len(counts)
    return float(log_over(max(pools.view.episodes, episode + 1) * size, epsilon))


def hoeffding_width(view: View, visits: IntArray, episode: int, epsilon: float) -> FloatArray:
    """(G, S, 2) the paper's delta, with N the number of arms; at most 1, and 1 for unvisited pairs."""
    log = log_over(4 * view.states * 2 * view.arms * max(episode, 1) * view.horizon, epsilon)
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


def _ends(mean: FloatArray, reach: FloatArray, support: BoolArray) -> tuple[FloatArray, FloatArray]:
    low, high = np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
    return np.where(support, low, 0.0), np.where(support, high, 0.0)
