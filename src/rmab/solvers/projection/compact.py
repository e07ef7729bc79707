"""Newton's method on the dual of the KL projection, where rows over many states are compact (`compiled/compact.py`).

The Newton system is solved by conjugate gradients, as exactly as it pays: a step that is not exact costs
iterations, and the certificate does not depend on it.
"""

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.solvers.projection.compiled.compact import FEWEST, Compact, list_rows
from rmab.solvers.projection.compiled.compact_rows import FULL, dual_compact, follow_compact, open_compact, write_kernel
from rmab.solvers.projection.compiled.conjugate import Curvature, measure, precondition
from rmab.solvers.projection.compiled.program import FEW_STATES, Primal, Program
from rmab.solvers.projection.many import ManyStates

MORE, SPARE = 2, 8  # room for own entries: times what is needed, plus so many by state; and again where that is not enough
ROUGHEST = 0.3  # part of the residual that a Newton step may leave at most
NEAR, LEAST = 1e-5, 1e-12  # below the former, residuals are squared, as Newton's method does, down to the latter
USUAL = 8  # places by node to begin with, when rows are listed
PRODUCTS = 200  # most products of one Newton step
LISTS = ("state", "weight", "low", "high", "p")


class NotCompactError(Exception):
    """The rows cannot be written compactly, or conjugate gradients are too slow: `ManyStates` is to be asked."""


def may_be_compact(program: Program) -> bool:
    """Return whether it is worth a try: boxes over many states."""
    return not program.ball and program.reach.shape[2] > FEW_STATES


def accuracy(residual: float) -> float:
    """Return what a Newton step from a point with this residual may leave of it."""
    return min(ROUGHEST, residual**0.5) * residual if residual > NEAR else max(residual * residual, LEAST)


class CompactNewton(ManyStates):
    """As `ManyStates`, on compact rows; raises NotCompactError where that does not work."""

    def prepare(self) -> None:
        """List the rows, and make the work space."""
        arms, horizon, states = self.program.reach.shape
        self.chunks = [(n, n + 1) for n in range(arms)]
        pattern, tilted = (np.zeros((arms, horizon, states)) for _ in range(2))
        scale, alpha, ceiling, constant, mass, phi, sigma = (np.zeros((arms, horizon, states, 2)) for _ in range(7))
        begin, counts, room = (np.empty(scale.size, dtype=np.int64) for _ in range(3))
        unused, self.most = np.zeros((arms, 2), dtype=np.int64), 2 * horizon * states * (states // FEWEST)
        self.primal = Primal(np.empty((0, 0, 0, 0, 0)), constant, mass, phi, sigma, self.gradient)

        def listed(first: int, _: int) -> Compact:
            for places in (USUAL * horizon * states, self.most):
                states_of, tables = np.empty(places, dtype=np.uint32), np.empty((4, places))
                compact = Compact(pattern, tilted, scale, alpha, ceiling, begin, counts, room, unused, states_of, *tables)
                used = list_rows(self.program, first, compact, constant)
                if used >= 0:
                    return _places(compact, 0, used)
            raise NotCompactError

        lists = self.each(listed)
        used = np.array([one.state.size for one in lists])
        self.compact = _laid_out(lists, MORE * used + SPARE * states)

    def widen(self, status: int) -> None:
        """Make more room for entries that come to be pinned."""
        places = self.compact.used
        begin = np.concatenate([[0], places[:-1, 1]])
        room = MORE * (places[:, 1] - begin) + self.program.reach.shape[2]
        if status != FULL or (room > MORE * self.most).any():
            raise NotCompactError
        lists = [_places(self.compact, *own) for own in zip(begin, places[:, 0], strict=True)]
        self.compact = _laid_out(lists, room)

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

    def newton_step(self, *, own: bool = False) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials."""
        program, slack, entries = self.program, self.budget - self.used, self.compact.state.size
        mass, weights = self.masses(own=own), program.weights[:, np.newaxis, np.newaxis]
        free = program.binds & ((self.prices > 0) | (slack < 0))
        tables = (np.empty(entries), np.empty(entries), np.empty_like(self.gradient))
        curvature = Curvature(mass * weights[..., np.newaxis], self.primal.sigma, *tables, free)
        measure(program, self.compact, curvature)
        nodes, shape = self.gradient.size, self.gradient.shape
        residual = np.concatenate([-(weights * self.gradient).ravel(), np.where(free, -slack, 0.0)])
        unit = np.concatenate([np.repeat(program.weights, nodes // len(weights)), np.maximum(self.budget, 1.0)])
        enough = accuracy(self.residual)
        x, along, image = (np.zeros_like(residual) for _ in range(3))
        target, z, product = (np.empty_like(residual) for _ in range(3))
        slots = [part for one in (target, z, product) for part in (one[:nodes].reshape(shape), one[nodes:])]
        before = np.inf
        for _ in range(PRODUCTS):
            target[:] = residual
            precondition(program, self.compact, curvature, *slots)
            now = float((residual * z).sum())  # not @, for which BLAS would start threads
            along *= now / before
            along += z
            image *= now / before
            image += product
            curved = float((along * image).sum())
            if not (now > 0.0 and curved > 0.0):
                break
            x += (now / curved) * along
            residual -= (now / curved) * image
            before = now
            if np.abs(residual / unit).max() <= enough:
                self.step[:] = x[:nodes].reshape(shape)
                return x[nodes:].copy(), float((weights * self.gradient * self.step).sum())
        raise NotCompactError

    def flow_masses(self) -> FloatArray:
        """(N,H,S,2) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""
        own = self.primal.mass
        share, mass = own[..., 1] / np.where(own[..., 1] > 0, own.sum(axis=3), 1.0), np.empty_like(own)
        follow_compact(self.program, self.compact, share, mass)
        return mass

    def rows(self, table: FloatArray | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernel (N,H,S,2,S) at the point, and of every row what its sum is off, and its product with v."""
        kernel = np.empty(self.program.reference.shape) if table is None else table
        off, lean = np.empty_like(self.primal.mass), np.empty_like(self.primal.mass)
        self.each(lambda first, last: write_kernel(self.program, self.compact, first, last, self.v, kernel, off, lean))
        return kernel, off, lean


def _places(compact: Compact, first: int, last: int) -> Compact:
    """Return the lists from place first to before last."""
    return compact._replace(**{name: getattr(compact, name)[first:last] for name in LISTS})


def _laid_out(lists: list[Compact], room: IntArray) -> Compact:
    """Put the lists of every arm one after the other, with so many places (N,) each."""
    compact, end = lists[0], np.cumsum(room)
    first = end - room
    whole = {name: np.zeros(end[-1], dtype=getattr(compact, name).dtype) for name in LISTS}
    for at, own in zip(first, lists, strict=True):
        for name, table in whole.items():
            table[at : at + own.state.size] = getattr(own, name)
    begin = compact.begin.reshape(len(lists), -1)
    begin += (first - np.concatenate([[0], compact.used[:-1, 1]]))[:, np.newaxis]
    return compact._replace(used=np.stack([first + [own.state.size for own in lists], end], axis=1), **whole)
