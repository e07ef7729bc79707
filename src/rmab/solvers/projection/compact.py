"""Newton's method on the dual of the KL projection, where rows over many states are compact (`compiled/compact.py`).

The Newton system is solved by conjugate gradients, exactly enough that the residual falls with the power 3/2. A step that is
not exact costs iterations; the certificate does not depend on it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common import FloatArray, IntArray
from rmab.solvers.projection.compiled.compact import OTHERS, Compact, list_rows
from rmab.solvers.projection.compiled.compact_rows import FULL, dual_compact, follow_compact, open_compact, write_kernel
from rmab.solvers.projection.compiled.conjugate import Curvature, measure, precondition
from rmab.solvers.projection.compiled.program import FEW_STATES, Primal, Program
from rmab.solvers.projection.newton import DualNewton

MORE = 2  # times as much room as is needed, and again where that was not enough
ROUGHEST = 0.1  # part of the residual that a Newton step may leave at most
PRODUCTS = 200  # most products of one Newton step

Array = NDArray[Any]


class NotCompact(Exception):
    """The rows cannot be written compactly, or conjugate gradients are too slow: `DualNewton` is to be asked."""


def may_be_compact(program: Program) -> bool:
    """Return whether it is worth a try: boxes over many states."""
    return not program.ball and program.reach.shape[2] > FEW_STATES


class CompactNewton(DualNewton):
    """As `DualNewton`, on compact rows; raises NotCompact where that does not work."""

    def prepare(self) -> None:
        """List the rows, and make the work space."""
        arms, horizon, states = self.program.reach.shape
        self.chunks = [(n, n + 1) for n in range(arms)]
        shapes = [(arms, horizon, states)] * 2 + [(arms, horizon, states, 2)] * 3
        constant, mass, phi, sigma = (np.zeros((arms, horizon, states, 2)) for _ in range(4))
        self.primal = Primal(np.empty((0, 0, 0, 0, 0)), constant, mass, phi, sigma, self.gradient)
        rows = [np.zeros(shape) for shape in shapes] + [np.empty(arms * horizon * states * 2, dtype=np.int64) for _ in range(3)]
        self.most, unused = 2 * horizon * states * (states // OTHERS), np.zeros((arms, 2), dtype=np.int64)

        def listed(first: int, _: int) -> list[Array]:
            places = self.most + 2 * states * states
            lists = [np.empty(places, dtype=np.uint32), *(np.empty(places) for _ in range(4))]
            used = list_rows(self.program, first, Compact(*rows, unused, *lists), constant)
            if not 0 <= used <= self.most:
                raise NotCompact
            return [one[:used] for one in lists]

        lists = self.each(listed)
        used = np.array([one[0].size for one in lists])
        self.compact = _laid_out(Compact(*rows, unused, *lists[0]), lists, MORE * used + 8 * states)

    def widen(self, status: int) -> None:
        """Make more room for entries that come to be pinned."""
        places = self.compact.used
        begin = np.concatenate([[0], places[:-1, 1]])
        room = MORE * (places[:, 1] - begin)
        if status != FULL or (room > MORE * self.most).any():
            raise NotCompact
        lists = [[one[first:last] for one in self.compact[-5:]] for first, last in zip(begin, places[:, 0], strict=True)]
        self.compact = _laid_out(self.compact, lists, room)

    def open(self, marginals: FloatArray) -> None:
        """Write the first potentials and prices."""
        status, h = FULL, self.budget.size - 1
        while status < 0:
            status, h = open_compact(self.program, self.compact, h, marginals, self.prices, self.v, self.primal)
            if status < 0:
                self.widen(status)

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
        target, z, product = (np.empty_like(residual) for _ in range(3))
        slots = [part for one in (target, z, product) for part in (one[:nodes].reshape(shape), one[nodes:])]
        before = np.inf
        for _ in range(PRODUCTS):
            target[:] = residual
            precondition(program, self.compact, curvature, *slots)
            now = float(residual @ z)
            along *= now / before
            along += z
            image *= now / before
            image += product
            curved = float(along @ image)
            if not (now > 0.0 and curved > 0.0):
                break
            x += (now / curved) * along
            residual -= (now / curved) * image
            before = now
            self.products += 1
            if np.abs(residual / unit).max() <= enough:
                self.step[:] = x[:nodes].reshape(shape)
                return x[nodes:].copy(), float((weights * self.gradient * self.step).sum())
        raise NotCompact
    products = 0

    def flow_masses(self) -> FloatArray:
        """(N,H,S,2) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        own = self.primal.mass
        share, mass = own[..., 1] / np.where(own[..., 1] > 0, own.sum(axis=3), 1.0), np.empty_like(own)
        follow_compact(self.program, self.compact, share, mass)
        return mass

    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point."""
        kernel = np.empty(self.program.reference.shape)
        self.each(lambda first, last: write_kernel(self.program, self.compact, first, last, kernel))
        return kernel


def _laid_out(compact: Compact, lists: list[list[Array]], room: IntArray) -> Compact:
    """Put the lists of every arm one after the other, with so many places (N,) each."""
    end = np.cumsum(room)
    begin = end - room
    whole = [np.zeros(end[-1], dtype=one.dtype) for one in lists[0]]
    for first, own in zip(begin, lists, strict=True):
        for table, part in zip(whole, own, strict=True):
            table[first : first + part.size] = part
    places = compact.begin.reshape(len(lists), -1)
    places += (begin - np.concatenate([[0], compact.used[:-1, 1]]))[:, np.newaxis]
    used = np.stack([begin + [own[0].size for own in lists], end], axis=1)
    state, weight, low, high, p = whole
    return compact._replace(used=used, state=state, weight=weight, low=low, high=high, p=p)
