"""Newton's method on the dual of the KL projection where arms have many states: arm by arm, in compiled code."""

import numpy as np

from rmab.common import FloatArray, chunks_of, frozen
from rmab.errors import SolverError
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.projection.compiled.curvature import curvature, direction
from rmab.solvers.projection.compiled.dual import dual, fit_step, mean_masses, opening
from rmab.solvers.projection.compiled.program import Factors, Primal
from rmab.solvers.projection.compiled.rows import solve_rows
from rmab.solvers.projection.compiled.steps import step_from_schur
from rmab.solvers.projection.dual_newton import DualNewton, Solution, total

CHUNK = 10_000  # variables per piece of work: fixed, so that sums do not depend on the number of threads
MEETING = 50  # chunks from which threads are faster in the first pass, which waits for all of them at every step
OFF = 1e-9  # largest error of the sum of a row


class ManyStates(DualNewton):
    """The state of a solve with many states. Tables are by arms: (N,...)."""

    def allocate(self) -> None:
        """Set up the arrays of the point and the work space."""
        arms, horizon, states = self.program.reach.shape
        self.weighing = self.program.weights[:, np.newaxis, np.newaxis]
        self.v = np.zeros((arms, horizon + 1, states))
        self.gradient, self.step = np.empty((arms, horizon, states)), np.empty((arms, horizon, states))
        self.mean = np.zeros((arms, horizon, states, 2))
        self.prepare()

    def prepare(self) -> None:
        """Make the chunks and the work space."""
        program = self.program
        arms, horizon, states = program.reach.shape
        self.chunks = chunks_of(arms, max(1, CHUNK // (2 * horizon * states * states)))
        leave, enter = np.empty((arms, horizon, states)), np.empty((arms, horizon, states))
        self.factors = Factors(np.empty((arms, horizon, states, states)), leave, enter)
        constant, mass, phi, sigma = (np.zeros((arms, horizon, states, 2)) for _ in range(4))
        self.primal = Primal(np.zeros(program.reference.shape), constant, mass, phi, sigma, self.gradient)

    def begin(self, marginals: FloatArray) -> None:
        """Go to the first point of these marginals (N,H,S)."""
        self.open(marginals)
        self.look()

    def open(self, marginals: FloatArray) -> None:
        """Write the first potentials and prices; in threads, if there are many chunks."""
        if len(self.chunks) < MEETING:
            opening(self.program, marginals, self.prices, self.v, self.primal)
            return
        for h in range(self.budget.size - 1, -1, -1):
            self.each(lambda first, last: solve_rows(self.program, first, last, h, self.v, self.primal))  # noqa: B023
            fit_step(self.program, h, marginals, self.primal.phi, self.prices, self.v)

    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Write the gradient; return the dual function, the active mass (H,) and the largest flow violation."""
        primal = self.primal._replace(gradient=gradient)

        def part(first: int, last: int) -> tuple[float, float, FloatArray]:
            used = np.empty_like(prices)
            return *dual(self.program, first, last, v, prices, primal, used), used

        parts = self.each(part)
        value = sum(one[0] for one in parts) + float(self.budget @ prices)
        return value, total([one[2] for one in parts]), max(one[1] for one in parts)

    def masses(self, *, own: bool) -> FloatArray:
        """Return the masses that the Hessian is made of: the point's own, or their means."""
        if own:
            return self.primal.mass
        mean_masses(self.primal.mass, self.gradient, self.mean)
        return self.mean

    def newton_step(self, *, own: bool = False) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials."""
        columns, column = self.free_prices()
        mass = self.masses(own=own)
        primal = self.primal._replace(mass=mass, gradient=self.gradient)

        def factored(first: int, last: int) -> FloatArray:
            schur = np.empty((1 + columns, 1 + columns))
            curvature(self.program, first, last, primal, column, self.factors, schur)
            return schur

        schur = total(self.each(factored))
        prices = np.zeros_like(self.prices)
        if columns:
            active = self.program.weights * self.program.cost**2 @ mass[..., 1].sum(axis=2)
            step_from_schur(schur, active, self.budget - self.used, column, prices)
        point = (primal, self.factors, prices, self.step)
        slopes = self.each(lambda first, last: direction(self.program, first, last, *point))
        return prices, float(sum(slopes))

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

    def rows(self, table: FloatArray | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:  # noqa: ARG002
        """Return the kernel (N,H,S,2,S) at the point, and of every row what its sum is off, and its product with v.

        table: where the kernel may be written, if it is not there yet.
        """
        kernel = self.primal.kernel
        return kernel, np.abs(kernel.sum(axis=4) - 1.0), np.einsum("nhsay,nhy->nhsa", kernel, self.v[:, 1:])

    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point."""
        return self.rows()[0]

    def followed(self) -> FloatArray:
        """(N,H,S) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        masses: FloatArray = self.flow_masses().sum(axis=3)
        return masses

    def solution(self, table: FloatArray | None = None) -> Solution:
        """Return the feasible primal point of the dual one; SolverError where a row is no distribution."""
        self.__dict__.pop("factors", None)  # half as large as z, or as large: make room
        kernel, off, lean = self.rows(table)
        off = off.max(axis=3) * self.program.reach
        if not off.max() <= OFF:
            n, h, s = np.argwhere(~(off <= OFF))[0]
            raise SolverError(f"projection: arm {n}, step {h}, state {s} has a row sum off by {off[n, h, s]:.1e}")
        cost, mass = self.primal.phi + lean, self.flow_masses()
        spent = np.where(mass > 0, mass * (np.log(np.where(mass > 0, mass, 1.0)) + cost - 1.0), 0.0).sum(axis=(1, 2, 3))
        return Solution(mass, kernel, self.v[:, :-1].copy(), float(self.program.weights @ spent))

    def by_arm(self, table: FloatArray) -> FloatArray:
        """Return the table: it is by arms already."""
        return table

    def from_arms(self, table: FloatArray) -> FloatArray:
        """Return the table: it is by arms already."""
        return table
