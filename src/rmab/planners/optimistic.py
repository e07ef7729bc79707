"""The optimistic (extended) fluid LP of the UCRL-type learners: kernels, too, are chosen, within their confidence boxes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.arrays import FloatArray, ReadOnly, frozen
from rmab.checks import as_floats, as_integer, as_states
from rmab.errors import ModelError, SolverError
from rmab.kernels.dynamics import forward
from rmab.planners.decomposition import Boxes, Decomposition
from rmab.posing import checked_boxes, checked_budget, checked_weights

__all__ = ["OptimisticFluid", "optimistic_fluid"]


@dataclass(frozen=True, eq=False)
class OptimisticFluid(ReadOnly):
    """Solution of the extended LP.

    value   what the occupancy earns under its own kernels, all weights counted; bound  the dual value, no less.
    prices  (H,) what one more activation at step h would be worth.
    gap     bound - value, relative to the larger of the bound and the largest single reward: certified.
    mass    (N, H, S, 2) occupancy of one arm of each kind.    kernel  (N, H, S, 2, S) the kernels chosen in the boxes.
    """

    value: float
    bound: float
    prices: FloatArray
    gap: float
    mass: FloatArray
    kernel: FloatArray


def optimistic_fluid(
    lower: ArrayLike,
    upper: ArrayLike,
    reward: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    horizon: int,
    weights: ArrayLike | None = None,
    *,
    tolerance: float = 1e-6,
) -> OptimisticFluid:
    """Maximise the reward (N,S,2) over occupancies whose kernels lie in the boxes lower..upper (N,S,2,S).

    start (N,) states; budget a number or (H,); weights (N,) how many like arms each one stands for. To a certified relative
    gap of at most `tolerance`, or SolverError.
    """
    low, high = checked_boxes(lower, upper)
    arms, states = low.shape[:2]
    table = as_floats(reward, "reward")
    if table.shape != (arms, states, 2) or not np.isfinite(table).all():
        raise ModelError(f"reward must be finite and have shape (N, S, 2) = {(arms, states, 2)}, got {table.shape}")
    steps = as_integer(horizon, "horizon")
    if steps < 1:
        raise ModelError(f"horizon must be at least 1, got {steps}")
    limit = checked_budget(budget, steps)
    many = checked_weights(weights, arms)
    masses = np.eye(states)[as_states(start, np.full(arms, states))] * many[:, np.newaxis]
    solver = Decomposition(Boxes(low, high, table, masses), limit)
    solver.solve(tolerance / 2)
    return _certified(solver, many, tolerance)


def _certified(solver: Decomposition, weights: FloatArray, tolerance: float) -> OptimisticFluid:
    """Follow the mixture's own kernels and shares through the steps: feasible to rounding, with a proven gap."""
    boxes = solver.boxes
    occupancy, flow = solver.mixture(flows=True)
    room = boxes.high - boxes.low
    spare = 1.0 - boxes.low.sum(axis=3, keepdims=True)
    any_row = boxes.low + room * (spare / np.maximum(room.sum(axis=3, keepdims=True), 1e-300))
    kernel = np.divide(flow, occupancy[..., np.newaxis], out=flow, where=occupancy[..., np.newaxis] > 1e-12)
    kernel = np.where(occupancy[..., np.newaxis] > 1e-12, kernel, any_row[:, np.newaxis])
    total = occupancy.sum(axis=3)
    share = np.divide(occupancy[..., 1], total, out=np.zeros_like(total), where=total > 1e-12)
    mass = np.empty_like(occupancy)
    forward(kernel, boxes.start, solver.budget, np.clip(share, 0.0, 1.0), mass)
    value = float((mass * boxes.reward[:, np.newaxis]).sum())
    gap = (solver.bound - value) / max(abs(solver.bound), solver.scale)
    if not gap <= tolerance:
        raise SolverError(f"extended LP: the certified gap is {gap:.2e}, above the tolerance {tolerance:.2e}")
    mass /= weights[:, np.newaxis, np.newaxis, np.newaxis]
    return OptimisticFluid(value, solver.bound, frozen(solver.prices), gap, frozen(mass), frozen(kernel))
