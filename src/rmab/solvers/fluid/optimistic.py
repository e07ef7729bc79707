"""The optimistic fluid LP of learners like UCRL: kernels are chosen, too, within their boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, as_states, as_tolerance, check_magnitude
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.solvers.checks import checked_budget, checked_weights
from rmab.solvers.fluid.path import SoftPath
from rmab.solvers.transitions import TransitionSets


@dataclass(frozen=True, eq=False)
class OptimisticFluid(ReadOnly):
    """Solution of the optimistic fluid LP, as `rmab.optimistic_fluid` returns it.

    Attributes
    ----------
    value : float
        What the occupancy earns under its own kernels, all weights counted.
    bound : float
        The dual value: no less.
    prices : (H,) float array
        What one more activation at each step would be worth.
    gap : float
        bound - value, relative to the larger of the bound and the widest range of one arm's rewards, all counted from each
        arm's least reward: certified.
    mass : (N, H, S, 2) float array
        Occupancy of one arm of each row of the boxes.
    kernel : (N, H, S, 2, S) float array
        The kernels that were chosen.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> zeros, ones = np.zeros((1, 2, 2, 2)), np.ones((1, 2, 2, 2))
    >>> plan = rmab.optimistic_fluid(zeros, ones, [[[0, 0], [1, 1]]], start=[0], budget=1, horizon=3)
    >>> plan.kernel[0, 0, 0, 0].round(4)  # anything is possible: it moves to the state that pays
    array([0., 1.])
    """

    value: float
    bound: float
    prices: FloatArray
    gap: float
    mass: FloatArray
    kernel: FloatArray

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g}, bound {self.bound:.6g}, gap {self.gap:.0e}, {self.prices.size} steps"
        return f"OptimisticFluid({numbers})"


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
    """Solve the fluid LP over plans and kernels together, the kernels within boxes.

    Parameters
    ----------
    lower, upper : (N, S, 2, S) arrays
        Least and greatest probability of every transition.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    start : (N,) array
        Start states.
    budget : float or (H,) array
        Most arms that are active at a step, on average.
    horizon : int
        H, the steps of an episode.
    weights : (N,) array, optional
        How many like arms each one stands for; 1 by default.
    tolerance : float
        Largest certified gap, relative.

    Returns
    -------
    OptimisticFluid
        Value, bound, prices, masses and kernels.

    Raises
    ------
    ModelError
        Where a box holds no distribution, or something does not fit; the message says where.
    SolverError
        Where the gap cannot be certified.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> centre = np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> low, high = np.maximum(centre - 0.1, 0), np.minimum(centre + 0.1, 1)
    >>> rmab.optimistic_fluid(low, high, [[[0, 0], [1, 1]]], [0], 1, 4, weights=[3])
    OptimisticFluid(value 3.564, bound 3.564, gap ..., 4 steps)
    """
    sets = TransitionSets.boxes(lower, upper)
    arms, states = sets.low.shape[:2]
    table = as_floats(reward, "reward")
    if table.shape != (arms, states, 2) or not np.isfinite(table).all():
        raise ModelError(f"reward must be finite and have shape (N, S, 2) = {(arms, states, 2)}, got {table.shape}")
    steps = as_integer(horizon, "horizon")
    if steps < 1:
        raise ModelError(f"horizon must be at least 1, got {steps}")
    check_memory(f"the fluid LP of {arms} arms, {states} states and {steps} steps", 8.0 * steps * arms * states)
    limit = checked_budget(budget, steps)
    many = checked_weights(weights, arms)
    total = float(many.sum())
    check_magnitude(table, "reward", total * steps, f" times {total:.3g} arms times {steps} steps")
    wanted = as_tolerance(tolerance, "tolerance")
    masses = np.eye(states)[as_states(start, np.full(arms, states))] * many[:, np.newaxis]
    path = SoftPath(sets, table, masses, limit)
    path.solve(wanted)
    mass = path.occupancy / many[:, np.newaxis, np.newaxis, np.newaxis]
    kernel = np.broadcast_to(path.kernels, (*mass.shape, states))
    return OptimisticFluid(path.value, path.bound, frozen(path.prices), path.gap, frozen(mass), frozen(kernel))
