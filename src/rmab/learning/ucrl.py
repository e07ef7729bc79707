"""RMAB-UCRL (Xiong, Wang and Li, NeurIPS 2022), the paper's rival: mean rewards with optimism, extended LP, index, top-B.

Made for rewards that do not change. Versions: `stationary`, UC-R2MAB as published (average reward over an endless horizon,
one index per state); `finite`, for episodes of H steps, so that it is not handicapped by the horizon; `window`, finite with
rewards averaged over the last sqrt(T) episodes only, the obvious answer to rewards that change; `generator`, GM-R2MAB, the
stationary LP on samples of a generator (privileged).

Knowledge: nothing of the kernels; Hoeffding boxes. Feedback: bandit. Hard budget: the LP's holds on average; the B highest
indices are activated. Theory: kernels and rewards within delta; tuned: within 0.1 delta (studies/tuning.py, held-out seeds,
version `stationary`; docs/tuning.md).

The index of a state without mass is not defined as published. Stationary masses are in few states, so it matters: there, it
is what the plan would do, 1 or 0 (`StationaryFluid.share`). The finite versions leave it at 0.

The width of a mean reward is that of the visits whose reward was shown. That of `window` is deliberately that of all visits,
not of the window's: with the few of those, every reward would be hoped to be 1 for ever.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays, Plan, State
from rmab.learning.confidence import Confidence, Kernels, empirical, hoeffding_width
from rmab.learning.generator import FromGenerator, GeneratorOptions
from rmab.learning.indexed import IndexLearner
from rmab.learning.pools import Pools, share_of
from rmab.learning.tables import tightened
from rmab.model.view import View
from rmab.play.policy import IndexPolicy
from rmab.solvers.fluid.optimistic import optimistic_fluid
from rmab.solvers.stationary.stationary import stationary_fluid

__all__ = ["ExtendedLearner", "ExtendedOptions", "RmabUcrl", "RmabUcrlGenerator", "RmabUcrlOptions", "finite_plan"]


class ExtendedOptions(GeneratorOptions):
    """Options of all learners that solve the extended LP."""

    epsilon: float = Field(0.05, gt=0, lt=1, description="probability with which a kernel may lie outside its set")
    optimism: float | None = Field(None, ge=0, le=100, description="reach of kernels and rewards, in units of delta")


class RmabUcrlOptions(ExtendedOptions):
    """Options of `rmab-ucrl`."""

    TUNED: ClassVar[Mapping[str, float]] = {"optimism": 0.1}
    version: Literal["stationary", "finite", "window", "generator"] = Field(
        "stationary", description="as published, for a finite horizon, with a window of sqrt(T), or from a generator"
    )


class ExtendedLearner(IndexLearner):
    """Hoeffding boxes around kernels and rewards."""

    settings: ExtendedOptions

    def _model(self, view: View, pools: Pools, arrays: Arrays, episode: int) -> tuple[Kernels, FloatArray]:
        """Boxes (G,S,2,S) and rewards (R,S,2), min(mean + delta, 1), with `optimism` for the unit of both."""
        counts, epsilon, optimism = arrays["counts"], self.settings.epsilon, self.settings.chosen("optimism")
        boxes = Confidence("hoeffding", epsilon).kernels(view, counts, pools.support, self._counted_until(view, episode))
        kernels = tightened(boxes, empirical(counts, pools.support), optimism)
        width = hoeffding_width(view, self._times_seen(pools, arrays), episode, epsilon)
        means = self._means(pools, arrays)
        return kernels, np.where(pools.zero, pools.floor, np.minimum(means + optimism * width, 1.0))


def finite_plan(view: View, pools: Pools, kernels: Kernels, estimate: FloatArray) -> FloatArray:
    """(C, H, S, 2) masses of the extended LP of an episode."""
    low, high, size = kernels.low[pools.group], kernels.high[pools.group], (pools.start, view.budget, view.horizon)
    return optimistic_fluid(low, high, estimate[pools.kind], *size, pools.weights, tolerance=1e-4).mass


class RmabUcrl(ExtendedLearner):
    """Optimism about kernels and rewards; the reward of a pair is taken for min(mean + delta, 1)."""

    name: ClassVar[str] = "rmab-ucrl"
    paper: ClassVar[str] = "Xiong, Wang & Li, NeurIPS 2022"
    settings: RmabUcrlOptions

    def _prepare(self, view: View, pools: Pools, arrays: Arrays, episode: int, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        kernels, estimate = self._model(view, pools, arrays, episode)
        if self.settings.version in ("finite", "window"):
            mass = finite_plan(view, pools, kernels, estimate)
            return {"estimate": estimate, "mass": mass, "share": share_of(mass)}
        low, high = kernels.low[pools.group], kernels.high[pools.group]
        endless = stationary_fluid(low, high, estimate[pools.kind], view.budget, pools.weights, pools.real[pools.group])
        mass, share = (np.repeat(one[:, np.newaxis], view.horizon, axis=1) for one in (endless.mass, endless.share))
        return {"estimate": estimate, "mass": mass, "share": share}

    def _plan(self, state: State) -> Plan:
        arrays, block_of = state.arrays, Pools.of(state.view).block_of
        return Plan(IndexPolicy(arrays["share"][block_of], state.view.budget), arrays["mass"], block_of)

    def _times_seen(self, pools: Pools, arrays: Arrays) -> IntArray:
        if self.settings.version == "window":
            visits: IntArray = arrays["counts"].sum(axis=3)[pools.group_of_kind]
            return visits
        return super()._times_seen(pools, arrays)

    def _window(self, view: View) -> int:
        return max(1, round(view.episodes**0.5)) if self.settings.version == "window" else 0


class RmabUcrlGenerator(FromGenerator, RmabUcrl):
    """GM-R2MAB: the stationary LP, kernels from the generator's samples. Told how many to draw per pair; ours: 200."""

    settings: RmabUcrlOptions
