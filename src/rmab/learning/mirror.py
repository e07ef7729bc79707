"""The mirror step (paper, Section 4.2): from the last occupancy and an estimate of the rewards to the next occupancy.

active  online mirror descent of eq. UCB_extended: project z exp(eta r-hat) onto the new set.
lazy    dual averaging: project exp(heat * direction) times the uniform reference; the direction has the past in it.
"""

from typing import Literal

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.learning.confidence import Kernels
from rmab.learning.pools import Pools
from rmab.model.view import View
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.projection.project import Projection, project, project_ball

__all__ = ["STEPS", "StepKind", "active_step", "first_step", "lazy_step", "paper_rate", "reached_heat", "tilted_step"]

StepKind = Literal["active", "lazy"]
STEPS: tuple[StepKind, ...] = ("active", "lazy")

FLOOR = 1e-12  # KL cannot revive a zero, and the sets are not nested: occupancies are floored before they become references
DEEPEST = 600.0  # exponents below the largest, beyond which a reference would underflow


def paper_rate(view: View) -> float:
    """Eta = sqrt(ln(S^2 A) / T) of Theorem regret."""
    return float(np.sqrt(np.log(view.states**2 * 2) / view.episodes))


def first_step(view: View, pools: Pools, kernels: Kernels, *, budget: float | None = None) -> Projection:
    """Project the uniform reference: the first plan, before any reward is known; budget: another than the view's."""
    shape = (pools.start.size, view.horizon, view.states, 2, view.states)
    return _projected(view, pools, kernels, np.full(shape, 1.0 / (view.states**2 * 2)), None, budget)


def active_step(
    view: View, pools: Pools, kernels: Kernels, flow: FloatArray, mass: FloatArray, estimate: FloatArray, rate: float
) -> Projection:
    """Project z exp(rate * estimate), z (C,H,S,2,S) the last plan with masses (C,H,S,2), estimate (R,S,2)."""
    tilt = np.exp(rate * estimate[pools.kind])[:, np.newaxis, :, :, np.newaxis]
    return _projected(view, pools, kernels, np.maximum(flow, FLOOR) * tilt, mass)


def tilted_step(
    view: View,
    pools: Pools,
    kernels: Kernels,
    flow: FloatArray,
    mass: FloatArray,
    exponent: FloatArray,
    *,
    fixed_share: float = 0.0,
    budget: float | None = None,
) -> Projection:
    """Project z exp(exponent), exponent (C,H,S,2) of its own at every step.

    fixed_share: this part of z is replaced by the uniform occupancy first. budget: another than the view's.
    """
    mixed = (1.0 - fixed_share) * flow + fixed_share / (view.states**2 * 2)
    # What is added to all exponents of a step changes nothing: each step has mass 1.
    tilt = np.maximum(exponent - exponent.max(axis=(2, 3), keepdims=True), -DEEPEST)
    return _projected(view, pools, kernels, np.maximum(mixed, FLOOR) * np.exp(tilt)[..., np.newaxis], mass, budget)


def lazy_step(
    view: View, pools: Pools, kernels: Kernels, mass: FloatArray | None, direction: FloatArray, heat: float
) -> Projection:
    """Project exp(heat * direction), direction (R,S,2), from the masses (C,H,S,2) of an earlier plan."""
    exponent = heat * direction[pools.kind]
    exponent -= exponent.max(axis=(1, 2), keepdims=True)
    tilt = np.exp(np.maximum(exponent, -DEEPEST))[:, np.newaxis, :, :, np.newaxis]
    shape = (pools.start.size, view.horizon, view.states, 2, view.states)
    return _projected(view, pools, kernels, np.broadcast_to(tilt, shape) / (view.states**2 * 2), mass)


def reached_heat(view: View, pools: Pools, plan: Projection, direction: FloatArray, part: float) -> float:
    """Return the heat at which the entropy of the plan's actions would cost `part` of what the plan gains.

    Gain and entropy are those over choosing at random within the budget, under the plan's own kernels: both scale with the
    rewards and with what decisions can change, so that no task needs a rate of its own. Infinite where nothing is gained.
    """
    share = view.budget / view.arms
    weights = pools.weights[:, np.newaxis]
    blind = np.empty_like(plan.mass)
    budget, even = np.full(view.horizon, float(view.budget)), np.full(plan.mass.shape[:3], share)
    forward(plan.kernel, np.eye(view.states)[pools.start] * weights, budget, even, blind)
    mass = plan.mass * weights[..., np.newaxis, np.newaxis]
    gain = float(((mass - blind) * direction[pools.kind][:, np.newaxis]).sum())
    chosen = plan.mass / np.maximum(plan.mass.sum(axis=3, keepdims=True), 1e-300)
    against = np.array([1.0 - share, share])
    entropy = float((mass * np.log(np.where(chosen > 0, chosen / np.maximum(against, 1e-300), 1.0))).sum())
    return entropy / (part * gain) if gain > 0 else np.inf


def _projected(
    view: View,
    pools: Pools,
    kernels: Kernels,
    reference: FloatArray,
    warm: FloatArray | None,
    budget: float | None = None,
) -> Projection:
    low, group = kernels.low[pools.group], pools.group
    rest = (pools.start, view.budget if budget is None else budget)
    if kernels.radius is None:
        return project(reference, low, kernels.high[group], *rest, weights=pools.weights, warm=warm)
    possible = reference * pools.support[group][:, np.newaxis]
    return project_ball(possible, low, kernels.radius[group], *rest, weights=pools.weights, warm=warm)
