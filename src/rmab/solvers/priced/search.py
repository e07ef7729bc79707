"""The search for the prices of the budget: a smooth convex function of H numbers, not negative unless the budget is exact.

At inverse temperature eta and scaled prices nu = eta * price, the dual function is phi(nu) = value of the softened plans +
budget . nu, and its gradient is budget - use. One evaluation is one backward and one forward pass over all blocks. Steps are
those of a quasi-Newton method with bounds: its matrix is reused from call to call and updated at each step (BFGS); the
exact one is computed only near the solution, where plans hardly change in a step, and only if steps have become slow.
It costs several passes; with many blocks it is that of a sample, scaled up.

The search aims at a little less than the budget, as little as the tolerance allows. So its plans are feasible
without changes, and the gap of weak duality is exactly the unused budget times its price.

If eta is so small that rounding hides the effect of prices, prices are those of a larger eta, which differ by the order of
that eta: plans are nearly uniform, and prices are the gain from one more activation of the uniform policy.

From a cold or distant start, prices are followed from a high temperature to the target. They are nearly a
straight line in the temperature, so each rung of this ladder predicts the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rmab.common import FloatArray, IntArray, chunks_of, each
from rmab.errors import SolverError
from rmab.solvers.priced.compiled.curvature import curve
from rmab.solvers.priced.compiled.program import Program
from rmab.solvers.priced.compiled.quadratic import learn
from rmab.solvers.priced.compiled.steps import judge, propose, standing
from rmab.solvers.priced.program import PIECE, Plans

SAMPLE, PART = 512, 8  # blocks used for the exact matrix: as many as this, or one in so many
ROUNDING = 1e-9  # largest relative excess over a budget, included in the gap; less if plans are nearly uniform
SPARE = 1e-4  # largest share of a budget left unused on purpose; less if plans are nearly uniform at any price
NEAR, STALE = 1.0, 10  # longest step, or passes since the last one, that justify an exact matrix
SLOW = 0.1  # ... if the expected decrease of phi has not shrunk by this factor since the last step
FARTHEST = 20.0  # scaled prices move no farther in the first step
FAINT, CERTAIN = 1e-2, 1e-13  # derivatives, and shares of all mass, that the exact matrix ignores
LEAST = 1e-10  # curvature relative to the budget that may be rounding
WARM, PATIENCE, LAST = 30, 120, 500  # passes allowed from given prices, on a rung of the ladder, and on the last
FIRST, LONGER, SHORTEST = 1.0, 4.0, 1.2  # eta at which the ladder begins, and factors from rung to rung
FADED = 1e-9  # eta below which prices are those of this one
ROUGH = 0.5  # accuracy of scaled prices on the way


class Point(NamedTuple):
    """Scaled prices (H,) at eta: the value of the plans, their use, and the undecided mass (H,)."""

    eta: float
    prices: FloatArray
    value: float
    use: FloatArray
    loose: FloatArray


class Search:
    """The search for one programme with this budget (H,). Its `plans` are those of the last evaluation."""

    def __init__(
        self, program: Program, blocks: int, budget: FloatArray, *, exact: bool = False, most: float | None = None
    ) -> None:
        batches, _, lanes = program.start.shape
        self.program, self.budget, self.blocks, self.exact_budget = program, budget, blocks, exact
        self.total = float(program.start.sum()) if most is None else most
        self.open = (budget > 0) & (budget < self.total)  # the steps that need a price
        self.least = LEAST * np.maximum(budget, 1e-300)
        self.plans, self.loose_of = Plans(program, blocks), np.empty((batches, lanes))
        self.passes = self.curvatures = 0
        self.gap = np.inf  # the smallest of a feasible point

    def solve(
        self, eta: float, tolerance: float, prices: FloatArray | None = None, matrix: FloatArray | None = None
    ) -> tuple[Point, FloatArray | None]:
        """Return the plans at eta, proven to the tolerance, and the matrix there (H,H), in scaled prices.

        prices (H,), not scaled, and a matrix in scaled prices: the start; the matrix is updated in place. Returns None
        if none was given, and none was needed.
        """
        if eta < FADED:
            return self.fade(eta, tolerance, prices), None
        if prices is not None:
            found = self.descend(eta, eta * np.where(self.open, prices, 0.0), matrix, tolerance, WARM)
            if found is not None:
                return found
        found = self.climb(eta, tolerance)
        if found is None:
            raise self.unproven(tolerance)
        return found

    def fade(self, eta: float, tolerance: float, prices: FloatArray | None) -> Point:
        """Return the plans at a very small eta, at the prices of a larger one, proven to the tolerance."""
        near, _ = self.solve(FADED, tolerance, prices)
        self.gap = np.inf
        point = self.at(eta, near.prices * (eta / FADED))
        if self.allowed(point, tolerance) >= 0.0:
            raise self.unproven(tolerance)
        return point

    def unproven(self, tolerance: float) -> SolverError:
        """Return the error to raise if the tolerance cannot be reached."""
        reached = f"the gap is {self.gap:.2e}" if self.gap < np.inf else "no plan was found within the budget"
        return SolverError(f"priced step: {reached}, not proven to the tolerance {tolerance:.2e}")

    def climb(self, eta: float, tolerance: float) -> tuple[Point, FloatArray | None] | None:
        """Follow the prices from a high temperature to eta; None if they are lost."""
        factor, rung, guess = LONGER, min(FIRST, eta), np.zeros(self.budget.size)
        last: Point | None = None
        done: Point | None = None
        while True:
            ends = rung == eta
            found = self.descend(rung, rung * guess, None, tolerance if ends else None, LAST if ends else PATIENCE)
            if found is not None and ends:
                return found
            if found is not None:
                last, done = done, found[0]
            else:
                factor **= 0.5
            if done is None or factor < SHORTEST:
                return None
            rung = min(done.eta * factor, eta)
            guess = predicted(rung, done, last)
            guess = guess if self.exact_budget else np.maximum(guess, 0.0)

    def descend(
        self, eta: float, prices: FloatArray, matrix: FloatArray | None, tolerance: float | None, patience: int
    ) -> tuple[Point, FloatArray | None] | None:
        """Minimise phi from scaled prices (H,); None if this takes too long. Without a tolerance, roughly."""
        point, limit = self.at(eta, prices), self.passes + patience
        radius, before, fresh = FARTHEST, np.inf, self.passes
        aim, step = np.empty_like(prices), np.empty_like(prices)
        while True:
            worth = self.allowed(point, tolerance)
            if worth < 0.0:
                return point, matrix
            matrix = self.exact(point) if matrix is None else matrix
            fall, length = self.propose(matrix, point, worth, radius, aim, step)
            age = self.passes - fresh
            if fall > SLOW * before and age > 0 and (age >= STALE or length <= NEAR):
                matrix, fresh = self.exact(point), self.passes
                fall, length = self.propose(matrix, point, worth, radius, aim, step)
            if tolerance is None and length <= ROUGH:
                return point, matrix
            before = fall
            while True:
                if self.passes >= limit:
                    return None
                new = self.at(eta, point.prices + step)
                learn(matrix, step, point.use - new.use)
                here = (point.prices, point.value, point.use)
                taken, radius = judge(aim, step, fall, radius, *here, new.value, new.use)
                if taken:
                    break
                fall, _ = self.propose(matrix, point, worth, radius, aim, step)
            point = new

    def allowed(self, point: Point, tolerance: float | None) -> float:
        """Return the gap that the tolerance allows, in units of the temperature; -1 if the point is certified."""
        if tolerance is None:
            return 0.0
        phi, excess, missing = self.standing(point)
        most = max(abs(phi), point.eta)
        if excess > ROUNDING * (min(point.eta, 1.0) if point.eta >= FADED else 1.0):
            return tolerance * most
        self.gap = min(self.gap, missing / most)
        return -1.0 if missing <= tolerance * most else tolerance * most

    def standing(self, point: Point) -> tuple[float, float, float]:
        """Return phi, the largest relative excess over a budget, and an upper bound on the loss of a plan within it."""
        model = (self.budget, self.exact_budget, self.program.uniform, self.total)
        phi, excess, missing = standing(*model, point.eta, point.prices, point.value, point.use)
        if point.eta < FADED:  # a budget is exceeded only by rounding
            missing = abs(float(point.prices @ (self.budget - point.use)))
        return phi, excess, missing

    def propose(
        self, matrix: FloatArray, point: Point, worth: float, radius: float, aim: FloatArray, step: FloatArray
    ) -> tuple[float, float]:
        """Write the target use and the best step (H,) within the radius; return the decrease of phi and the length."""
        here = (self.budget, self.exact_budget, self.open, self.least, point.prices, point.use)
        return propose(matrix, *here, worth, SPARE * min(point.eta, 1.0), radius, aim, step)

    def at(self, eta: float, prices: FloatArray) -> Point:
        """Evaluate phi and its gradient: one backward and one forward pass."""
        self.passes += 1

        def part(first: int, last: int) -> tuple[float, FloatArray, FloatArray]:
            return self.plans.evaluate(first, last, eta, prices, self.loose_of)[:3]

        parts = each(self.plans.pieces, part)
        if len(parts) == 1:
            return Point(eta, prices, *parts[0])
        value, used, loose = zip(*parts, strict=True)
        return Point(eta, prices, sum(value), np.sum(used, axis=0), np.sum(loose, axis=0))

    def exact(self, point: Point) -> FloatArray:
        """(H, H) the second derivatives of phi at the last evaluated point, possibly from a sample of the blocks."""
        self.curvatures += 1
        sample, weight = self.sampled()
        _, states, lanes = self.program.start.shape
        horizon, size = self.budget.size, max(64, PIECE // (10 * self.budget.size * states))

        def part(first: int, last: int) -> tuple[FloatArray, FloatArray]:
            hessian, spread = np.empty((horizon, horizon)), np.empty(horizon)
            some = (sample[first:last], weight[first:last], CERTAIN * self.total, FAINT)
            share = self.plans.of(sample[first] // lanes, sample[last - 1] // lanes + 1, point.eta, point.prices)
            curve(self.program, *some, share, hessian, spread)
            return hessian, spread

        parts = each(chunks_of(sample.size, size), part)
        hessian, spread = parts[0] if len(parts) == 1 else (np.sum([one[i] for one in parts], axis=0) for i in (0, 1))
        matrix: FloatArray = (hessian + hessian.T)[::-1, ::-1].copy()  # only the upper half was written
        correction = np.maximum(point.loose - spread, 0.0)  # for the sample
        np.fill_diagonal(matrix, hessian.diagonal()[::-1] + correction)
        return matrix

    def sampled(self) -> tuple[IntArray, FloatArray]:
        """Return blocks with weights: all of them, or a sample in proportion to their undecided mass."""
        count = max(SAMPLE, self.blocks // PART)
        if count >= self.blocks:
            return np.arange(self.blocks), np.ones(self.blocks)
        loose = self.loose_of.reshape(-1)[: self.blocks]
        reached = np.cumsum(loose)
        times = np.diff(np.floor(reached * (count / max(float(reached[-1]), 1e-300))), prepend=0.0)
        chosen = np.flatnonzero(times)
        return chosen, times[chosen] * float(reached[-1]) / (count * loose[chosen])


def predicted(eta: float, point: Point, before: Point | None) -> FloatArray:
    """Return the prices (H,), not scaled, predicted at eta: on the line in the temperature through the last two rungs."""
    here = point.prices / point.eta
    if before is None:
        return here
    back = before.prices / before.eta
    ahead = (1.0 / eta - 1.0 / point.eta) / (1.0 / point.eta - 1.0 / before.eta)
    return np.asarray(here + ahead * (here - back))
