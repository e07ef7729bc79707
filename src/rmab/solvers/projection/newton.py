"""Newton's method on the dual of the KL projection. Arms are handled in chunks, which threads share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rmab.common import FloatArray, chunks_of, each, frozen
from rmab.errors import SolverError
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.compiled.linear import solve_positive
from rmab.solvers.projection.compiled.curvature import curvature, direction
from rmab.solvers.projection.compiled.dual import NEGLIGIBLE, dual, fit_step, mean_masses, opening
from rmab.solvers.projection.compiled.program import FEW_STATES, Factors, Primal, Program
from rmab.solvers.projection.compiled.rows import solve_rows

CHUNK = 10_000  # variables per piece of work: fixed, so that sums do not depend on the number of threads
MEETING = 50  # chunks from which threads are faster in the first pass, which waits for all of them at every step
ITERATIONS = 200
CLOSE, LOOSE = 1e-3, 0.1  # share of the uniform distribution in the marginals to start from: no mass is 0
ARMIJO = 1e-4
FARTHEST = 50.0  # most by which logarithms of masses change in one step: the model of second order fails beyond
ENDLESS = 1e6  # a step of the prices that is longer is made of rounding
RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # what to try against it, in parts of the largest active mass
COOLEST, HOTTER, SLOWEST = 1 / 64, 2.0, 1.02  # the first power of the reference, and factors from one to the next
ROUGH, PATIENCE = 1e-5, 60  # residual that is asked for on the way, and steps from one power to the next


class DualNewton:
    """The state of one solve: a dual point, what it evaluates to, and the work space."""

    def __init__(self, program: Program, marginals: FloatArray) -> None:
        """Start at the potentials and prices that put every node's mass at the marginals (N,H,S)."""
        arms, horizon, states = program.reach.shape
        self.program, self.budget = program, program.budget
        self.v, self.prices = np.zeros((arms, horizon + 1, states)), np.zeros(horizon)
        self.gradient, self.step = np.empty((arms, horizon, states)), np.empty((arms, horizon, states))
        self.mean = np.zeros((arms, horizon, states, 2))
        self.prepare()
        self.open(marginals)
        self.look()

    def prepare(self) -> None:
        """Make the work space."""
        program = self.program
        arms, horizon, states = program.reach.shape
        self.chunks = chunks_of(arms, max(1, CHUNK // (2 * horizon * states * states)))
        link = np.empty((arms, horizon, states, states) if states <= FEW_STATES else (0, 0, 0, 0))
        leave, enter = np.empty((arms, horizon, states)), np.empty((arms, horizon, states))
        self.factors = Factors(np.empty((arms, horizon, states, states)), link, leave, enter)
        constant, mass, phi, sigma = (np.zeros((arms, horizon, states, 2)) for _ in range(4))
        self.primal = Primal(np.zeros(program.reference.shape), constant, mass, phi, sigma, self.gradient)

    def look(self) -> None:
        """Evaluate the current point: its rows, gradient, value, active mass and violation."""
        self.value, self.used, self.flow = self.evaluate(self.v, self.prices, self.gradient)

    def open(self, marginals: FloatArray) -> None:
        """Write the first potentials and prices; in threads, if there are many chunks."""
        if len(self.chunks) < MEETING:
            opening(self.program, marginals, self.prices, self.v, self.primal)
            return
        for h in range(self.budget.size - 1, -1, -1):
            self.each(lambda first, last: solve_rows(self.program, first, last, h, self.v, self.primal))  # noqa: B023
            fit_step(self.program, h, marginals, self.primal.phi, self.prices, self.v)

    def each(self, work: Callable[[int, int], Any]) -> list[Any]:
        """Do the work for every chunk of arms, in threads; results come in the order of the chunks."""
        return each(self.chunks, work)

    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the dual function, the active mass (H,) and the largest flow violation."""
        primal = self.primal._replace(gradient=gradient)

        def part(first: int, last: int) -> tuple[float, float, FloatArray]:
            used = np.empty_like(prices)
            return *dual(self.program, first, last, v, prices, primal, used), used

        parts = self.each(part)
        value = sum(one[0] for one in parts) + float(self.budget @ prices)
        return value, _total([one[2] for one in parts]), max(one[1] for one in parts)

    def reopen(self, marginals: FloatArray) -> None:
        """Start at these marginals (N,H,S) instead, if the dual function is lower there."""
        value, here = self.value, (self.v.copy(), self.prices.copy())
        self.open(marginals)
        self.look()
        if not self.value < value:
            self.v, self.prices = here
            self.look()

    @property
    def residual(self) -> float:
        """Largest violation of the optimality conditions at the current point."""
        slack = (self.budget - self.used) / np.maximum(self.budget, 1.0)
        prices = np.where(self.program.idle, 0.0, np.minimum(self.prices, slack))
        return max(self.flow, float(np.abs(prices).max()))

    def improve(self, *, clip: bool = False) -> float:
        """Take one Newton step, shortened until the dual function has come down enough; SolverError where it cannot.

        Returns the part of the step that was taken. clip: where the dual is flat in some potentials, shorten their steps
        alone, if that leads down.
        """
        mean_masses(self.primal.mass, self.gradient, self.mean)
        price_step, slope_v = self.newton_step(self.mean)
        slack = self.budget - self.used
        longest = max(float(np.abs(self.step).max()), float(np.abs(price_step).max()))
        if clip and longest > FARTHEST:
            near, near_prices = np.clip(self.step, -FARTHEST, FARTHEST), np.clip(price_step, -FARTHEST, FARTHEST)
            slope = float((self.program.weights[:, np.newaxis, np.newaxis] * self.gradient * near).sum())
            if slope + float(slack @ near_prices) < 0.0:
                self.step[:], price_step, slope_v, longest = near, near_prices, slope, FARTHEST
        length = min(1.0, FARTHEST / longest) if np.isfinite(longest) and longest > 0 else 1.0
        v, gradient = np.empty_like(self.v), np.empty_like(self.gradient)
        v[:, -1] = 0.0
        shortest = 1e-12 * length
        while length > shortest:
            v[:, :-1] = self.v[:, :-1] + length * self.step
            prices = np.maximum(self.prices + length * price_step, 0.0)
            value, used, flow = self.evaluate(v, prices, gradient)
            if np.isfinite(value):  # not where the step was far too long
                expected = length * slope_v + float(slack @ (prices - self.prices))
                noise = 1e-14 * (abs(self.value) + abs(value) + float(np.abs(v[:, 0]).max()))
                if value <= self.value + ARMIJO * expected + noise:
                    self.v, self.prices, self.gradient = v, prices, gradient
                    self.value, self.used, self.flow = value, used, flow
                    return length
            length *= 0.5
        raise SolverError(f"projection: the line search failed at residual {self.residual:.2e}")

    def flow_masses(self) -> FloatArray:
        """(N,H,S,2) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        program, own = self.program, self.primal.mass
        share = own[..., 1] / np.where(own[..., 1] > 0, own.sum(axis=3), 1.0)
        mass = np.empty_like(own)
        kernels, every_step = self.primal.kernel, frozen(np.arange(self.budget.size))
        weights = program.weights * program.cost
        start = program.start * weights[:, np.newaxis]
        forward(kernels.reshape(-1, *kernels.shape[2:]), every_step, start, self.budget, share, mass)
        mass /= weights[:, np.newaxis, np.newaxis, np.newaxis]
        return mass

    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point."""
        return self.primal.kernel

    def newton_step(self, mass: FloatArray) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials.

        mass (N,H,S,2): the masses that the Hessian is made of: the point's own, or those of `mean_masses`.
        """
        slack = self.budget - self.used
        free = self.program.binds & ((self.prices > 0) | (slack < 0))
        column = np.where(free, np.cumsum(free) - 1, -1)
        columns, primal = int(free.sum()), self.primal._replace(mass=mass, gradient=self.gradient)

        def factored(first: int, last: int) -> FloatArray:
            schur = np.empty((1 + columns, 1 + columns))
            curvature(self.program, first, last, primal, column, self.factors, schur)
            return schur

        schur = _total(self.each(factored))
        price_step = np.zeros_like(self.prices)
        if columns:
            used = (self.program.weights * self.program.cost**2 @ mass[..., 1].sum(axis=2))[free]
            price_step[free] = _price_step(np.diag(used) - schur[1:, 1:], schur[0, 1:] - slack[free], float(used.max()))
        point = (primal, self.factors, price_step, self.step)
        slopes = self.each(lambda first, last: direction(self.program, first, last, *point))
        return price_step, float(sum(slopes))


def _price_step(matrix: FloatArray, target: FloatArray, largest: float) -> FloatArray:
    """Solve for the step of the free prices; largest is the most active mass of a step.

    Where plans hardly respond to prices any more, what is left of their diagonal is rounding, and the step has no bound:
    then the least ridge is added with which it has one.
    """
    least, diagonal = np.full(target.size, 1e-15 * largest + 1e-300), np.arange(target.size)
    for ridge in RIDGES:
        step, own = target.copy(), matrix.copy()
        own[diagonal, diagonal] += ridge * largest
        solve_positive(own, step, least)
        if np.abs(step).max() <= ENDLESS:  # not where it is no number
            break
    return step


def _total(tables: list[FloatArray]) -> FloatArray:
    """Return the sum of what the chunks found; mostly there is one."""
    return tables[0] if len(tables) == 1 else np.sum(tables, axis=0)


def minimise_dual(
    program: Program, warm: FloatArray | None, tolerance: float, solver: type[DualNewton] = DualNewton
) -> tuple[DualNewton, int]:
    """Return the solver at a point whose residual is at most tolerance, and its iterations; SolverError where there is none.

    warm (N,H,S,2): masses to start from. Where no point near them leads there, powers of the reference do: see `tempered`.
    """
    try:
        return _from_masses(program, warm, tolerance, solver)
    except SolverError as error:
        found = tempered(program, tolerance, solver)
        if found is None:
            raise error
        return found


def tempered(program: Program, tolerance: float, solver: type[DualNewton] = DualNewton) -> tuple[DualNewton, int] | None:
    """Solve for powers of the reference, from nearly flat to itself, each from the one before; None where the path is lost.

    References over a hundred orders of magnitude leave nodes with hardly any mass: there the dual is flat far from its
    minimum, and a Newton step has no useful length. Potentials and prices are nearly proportional to the power.
    """
    uniform = _uniform(program)
    power, factor, total = COOLEST, HOTTER, 0
    newton = solver(program._replace(reference=program.reference**power), uniform)
    try:
        total += _descend(newton, max(tolerance, ROUGH))
        while power < 1.0:
            reached = min(1.0, power * factor)
            own = program if reached == 1.0 else program._replace(reference=program.reference**reached)
            point = newton.v * (reached / power), newton.prices * (reached / power)
            trial = solver(own, uniform)
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


def _uniform(program: Program) -> FloatArray:
    """(N,H,S) masses spread evenly over the nodes within reach; at step 0, where they are known, those of the start."""
    masses: FloatArray = program.reach / program.reach.sum(axis=2, keepdims=True)
    masses[:, 0] = np.where(program.reach[:, 0], np.maximum(program.start, NEGLIGIBLE), 0.0)
    return masses


def _descend(newton: DualNewton, tolerance: float) -> int:
    """Take Newton steps until the residual is at most tolerance; return how many, or raise SolverError."""
    for iterations in range(PATIENCE + 1):
        if newton.residual <= tolerance:
            return iterations
        if not np.isfinite(newton.value):
            break
        newton.improve(clip=True)
    raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations, not {tolerance:.0e}")


def _from_masses(
    program: Program, warm: FloatArray | None, tolerance: float, solver: type[DualNewton]
) -> tuple[DualNewton, int]:
    """Solve from these masses (N,H,S,2), or from uniform ones."""
    uniform = _uniform(program)
    marginals = uniform if warm is None else (1.0 - CLOSE) * warm.sum(axis=3) + CLOSE * uniform
    newton = solver(program, marginals)
    followed = newton.flow_masses().sum(axis=3)
    for iterations in range(ITERATIONS + 1):
        if newton.residual <= tolerance:
            return newton, iterations
        if iterations == ITERATIONS or not np.isfinite(newton.value):
            break
        if iterations > 0:
            newton.improve()
        elif not _first_step_is_whole(newton):
            # Far from the answer. It tends to lie between a point and what flows from there: try both, and keep the lowest.
            followed = (1.0 - LOOSE) * followed + LOOSE * uniform
            newton.reopen(0.5 * (marginals + followed))
            newton.reopen(followed)
    raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations, not {tolerance:.0e}")


def _first_step_is_whole(newton: DualNewton) -> bool:
    """Take the first step; return whether it was a whole one, and False where there is none."""
    try:
        return newton.improve() == 1.0
    except SolverError:
        return False
