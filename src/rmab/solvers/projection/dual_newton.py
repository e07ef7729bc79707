"""A Newton step on the dual of the KL projection: what both ways to compute it share. Chunks of arms run in threads."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rmab.common import FloatArray, IntArray, each
from rmab.errors import SolverError
from rmab.solvers.projection.compiled.program import Program
from rmab.solvers.projection.compiled.steps import ARMIJO, FARTHEST, NOISE, SHORTEST, free_prices, largest_violation


class Solution(NamedTuple):
    """A feasible primal point by arms: mass (N,H,S,2), kernel (N,H,S,2,S), its weighted divergence but for the constant; and
    the potentials (N,H,S) of the dual one.
    """

    mass: FloatArray
    kernel: FloatArray
    potentials: FloatArray
    spent: float


class DualNewton(ABC):
    """The state of one solve: a dual point, what it evaluates to, and the work space.

    Potentials v (.,H+1,S..), their gradient and step (.,H,S..) are kept in a layout of the subclass: `by_arm` and
    `from_arms` translate. prices, used, budget are (H,).
    """

    v: FloatArray
    gradient: FloatArray
    step: FloatArray
    weighing: FloatArray  # the weights of the arms, in a shape that multiplies the gradient
    chunks: Sequence[tuple[int, int]]

    def __init__(self, program: Program, marginals: FloatArray) -> None:
        """Start at the potentials and prices that put every node's mass at the marginals (N,H,S)."""
        self.program, self.budget = program, program.budget
        self.prices = np.zeros(program.budget.size)
        self.allocate()
        self.begin(marginals)

    @abstractmethod
    def allocate(self) -> None:
        """Set up the chunks, the arrays of the point and the work space."""

    @abstractmethod
    def begin(self, marginals: FloatArray) -> None:
        """Go to the potentials and prices that put every node's mass at the marginals (N,H,S)."""

    @abstractmethod
    def evaluate(self, v: FloatArray, prices: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray, float]:
        """Write the gradient; return the dual function, the active mass (H,) and the largest flow violation."""

    @abstractmethod
    def newton_step(self, *, own: bool = False) -> tuple[FloatArray, float]:
        """Write the step of the potentials; return that of the prices (H,) and the slope along the potentials.

        own: make the Hessian of the point's own masses, not of their means (`mean_masses`).
        """

    @abstractmethod
    def followed(self) -> FloatArray:
        """(N,H,S) masses of the point's own shares and kernels, followed from the start: feasible to rounding."""

    @abstractmethod
    def solution(self, table: FloatArray | None = None) -> Solution:
        """Return the feasible primal point of the dual one; SolverError where a row is no distribution.

        table (N,H,S,2,S): where the kernel may be written.
        """

    @abstractmethod
    def kernel(self) -> FloatArray:
        """(N,H,S,2,S) the kernel at the point, by arms."""

    @abstractmethod
    def by_arm(self, table: FloatArray) -> FloatArray:
        """Return a table of the solve, such as `gradient`, by arms: (N,...)."""

    @abstractmethod
    def from_arms(self, table: FloatArray) -> FloatArray:
        """Return a table (N,...) in the layout of the solve."""

    def each(self, work: Callable[[int, int], Any]) -> list[Any]:
        """Do the work for every chunk, in threads; results come in the order of the chunks."""
        return each(self.chunks, work)

    def look(self) -> None:
        """Evaluate the current point: its rows, gradient, value, active mass and violation."""
        self.value, self.used, self.flow = self.evaluate(self.v, self.prices, self.gradient)

    def reopen(self, marginals: FloatArray) -> None:
        """Start at these marginals (N,H,S) instead, if the dual function is lower there."""
        value, here = self.value, (self.v.copy(), self.prices.copy())
        self.begin(marginals)
        if not self.value < value:
            self.v, self.prices = here
            self.look()

    def followed_from(self, marginals: FloatArray) -> FloatArray:
        """(N,H,S) masses that follow from the first point of these marginals (N,H,S); the current point remains."""
        here = (self.v.copy(), self.prices.copy())
        self.begin(marginals)
        masses = self.followed()
        self.v, self.prices = here
        self.look()
        return masses

    @property
    def residual(self) -> float:
        """Largest violation of the optimality conditions at the current point."""
        return largest_violation(self.budget, self.used, self.prices, self.program.idle, self.flow)

    def descend(self, tolerance: float, most: int, *, whole: bool = False) -> tuple[int, float]:
        """Take Newton steps until the residual is at most tolerance, but at most so many; whole: and not after a first step
        that was shortened.

        Returns how many were tried, and what part of the last one was taken: 0 where it led nowhere.
        """
        taken, length = 0, 1.0
        while taken < most and self.residual > tolerance and np.isfinite(self.value):
            taken += 1
            try:
                length = self.improve()
            except SolverError:
                return taken, 0.0
            if whole and taken == 1 and length < 1.0:
                break
        return taken, length

    def improve(self, *, clip: bool = False) -> float:
        """Take one Newton step, shortened until the dual function has come down enough; SolverError where it cannot.

        Returns the part of the step that was taken. clip: where the dual is flat in some potentials, shorten their steps
        alone, if that leads down.
        """
        price_step, slope_v = self.newton_step()
        slack = self.budget - self.used
        longest = max(float(self.step.max()), -float(self.step.min()), float(np.abs(price_step).max()))
        if clip and longest > FARTHEST:
            near, near_prices = np.clip(self.step, -FARTHEST, FARTHEST), np.clip(price_step, -FARTHEST, FARTHEST)
            slope = float((self.weighing * self.gradient * near).sum())
            if slope + float(slack @ near_prices) < 0.0:
                self.step[:], price_step, slope_v, longest = near, near_prices, slope, FARTHEST
        length = min(1.0, FARTHEST / longest) if np.isfinite(longest) and longest > 0 else 1.0
        v, gradient = np.empty_like(self.v), np.empty_like(self.gradient)
        v[:, -1] = 0.0
        shortest = SHORTEST * length
        while length > shortest:
            np.multiply(self.step, length, out=v[:, :-1])
            v[:, :-1] += self.v[:, :-1]
            prices = np.maximum(self.prices + length * price_step, 0.0)
            value, used, flow = self.evaluate(v, prices, gradient)
            if np.isfinite(value):  # not where the step was far too long
                expected = length * slope_v + float(slack @ (prices - self.prices))
                noise = NOISE * (abs(self.value) + abs(value) + float(np.abs(v[:, 0]).max()))
                if value <= self.value + ARMIJO * expected + noise:
                    self.v, self.prices, self.gradient = v, prices, gradient
                    self.value, self.used, self.flow = value, used, flow
                    return length
            length *= 0.5
        raise SolverError(f"projection: the line search failed at residual {self.residual:.2e}")

    def free_prices(self) -> tuple[int, IntArray]:
        """Return how many prices are free to move, and their places among these, or -1 (H,)."""
        return free_prices(self.program.binds, self.prices, self.budget - self.used)


def total(tables: list[FloatArray]) -> FloatArray:
    """Return the sum of what the chunks found; mostly there is one."""
    return tables[0] if len(tables) == 1 else np.sum(tables, axis=0)
