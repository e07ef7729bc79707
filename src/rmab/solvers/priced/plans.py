"""The plans of all blocks at one point of the search: kept as they were evaluated, or made again where they are many."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.threads import chunks_of, each
from rmab.solvers.priced.compiled.passes import evaluate, tally
from rmab.solvers.priced.compiled.program import Program
from rmab.solvers.priced.program import of_blocks

PIECE = 100_000  # nodes per piece of work: fixed, so that sums do not depend on the number of threads
MANY = 2_000_000  # nodes beyond which shares are not kept, but made again for a piece of the batches at a time


class Plans:
    """The shares of a programme of so many blocks, (M,H,S*L), at the point that was evaluated last.

    A table of many arms is as large as all else together. Where it would be, every piece of work has the shares of its own
    batches alone, and whoever wants them later has them evaluated again: by `of`, at the same point.
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
        used, loose = np.empty_like(prices), np.empty_like(prices)
        share, base = (self.share, 0) if self.kept else (np.empty((last - first, *self.sizes)), first)
        return evaluate(self.program, first, last, eta, prices, share, base, loose_of, used, loose), used, loose, share

    def of(self, first: int, last: int, eta: float, prices: FloatArray) -> tuple[FloatArray, int]:
        """Return shares (.,H,S*L) that have the batches from first to last, and their first batch."""
        if self.kept:
            return self.share, 0
        return self.evaluate(first, last, eta, prices, np.empty((last, self.lanes)))[3], first

    def by_block(self, eta: float, prices: FloatArray) -> FloatArray:
        """(C, H, S) the shares of every block."""
        horizon, size = self.sizes
        table = np.empty((self.blocks, horizon, size // self.lanes))

        def part(first: int, last: int) -> None:
            share, base = self.of(first, last, eta, prices)
            begin, end = first * self.lanes, min(last * self.lanes, self.blocks)
            table[begin:end] = of_blocks(share[first - base : last - base], self.program, end - begin)

        each(self.pieces, part)
        return table

    def visits(self, eta: float, prices: FloatArray, *, blind: bool) -> FloatArray:
        """(C * K, S, 2) how often the arms of each cell are in a state under an action; blind: without looking."""
        batches, states, _ = self.program.start.shape
        table, nothing = np.empty((self.blocks * len(self.program.reward) // batches, states, 2)), np.empty((0, 0, 0))

        def part(first: int, last: int) -> None:
            share, base = (nothing, 0) if blind else self.of(first, last, eta, prices)
            tally(self.program, first * self.lanes, min(last * self.lanes, self.blocks), share, base, table)

        each(self.pieces, part)
        return table
