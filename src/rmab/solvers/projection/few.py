"""Newton's method on the dual of the KL projection where arms have few states: eight arms at a time (`compiled/few.py`)."""

import numpy as np

from rmab.common import FloatArray, chunks_of, sealed
from rmab.errors import SolverError
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.projection.compiled.few import FewFactors, FewProgram, FewRows, pack_all, packed, unpacked
from rmab.solvers.projection.compiled.few_answer import few_answer, few_fill, few_flow
from rmab.solvers.projection.compiled.few_curvature import few_curvature, few_direction
from rmab.solvers.projection.compiled.few_dual import few_dual, few_fit_step, few_opening, few_step_rows
from rmab.solvers.projection.compiled.few_newton import FewPoint, few_descend
from rmab.solvers.projection.compiled.program import Program
from rmab.solvers.projection.compiled.steps import step_from_schur
from rmab.solvers.projection.dual_newton import DualNewton, Solution, total

CHUNK = 100_000  # variables per piece of work: fixed, so that sums do not depend on the number of threads
MEETING = 20  # chunks from which threads are faster in the first pass, which waits for all of them at every step
OFF = 1e-9  # largest error of the sum of a row


class FewStates(DualNewton):
    """The state of a solve with few states. Tables are (G,...,W): groups of W arms, the arms of a group side by side."""

    def allocate(self) -> None:
        """Set up the chunks, the arrays of the point and the work space."""
        arms, horizon, states = self.program.reach.shape
        groups = -(-arms // WIDTH)
        self.few = few_program(self.program)
        self.weighing = self.few.weights[:, np.newaxis, np.newaxis]
        self.chunks = chunks_of(groups, max(1, CHUNK // (2 * horizon * states * states * WIDTH)))
        nodes = groups * horizon * states
        self.v = np.zeros((groups, horizon + 1, states, WIDTH))
        self.gradient, self.step = (np.empty((groups, horizon, states, WIDTH)) for _ in range(2))
        upper, link, leave, enter = (np.empty((nodes * n, WIDTH)) for n in (states, states, 1, 1))
        self.factors = FewFactors(upper, link, leave, enter)
        mass, phi, sigma = (np.zeros((2 * nodes, WIDTH)) for _ in range(3))
        self.rows = FewRows(np.zeros(self.few.reference.shape), mass, phi, sigma)

    @property
    def primal(self) -> FewRows:
        """The rows at the point, in groups: kernel (G,H,S,2,S,W), and so on."""
        groups, horizon, states, _ = self.gradient.shape
        kernel, *rest = self.rows
        shape = (groups, horizon, states, 2)
        return FewRows(kernel.reshape(*shape, states, WIDTH), *(one.reshape(*shape, WIDTH) for one in rest))

    def begin(self, marginals: FloatArray) -> None:
        """Go to the first point of these marginals (N,H,S); in threads, if there are many chunks."""
        own, v = packed(marginals, len(marginals)), lines(self.v)
        if len(self.chunks) < MEETING:
            self.used = np.empty_like(self.prices)
            point = (self.prices, v, self.rows, lines(self.gradient), self.used)
            value, self.flow = few_opening(self.few, own, *point)
            self.value = value + float(self.budget @ self.prices)
            return
        for h in range(self.budget.size - 1, -1, -1):
            self.each(lambda first, last: few_step_rows(self.few, first, last, h, v, self.rows))  # noqa: B023
            few_fit_step(self.few, h, own, self.rows.phi, self.prices, v)
        self.value, self.used, self.flow = self._evaluated(self.v, self.prices, self.gradient, known=True)

    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Write the gradient; return the dual function, the active mass (H,) and the largest flow violation."""
        return self._evaluated(v, prices, gradient, known=False)

    def _evaluated(
        self, v: FloatArray, prices: FloatArray, gradient: FloatArray, *, known: bool
    ) -> tuple[float, FloatArray, float]:
        """Evaluate the dual; known: the rows are those of v already, but for their masses."""
        point, ahead = lines(v), lines(gradient)

        def part(first: int, last: int) -> tuple[float, float, FloatArray]:
            used = np.empty_like(prices)
            return *few_dual(self.few, first, last, point, prices, self.rows, known, ahead, used), used

        parts = self.each(part)
        value = sum(one[0] for one in parts) + float(self.budget @ prices)
        return value, total([one[2] for one in parts]), max(one[1] for one in parts)

    def descend(self, tolerance: float, most: int, *, whole: bool = False) -> tuple[int, float]:
        """Take Newton steps as `DualNewton.descend` does, in one call where there is one chunk."""
        if len(self.chunks) > 1:
            return super().descend(tolerance, most, whole=whole)
        v, gradient = np.zeros_like(self.v), np.empty_like(self.gradient)
        prices, used = np.empty_like(self.prices), np.empty_like(self.used)
        here = FewPoint(lines(self.v), self.prices, lines(self.gradient), self.used)
        there = FewPoint(lines(v), prices, lines(gradient), used)
        point = (here, there, self.value, self.flow)
        taken, length, self.value, self.flow, swapped = few_descend(
            self.few, *point, tolerance, most, whole, self.rows, self.factors, lines(self.step)
        )
        if swapped:
            self.v, self.prices, self.gradient, self.used = v, prices, gradient, used
        return taken, length

    def newton_step(self, *, own: bool = False) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials."""
        columns, column = self.free_prices()
        gradient, step = lines(self.gradient), lines(self.step)

        def factored(first: int, last: int) -> tuple[FloatArray, FloatArray]:
            schur, active = np.empty((1 + columns, 1 + columns)), np.empty_like(self.prices)
            few_curvature(self.few, first, last, self.rows, gradient, own, column, self.factors, step, active, schur)
            return schur, active

        parts = self.each(factored)
        schur, active = total([one[0] for one in parts]), total([one[1] for one in parts])
        prices = np.empty_like(self.prices)
        step_from_schur(schur, active, self.budget - self.used, column, prices)
        slopes = self.each(lambda first, last: few_direction(self.few, first, last, gradient, self.factors, prices, step))
        return prices, float(sum(one[0] for one in slopes))

    def followed(self) -> FloatArray:
        """(N,H,S) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        flow = np.empty_like(self.rows.mass)
        few_flow(self.few, self.rows, flow)
        masses = flow.reshape(*self.gradient.shape[:3], 2, WIDTH)
        return self.by_arm(masses[:, :, :, 0] + masses[:, :, :, 1])

    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point, by arms; rows without mass get some kernel of their set."""
        few_fill(self.few, self.rows)
        return self.by_arm(self.primal.kernel)

    def solution(self, table: FloatArray | None = None) -> Solution:  # noqa: ARG002
        """Return the feasible primal point of the dual one; SolverError where a row is no distribution. Ends the solve."""
        shape = self.program.reach.shape
        mass, kernel, potentials = np.empty((*shape, 2)), np.empty(self.program.reference.shape), np.empty(shape)
        spent, off = few_answer(self.few, self.rows, lines(self.v), mass, kernel, potentials)
        if not off <= OFF:
            live = self.program.reach[..., np.newaxis] & ~(
                self.program.idle[:, np.newaxis, np.newaxis] & np.array([False, True])
            )
            wrong = np.abs(kernel.sum(axis=4) - 1.0) * live
            n, h, s, _ = np.argwhere(~(wrong <= OFF))[0]
            raise SolverError(f"projection: arm {n}, step {h}, state {s} has a row sum off by {wrong[n, h, s].max():.1e}")
        return Solution(mass, kernel, potentials, spent)

    def by_arm(self, table: FloatArray) -> FloatArray:
        """Return a table (G,...,W) by arms: (N,...)."""
        return unpacked(table, len(self.program.reach))

    def from_arms(self, table: FloatArray) -> FloatArray:
        """Return a table (N,...) as (G,...,W)."""
        return packed(table, len(table)).reshape(-1, *table.shape[1:], WIDTH)


def lines(table: FloatArray) -> FloatArray:
    """Return a table (...,W) as lines (M,W), as compiled code has it."""
    return table.reshape(-1, WIDTH)


def few_program(program: Program) -> FewProgram:
    """Return the program with arms side by side."""
    arms, horizon, states = program.reach.shape
    groups = -(-arms // WIDTH)
    nodes, bounds = groups * horizon * states, groups * program.phases * states * 2
    radius = np.empty((0, 0, 0)) if program.radius is None else program.radius
    entries, rows = 2 * nodes * states, bounds if radius.size else 0
    sizes = (entries, entries, *(bounds * states,) * 4, rows, nodes, groups * states, groups, groups)
    tables = [np.empty((size, WIDTH)) for size in sizes]
    reference, logs, low, high, low_logs, high_logs, radii, reach, start, weights, cost = tables
    time = (program.phase, program.phases, program.budget, program.idle, program.binds)
    few = FewProgram(reference, logs, low, high, low_logs, high_logs, radii, reach, start, weights, cost, *time)
    pack_all(
        sealed(program.reference), program.reach, program.start, program.weights, program.cost, radius,
        program.low, program.high, program.successors, program.counts, few,
    )  # fmt: skip
    return few
