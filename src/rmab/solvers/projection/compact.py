"""Newton's method on the dual of the KL projection, where rows over many states are compact (`compiled/compact.py`).

The Newton system is solved by conjugate gradients: exactly enough that the residual falls with the power 3/2. A Newton step
that is not exact costs iterations; the certificate does not depend on it.
"""

import numpy as np

from rmab.common import FloatArray, each
from rmab.solvers.projection.compiled.compact import OTHERS, SPARE, Compact, list_rows
from rmab.solvers.projection.compiled.compact_rows import FULL, dual_compact, follow_compact, open_compact, write_kernel
from rmab.solvers.projection.compiled.conjugate import Curvature, measure, precondition
from rmab.solvers.projection.compiled.program import FEW_STATES, Primal, Program
from rmab.solvers.projection.newton import DualNewton

MORE = 4  # places that are added to a list which is full
ROUGHEST = 0.1  # part of the residual that a Newton step may leave at most
PRODUCTS = 200  # most products of one Newton step


class NotCompact(Exception):
    """The rows cannot be written compactly, or conjugate gradients do not get on: all numbers are needed after all."""


def may_be_compact(program: Program) -> bool:
    """Return whether it is worth a try: boxes over many states."""
    return not program.ball and program.reach.shape[2] > FEW_STATES


class CompactNewton(DualNewton):
    """As `DualNewton`, on compact rows; raises NotCompact where it should be asked instead."""

    def prepare(self) -> None:
        """List the rows, and make the work space."""
        arms, horizon, states = self.program.reach.shape
        self.chunks = [(n, n + 1) for n in range(arms)]
        shapes = [(arms, horizon, states)] * 2 + [(arms, horizon, states, 2)] * 3
        pattern, tilted, scale, alpha, ceiling = (np.zeros(shape) for shape in shapes)
        most = horizon * 2 * states * (states // OTHERS + SPARE) + 2 * states * (states + SPARE)

        def listed(first: int, last: int) -> Compact:
            rows, many = (last - first) * horizon * states * 2, (last - first) * most
            begin, count = np.empty(rows + 1, dtype=np.int64), np.empty(rows, dtype=np.int64)
            weight, low, high = (np.empty(many) for _ in range(3))
            state, p = np.empty(many, dtype=np.uint32), np.empty(0)
            part = Compact(pattern, tilted, scale, alpha, ceiling, begin, count, state, weight, low, high, p)
            used = list_rows(self.program, first, last, part)
            if used < 0:
                raise NotCompact
            lists = (np.array(one[:used]) for one in (state, weight, low, high))
            return Compact(pattern, tilted, scale, alpha, ceiling, begin, count, *lists, p)

        self.compact = _joined(each(self.chunks, listed))
        constant, mass, phi, sigma = (np.zeros((arms, horizon, states, 2)) for _ in range(4))
        self.primal = Primal(np.empty((0, 0, 0, 0, 0)), constant, mass, phi, sigma, self.gradient)

    def open(self, marginals: FloatArray) -> None:
        """Write the first potentials and prices."""
        status, h = FULL, self.budget.size - 1
        while status < 0:
            status, h = open_compact(self.program, self.compact, h, marginals, self.prices, self.v, self.primal)
            if status < 0:
                self.widen(status)

    def widen(self, status: int) -> None:
        """Make room in the lists that are full."""
        compact, rows = self.compact, self.compact.count.size
        room = np.diff(compact.begin)
        more = room + np.where(compact.count == room, MORE, 0)
        total = int(more.sum())
        if status != FULL or total > rows * (self.program.reach.shape[2] // OTHERS + SPARE):
            raise NotCompact
        begin = np.concatenate([[0], np.cumsum(more)])
        place = np.arange(compact.state.size) + np.repeat(begin[:-1] - compact.begin[:-1], room)
        lists = []
        for one in (compact.state, compact.weight, compact.low, compact.high, compact.p):
            lists.append(np.zeros(total, dtype=one.dtype))
            lists[-1][place] = one
        self.compact = Compact(*compact[:5], begin, compact.count, *lists)

    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the dual function, the active mass (H,) and the largest flow violation."""
        primal = self.primal._replace(gradient=gradient)

        def part(first: int, last: int) -> tuple[float, float, int, FloatArray]:
            used = np.empty_like(prices)
            return *dual_compact(self.program, self.compact, first, last, v, prices, primal, used), used

        while True:
            parts = self.each(part)
            status = min(one[2] for one in parts)
            if status == 0:
                break
            self.widen(status)
        value = sum(one[0] for one in parts) + float(self.budget @ prices)
        return value, np.sum([one[3] for one in parts], axis=0), max(one[1] for one in parts)

    def newton_step(self, mass: FloatArray) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials."""
        program, slack, entries = self.program, self.budget - self.used, self.compact.state.size
        weights = program.weights[:, np.newaxis, np.newaxis]
        free = program.binds & ((self.prices > 0) | (slack < 0))
        own = (np.empty(entries), np.empty(entries), np.empty_like(self.gradient))
        curvature = Curvature(mass * weights[..., np.newaxis], self.primal.sigma, *own, free)
        measure(program, self.compact, curvature)
        nodes, shape = self.gradient.size, self.gradient.shape
        residual = np.concatenate([-(weights * self.gradient).ravel(), np.where(free, -slack, 0.0)])
        unit = np.concatenate([np.repeat(program.weights, nodes // len(weights)), np.maximum(self.budget, 1.0)])
        enough = min(ROUGHEST, self.residual**0.5) * self.residual
        x, along, image = (np.zeros_like(residual) for _ in range(3))
        z, product = np.empty_like(residual), np.empty_like(residual)
        before = 0.0
        for _ in range(PRODUCTS):
            target, slots = residual.copy(), [(one[:nodes].reshape(shape), one[nodes:]) for one in (z, product)]
            precondition(
                program, self.compact, curvature, target[:nodes].reshape(shape), target[nodes:], *slots[0], *slots[1]
            )
            now = float(residual @ z)
            ratio = now / before if before > 0.0 else 0.0
            along *= ratio
            along += z
            image *= ratio
            image += product
            curved = float(along @ image)
            if not (now > 0.0 and curved > 0.0):
                break
            x += (now / curved) * along
            residual -= (now / curved) * image
            before = now
            if np.abs(residual / unit).max() <= enough:
                self.products += 1 + _
                self.step[:] = x[:nodes].reshape(shape)
                return x[nodes:].copy(), float((weights * self.gradient * self.step).sum())
        raise NotCompact
    products=0

    def flow_masses(self) -> FloatArray:
        """(N,H,S,2) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        own = self.primal.mass
        share, mass = own[..., 1] / np.where(own[..., 1] > 0, own.sum(axis=3), 1.0), np.empty_like(own)
        follow_compact(self.program, self.compact, share, mass)
        return mass

    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point."""
        kernel = np.zeros(self.program.reference.shape)
        self.each(lambda first, last: write_kernel(self.program, self.compact, first, last, kernel))
        return kernel


def _joined(parts: list[Compact]) -> Compact:
    """Join the lists of all arms."""
    first = parts[0]
    if len(parts) == 1:
        return first._replace(p=np.zeros(first.state.size))
    offset = np.concatenate([[0], np.cumsum([one.state.size for one in parts])])
    begin = np.concatenate([one.begin[:-1] + at for one, at in zip(parts, offset[:-1], strict=True)] + [offset[-1:]])
    count, state, weight, low, high = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("count", "state", "weight", "low", "high")
    )
    return Compact(*first[:5], begin, count, state, weight, low, high, np.zeros(state.size))
