"""RMAB-UCRL (Xiong, Wang and Li, NeurIPS 2022), the paper's rival: mean rewards with optimism, extended LP, index, top-B.

Made for rewards that do not change. Three versions: `stationary`, as published (average reward over an endless horizon, one
index per state); `finite`, for episodes of H steps, so that it is not handicapped by the horizon; `window`, finite with
rewards averaged over the last sqrt(T) episodes only, the obvious answer to rewards that change.

The index of a state without mass is not defined as published. Stationary masses are in few states, so it matters: there, it
is what the plan would do, 1 or 0 (`StationaryFluid.share`). The finite versions leave it at 0.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from rmab.arrays import FloatArray
from rmab.learning.base import Learner, Plan, State
from rmab.learning.confidence import Confidence, Kernels, hoeffding_width
from rmab.learning.feedback import Feedback
from rmab.learning.pools import Pools, share_of
from rmab.planners.optimistic import optimistic_fluid
from rmab.planners.stationary import stationary_fluid
from rmab.policy import IndexPolicy
from rmab.problem import View

__all__ = ["RmabUcrl", "RmabUcrlOptions"]

Version = Literal["stationary", "finite", "window"]


class RmabUcrlOptions(BaseModel):
    """Options of `rmab-ucrl`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Version = Field("stationary", description="as published, for a finite horizon, or with a window of sqrt(T)")
    epsilon: float = Field(0.05, gt=0, lt=1, description="probability with which a kernel may lie outside its set")


class RmabUcrl(Learner):
    """Optimism about kernels and rewards; the reward of a pair is taken for min(mean + delta, 1)."""

    name = "rmab-ucrl"
    paper = "Xiong, Wang & Li, NeurIPS 2022"

    def __init__(self, options: RmabUcrlOptions) -> None:
        self.settings = options
        self.confidence = Confidence("hoeffding", options.epsilon)

    @property
    def options(self) -> dict[str, Any]:
        """The options, by name."""
        return self.settings.model_dump()

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2) mean plus optimism after the last episode, in the rewards' own units; None before the first."""
        if state.episode == 0:
            return None
        return Pools.of(state.view).in_own_units(state.view, state.arrays["estimate"])

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        pools = Pools.of(view)
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        kept = self._window(view)
        past = {"seen": np.zeros((kept, *pools.zero.shape)), "paid": np.zeros((kept, *pools.zero.shape))}
        estimate = np.where(pools.zero, pools.floor, 1.0)
        kernels = self.confidence.kernels(view, counts, pools.support, 0)
        return {"counts": counts, **past, "estimate": estimate, **self._solve(view, pools, kernels, estimate)}

    def _plan(self, state: State) -> Plan:
        arrays, block_of = state.arrays, Pools.of(state.view).block_of
        return Plan(IndexPolicy(arrays["share"][block_of], state.view.budget), arrays["mass"], block_of)

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        observed = pools.observe(view, feedback)
        seen = ~np.isnan(observed.values)
        slot = state.episode % len(arrays["seen"])  # one running sum, or a ring of the window's episodes
        whole = self.settings.version != "window"
        past = {"seen": arrays["seen"].copy(), "paid": arrays["paid"].copy()}
        past["seen"][slot] = observed.visits * seen + (past["seen"][slot] if whole else 0.0)
        past["paid"][slot] = observed.visits * np.where(seen, observed.values, 0.0) + (past["paid"][slot] if whole else 0.0)
        counts = arrays["counts"] + observed.counts
        kernels = self.confidence.kernels(view, counts, pools.support, state.episode + 1)
        width = hoeffding_width(view, counts.sum(axis=3)[pools.group_of_kind], state.episode + 1, self.settings.epsilon)
        number, paid = past["seen"].sum(axis=0), past["paid"].sum(axis=0)
        mean = np.divide(paid, number, out=np.ones_like(paid), where=number > 0)
        estimate = np.where(pools.zero, pools.floor, np.minimum(mean + width, 1.0))
        return {"counts": counts, **past, "estimate": estimate, **self._solve(view, pools, kernels, estimate)}

    def _window(self, view: View) -> int:
        return max(1, round(view.episodes**0.5)) if self.settings.version == "window" else 1

    def _solve(self, view: View, pools: Pools, kernels: Kernels, estimate: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the masses (C,H,S,2) of the extended LP and the share (C,H,S) that is active; stationary: at every step."""
        low, high, reward = kernels.low[pools.group], kernels.high[pools.group], estimate[pools.kind]
        if self.settings.version != "stationary":
            plan = optimistic_fluid(low, high, reward, pools.start, view.budget, view.horizon, pools.weights, tolerance=1e-4)
            return {"mass": plan.mass, "share": share_of(plan.mass)}
        endless = stationary_fluid(low, high, reward, view.budget, pools.weights, pools.real[pools.group])
        steps = (1, view.horizon, 1)
        share = np.tile(endless.share[:, np.newaxis], steps)
        return {"mass": np.tile(endless.mass[:, np.newaxis], (*steps, 1)), "share": share}
