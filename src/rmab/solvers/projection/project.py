"""The KL projection onto confidence-set occupancy polytopes, with the budget (Xiong & Li 2024, Section 4.2), by Newton.

    minimise    sum over n of weights[n] D(z[n] || reference[n]),   D the unnormalised Kullback-Leibler divergence,
    subject to  the mass of arm n at step 0 that of start[n]; flow from step to step; z[n,h,s,a,.] = mass times a
                distribution of the confidence set of (n,s,a) in the phase of step h; at every step, the weighted active
                mass at its costs at most the budget.

The dual has one potential per (arm, step, state) and one price per step; the multipliers of the confidence sets vanish into
a closed form per row. `newton.py` minimises it; `compiled/dual.py` and `compiled/curvature.py` do the work arm by arm.
Over many states, `compact.py` does the same on rows in a few numbers each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import SUMMED, FloatArray, ReadOnly, as_tolerance, frozen, sealed
from rmab.errors import ModelError
from rmab.solvers.projection.compact import CompactNewton, NotCompactError, may_be_compact
from rmab.solvers.projection.compiled.program import Program
from rmab.solvers.projection.compiled.survey import are_masses
from rmab.solvers.projection.dual_newton import DualNewton
from rmab.solvers.projection.newton import minimise_dual
from rmab.solvers.projection.program import fitting_reference, make_program
from rmab.solvers.transitions import TransitionSets


@dataclass(frozen=True, eq=False)
class Projection(ReadOnly):
    """The projection, feasible to rounding, with its certificate.

    Attributes
    ----------
    mass : (N, H, S, 2) float array
        Occupancy of each arm.
    kernel : (N, H, S, 2, S) float array
        The transitions chosen in the sets.
    prices : (H,) float array
        Multipliers of the budget; 0 at steps whose budget is 0.
    potentials : (N, H, S) float array
        Multipliers of flow.
    residual : float
        Largest violation of flow, start, budget (relative to it, where above 1) and complementarity. The unit of budgets
        and prices is the greatest cost.
    iterations : int
        Newton steps.
    value, gap : float
        The divergence at the returned point, and value minus the dual value.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> kernel = np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> answer = rmab.solvers.project(np.full((1, 3, 2, 2, 2), 0.1), kernel, kernel, start=[0], budget=0.5)
    >>> answer.z.shape, answer.mass.sum(axis=(0, 2, 3)).round(6)  # one arm: mass 1 at every step
    ((1, 3, 2, 2, 2), array([1., 1., 1.]))
    """

    mass: FloatArray
    kernel: FloatArray
    prices: FloatArray
    potentials: FloatArray
    residual: float
    iterations: int
    value: float
    gap: float

    def __repr__(self) -> str:
        size = "{} arms, {} steps, {} states".format(*self.mass.shape[:3])
        return f"Projection({size}, value {self.value:.6g}, residual {self.residual:.0e}, {self.iterations} iterations)"

    @property
    def z(self) -> FloatArray:
        """(N, H, S, 2, S) state-action-state occupancy, built on demand."""
        return self.mass[..., np.newaxis] * self.kernel


def project(
    reference: FloatArray,
    lower: ArrayLike,
    upper: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    *,
    phase_of: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tolerance: float = 1e-8,
) -> Projection:
    """Project onto the occupancies whose kernels lie in boxes, under the budget: least Kullback-Leibler divergence.

    Parameters
    ----------
    reference : (N, H, S, 2, S) array
        What is projected: not negative, and positive wherever a transition is possible.
    lower, upper : (N, S, 2, S) or (N, K, S, 2, S) arrays
        Least and greatest probability of every transition, in each of K phases. With upper = 0 it is impossible.
    start : (N,) or (N, S) array
        Start states, or the probability of every start state.
    budget : float or (H,) array
        Most active mass at a step, arms weighted.
    phase_of : (H,) array, optional
        The phase of every step, in 0..K-1: its sets hold there. By default, with K = H, every step has its own.
    weights : (N,) array, optional
        Number of identical arms that each one represents; 1 by default.
    cost : (N,) array, optional
        How much of the budget one activation of each arm takes; 1 by default. Prices are then per unit of cost.
    warm : Projection or (N, H, S, 2) array, optional
        An earlier projection, or its mass, to start from.
    tolerance : float
        Largest residual.

    Returns
    -------
    Projection
        The projection and its certificate.

    Raises
    ------
    ModelError
        If a set is empty, or an argument is wrong; the message names the place.
    SolverError
        If Newton's method does not reach `tolerance`; the message has the residual.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> centre = np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> low, high = np.maximum(centre - 0.1, 0), np.minimum(centre + 0.1, 1)
    >>> answer = rmab.solvers.project(np.full((1, 3, 2, 2, 2), 0.1), low, high, start=[0], budget=0.25)
    >>> answer.mass[..., 1].sum(axis=(0, 2)).round(6)
    array([0.25, 0.25, 0.25])

    In phase 0 nothing is known of the arm, in phase 1 everything; it starts in either state:

    >>> low, high = np.stack([0 * low, centre], axis=1), np.stack([high**0, centre], axis=1)
    >>> timed = rmab.solvers.project(np.full((1, 3, 2, 2, 2), 0.1), low, high, [[0.5, 0.5]], 0.25, phase_of=[0, 1, 0])
    >>> bool(np.allclose(timed.kernel[:, 1], centre)), timed.mass[0, 0].sum(axis=1).round(6)
    (True, array([0.5, 0.5]))
    """
    boxes = TransitionSets.boxes(lower, upper)
    table = fitting_reference(reference, boxes, np.shape(lower))
    return project_onto(
        table, boxes, start, budget, phase_of=phase_of, weights=weights, cost=cost, warm=warm, tolerance=tolerance
    )


def project_ball(
    reference: FloatArray,
    centre: ArrayLike,
    radius: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    *,
    phase_of: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tolerance: float = 1e-8,
) -> Projection:
    """Project onto the occupancies whose kernels lie in L1 balls, under the budget.

    Parameters
    ----------
    reference : (N, H, S, 2, S) array
        What is projected. A transition whose reference is 0 at every step of a phase is impossible in it.
    centre : (N, S, 2, S) or (N, K, S, 2, S) array
        The centres of the balls: distributions, in each of K phases.
    radius : (N, S, 2) or (N, K, S, 2) array
        The largest L1 distance to the centre.
    start, budget, phase_of, weights, cost, warm, tolerance
        As in `project`.

    Returns
    -------
    Projection
        The projection and its certificate.

    Raises
    ------
    ModelError
        If a centre is not a distribution, or an argument is wrong; the message names the place.
    SolverError
        If Newton's method does not reach `tolerance`.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> centre = np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> answer = rmab.solvers.project_ball(np.full((1, 3, 2, 2, 2), 0.1), centre, np.full((1, 2, 2), 0.2), [0], 0.25)
    >>> bool((abs(answer.kernel - centre[:, None]).sum(axis=4) <= 0.2 + 1e-9).all())
    True
    """
    balls = TransitionSets.balls(centre, radius)
    table = fitting_reference(reference, balls, np.shape(centre))
    return project_onto(
        table, balls, start, budget, phase_of=phase_of, weights=weights, cost=cost, warm=warm, tolerance=tolerance
    )


def project_onto(
    reference: FloatArray,
    sets: TransitionSets,
    start: ArrayLike,
    budget: ArrayLike,
    *,
    phase_of: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tolerance: float = 1e-8,
    overwrite: bool = False,
) -> Projection:
    """Project reference (N,H,S,2,S) onto the occupancies whose kernels lie in the sets, boxes or balls; see `project`.

    The sets are of N*K cells, K phases of every arm. overwrite: the kernel may be written over the reference, which with
    many states saves the time that it takes to get the memory.
    """
    wanted = as_tolerance(tolerance, "tolerance")
    program = make_program(reference, sets, start, budget, weights, phase_of, cost)
    unit = float(program.cost.max())  # of the budget: tolerances of money and prices do not depend on the currency
    if unit != 1.0:
        with np.errstate(over="ignore"):  # a budget beyond all numbers is enough for everybody
            program = program._replace(budget=np.minimum(program.budget / unit, SUMMED), cost=program.cost / unit)
    answer = _answer(*_solved(program, _masses(program, warm), wanted), overwrite=overwrite)
    return answer if unit == 1.0 else replace(answer, prices=frozen(answer.prices / unit))


def _masses(program: Program, warm: Projection | FloatArray | None) -> FloatArray | None:
    """(N,H,S,2) the masses to start from."""
    mass, shape = warm.mass if isinstance(warm, Projection) else warm, (*program.reach.shape, 2)
    if mass is None:
        return None
    if not isinstance(mass, np.ndarray) or mass.dtype.kind not in "fiub":
        raise ModelError(f"warm must be a Projection or its mass, got {type(warm).__name__}")
    mass = sealed(np.ascontiguousarray(mass, dtype=np.float64))
    if mass.shape != shape or not are_masses(mass):
        raise ModelError(f"warm must be masses of shape {shape}, 0 or more, got shape {mass.shape}")
    return mass


def _solved(program: Program, warm: FloatArray | None, tolerance: float) -> tuple[DualNewton, int]:
    """Minimise the dual: on compact rows, if they can be."""
    if may_be_compact(program):
        try:
            return minimise_dual(program, warm, tolerance, CompactNewton)
        except NotCompactError:
            pass
    return minimise_dual(program, warm, tolerance)


def _answer(newton: DualNewton, iterations: int, *, overwrite: bool) -> Projection:
    """Turn the dual point into a feasible primal one, and measure both."""
    program, residual = newton.program, newton.residual
    mass, kernel, potentials, spent = newton.solution(program.reference.view() if overwrite else None)
    value = spent + program.total
    gap = spent + newton.value  # both without the constant, which may dwarf them
    return Projection(
        frozen(mass), frozen(kernel), frozen(newton.prices), frozen(potentials), residual, iterations, value, gap
    )
