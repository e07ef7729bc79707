"""What learners share that solve the extended LP: Hoeffding boxes around kernels and rewards, or a generator's samples."""

from copy import copy
from typing import Self

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning.index_learner import IndexLearner, Known
from rmab.learning.parts import OBSERVING, Counting, Hoeffding, Sampling, drawn, hoeffding_width
from rmab.learning.pools import Pools
from rmab.model.problem import Problem
from rmab.model.time import parted
from rmab.solvers.fluid.optimistic import optimistic_fluid
from rmab.solvers.transitions import TransitionSets

OPTIMISM = "reach of kernels and rewards, in units of delta"
SAMPLES = "next states that the generator draws for every pair of a group; None: 200"
DEFAULT = 200  # samples of every pair, unless told


class ExtendedLearner(IndexLearner):
    """Optimism about kernels and rewards. Version `generator` knows kernels through samples alone: privileged."""

    version: str
    epsilon: float
    samples: int | None
    _drawn: IntArray | None = None

    def __post_init__(self) -> None:
        """Check the options; samples go with one version only."""
        super().__post_init__()
        if self.samples is not None and self.version != "generator":
            raise ModelError(f"samples are drawn by version 'generator' only, this is {self.version!r}")

    @property
    def privileged(self) -> str:
        """What the generator tells, in the version of that name."""
        return "is told samples of every pair's next state" if self.version == "generator" else ""

    @property
    def draws(self) -> bool:
        """Whether a generator draws the samples, group by group."""
        return self.version == "generator"

    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Self:  # noqa: ARG002
        """Return the learner that has drawn its samples from this problem's kernels; nothing else of it is kept."""
        told = copy(self)
        object.__setattr__(told, "_drawn", drawn(problem, self.samples or DEFAULT, seed))
        return told

    @property
    def counting(self) -> Counting:
        """From the episodes, or from the generator."""
        return Sampling(self._drawn, self.name) if self.version == "generator" else OBSERVING

    def times_seen(self, known: Known) -> IntArray:
        """(R, S, 2) the number of visits that the width of a mean reward is for."""
        return known.shown

    def optimistic(self, known: Known) -> tuple[TransitionSets, FloatArray]:
        """Return boxes of every group and rewards (R, S, 2), min(mean + delta, 1), with `optimism` for the unit of both."""
        optimism = self.chosen("optimism")
        sets = Hoeffding(epsilon=self.epsilon, scale=optimism).around(Pools.of(known.task), known.counts, known.until)
        width = hoeffding_width(known.task, self.times_seen(known), known.episode, self.epsilon)
        return sets, known.with_zeros(np.minimum(known.means + optimism * width, 1.0))


def finite_plan(pools: Pools, sets: TransitionSets, estimate: FloatArray) -> FloatArray:
    """(C, H, S, 2) masses of the extended LP of an episode; sets of every group, estimate (R, S, 2)."""
    view, blocks = pools.view, sets.take(pools.group)
    low, high, pays = (parted(one, view.phases) for one in (blocks.low, blocks.high, estimate[pools.payoff]))
    size = (pools.start, view.budget, view.horizon, pools.weights)
    return optimistic_fluid(low, high, pays, *size, phase_of=view.phase_of, tolerance=1e-4).mass
