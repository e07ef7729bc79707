"""The KL projection onto confidence-set occupancy polytopes, with the budget (paper, eq. UCB_extended): exact, by Newton.

    minimise    sum over n of weights[n] D(z[n] || reference[n]),   D the unnormalised Kullback-Leibler divergence,
    subject to  all mass of arm n at step 0 in start[n]; flow from step to step; z[n,h,s,a,.] = mass times a distribution of
                the confidence set of (n,s,a); at every step, the weighted active mass at most the budget.

The dual has one potential per (arm, step, state) and one price per step; the multipliers of the confidence sets vanish into
a closed form per row. See `rmab.kernels.dual` and `rmab.kernels.curvature` for what is done arm by arm.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.arrays import FloatArray, ReadOnly, frozen
from rmab.cores import cores
from rmab.errors import ModelError, SolverError
from rmab.kernels.assembly import SMALL
from rmab.kernels.curvature import curvature, direction, direction_joint
from rmab.kernels.dual import dual, fit_step, open_step, opening
from rmab.kernels.dynamics import forward
from rmab.kernels.linear import solve_positive
from rmab.kernels.program import Program
from rmab.kernels.thin import thin_arms
from rmab.posing import ball_program, box_program

__all__ = ["Projection", "project", "project_ball"]

CHUNK = 10_000  # variables per piece of work: fixed, so that sums do not depend on the number of threads
MEETING = 50  # chunks from which threads are worth their meeting at every step of the first pass
ITERATIONS = 200
PATIENCE, STALLED = 25, 0.1  # iterations after which a residual of more than this means that the start was bad
MILD, NEAR = 10.0, 1e-2  # spread of logarithms at which references are tame; residual at which the path may go on
ARMIJO = 1e-4
WEAK = 1e-6  # a price that has lost all but so little of its diagonal entry is eliminated after all nodes
FARTHEST = 50.0  # masses change by exp(50) at most in one step: beyond that, a model of second order says nothing


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
    return _solve(box_program(reference, lower, upper, start, budget, weights), warm, tol)


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
    return _solve(ball_program(reference, centre, radius, start, budget, weights), warm, tol)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="rmab")


class _Newton:
    """The state of one solve: a dual point, what it evaluates to, and the work space."""

    def __init__(self, program: Program, marginals: FloatArray) -> None:
        """Start at the potentials and prices that put every node's mass at the marginals (N,H,S)."""
        arms, horizon, states = program.reach.shape
        self.program, self.budget = program, program.budget
        size = max(1, CHUNK // (2 * horizon * states * states))
        self.chunks = [(first, min(first + size, arms)) for first in range(0, arms, size)]
        self.v, self.prices = np.zeros((arms, horizon + 1, states)), np.zeros(horizon)
        self.gradient = np.empty((arms, horizon, states))
        self.thin = thin_arms(program)
        size = states + self.thin.joint
        self.upper = np.empty((arms, horizon, size, size))
        self.link = np.empty((arms, horizon, states, states) if states <= SMALL else (0, 0, 0, 0))
        self.leave, self.enter, self.step = (np.empty((arms, horizon, states)) for _ in range(3))
        self.kernel = np.zeros(program.reference.shape)
        self.mass, self.phi, self.sigma, self.constant = (np.zeros((arms, horizon, states, 2)) for _ in range(4))
        self.open(marginals)
        self.value, self.used, self.flow = self.evaluate(self.v, self.prices, self.gradient)

    def open(self, marginals: FloatArray) -> None:
        """Write the first potentials and prices; arms side by side, where that pays for a meeting at every step."""
        rows = (self.v, self.kernel, self.constant, self.phi)
        if len(self.chunks) < MEETING:
            opening(self.program, marginals, self.prices, *rows)
            return
        for h in range(self.budget.size - 1, -1, -1):
            self.each(lambda first, last: open_step(self.program, h, first, last, *rows))  # noqa: B023
            fit_step(self.program, h, marginals, self.phi, self.prices, self.v)

    def each(self, work: Callable[[int, int], Any]) -> list[Any]:
        """Do the work for every chunk of arms, side by side; results come in the order of the chunks."""
        others = [_pool().submit(work, *chunk) for chunk in self.chunks[1:]]
        return [work(*self.chunks[0]), *(other.result() for other in others)]  # the first in this thread: no hand-over

    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the dual function, the active mass (H,) and the largest flow violation."""

        def part(first: int, last: int) -> tuple[float, float, FloatArray]:
            used = np.empty_like(prices)
            rows = (self.kernel, self.constant, self.mass, self.phi, self.sigma)
            return *dual(self.program, first, last, v, prices, *rows, gradient, used), used

        parts = self.each(part)
        value = sum(one[0] for one in parts) + float(self.budget @ prices)
        return value, np.sum([one[2] for one in parts], axis=0), max(one[1] for one in parts)

    @property
    def residual(self) -> float:
        """Largest violation of the optimality conditions at the current point."""
        slack = (self.budget - self.used) / np.maximum(self.budget, 1.0)
        prices = np.where(self.program.idle, 0.0, np.minimum(self.prices, slack))
        return max(self.flow, float(np.abs(prices).max()))

    def improve(self) -> None:
        """Take one Newton step, shortened until the dual function has come down enough; SolverError where it cannot."""
        price_step, slope_v = self.newton_step()
        slack = self.budget - self.used
        longest = max(float(np.abs(self.step).max()), float(np.abs(price_step).max()))
        length = min(1.0, FARTHEST / longest) if np.isfinite(longest) and longest > 0 else 1.0
        v, gradient = np.empty_like(self.v), np.empty_like(self.gradient)
        v[:, -1] = 0.0
        shortest = 1e-12 * length
        while length > shortest:
            v[:, :-1] = self.v[:, :-1] + length * self.step
            prices = np.maximum(self.prices + length * price_step, 0.0)
            value, used, flow = self.evaluate(v, prices, gradient)  # inf where the step was far too long
            expected = length * slope_v + float(slack @ (prices - self.prices))
            noise = 1e-14 * (abs(self.value) + abs(value) + float(np.abs(v[:, 0]).max()))
            if np.isfinite(value) and value <= self.value + ARMIJO * expected + noise:
                self.v, self.prices, self.gradient = v, prices, gradient
                self.value, self.used, self.flow = value, used, flow
                return
            length *= 0.5
        raise SolverError(f"projection: the line search failed at residual {self.residual:.2e}")

    def flow_masses(self) -> FloatArray:
        """(N,H,S,2) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        program, states = self.program, self.v.shape[2]
        share = self.mass[..., 1] / np.where(self.mass[..., 1] > 0, self.mass.sum(axis=3), 1.0)
        mass = np.empty_like(self.mass)
        start = np.eye(states)[program.start] * program.weights[:, np.newaxis]
        forward(self.kernel, start, self.budget, share, mass)
        mass /= program.weights[:, np.newaxis, np.newaxis, np.newaxis]
        return mass

    def newton_step(self) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials."""
        slack = self.budget - self.used
        free = self.program.binds & ((self.prices > 0) | (slack < 0))
        column = np.where(free, np.cumsum(free) - 1, -1)
        columns = int(free.sum())

        def factored(first: int, last: int) -> tuple[FloatArray, float]:
            schur = np.empty((1 + columns, 1 + columns))
            point = (self.kernel, self.mass, self.sigma, self.gradient, column, columns)
            factors = (self.upper, self.link, self.leave, self.enter)
            return schur, curvature(self.program, self.thin, first, last, *point, *factors, schur)

        parts = self.each(factored)
        if self.thin.joint and not parts[0][1] >= WEAK:
            self.thin = self.thin._replace(joint=False)
            return self.newton_step()
        schur = np.sum([one[0] for one in parts], axis=0)
        price_step = np.zeros_like(self.prices)
        if self.thin.joint:
            steps = (self.upper, self.enter, price_step, self.step)
            return price_step, direction_joint(self.program, self.thin, self.gradient, slack, column, *steps)
        if columns:
            matrix = np.diag(self.used[free]) - schur[1:, 1:]
            step = schur[0, 1:] - slack[free]
            solve_positive(matrix, step, np.full(columns, 1e-15 * float(self.used[free].max()) + 1e-300))
            price_step[free] = step
        point = (self.kernel, self.mass, self.gradient, column)
        factors = (self.upper, self.link, self.leave, self.enter, price_step, self.step)
        slopes = self.each(lambda first, last: direction(self.program, self.thin, first, last, *point, *factors))
        return price_step, float(sum(slopes))


def _solve(program: Program, warm: Projection | FloatArray | None, tol: float) -> Projection:
    if not isinstance(tol, int | float) or not tol >= 0:
        raise ModelError(f"tol must be a number, 0 or more, got {tol!r}")
    newton, iterations = _Newton(program, _first_marginals(program, warm)), 0
    try:
        iterations = _iterate(newton, tol, PATIENCE)
        if newton.residual > STALLED:
            raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations")
    except SolverError:
        newton, iterations = _tempered(program)
    iterations += _iterate(newton, tol, ITERATIONS - PATIENCE)
    if not newton.residual <= tol:
        raise SolverError(f"projection: residual {newton.residual:.2e} after {iterations} iterations, not {tol:.0e}")
    return _answer(newton, iterations)


def _iterate(newton: _Newton, tol: float, most: int) -> int:
    """Take Newton steps until the residual is at most tol, or there have been `most`; return how many."""
    for iterations in range(most):
        if newton.residual <= tol:
            return iterations
        if not np.isfinite(newton.value):
            break
        newton.improve()
    return most


def _tempered(program: Program) -> tuple[_Newton, int]:
    """Come from afar: project reference^heat, from a heat at which all entries are alike up to the reference itself.

    For references that are lost from any other start: steep, with sets wide enough for mass to go anywhere. Each point
    starts from the masses of the last; steps in heat shrink where one fails. Returns a state near the answer.
    """
    positive = program.reference[program.reference > 0]
    heat = min(1.0, MILD / max(float(np.log(positive.max()) - np.log(positive.min())), 1e-300))
    newton, solved, factor, total = None, 0.0, 2.0, 0
    mass: FloatArray | None = None
    while solved < 1.0:
        milder = program._replace(reference=program.reference**heat)
        try:
            newton = _Newton(milder, _first_marginals(program, mass))
            total += _iterate(newton, NEAR, PATIENCE)
            if newton.residual > NEAR:
                raise SolverError(f"projection: residual {newton.residual:.2e} at heat {heat:.3g}")
        except SolverError:
            if factor < 1.01 or solved == 0.0:
                raise
            factor = factor**0.5
        else:
            solved, mass = heat, newton.flow_masses()
        heat = min(1.0, solved * factor)
    assert newton is not None
    return newton, total


def _first_marginals(program: Program, warm: Projection | FloatArray | None) -> FloatArray:
    """State marginals (N,H,S) to start from: those of an earlier projection, or uniform."""
    reach = program.reach
    marginals: FloatArray = reach / reach.sum(axis=2, keepdims=True)
    if warm is None:
        return marginals
    mass = warm.mass if isinstance(warm, Projection) else warm
    if not isinstance(mass, np.ndarray):
        raise ModelError(f"warm must be a Projection or its mass, got {type(warm).__name__}")
    if mass.shape != (*reach.shape, 2) or not (mass >= 0).all() or not np.isfinite(mass).all():
        raise ModelError(f"warm: masses {(*reach.shape, 2)} are needed, 0 or more, to start from; got shape {mass.shape}")
    mixed: FloatArray = 0.999 * mass.sum(axis=3) + 0.001 * marginals
    return mixed


def _answer(newton: _Newton, iterations: int) -> Projection:
    """Turn the dual point into a feasible primal one, and measure both."""
    program, residual = newton.program, newton.residual
    del newton.upper, newton.link  # half as large as z, or as large: make room
    off = np.abs(newton.kernel.sum(axis=4) - 1.0).max(axis=3) * program.reach
    if not off.max() <= 1e-9:
        n, h, s = np.argwhere(~(off <= 1e-9))[0]
        raise SolverError(f"projection: arm {n}, step {h}, state {s} has a row that sums to 1 only up to {off[n, h, s]:.1e}")
    cost = newton.phi + np.einsum("nhsay,nhy->nhsa", newton.kernel, newton.v[:, 1:])
    mass = newton.flow_masses()
    spent = np.where(mass > 0, mass * (np.log(np.where(mass > 0, mass, 1.0)) + cost - 1.0), 0.0).sum(axis=(1, 2, 3))
    constant = program.reference.sum(axis=(1, 2, 3, 4))
    value = float(program.weights @ (spent + constant))
    gap = float(program.weights @ spent) + newton.value  # both without the constant, which may dwarf them
    potentials = newton.v[:, :-1].copy()
    return Projection(
        frozen(mass), frozen(newton.kernel), frozen(newton.prices), frozen(potentials), residual, iterations, value, gap
    )
