"""The KL projection onto confidence-set occupancy polytopes, with the budget (paper, eq. UCB_extended): exact, by Newton.

    minimise    sum over n of weights[n] D(z[n] || reference[n]),   D the unnormalised Kullback-Leibler divergence,
    subject to  all mass of arm n at step 0 in start[n]; flow from step to step; z[n,h,s,a,.] = mass times a distribution of
                the confidence set of (n,s,a); at every step, the weighted active mass at most the budget.

The dual has one potential per (arm, step, state) and one price per step; the multipliers of the confidence sets vanish into
a closed form per row. `newton.py` minimises it; `compiled/dual.py` and `compiled/curvature.py` do the work arm by arm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, ReadOnly, frozen
from rmab.errors import ModelError, SolverError
from rmab.solvers.projection.compiled.program import Program
from rmab.solvers.projection.newton import DualNewton, minimise_dual
from rmab.solvers.projection.program import make_program
from rmab.solvers.transitions import TransitionSets

__all__ = ["Projection", "project", "project_ball", "project_onto"]


@dataclass(frozen=True, eq=False)
class Projection(ReadOnly):
    """The projection, feasible to rounding, with what proves it.

    mass        (N, H, S, 2) occupancy of each arm.      kernel  (N, H, S, 2, S) the transitions chosen in the sets.
    prices      (H,) multipliers of the budget, 0 where it is 0.    potentials  (N, H, S) multipliers of flow.
    residual    largest violation of flow, start, budget (relative to it, where above 1) and complementarity.
    iterations  Newton steps.
    value       the divergence at the returned point.    gap  value minus the dual value.
    """

    mass: FloatArray
    kernel: FloatArray
    prices: FloatArray
    potentials: FloatArray
    residual: float
    iterations: int
    value: float
    gap: float

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
    weights: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tol: float = 1e-8,
) -> Projection:
    """Project reference (N,H,S,2,S) onto the occupancies whose kernels lie in the box lower..upper (N,S,2,S).

    start (N,) states; budget a number or (H,); weights (N,) how many like arms each one stands for. A transition with upper
    = 0 is impossible and costs nothing; elsewhere the reference must be positive. warm: an earlier projection, or its mass,
    to start from. Raises ModelError for an empty or malformed set, and SolverError, with the residual reached, where Newton
    does not get to tol.
    """
    boxes = TransitionSets.boxes(lower, upper)
    return project_onto(reference, boxes, start, budget, weights=weights, warm=warm, tol=tol)


def project_ball(
    reference: FloatArray,
    centre: ArrayLike,
    radius: ArrayLike,
    start: ArrayLike,
    budget: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tol: float = 1e-8,
) -> Projection:
    """Project onto the occupancies whose kernels lie within L1 distance radius (N,S,2) of centre (N,S,2,S).

    A transition whose reference is 0 at every step is impossible; otherwise as `project`.
    """
    balls = TransitionSets.balls(centre, radius)
    return project_onto(reference, balls, start, budget, weights=weights, warm=warm, tol=tol)


def project_onto(
    reference: FloatArray,
    sets: TransitionSets,
    start: ArrayLike,
    budget: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    warm: Projection | FloatArray | None = None,
    tol: float = 1e-8,
) -> Projection:
    """Project reference (N,H,S,2,S) onto the occupancies whose kernels lie in the sets, boxes or balls; see `project`."""
    program = make_program(reference, sets, start, budget, weights)
    if not isinstance(tol, int | float) or not tol >= 0:
        raise ModelError(f"tol must be a number, 0 or more, got {tol!r}")
    return _answer(*minimise_dual(program, _masses(program, warm), tol))


def _masses(program: Program, warm: Projection | FloatArray | None) -> FloatArray | None:
    """(N,H,S,2) the masses to start from."""
    mass, shape = warm.mass if isinstance(warm, Projection) else warm, (*program.reach.shape, 2)
    if mass is None:
        return None
    if not isinstance(mass, np.ndarray):
        raise ModelError(f"warm must be a Projection or its mass, got {type(warm).__name__}")
    if mass.shape != shape or not (mass >= 0).all() or not np.isfinite(mass).all():
        raise ModelError(f"warm: masses {shape} are needed, 0 or more, to start from; got shape {mass.shape}")
    return mass


def _answer(newton: DualNewton, iterations: int) -> Projection:
    """Turn the dual point into a feasible primal one, and measure both."""
    program, residual = newton.program, newton.residual
    kernel, _, _, phi, _ = newton.primal
    del newton.factors  # half as large as z, or as large: make room
    off = np.abs(kernel.sum(axis=4) - 1.0).max(axis=3) * program.reach
    if not off.max() <= 1e-9:
        n, h, s = np.argwhere(~(off <= 1e-9))[0]
        raise SolverError(f"projection: arm {n}, step {h}, state {s} has a row that sums to 1 only up to {off[n, h, s]:.1e}")
    cost = phi + np.einsum("nhsay,nhy->nhsa", kernel, newton.v[:, 1:])
    mass = newton.flow_masses()
    spent = np.where(mass > 0, mass * (np.log(np.where(mass > 0, mass, 1.0)) + cost - 1.0), 0.0).sum(axis=(1, 2, 3))
    constant = program.reference.sum(axis=(1, 2, 3, 4))
    value = float(program.weights @ (spent + constant))
    gap = float(program.weights @ spent) + newton.value  # both without the constant, which may dwarf them
    potentials = newton.v[:, :-1].copy()
    return Projection(
        frozen(mass), frozen(kernel), frozen(newton.prices), frozen(potentials), residual, iterations, value, gap
    )
