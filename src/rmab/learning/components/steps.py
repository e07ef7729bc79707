"""The mirror step (Xiong & Li 2024, Section 4.2): from the last plan and an estimate of the rewards to the next plan.

`Active` is the paper's online mirror descent: project z exp(rate * gain), z the last plan. `Lazy` is dual averaging:
project exp(beta * direction) times the uniform reference, where the direction includes the past.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from rmab.common import FloatArray, check_memory, frozen
from rmab.errors import ModelError
from rmab.learning.compiled.tilting import tilted_flow
from rmab.learning.components.base import RewardEstimate, Step, StepResult
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, Memory, masses
from rmab.model import View
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.projection.project import Projection, project_onto
from rmab.solvers.transitions import TransitionSets

FLOOR = 1e-12  # KL cannot revive a zero, and the sets are not nested: occupancies are floored before they become references
DEEPEST = 600.0  # distance below the largest exponent at which a reference would underflow
STEEP = 300.0  # larger exponents are always centred, so that exp does not overflow
PART = 0.1  # share of the plan's gain that entropy may cost
LEAST, GREATEST, GROWTH, TRIALS = 10.0, 500.0, 4.0, 3  # beta: first, greatest; per trial and episode; trials per episode


@configured
class Active(Step):
    """Online mirror descent: the last plan, tilted towards what it gained, projected onto the new sets.

    coupled  whether the budget of all arms together is a constraint of the projection; otherwise the step prices it.
    centred  whether the largest exponent of a step is subtracted first. It changes nothing but rounding, and keeps the
             exponents of losses that are divided by small weights in range. The paper's learner does without.
    """

    coupled: ClassVar[bool] = True
    centred: ClassVar[bool] = False
    scale: float = option(default=1.0, ge=1e-12, le=1e6, help="learning rate, in units of the theory's")

    def rate(self, view: View) -> float:
        """Return the learning rate."""
        return self.scale * paper_rate(view)

    def exponent(self, memory: Memory, episode: Episode, gain: FloatArray) -> tuple[FloatArray, Memory]:  # noqa: ARG002
        """Return the exponents of the tilt, given gains (C, 1 or H, S, 2), and the memory beside the plan."""
        return self.rate(episode.pools.view) * gain, {}

    def uniform_share(self, view: View) -> float:  # noqa: ARG002
        """Return the fraction of the last plan that is replaced by the uniform occupancy before it is tilted."""
        return 0.0

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the flow of the last plan."""
        view = pools.view
        return {"flow": masses(pools.weights.size, view.horizon, view.states, 2, view.states)}

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Return the projected uniform occupancy."""
        plan, table = _uniform(pools, sets, self._budget(pools))
        return self._store_flow(plan, table, {})

    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> StepResult:
        """Tilt the last plan and project it."""
        pools = episode.pools
        exponent, own = self.exponent(memory, episode, pools.by_block(estimate.gain))
        share = self.uniform_share(pools.view)
        flow = memory["flow"]
        mixed = flow if share == 0.0 else (1.0 - share) * flow + share / (pools.view.states**2 * 2)
        if self.centred or exponent.max() > STEEP:
            exponent = np.maximum(exponent - exponent.max(axis=(2, 3), keepdims=True), -DEEPEST)
        table = np.empty_like(flow)
        tilted_flow(mixed, FLOOR, np.broadcast_to(np.exp(exponent), flow.shape[:4]), table)
        return self._store_flow(_project(pools, sets, table, episode.mass, self._budget(pools)), table, own)

    def _budget(self, pools: Pools) -> FloatArray:
        view = pools.view
        return view.budgets.astype(np.float64) if self.coupled else np.full(view.horizon, float(view.arms))

    def _store_flow(self, plan: Projection, table: FloatArray, own: Memory) -> StepResult:
        """Keep the flow z in the table that was the reference: with many states, new memory takes longer than arithmetic."""
        flow = np.multiply(plan.mass[..., np.newaxis], plan.kernel, out=table)
        return StepResult(plan.mass, plan.iterations, {"flow": flow, **own})


@configured
class Centred(Active):
    """Online mirror descent for losses that may be divided by small weights: exponents are kept in range."""

    centred = True


@configured
class Lazy(Step):
    """Dual averaging: the uniform occupancy, tilted by all that is known of the rewards, at an inverse temperature beta.

    Beta is chosen automatically: the entropy of the plan's decisions costs a tenth (over `scale`) of what the plan gains
    over the uniform policy. Both scale with the rewards and with the effect of decisions, so that no task needs its
    own rate, and T need not be known.
    """

    scale: float = option(default=1.0, ge=1e-12, le=1e6, help="factor on the automatic beta; above 1: greedier")

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare beta, and the direction: the forecast, or the mean of gains if there is none."""
        view, ahead = pools.view, ArraySpec(pools.zero.shape, optional=True)
        mean = ahead._replace(other=(pools.weights.size, view.horizon, view.states, 2))
        return {"beta": ArraySpec((), "f", 0, GREATEST), "mean": mean, "ahead": ahead}

    def again(self, memory: Memory, pools: Pools, sets: TransitionSets) -> StepResult:
        """Project along the last direction, at the beta of the last plan."""
        direction = memory.get("ahead", memory.get("mean"))
        if direction is None:
            return super().begin(pools, sets)
        if direction.ndim == 4:
            raise ModelError("Lazy: a direction per step only applies to the start of the view; leave start out")
        plan = _project_tilted(pools, sets, None, pools.by_block(direction), float(memory["beta"]))
        return StepResult(plan.mass, plan.iterations)

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Return the projected uniform occupancy."""
        first = super().begin(pools, sets)
        return StepResult(first.mass, first.iterations, {"beta": np.array(LEAST)})

    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> StepResult:
        """Project at the beta of the last plans; repeat immediately if it is still far too small."""
        pools, mass, direction, own = episode.pools, episode.mass, estimate.ahead, dict[str, FloatArray]()
        if direction is None:
            past = memory.get("mean", np.array(0.0))
            direction = own["mean"] = past + (estimate.gain - past) / (episode.number + 1)
        else:
            own["ahead"] = direction
        beta, by_block = float(memory["beta"]), pools.by_block(direction)
        for _ in range(TRIALS):
            plan = _project_tilted(pools, sets, mass, by_block, beta)
            wanted = fitting_beta(pools, plan, by_block, PART / self.scale)
            last, beta = beta, float(np.clip(wanted, beta / GROWTH, min(beta * GROWTH, GREATEST)))
            if beta < 1.5 * last:
                break
            mass = plan.mass
        return StepResult(plan.mass, plan.iterations, {**own, "beta": np.array(beta)})


def paper_rate(view: View) -> float:
    """Return the rate sqrt(ln(S^2 A) / T) of Xiong & Li (2024, Section 5.1)."""
    return float(np.sqrt(np.log(view.states**2 * 2) / view.episodes))


def fitting_beta(pools: Pools, plan: Projection, direction: FloatArray, part: float) -> float:
    """Return the beta at which the entropy of the plan's decisions costs the fraction `part` of the plan's gain.

    Gain and entropy are relative to the uniform policy within the budget, under the plan's kernels; direction
    (C, 1 or H, S, 2). Infinite if nothing is gained.
    """
    view, weights = pools.view, pools.weights[:, np.newaxis]
    share = view.budgets / view.arms
    uniform, kernels = np.empty_like(plan.mass), plan.kernel.reshape(-1, *plan.kernel.shape[2:])
    budget, even = view.budgets.astype(np.float64), np.array(np.broadcast_to(share[:, np.newaxis], plan.mass.shape[:3]))
    forward(kernels, frozen(np.arange(view.horizon)), pools.begins * weights, budget, even, uniform)
    mass = plan.mass * weights[..., np.newaxis, np.newaxis]
    gain = float(((mass - uniform) * direction).sum())
    chosen = plan.mass / np.maximum(plan.mass.sum(axis=3, keepdims=True), 1e-300)
    against = np.stack([1.0 - share, share], axis=1)[:, np.newaxis]
    entropy = float((mass * np.log(np.where(chosen > 0, chosen / np.maximum(against, 1e-300), 1.0))).sum())
    return entropy / (part * gain) if gain > 0 else np.inf


def project_uniform(pools: Pools, sets: TransitionSets, budget: FloatArray | None = None) -> Projection:
    """Return the projection of the uniform occupancy, the plan before any reward is known."""
    return _uniform(pools, sets, budget)[0]


def _uniform(pools: Pools, sets: TransitionSets, budget: FloatArray | None) -> tuple[Projection, FloatArray]:
    """Return the projection of the uniform occupancy, and the table that was its reference."""
    view = pools.view
    shape = (pools.weights.size, view.horizon, view.states, 2, view.states)
    numbers = 24.0 * float(np.prod(shape, dtype=np.float64))  # the reference, its plan, and factors
    check_memory(f"a plan of {shape[0]} blocks, {view.states} states and {view.horizon} steps", numbers)
    table = np.full(shape, 1.0 / (view.states**2 * 2))
    return _project(pools, sets, table, None, budget), table


def _project_tilted(
    pools: Pools, sets: TransitionSets, mass: FloatArray | None, direction: FloatArray, beta: float
) -> Projection:
    """Project exp(beta * direction), direction (C, 1 or H, S, 2), from the masses (C, H, S, 2) of an earlier plan."""
    view, exponent = pools.view, beta * direction
    exponent -= exponent.max(axis=(2, 3), keepdims=True)
    tilt = np.exp(np.maximum(exponent, -DEEPEST))[..., np.newaxis]
    shape = (pools.weights.size, view.horizon, view.states, 2, view.states)
    return _project(pools, sets, np.broadcast_to(tilt, shape) / (view.states**2 * 2), mass)


def _project(
    pools: Pools, sets: TransitionSets, reference: FloatArray, warm: FloatArray | None, budget: FloatArray | None = None
) -> Projection:
    """Project the reference, which may be overwritten."""
    view = pools.view
    limit = view.budgets if budget is None else budget
    many, phase_of = pools.weights, view.phase_of
    return project_onto(reference, sets, pools.start, limit, phase_of=phase_of, weights=many, warm=warm, overwrite=True)
