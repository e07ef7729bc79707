"""The optimistic (extended) fluid LP of the UCRL-type learners: kernels, too, are chosen, within their confidence boxes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, as_states
from rmab.errors import ModelError
from rmab.solvers.checks import checked_budget, checked_weights
from rmab.solvers.fluid.path import SoftPath
from rmab.solvers.transitions import TransitionSets

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
    sets = TransitionSets.boxes(lower, upper)
    arms, states = sets.low.shape[:2]
    table = as_floats(reward, "reward")
    if table.shape != (arms, states, 2) or not np.isfinite(table).all():
        raise ModelError(f"reward must be finite and have shape (N, S, 2) = {(arms, states, 2)}, got {table.shape}")
    steps = as_integer(horizon, "horizon")
    if steps < 1:
        raise ModelError(f"horizon must be at least 1, got {steps}")
    limit = checked_budget(budget, steps)
    many = checked_weights(weights, arms)
    masses = np.eye(states)[as_states(start, np.full(arms, states))] * many[:, np.newaxis]
    path = SoftPath(sets, table, masses, limit)
    path.solve(tolerance)
    mass = path.occupancy / many[:, np.newaxis, np.newaxis, np.newaxis]
    kernel = np.broadcast_to(path.kernels, (*mass.shape, states))
    return OptimisticFluid(path.value, path.bound, frozen(path.prices), path.gap, frozen(mass), frozen(kernel))
