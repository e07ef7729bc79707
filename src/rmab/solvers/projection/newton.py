"""The minimum of the dual of the KL projection: Newton's method from a good start, or along a path."""

from collections.abc import Callable

import numpy as np

from rmab.common import FloatArray
from rmab.errors import SolverError
from rmab.solvers.projection.compiled.dual import even_masses, near_masses
from rmab.solvers.projection.compiled.program import FEW_STATES, Program
from rmab.solvers.projection.dual_newton import DualNewton
from rmab.solvers.projection.few import FewStates
from rmab.solvers.projection.many import ManyStates

ITERATIONS = 200
CLOSE, LOOSE = 1e-3, 0.1  # share of the uniform distribution in the marginals to start from: no mass is 0
COOLEST, HOTTER, SLOWEST = 1 / 64, 2.0, 1.02  # the first power of the reference, and factors from one to the next
ROUGH, PATIENCE = 1e-5, 60  # residual that is asked for on the way, and steps from one power to the next


def new_solve(program: Program, marginals: FloatArray) -> DualNewton:
    """Return a solve that starts at the marginals (N,H,S)."""
    kind = FewStates if program.reach.shape[2] <= FEW_STATES else ManyStates
    return kind(program, marginals)


Solve = Callable[[Program, FloatArray], DualNewton]  # a new solve of a program, from marginals (N,H,S)


def minimise_dual(
    program: Program, warm: FloatArray | None, tolerance: float, new: Solve = new_solve
) -> tuple[DualNewton, int]:
    """Return the solver at a point whose residual is at most tolerance, and its iterations; SolverError where there is none.

    warm (N,H,S,2): masses to start from. Where no point near them leads there, powers of the reference do: see `tempered`.
    """
    try:
        return _from_masses(program, warm, tolerance, new)
    except SolverError as error:
        found = tempered(program, tolerance, new)
        if found is None:
            raise error
        return found


def tempered(program: Program, tolerance: float, new: Solve = new_solve) -> tuple[DualNewton, int] | None:
    """Solve for powers of the reference, from nearly flat to itself, each from the one before; None where the path is lost.

    References over a hundred orders of magnitude leave nodes with hardly any mass: there the dual is flat far from its
    minimum, and a Newton step has no useful length. Potentials and prices are nearly proportional to the power.
    """
    uniform = even_masses(program.reach, program.start)
    power, factor, total = COOLEST, HOTTER, 0
    newton = new(program._replace(reference=program.reference**power), uniform)
    try:
        total += _descend(newton, max(tolerance, ROUGH))
        while power < 1.0:
            reached = min(1.0, power * factor)
            own = program if reached == 1.0 else program._replace(reference=program.reference**reached)
            point = newton.v * (reached / power), newton.prices * (reached / power)
            trial = new(own, uniform)
            trial.v, trial.prices = point
            trial.look()
            try:
                total += _descend(trial, tolerance if reached == 1.0 else max(tolerance, ROUGH))
            except SolverError:
                factor = factor**0.5
                if factor < SLOWEST:
                    raise
                continue
            newton, power = trial, reached
    except SolverError:
        return None
    return newton, total


def _descend(newton: DualNewton, tolerance: float) -> int:
    """Take Newton steps until the residual is at most tolerance; return how many, or raise SolverError."""
    for iterations in range(PATIENCE + 1):
        if newton.residual <= tolerance:
            return iterations
        if not np.isfinite(newton.value):
            break
        newton.improve(clip=True)
    raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations, not {tolerance:.0e}")


def _from_masses(program: Program, warm: FloatArray | None, tolerance: float, new: Solve) -> tuple[DualNewton, int]:
    """Solve from these masses (N,H,S,2), or from uniform ones."""
    uniform = even_masses(program.reach, program.start)
    marginals = uniform if warm is None else near_masses(warm, uniform, CLOSE)
    newton = new(program, marginals)
    iterations, length = newton.descend(tolerance, ITERATIONS, whole=True)
    if iterations == 1 and length < 1.0:
        # Far from the answer. It tends to lie between a point and what flows from there: try both, and keep the lowest.
        followed = (1.0 - LOOSE) * newton.followed_from(marginals) + LOOSE * uniform
        newton.reopen(0.5 * (marginals + followed))
        newton.reopen(followed)
        more, length = newton.descend(tolerance, ITERATIONS - 1)
        iterations += more
    if newton.residual <= tolerance:
        return newton, iterations
    if length == 0.0:
        raise SolverError(f"projection: the line search failed at residual {newton.residual:.2e}")
    raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations, not {tolerance:.0e}")
