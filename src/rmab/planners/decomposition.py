"""Dantzig-Wolfe decomposition of the fluid LP, known or optimistic: a small master over the H budget rows, and one plan per
block and round from compiled backward induction.

The master mixes the plans seen so far within the budget; its prices ask every block for its best plan at these prices. Any
prices give an upper bound (weak duality), any mixture a lower one: the gap is certified at every round. Prices are smoothed
towards the best seen (Wentges, 1997), because the master's own jump about.
"""

from dataclasses import dataclass
from functools import cached_property

import highspy
import numpy as np
from numpy.typing import NDArray

from rmab.arrays import FloatArray
from rmab.errors import SolverError
from rmab.kernels.optimism import add_flow, best_plans

__all__ = ["Boxes", "Decomposition"]

ROUNDS = 5000
SMOOTHING = 0.8
PROHIBITIVE = 1e12  # times the largest reward: a price at which nobody is activated


@dataclass(frozen=True, eq=False)
class Boxes:
    """C blocks: kernels in boxes low..high (C,S,2,S), equal where they are known; reward (C,S,2); start masses (C,S)."""

    low: FloatArray
    high: FloatArray
    reward: FloatArray
    start: FloatArray

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.uint32], NDArray[np.uint32]]:
        """What the kernels want: low, high, what is spare (C,S,2), the possible successors (C,S,2,S) and their number."""
        allowed = self.high > 0
        order = np.argsort(~allowed, axis=3, kind="stable").astype(np.uint32)
        spare = np.maximum(1.0 - self.low.sum(axis=3), 0.0)
        spare[spare < 1e-12] = 0.0  # a known kernel, up to rounding
        return self.low, self.high, spare, order, allowed.sum(axis=3).astype(np.uint32)


class Decomposition:
    """Solves one problem; the state is the master LP, the prices at which plans were asked for, and the best bound."""

    def __init__(self, boxes: Boxes, budget: FloatArray) -> None:
        self.boxes, self.budget = boxes, budget
        blocks, states, horizon = len(boxes.low), boxes.low.shape[1], budget.size
        self.values, self.active = np.empty((blocks, horizon + 1, states)), np.empty((blocks, horizon, states), dtype=bool)
        self.best, self.earned, self.used = np.empty(blocks), np.empty(blocks), np.empty((blocks, horizon))
        self.scale = float(np.abs(boxes.reward).max()) or 1.0
        self.asked: list[FloatArray] = []
        self.columns: list[tuple[int, int]] = []  # round and block of every column of the master
        self.bound, self.prices = np.inf, np.zeros(horizon)
        self.highs = self._master(blocks)

    def _master(self, blocks: int) -> highspy.Highs:
        highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
                raise SolverError(f"fluid LP: option {option} = {value} was refused")
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        empty = np.empty(0, dtype=np.int32)
        for limit in self.budget:
            highs.addRow(-highspy.kHighsInf, float(limit), 0, empty, np.empty(0))
        for _ in range(blocks):
            highs.addRow(1.0, 1.0, 0, empty, np.empty(0))
        return highs

    def plan(self, prices: FloatArray) -> None:
        """Plan every block at these prices."""
        point = (self.boxes.reward, self.boxes.start, prices, 0, len(self.best))
        best_plans(*self.boxes.rows, *point, self.values, self.active, self.best, self.earned, self.used)

    def ask(self, prices: FloatArray) -> None:
        """Plan every block at these prices, remember the bound they prove, and offer the plans to the master."""
        self.plan(prices)
        bound = float(self.best.sum() + self.budget @ prices)
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        self.asked.append(prices)
        horizon = self.budget.size
        for c in range(len(self.best)):
            steps = np.flatnonzero(self.used[c])
            index = np.append(steps, horizon + c).astype(np.int32)
            value = np.append(self.used[c, steps], 1.0)
            self.highs.addCol(self.earned[c] / self.scale, 0.0, highspy.kHighsInf, index.size, index, value)
            self.columns.append((len(self.asked) - 1, c))

    def mix(self) -> tuple[float, FloatArray]:
        """Solve the master: return what the best mixture of plans earns, and its prices (H,)."""
        if self.highs.run() == highspy.HighsStatus.kError:
            raise SolverError("fluid LP: HiGHS failed on the master programme")
        status = self.highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"fluid LP: the master programme ended with {self.highs.modelStatusToString(status)}")
        duals = np.asarray(self.highs.getSolution().row_dual)[: self.budget.size]
        return self.highs.getInfo().objective_function_value * self.scale, np.maximum(duals, 0.0) * self.scale

    def solve(self, tolerance: float) -> None:
        """Work until bound and value agree to the tolerance, relative to the larger of the bound and the largest reward."""
        self.ask(np.full(self.budget.size, PROHIBITIVE * self.scale))
        self.bound, self.prices = np.inf, np.zeros(self.budget.size)  # those prices prove nothing worth keeping
        self.ask(np.zeros(self.budget.size))
        for _ in range(ROUNDS):
            value, prices = self.mix()
            scale = max(abs(self.bound), self.scale)
            if self.bound - value <= tolerance * scale:
                return
            before = self.bound
            self.ask(SMOOTHING * self.prices + (1.0 - SMOOTHING) * prices)
            if not self.bound < before:  # the smoothed prices taught nothing: take the master's own
                self.ask(prices)
        raise SolverError(f"fluid LP: the gap is {(self.bound - value) / scale:.2e} after {ROUNDS} rounds")

    def mixture(self, *, flows: bool = False) -> tuple[FloatArray, FloatArray]:
        """Occupancy (C, H, S, 2) of the master's mixture, and its flows (C, H, S, 2, S), empty unless asked for.

        Only the prices of every round are kept: the plans that the mixture uses are made again and added up.
        """
        weights = np.asarray(self.highs.getSolution().col_value)
        shares = np.zeros((len(self.asked), len(self.best)))
        for (asked, c), weight in zip(self.columns, weights, strict=True):
            shares[asked, c] += max(weight, 0.0)
        shares /= shares.sum(axis=0)
        blocks, states = self.boxes.low.shape[:2]
        occupancy = np.zeros((blocks, self.budget.size, states, 2))
        flow = np.zeros((*occupancy.shape, states) if flows else (0, 0, 0, 0, 0))
        for k in np.flatnonzero(shares.max(axis=1) > 0):
            self.plan(self.asked[k])
            add_flow(*self.boxes.rows, self.boxes.start, self.values, self.active, shares[k], occupancy, flow)
        return occupancy, flow
