"""Shared by learners that solve the extended LP: Hoeffding boxes around kernels and rewards, or a generator's samples."""

from copy import copy
from typing import ClassVar, Literal, Self

import numpy as np

from rmab.common import FloatArray, IntArray, frozen
from rmab.errors import ModelError
from rmab.learning.components import EPSILON, OBSERVING, Counting, Hoeffding, Sampling, draw_counts, hoeffding_width
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import NO_MASS, Pools, share_of
from rmab.model import Problem, by_step, split_cells
from rmab.solvers.compiled.dynamics import backward
from rmab.solvers.fluid.optimistic import OptimisticFluid, solve_optimistic_fluid
from rmab.solvers.transitions import TransitionSets

OPTIMISM = "reach of kernels (and of optimistic rewards), in units of delta"
SAMPLES = "next states that the generator draws for every pair of a group; None: 200"
DEFAULT = 200  # samples of every pair, by default
LIKE, TIE = 6, 1e-7  # decimals to which shares are compared, and the most that a tie-break adds to an index
Means = Literal["mean", "optimistic"]
MEANS = "the sample mean, or the mean plus its width delta, at most 1"


@configured
class ExtendedLearner(IndexLearner):
    """Optimism about kernels and rewards. Version `generator` knows kernels through samples alone: privileged."""

    TUNED = {"optimism": 1.0}
    preset: Preset = option(default="theory", help=PRESET)
    version: str
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    optimism: float | None = option(default=None, ge=0, le=100, help=OPTIMISM)
    samples: int | None = option(default=None, ge=1, le=10**9, help=SAMPLES)
    rewards: Means
    _drawn: ClassVar[IntArray | None] = None

    def __post_init__(self) -> None:
        """Check the options; samples go with one version only."""
        super().__post_init__()
        if self.samples is not None and self.version != "generator":
            raise ModelError(f"samples are drawn by version 'generator' only, this is {self.version!r}")

    @property
    def privileged(self) -> str:
        """The samples, in version `generator`; empty otherwise."""
        return "knows samples of every pair's next state" if self.version == "generator" else ""

    @property
    def draws(self) -> bool:
        """Whether a generator draws the samples, group by group."""
        return self.version == "generator"

    def inform(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Self:  # noqa: ARG002
        """Return the learner that has drawn its samples from this problem's kernels; it stores nothing else."""
        informed = copy(self)
        object.__setattr__(informed, "_drawn", draw_counts(problem, self.samples or DEFAULT, seed))
        return informed

    @property
    def counting(self) -> Counting:
        """From the episodes, or from the generator."""
        return Sampling(self._drawn, self.name) if self.version == "generator" else OBSERVING

    def times_seen(self, known: Knowledge) -> IntArray:
        """(R, S, 2) the number of visits that the width of a mean reward is for."""
        return known.shown

    def optimistic(self, known: Knowledge) -> tuple[TransitionSets, FloatArray]:
        """Return boxes of every group and rewards (R, S, 2), the mean or min(mean + delta, 1); `optimism` is the unit."""
        optimism = self.parameter("optimism")
        sets = Hoeffding(epsilon=self.epsilon, scale=optimism).around(Pools.of(known.task), known.counts, known.until)
        if self.rewards == "mean":
            return sets, known.means
        width = hoeffding_width(known.task, self.times_seen(known), known.episode, self.epsilon)
        return sets, known.with_zeros(np.minimum(known.means + optimism * width, 1.0))


def finite_plan(pools: Pools, sets: TransitionSets, estimate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve the extended LP of an episode; sets of every group, estimate (R, S, 2).

    Returns the masses (C, H, S, 2), and the index (C, H, S): the share of a state's mass that is active; where it has none,
    1 if activating gains more than its price under the plan's kernels, otherwise 0. Equal shares are ranked by that gain.
    """
    view, blocks = pools.view, sets.take(pools.group)
    low, high, pays = (split_cells(one, view.phases) for one in (blocks.low, blocks.high, pools.pays(estimate)))
    size = (pools.start, pools.budget, view.horizon, pools.weights * pools.cost)
    plan = solve_optimistic_fluid(low, high, pays, *size, phase_of=view.phase_of, exact=view.exact, tolerance=1e-4)
    paid = by_step(pools.pays(estimate), pools.weights.size, view.steps)
    worth = _worth(plan, np.broadcast_to(paid, plan.mass.shape))
    share = np.where(plan.mass.sum(axis=3) > NO_MASS, share_of(plan.mass), worth > 0)
    return plan.mass, break_ties(share, worth)


def break_ties(share: FloatArray, worth: FloatArray) -> FloatArray:
    """Return shares in [0, 1], of any shape, ranked: equal ones by the gain of activating, of the same shape."""
    level, span = np.round(share, LIKE), float(np.ptp(worth)) or 1.0
    return np.asarray((level + TIE * (worth - worth.min()) / span) / (1.0 + TIE))


def _worth(plan: OptimisticFluid, reward: FloatArray) -> FloatArray:
    """(C, H, S) the gain of activating less its price, under the kernels and prices of a plan; reward (C, H, S, 2)."""
    blocks, horizon, states = plan.mass.shape[:3]
    values, worth = np.empty((blocks, horizon + 1, states)), np.empty((blocks, horizon, states))
    kernels, pays = (np.ascontiguousarray(one).reshape(-1, *one.shape[2:]) for one in (plan.kernel, reward))
    backward(kernels, pays, frozen(np.arange(horizon)), plan.prices, values, worth)
    return worth
