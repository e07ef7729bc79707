"""From blocks of identical arms to the arrays of one priced step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rmab.common import FloatArray, IntArray, chunks_of, each
from rmab.solvers.checks import Units
from rmab.solvers.priced.compiled.passes import evaluate, tally
from rmab.solvers.priced.compiled.program import Program, Rows, lay_out, mark, pack, reach

PIECE = 100_000  # nodes per piece of work: fixed, so that sums do not depend on the number of threads
MANY = 2_000_000  # nodes beyond which shares are not stored, but recomputed for a piece of the batches at a time


class Plans:
    """The shares of a programme of so many blocks, (M,H,S*L), at the last evaluated point.

    A table of many arms is as large as everything else together. Then every piece of work only has the shares of its
    batches, and `of` recomputes them later, at the same point.
    """

    def __init__(self, program: Program, blocks: int) -> None:
        batches, states, lanes = program.start.shape
        self.program, self.blocks, self.lanes = program, blocks, lanes
        self.sizes = (program.phase_of.size, states * lanes)
        self.nodes = batches * self.sizes[0] * self.sizes[1]
        self.kept = self.nodes <= MANY
        self.share = np.empty((batches if self.kept else 0, *self.sizes))
        self.pieces = chunks_of(batches, max(1, PIECE // (self.sizes[0] * self.sizes[1])))

    def evaluate(
        self, first: int, last: int, eta: float, prices: FloatArray, loose_of: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Evaluate the batches from first to last at scaled prices (H,): value, use (H,), loose (H,), and their shares.

        loose_of (M,L) is written, block by block.
        """
        share, use = (
            self.share[first:last] if self.kept else np.empty((last - first, *self.sizes)),
            np.empty((2, prices.size)),
        )
        return evaluate(self.program, first, eta, prices, share, loose_of, use), use[0], use[1], share

    def of(self, first: int, last: int, eta: float, prices: FloatArray) -> FloatArray:
        """Return the shares (.,H,S*L) of the batches from first to last."""
        if self.kept:
            return self.share[first:last]
        return self.evaluate(first, last, eta, prices, np.empty((last, self.lanes)))[3]

    def by_block(self, eta: float, prices: FloatArray) -> FloatArray:
        """(C, H, S) the shares of every block."""
        horizon, size = self.sizes
        table = np.empty((self.blocks, horizon, size // self.lanes))

        def part(first: int, last: int) -> None:
            begin, end = first * self.lanes, min(last * self.lanes, self.blocks)
            table[begin:end] = of_blocks(self.of(first, last, eta, prices), self.program, end - begin)

        each(self.pieces, part)
        return table

    def visits(self, eta: float, prices: FloatArray, *, uniform: bool) -> FloatArray:
        """(C * K, S, 2) the visits of each cell, state and action; uniform: of the uniform policy."""
        batches, states, _ = self.program.start.shape
        table, nothing = np.empty((self.blocks * len(self.program.reward) // batches, states, 2)), np.empty((0, 0, 0))

        def part(first: int, last: int) -> None:
            share = nothing if uniform else self.of(first, last, eta, prices)
            tally(self.program, first * self.lanes, min(last * self.lanes, self.blocks), share, table)

        each(self.pieces, part)
        return table


WIDE, NARROW, NODES = 64, 8, 1024  # lanes of a batch: most, least, and the nodes that it should not exceed by much
WASTE = 4.0  # limit on the entries of a batch's rows, relative to the possible transitions of a block
MOST = 0.99  # the highest rate of the uniform policy
HIGHEST = 1e100  # limit of normalised rewards in unreachable states


def uniform_rates(budget: FloatArray, total: float) -> FloatArray:
    """(H,) the rate at which a uniform policy activates every arm: what the budget allows, and at most 0.99.

    The entropy of decisions is counted from this policy. Without a budget no arm is active. If there is enough
    for all arms, or nearly so, the rate stays below 1, so that arms can be passive.
    """
    return np.asarray(np.minimum(budget / total, MOST))


def units_of(
    kernels: FloatArray,
    kernel_of: IntArray,
    reward: FloatArray,
    start: FloatArray,
    phase_of: IntArray,
    *,
    everywhere: bool = False,
    shift: bool = True,
) -> Units:
    """Return the normalised rewards of the reachable states.

    everywhere: also the rewards of the other states, in the same units; otherwise they are 0. shift: as in `Units.of`.
    """
    reached = np.empty(reward.shape[:2], dtype=bool)
    reach(kernels, kernel_of, start, phase_of, reached)
    units = Units.of(reward, reached, shift=shift)
    if not everywhere or reached.all():
        return units
    with np.errstate(over="ignore"):
        others = np.clip((reward - units.least[:, np.newaxis, np.newaxis]) / units.scale, -HIGHEST, HIGHEST)
    return replace(units, reward=np.where(reached[..., np.newaxis], units.reward, others))


def make_program(
    kernels: FloatArray,
    kernel_of: IntArray,
    reward: FloatArray,
    start: FloatArray,
    budget: FloatArray,
    phase_of: IntArray,
    most: float | None = None,
) -> Program:
    """Join kernels (G,S,2,S), the kernel of every cell (C*K,), reward (C*K,S,2), start (C,S), budget and phases (H,).

    most: the largest possible mass if kernels do not preserve it.
    """
    (blocks, states), phases = start.shape, kernel_of.size // len(start)
    lanes = min(WIDE, max(NARROW, NODES // states))
    batches = -(-blocks // lanes)
    lanes = -(-blocks // batches)
    allowed = np.empty((batches * phases, states, 2, states), dtype=bool)
    marks, possible = mark(kernels, kernel_of, blocks, lanes, allowed)
    if lanes * marks > WASTE * possible:  # the blocks have little in common: one per batch
        batches, lanes = blocks, 1
        allowed = np.empty((batches * phases, states, 2, states), dtype=bool)
        marks, _ = mark(kernels, kernel_of, blocks, lanes, allowed)
    begins, columns = np.empty(allowed.size // states + 1, dtype=np.int64), np.empty(marks, dtype=np.uint32)
    rows = Rows(begins, columns, np.empty((marks, lanes)))
    pack(kernels, kernel_of, blocks, allowed, rows)
    pays, masses = np.zeros((batches * phases, 2, states * lanes)), np.zeros((batches, states, lanes))
    lay_out(reward, start, pays, masses)
    return Program(rows, pays, masses, phase_of, uniform_rates(budget, float(start.sum()) if most is None else most))


def of_blocks(table: FloatArray, program: Program, blocks: int) -> FloatArray:
    """(C, H, S) a table of the nodes of some batches (., H, S*L), block by block."""
    _, states, lanes = program.start.shape
    apart = table.reshape(*table.shape[:2], states, lanes).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(apart.reshape(-1, table.shape[1], states)[:blocks])
