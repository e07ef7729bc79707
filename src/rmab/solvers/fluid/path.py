"""The fluid LP, known or optimistic, by following the entropy-softened dual down to temperature zero: H unknowns.

At inverse temperature eta the plans of all blocks are softened (`compiled/soft.py`), and the scaled prices nu minimise

    phi(nu) = value of the softened plans at nu + budget . nu + budget . exp(-nu),

smooth and convex without bounds on nu: the last term softens nu >= 0. At its minimum the plans use the
budget less budget exp(-nu), so they are feasible. A budget that is exact has prices of either sign, and no last term.
Newton's method finds it, and the next one from the tangent of the path nu(eta), which approaches a straight line
exponentially fast, degenerate or not: steps in eta grow to a factor 100. At any
point the prices nu / eta prove an upper bound by plain backward induction, and the soft plan, scaled into the budget, earns
a lower one: the path ends when the two agree. It is skipped if they already agree at price 0.

Masses are relative to the total, rewards are normalised: counted from the least of each block, relative to
the widest range.
"""

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, IntArray, check_memory, frozen, sealed
from rmab.errors import SolverError
from rmab.model import by_step
from rmab.solvers.checks import Units, reachable
from rmab.solvers.compiled.dynamics import forward, steer
from rmab.solvers.compiled.linear import solve_each
from rmab.solvers.compiled.optimism import best_values
from rmab.solvers.fluid.compiled.sensitivity import curve
from rmab.solvers.fluid.compiled.soft import follow, soft_values
from rmab.solvers.transitions import TransitionSets

ACCURACY = 1e-4  # target Newton decrement (twice the remaining decrease of phi)
ROUNDING = 1e-14  # smallest useful Newton decrement
WASTE = 0.2  # share of the expected gap allowed for budgets missed or exceeded
FIRST, NEXT = 100, 12  # Newton iterations allowed at the first point and after short steps, and after long steps
EASY, HARD = 1, 4  # iterations after which the path is followed in longer or in shorter steps
LONGEST, SHORTEST = 100.0, 1.001  # factor in eta, and the one at which the path counts as lost
LAST = 1e13  # eta at which exponents have few digits left
ITERATIONS = 1000  # allowed along the whole path
FARTHEST = 0.2  # longest Newton step, relative to the largest scaled price (or 100), before it is damped
STEEPEST = 600.0  # largest exponent: phi stays finite at any price
EVEN = 1e-12  # relative difference of phi that may be rounding
DEAR = 10.0  # factor on the expected gap with met budgets: above it, budgets are met in another way
FAINTEST = 1e-100  # smallest weight of the rewards of a step that has its own price
AIM = 0.1  # share of the tolerance that the last step aims at
LEAST = 1e-11  # curvature relative to the budget that may be rounding: prices with no more stay where they are


@dataclass(frozen=True, eq=False)
class Point:
    """A minimum of phi at eta: scaled prices (H,), the tangent d prices / d eta, and the Newton iterations it took."""

    eta: float
    prices: FloatArray
    tangent: FloatArray
    iterations: int


class SoftPath:
    """Solver of one problem: blocks with these sets of transitions, reward (C*K,S,2), start masses (C,S), budget (H,).

    phase_of (H,) is the phase of every step. discounts (H,): their weights; kernels are already discounted, so that
    masses fall and the budget falls with them (`blocks`). most: the largest possible mass if kernels do not preserve it
    (`state_costs`). Afterwards: bound, value and gap, prices (H,), occupancy
    (C,H,S,2), and kernels by cell: (C*H,S,2,S), or (C*K,S,2,S) if they are known (see `free`).
    """

    def __init__(
        self,
        sets: TransitionSets,
        reward: FloatArray,
        start: FloatArray,
        budget: FloatArray | IntArray,
        phase_of: IntArray,
        discounts: FloatArray | None = None,
        *,
        exact: bool = False,
        most: float | None = None,
    ) -> None:
        self.exact = exact
        self.discounts = np.ones(budget.size) if discounts is None else discounts
        limits: FloatArray = np.where(self.discounts >= FAINTEST, budget * self.discounts, 0.0)
        self.rows, self.start, self.budget, self.phase_of = sets.rows, start, limits, phase_of
        blocks, states = start.shape
        horizon = budget.size
        self.free = bool(sets.rows.spare.any())
        self.spare = sets.rows.spare if self.free else None
        chosen = horizon if self.free else len(sets.low) / blocks  # known kernels are stored by phase
        numbers = 8.0 * blocks * states * (6.0 * horizon + 2.0 * chosen * states) + 8.0 * (1.0 + horizon) ** 2
        check_memory(f"the fluid LP of {blocks} blocks, {states} states and {horizon} steps", numbers)
        self.kernels = some_kernels(sets, blocks, phase_of) if self.free else sets.low.copy()
        self.kernel_of = frozen(np.arange(horizon)) if self.free else phase_of
        self.values, self.used = np.empty((blocks, horizon + 1, states)), np.empty(horizon)
        self.share, self.mass = np.empty((blocks, horizon, states)), np.empty((blocks, horizon, states))
        self.hessian = np.empty((1 + horizon, 1 + horizon))
        reach = reachable(sets.high.max(axis=2) > 0, start > 0, phase_of)
        self.units = Units.of(reward, reach, shift=most is None)
        self.total = float(start.sum()) if most is None else most
        self.unit_reward, self.unit_start = self.units.reward, start / self.total
        self.idle = limits <= 0
        self.open = np.flatnonzero((limits > 0) & (limits < self.total * self.discounts))  # the steps that need a price
        self.limit = limits[self.open] / self.total
        self.certain = 1e-4 * LEAST * float(self.limit.min(initial=1.0))
        self.occupancy = np.empty((blocks, horizon, states, 2))
        self.bound, self.value, self.gap, self.prices = np.inf, -np.inf, np.inf, np.zeros(horizon)
        self.iterations = 0
        self.missing = np.inf  # bound - value in scaled units, times eta, when budgets are met

    def solve(self, tolerance: float) -> None:
        """Iterate until bound and value agree to the relative tolerance (`Units.gap`)."""
        if not self.exact and self.certify(self.plan_without_prices(tolerance)) <= tolerance:
            return  # with an exact budget, price 0 may be at the edge of the optimal ones, and its indices poor
        share = np.full(self.budget.size, 0.5)
        share[self.open] = np.clip(self.limit, 1e-9, 0.4)
        prices, length, best = np.log((1.0 - share) / share), 4.0, np.inf
        point = self.minimum(1.0, prices, self.evaluate(1.0, prices), np.inf, FIRST)
        while point is not None and point.eta <= LAST and self.iterations <= ITERATIONS:
            gap = self.certify(point)
            if gap <= tolerance:
                return
            best, length = min(best, gap), min(length, max(gap / (AIM * tolerance), 2.0))
            point, length = self.advance(point, length)
        raise SolverError(f"fluid LP: the path of softened plans was lost; the smallest gap was {best:.2e}")

    def plan_without_prices(self, tolerance: float) -> Point:
        """Plan at price 0: cheap to try, and optimal if the budget does not bind."""
        nothing, eta = np.zeros(self.budget.size), 1.0 / max(AIM * tolerance, 1e-12)
        self.evaluate(eta, nothing)
        return Point(eta, nothing, nothing, 0)

    def advance(self, point: Point, length: float) -> tuple[Point | None, float]:
        """Move to a larger eta, by a factor of `length` or less; return the new point and the factor to try next.

        From the better of two guesses: along the tangent, or the same prices, which are better while the path still turns.
        If phi cannot distinguish them, as along prices without any effect, it is the tangent: rounding must
        not choose between equally good prices.
        """
        while length >= SHORTEST and self.iterations <= ITERATIONS:
            eta = point.eta * length
            same, guess = point.prices * length, point.prices + (eta - point.eta) * point.tangent
            other, begun = self.evaluate(eta, same), self.evaluate(eta, guess)
            if other[0] < begun[0] - EVEN * max(abs(begun[0]), eta):
                guess, begun = same, self.evaluate(eta, same)  # once more, for the plans
            reached = self.minimum(eta, guess, begun, self.missing / eta, NEXT if length > 2.0 else FIRST)
            if reached is not None:
                if reached.iterations <= EASY:
                    length = min(length**1.5, LONGEST)
                elif reached.iterations >= HARD:
                    length = max(length**0.7, 1.5)
                return reached, length
            length **= 0.5
        return None, length

    def evaluate(self, eta: float, prices: FloatArray) -> tuple[float, FloatArray]:
        """Compute the softened plans at these scaled prices (H,): return phi and its gradient in the open ones."""
        plans = (self.kernels, self.values, self.share)
        soft_values(self.rows, self.unit_reward, eta, self.phase_of, prices, self.idle, self.spare, *plans)
        follow(self.rows, self.phase_of, self.unit_start, self.free, self.kernels, self.share, self.mass, self.used)
        left = self.unused_budget(prices)
        phi = float((self.unit_start * self.values[:, 0]).sum() + self.limit @ prices[self.open] + left.sum())
        return phi, self.limit - self.used[self.open] - left

    def unused_budget(self, prices: FloatArray) -> FloatArray:
        """Return how much of every open budget the entropy of nu >= 0 leaves unused."""
        if self.exact:
            return np.zeros_like(self.limit)
        return self.limit * np.exp(np.minimum(-prices[self.open], STEEPEST))

    def curvature(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian of phi in the open prices, at the last plans, and how its gradient changes with eta."""
        plans = (self.idle, self.spare, self.kernels, self.share, self.mass)
        curve(self.rows, self.unit_reward, self.phase_of, *plans, self.certain, self.hessian)
        place = self.budget.size - self.open
        half = self.hessian[np.ix_(place, place)]  # the places run backward: this is the lower half
        hessian = np.tril(half) + np.tril(half, -1).T
        hessian[np.diag_indices_from(hessian)] += self.unused_budget(prices)
        return hessian, self.hessian[0, place]

    def minimum(
        self, eta: float, prices: FloatArray, begun: tuple[float, FloatArray], missing: float, most: int
    ) -> Point | None:
        """Minimise phi at eta by Newton's method from these prices (H,); None if `most` iterations are not enough.

        begun: phi and gradient at these prices, if already evaluated. missing: the expected
        difference of bound and value, in scaled units; budgets are met to that accuracy.
        """
        phi, gradient = begun
        for iteration in range(most + 1):
            self.iterations += 1
            hessian, mixed = self.curvature(prices)
            same = prices[self.open] / eta  # prices only move if needed
            farthest, damping = FARTHEST * (100.0 + float(np.abs(prices).max())), LEAST
            step, turn = solve_regularised(hessian, damping * self.limit, -gradient, -mixed - hessian @ same)
            while float(np.abs(step).max(initial=0.0)) > farthest and damping < 1.0:
                damping *= 30.0
                (step,) = solve_regularised(hessian, damping * self.limit, -gradient)
            fall = float(-(gradient @ step))
            wasted = float(np.abs(gradient) @ np.maximum(same, 1.0))
            if fall <= max(1e-15, (ROUNDING * eta) ** 2) or (fall <= ACCURACY and wasted <= WASTE * missing):
                tangent = np.zeros_like(prices)
                tangent[self.open] = same + turn
                return Point(eta, prices, tangent, iteration)
            if iteration == most or not np.isfinite(fall):
                return None
            found = self.search(eta, prices, step, phi, fall)
            if found is None:
                return None
            prices, phi, gradient = found
        return None

    def search(
        self, eta: float, prices: FloatArray, step: FloatArray, phi: float, fall: float
    ) -> tuple[FloatArray, float, FloatArray] | None:
        """Shorten the step until phi falls enough; judge by the slope if phi has no digits left."""
        length = 1.0
        while length > 1e-9:
            new = prices.copy()
            new[self.open] += length * step
            value, gradient = self.evaluate(eta, new)
            slope = float(gradient @ step)
            enough = value <= phi - 0.1 * length * fall
            if enough or (slope <= 0.8 * fall and value <= phi + 1e-13 * max(abs(phi), eta)):
                return new, value, gradient
            length *= min(max(fall / (fall + slope), 0.1), 0.5) if slope > 0.0 else 0.5
        return None

    def certify(self, point: Point) -> float:
        """Prove a bound from the point's prices, earn a value by its plan within the budget; return the relative gap."""
        prices = (point.prices if self.exact else np.maximum(point.prices, 0.0)) / point.eta
        values, least = np.empty_like(self.values), -np.inf if self.exact else 0.0
        best_values(self.rows, self.unit_reward, self.phase_of, self.idle, prices, values)
        bound = float((self.start * values[:, 0]).sum() + self.budget @ prices)
        dynamics = (sealed(self.kernels), self.kernel_of)
        share = self.share.copy()
        forward(*dynamics, self.start, self.budget, share, self.occupancy)
        value = self.expected_reward()
        if self.exact or (bound - value) / self.total * point.eta > DEAR * self.missing:  # missed budgets cost too much
            model = (*dynamics, self.unit_reward, self.phase_of, self.start, self.budget)
            steer(*model, least, values, self.share, self.occupancy)
            value = self.expected_reward()
        self.missing = min(self.missing, (bound - value) / self.total * point.eta)
        self.gap, self.prices = self.units.gap(bound, value), self.units.scale * prices
        masses = self.start.sum(axis=1)
        both = (self.units.whole(one, masses, self.phase_of, self.discounts) for one in (bound, value))
        self.bound, self.value = both
        return self.gap

    def expected_reward(self) -> float:
        """Return the normalised reward of the occupancy."""
        return float((self.occupancy * by_step(self.unit_reward, len(self.start), self.phase_of)).sum())


def some_kernels(sets: TransitionSets, blocks: int, phase_of: IntArray) -> FloatArray:
    """(C*H, S, 2, S) some kernel of every box, at every step."""
    room, spare = sets.high - sets.low, sets.rows.spare[..., np.newaxis]
    some = sets.low + room * (spare / np.maximum(room.sum(axis=3, keepdims=True), 1e-300))
    shape = (blocks, phase_of.size, *some.shape[1:])
    return np.array(np.broadcast_to(by_step(some, blocks, phase_of), shape)).reshape(-1, *some.shape[1:])


def solve_regularised(matrix: FloatArray, extra: FloatArray, *targets: FloatArray) -> list[FloatArray]:
    """Solve (matrix + diag(extra)) x = target for every target; the matrix is positive semidefinite, extra > 0."""
    size, unit = len(matrix), 1.0 / np.sqrt(np.diag(matrix) + extra)
    upper = (matrix + np.diag(extra)) * unit * unit[:, np.newaxis]
    answers = np.stack(targets) * unit
    solve_each(upper, answers, np.full(size, 1e-15))
    return list(answers * unit)
