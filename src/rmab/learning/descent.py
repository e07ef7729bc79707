"""The skeleton of UCMD-ARMAB (paper, Algorithm 2): confidence set x reward estimator x mirror step x executed policy."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Learner, Plan, State
from rmab.learning.confidence import Confidence, Kernels, Kind, hoeffding_width
from rmab.learning.estimators import Estimate, EstimatorKind, begin_memory, update_memory
from rmab.learning.exposure import executed_occupancy, exploration, of_kinds
from rmab.learning.mirror import StepKind, active_step, first_step, lazy_step, paper_rate, reached_heat
from rmab.learning.pools import Pools
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy, Rounding, Rule
from rmab.solvers.projection.project import Projection

__all__ = ["MirrorDescent", "UcmdArmabOptions", "UcmdOptions"]

PART = 0.1  # of what the plan gains may be lost to entropy
COLDEST, HOTTEST, GROWTH, TRIALS = 10.0, 500.0, 4.0, 3  # heat: first, greatest; per trial and episode; trials per episode


class UcmdArmabOptions(BaseModel):
    """Options of `ucmd-armab`: the paper's algorithm leaves these open."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epsilon: float = Field(0.05, gt=0, lt=1, description="probability with which a kernel may lie outside its set")
    scale: float = Field(1.0, gt=0, le=1e6, description="the learning rate, in units of the paper's")
    rule: Rule = Field("fill", description="always activate the full budget, or drop arms of index 0 (at-most)")
    rounding: Rounding = Field("top", description="the highest indices, or dependent rounding")


class UcmdOptions(UcmdArmabOptions):
    """Options of `ucmd`: every part can be exchanged; the defaults are those that won (docs/learning.md)."""

    confidence: Kind = Field("kl", description="the shape of the confidence sets")
    estimator: EstimatorKind = Field("forecast", description="the reward estimator")
    step: StepKind = Field("lazy", description="online mirror descent (active) or dual averaging (lazy)")


class MirrorDescent(Learner):
    """All learners of this family; `name` and the options say which."""

    paper: ClassVar[str] = "Xiong & Li, ICML 2024"
    settings: UcmdArmabOptions

    def __init__(self, name: str, options: UcmdArmabOptions) -> None:
        self.name = name  # type: ignore[misc]
        self.settings = options
        parts = options if isinstance(options, UcmdOptions) else None
        self.confidence = Confidence(parts.confidence if parts else "hoeffding", options.epsilon)
        self.estimator: EstimatorKind = parts.estimator if parts else "paper"
        self.step: StepKind = parts.step if parts else "active"

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2) r-hat of the last episode, in the rewards' own units; None before the first."""
        if state.episode == 0:
            return None
        return Pools.of(state.view).in_own_units(state.view, state.arrays["estimate"])

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        pools = Pools.of(view)
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        plan = first_step(view, pools, self._kernels(view, pools, counts, 0))
        estimate = np.zeros(pools.zero.shape)
        own = {"counts": counts, "estimate": estimate, "heat": np.array(COLDEST)}
        return {**own, **begin_memory(pools), **self._kept(plan)}

    def _plan(self, state: State) -> Plan:
        mass, pools, rules = state.arrays["mass"], Pools.of(state.view), self.settings
        policy = IndexPolicy(pools.index_of(mass), state.view.budget, rule=rules.rule, rounding=rules.rounding)
        return Plan(policy, mass, pools.block_of, int(state.arrays["iterations"]))

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        observed = pools.observe(view, feedback)
        visits = arrays["counts"].sum(axis=3)[pools.group_of_kind]
        width = hoeffding_width(view, visits, state.episode, self.settings.epsilon)
        memory = {name: arrays[name] for name in begin_memory(pools)}
        counts = arrays["counts"] + observed.counts
        expected = self._expected(state, counts) if self.estimator == "implicit" else None
        estimate = update_memory(self.estimator, view, pools, memory, observed, width, state.episode, expected)
        kernels = self._kernels(view, pools, counts, state.episode + 1)
        own = {"counts": counts, "estimate": estimate.last, **estimate.memory}
        if self.step == "active":
            rate = self.settings.scale * paper_rate(view)
            plan = active_step(view, pools, kernels, arrays["flow"], arrays["mass"], estimate.last, rate)
            return {**own, **self._kept(plan)}
        plan, heat = self._descend(view, pools, kernels, arrays, estimate)
        return {**own, **self._kept(plan), "heat": np.array(heat)}

    def _descend(
        self, view: View, pools: Pools, kernels: Kernels, arrays: Any, estimate: Estimate
    ) -> tuple[Projection, float]:
        """Take the lazy step at the heat that the last plans called for; again at once where it is still far too cold."""
        heat, mass, part = float(arrays["heat"]), arrays["mass"], PART / self.settings.scale
        for _ in range(TRIALS):
            plan = lazy_step(view, pools, kernels, mass, estimate.ahead, heat)
            wanted = reached_heat(view, pools, plan, estimate.ahead, part)
            last, heat = heat, float(np.clip(wanted, heat / GROWTH, min(heat * GROWTH, HOTTEST)))
            if heat < 1.5 * last:
                break
            mass = plan.mass
        return plan, heat

    def _expected(self, state: State, counts: NDArray[np.int64]) -> FloatArray:
        """(R, S, 2) visits per arm that the executed policy makes on average, by all that is known, plus gamma."""
        view, pools = state.view, Pools.of(state.view)
        rates = executed_occupancy(view, pools, self._plan(state).policy, counts, (state.seed, state.episode))
        return of_kinds(pools, rates.sum(axis=1)) + exploration(view, self.settings.epsilon)

    def _kernels(self, view: View, pools: Pools, counts: NDArray[np.int64], episode: int) -> Kernels:
        return self.confidence.kernels(view, counts, pools.support, episode)

    def _kept(self, plan: Projection) -> dict[str, NDArray[Any]]:
        """What the next step needs of a plan: its masses, and for the active step the whole flow."""
        kept: dict[str, NDArray[Any]] = {"mass": plan.mass, "iterations": np.array(plan.iterations)}
        return {**kept, "flow": plan.z} if self.step == "active" else kept
