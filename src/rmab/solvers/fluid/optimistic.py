"""The optimistic fluid LP of learners like UCRL: kernels are chosen, too, within their boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_integer,
    as_tolerance,
    check_magnitude,
    check_memory,
    frozen,
)
from rmab.errors import ModelError
from rmab.model import bare, by_step, cells, checked_phases, checked_start, masses_of, shape_of, words_of
from rmab.solvers.checks import checked_budget, checked_weights
from rmab.solvers.fluid.path import SoftPath
from rmab.solvers.transitions import TransitionSets


@dataclass(frozen=True, eq=False)
class OptimisticFluid(ReadOnly):
    """Solution of the optimistic fluid LP, as `rmab.solvers.solve_optimistic_fluid` returns it.

    Attributes
    ----------
    value : float
        Reward of the occupancy under its kernels, with all weights.
    bound : float
        The dual value: no less.
    prices : (H,) float array
        Price of an activation at each step: the most that one more can add to the bound.
    gap : float
        bound - value, relative to the larger of the bound and the widest range of one arm's rewards, all counted from each
        arm's least reward (in a phase): certified.
    mass : (N, H, S, 2) float array
        Occupancy of one arm of each row of the boxes.
    kernel : (N, H, S, 2, S) float array
        The chosen kernels.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> zeros, ones = np.zeros((1, 2, 2, 2)), np.ones((1, 2, 2, 2))
    >>> plan = rmab.solvers.solve_optimistic_fluid(zeros, ones, [[[0, 0], [1, 1]]], start=[0], budget=1, horizon=3)
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


def solve_optimistic_fluid(
    lower: ArrayLike,
    upper: ArrayLike,
    reward: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    horizon: int,
    weights: ArrayLike | None = None,
    *,
    phase_of: ArrayLike | None = None,
    exact: bool = False,
    tolerance: float = 1e-6,
) -> OptimisticFluid:
    """Solve the fluid LP over plans and kernels together, the kernels within boxes.

    Parameters
    ----------
    lower, upper : (N, S, 2, S) or (N, K, S, 2, S) arrays
        Least and greatest probability of every transition; in each of K phases, if it depends on time.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    start : (N,) or (N, S) array
        Start states, or the probability of every state.
    budget : float or (H,) array
        Largest mean number of active arms at a step.
    horizon : int
        H, the steps of an episode.
    weights : (N,) array, optional
        Number of identical arms that each one represents; 1 by default.
    exact : bool, default False
        Whether the budget must be used exactly.
    phase_of : (H,) array, optional
        The phase of every step. By default there is one, or one for each step if the boxes have H phases.
    tolerance : float
        Largest certified gap, relative.

    Returns
    -------
    OptimisticFluid
        Value, bound, prices, masses and kernels.

    Raises
    ------
    ModelError
        If a box contains no distribution, or an argument is wrong; the message names the place.
    SolverError
        If the gap cannot be certified.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> centre = np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> low, high = np.maximum(centre - 0.1, 0), np.minimum(centre + 0.1, 1)
    >>> rmab.solvers.solve_optimistic_fluid(low, high, [[[0, 0], [1, 1]]], [0], 1, 4, weights=[3])
    OptimisticFluid(value 3.564, bound 3.564, gap ..., 4 steps)
    """
    steps = as_integer(horizon, "horizon")
    if steps < 1:
        raise ModelError(f"horizon must be at least 1, got {steps}")
    sets, table, phases = _in_phases(lower, upper, reward, phase_of, steps)
    (arms, states), limit = (len(table) // phases.number, sets.low.shape[1]), checked_budget(budget, steps)
    many = checked_weights(weights, arms)
    total = float(many.sum())
    check_magnitude(table, "reward", total * steps, f" times {total:.3g} arms times {steps} steps")
    wanted = as_tolerance(tolerance, "tolerance")
    begins = checked_start(start, np.full(arms, states), states, one_for_all=False)
    masses = masses_of(begins, states) * many[:, np.newaxis]
    path = SoftPath(sets, table, masses, limit, phases.of_step, exact=exact)
    path.solve(wanted)
    mass = path.occupancy / many[:, np.newaxis, np.newaxis, np.newaxis]
    kernel = np.broadcast_to(by_step(path.kernels, arms, path.kernel_of), (*mass.shape, states))
    return OptimisticFluid(path.value, path.bound, frozen(path.prices), path.gap, frozen(mass), frozen(kernel))


class _Phases(NamedTuple):
    """Number of phases, and the phase of every step (H,)."""

    number: int
    of_step: IntArray


def _in_phases(
    lower: ArrayLike, upper: ArrayLike, reward: ArrayLike, phase_of: ArrayLike | None, steps: int
) -> tuple[TransitionSets, FloatArray, _Phases]:
    """Return the boxes and the reward by cell, the same in all phases if they have none, or raise ModelError."""
    low, high = bare(as_floats(lower, "lower"), 5), bare(as_floats(upper, "upper"), 5)
    table = bare(as_floats(reward, "reward"), 4)
    sizes = (len(low), low.shape[-1]) if low.ndim else (1, 1)
    check_memory(f"the fluid LP of {sizes[0]} arms, {sizes[1]} states and {steps} steps", 8.0 * steps * sizes[0] * sizes[1])
    declared = low.shape[1] if low.ndim == 5 else table.shape[1] if table.ndim == 4 else 1
    of_step = checked_phases(phase_of, declared, steps)
    count = max(declared, int(of_step.max()) + 1)
    sets = TransitionSets.boxes(low, high)
    arms, states = len(sets.low) // (count if low.ndim == 5 else 1), sets.low.shape[1]
    shape = shape_of(count, arms, states, 2)
    if table.shape not in (shape, (arms, states, 2)) or not np.isfinite(table).all():
        wanted = f"{words_of(count, 'N', 'S', '2')} = {shape}"
        raise ModelError(f"reward must be finite and have shape {wanted}, got {table.shape}")
    if low.ndim == 4 and count > 1:
        sets = sets.take(np.repeat(np.arange(arms), count))
    pays = np.repeat(table, count, axis=0) if table.ndim == 3 and count > 1 else cells(table, count)
    return sets, pays, _Phases(count, of_step)
