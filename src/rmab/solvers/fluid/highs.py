"""The fluid LP (Xiong & Li 2024, Appendix A.2) in HiGHS, over the nodes that can be reached.

Variables x[c,h,s,a]: the mass of block c in state s at step h under action a. Rows: flow into every node, and the budget of
every step.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, check_memory
from rmab.errors import SolverError
from rmab.solvers.checks import Units
from rmab.solvers.fluid.blocks import Blocks

TOLERANCE = 1e-9
USUAL, PRIMAL = 1, 4  # HiGHS' numbers of its dual and its primal simplex method
LARGE = 20_000  # columns beyond which interior point beats simplex (by six times on the degenerate LP of deadline)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The reachable nodes in order (c, h, s): their coordinates, and row[c,h,s], or -1 if unreachable."""

    block: IntArray
    step: IntArray
    state: IntArray
    row: IntArray

    @classmethod
    def of(cls, reach: BoolArray) -> "Nodes":
        """Number the nodes that can be reached."""
        row = np.full(reach.shape, -1, dtype=np.int64)
        row[reach] = np.arange(reach.sum())
        block, step, state = np.nonzero(reach)
        return cls(block, step, state, row)


class FluidLp:
    """One HiGHS model of a problem's fluid LP; solved once, or many times with different masses.

    discounts (H,): weight of the rewards, masses and budget of every step.

    anywhere: also keep the nodes that cannot be reached from the start, for masses that are put there later. Rewards are
    normalised: the solver's tolerances are absolute.
    """

    def __init__(self, blocks: Blocks, discounts: FloatArray | None = None, *, anywhere: bool = False) -> None:
        self.blocks, self.budget, self.horizon = blocks, blocks.budget, blocks.horizon
        self.discounts = np.ones(self.horizon) if discounts is None else discounts
        size = float(blocks.start.size) * self.horizon
        check_memory(f"the fluid LP of {size:.3g} states and steps", 16.0 * size * (8 + blocks.kernels.shape[1]))
        reach = blocks.reachable()
        self.nodes = Nodes.of(np.ones_like(reach) if anywhere else reach)
        self.cell = self.nodes.block * blocks.phases + blocks.phase_of[self.nodes.step]
        everywhere = np.ones(blocks.reward.shape[:2], dtype=bool)
        self.units = Units.of(blocks.reward, everywhere, shift=blocks.most is None) if anywhere else blocks.units()
        self.highs = highspy.Highs()
        self._bases: list[highspy.HighsBasis] = []
        self._set("output_flag", False)
        self._set("primal_feasibility_tolerance", TOLERANCE)
        self._set("dual_feasibility_tolerance", TOLERANCE)
        self._set("threads", 1)
        if 2 * self.nodes.block.size > LARGE:
            self._set("solver", "ipm")
        _check_status(self.highs.passModel(self._model()), "HiGHS rejected the model")

    def _set(self, option: str, value: object) -> None:
        _check_status(self.highs.setOptionValue(option, value), f"HiGHS rejected option {option} = {value}")

    def _model(self) -> highspy.HighsLp:
        nodes, count = self.nodes, self.nodes.block.size
        column, row, value = self._entries()
        order = np.lexsort((row, column))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = 2 * count, count + self.horizon
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = self.units.reward[self.cell, nodes.state].reshape(-1)
        lp.col_lower_, lp.col_upper_ = np.zeros(2 * count), np.full(2 * count, highspy.kHighsInf)
        inflow = np.where(nodes.step == 0, self.blocks.start[nodes.block, nodes.state], 0.0)
        most = self.budget * self.discounts
        lp.row_lower_ = np.concatenate([inflow, self._least(most)])
        lp.row_upper_ = np.concatenate([inflow, most])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.searchsorted(column[order], np.arange(2 * count + 1)).astype(np.int32)
        lp.a_matrix_.index_ = row[order].astype(np.int32)
        lp.a_matrix_.value_ = value[order]
        return lp

    def _least(self, most: FloatArray) -> FloatArray:
        """(H,) the least active mass of every step: the whole budget if it is exact."""
        return most if self.blocks.exact else np.full(self.horizon, -highspy.kHighsInf)

    def _entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Column 2i + a is node i under action a: +1 in its own row, -P in those of its successors, +1 in its budget row."""
        nodes, count = self.nodes, self.nodes.block.size
        own = np.arange(2 * count)
        budget_row = count + nodes.step
        inner = np.flatnonzero(nodes.step + 1 < self.horizon)
        rows = self.blocks.kernels[self.cell[inner], nodes.state[inner]]  # (I, 2, S)
        source, action, target = np.nonzero(rows)
        node = inner[source]
        column = np.concatenate([own, 2 * node + action, 2 * np.arange(count) + 1])
        row = np.concatenate([own // 2, nodes.row[nodes.block[node], nodes.step[node] + 1, target], budget_row])
        value = np.concatenate([np.ones(2 * count), -rows[source, action, target], np.ones(count)])
        return column, row, value

    def solve_from(self, h: int, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve for steps h..H-1 when the masses (C, S) are there at step h; earlier columns are closed.

        The result only depends on h and the masses: every solve starts from the basis of the plan itself at step h, which
        is dual feasible for any masses, so few pivots are needed.
        """
        self._begin(h, masses, self._basis(h))
        return self.solve()

    def _basis(self, h: int) -> highspy.HighsBasis:
        """Return the optimal basis from step h on, from the masses of the plan of the whole episode; cached."""
        if not self._bases:
            occupancy, _ = self.solve()
            self._planned = occupancy.sum(axis=3)
            self._bases.append(self.highs.getBasis())
            self._set("solver", "simplex")
        while len(self._bases) <= h:
            step = len(self._bases)
            worth = self.discounts[step] if self.blocks.exact else 1.0  # an exact budget needs all arms
            self._begin(step, self._planned[:, step] / worth, self._bases[-1])
            self.solve()
            self._bases.append(self.highs.getBasis())
        return self._bases[h]

    def _begin(self, h: int, masses: FloatArray, basis: highspy.HighsBasis) -> None:
        """Close the columns before step h, put the masses (C, S) there, and start from a basis."""
        nodes = self.nodes
        opened = np.repeat(np.where(nodes.step < h, 0.0, highspy.kHighsInf), 2)
        columns, rows = np.arange(opened.size, dtype=np.int32), np.arange(nodes.step.size, dtype=np.int32)
        inflow = np.where(nodes.step == h, masses[nodes.block, nodes.state], 0.0)
        _check_status(
            self.highs.changeColsBounds(columns.size, columns, np.zeros(columns.size), opened), "HiGHS rejected bounds"
        )
        _check_status(self.highs.changeRowsBounds(rows.size, rows, inflow, inflow), "HiGHS rejected row bounds")
        if self.discounts[-1] < 1.0 or self.blocks.exact:  # step h is now the first, with full weight
            limits, steps = self.budget.copy(), np.arange(self.horizon, dtype=np.int32)
            limits[h:] *= self.discounts[: self.horizon - h]
            limits[:h] = 0.0 if self.blocks.exact else limits[:h]  # no mass is left
            changed = self.highs.changeRowsBounds(steps.size, nodes.step.size + steps, self._least(limits), limits)
            _check_status(changed, "HiGHS rejected budgets")
        self.highs.clearSolver()
        _check_status(self.highs.setBasis(basis), "HiGHS rejected the basis")

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Return occupancy (C, H, S, 2) and prices (H,) as HiGHS found them, or raise SolverError.

        If the dual simplex method fails, which happens by rounding, the primal one is tried from scratch.
        """
        try:
            self._run()
        except SolverError:
            self.highs.clearSolver()
            self._set("simplex_strategy", PRIMAL)
            try:
                self._run()
            finally:
                self._set("simplex_strategy", USUAL)
        solution = self.highs.getSolution()
        count = self.nodes.block.size
        occupancy = np.zeros((*self.nodes.row.shape, 2))
        masses = np.asarray(solution.col_value).reshape(-1, 2)
        occupancy[self.nodes.block, self.nodes.step, self.nodes.state] = np.maximum(masses, 0.0)
        prices = np.asarray(solution.row_dual)[count:]
        return occupancy, (prices if self.blocks.exact else np.maximum(prices, 0.0)) * self.units.scale

    def _run(self) -> None:
        """Run HiGHS; SolverError unless it ends with an optimum."""
        _check_status(self.highs.run(), "HiGHS failed")
        status = self.highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"fluid LP: HiGHS ended with {self.highs.modelStatusToString(status)}")


def _check_status(status: highspy.HighsStatus, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"fluid LP: {what}")
