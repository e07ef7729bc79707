"""From blocks of like arms to the arrays of one priced step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.solvers.priced.compiled.program import Program, lay_out, mark, pack, reach
from rmab.solvers.units import Units

WIDE, NARROW, NODES = 64, 8, 1024  # lanes of a batch: most, least, and the nodes that it should not exceed by much
WASTE = 4.0  # how many times what is possible for a block the rows of its batch may hold
MOST = 0.99  # the highest rate of the blind policy
HIGHEST = 1e100  # of rewards in states that nobody comes to, in units of what is at stake


def blind_rates(budget: FloatArray, total: float) -> FloatArray:
    """(H,) the rate at which a blind policy activates every arm: what the budget allows, and at most 0.99.

    The entropy of decisions is counted from this policy. Where there is no budget nobody is active. Where there is enough
    for everybody, or nearly so, the rate stays below 1, lest nobody could be passive.
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
) -> Units:
    """Return the rewards in units of what is at stake in the states that can be reached.

    everywhere: with the rewards of the other states, in the same units; they are 0 otherwise.
    """
    reached = np.empty(reward.shape[:2], dtype=bool)
    reach(kernels, kernel_of, start, phase_of, reached)
    units = Units.of(reward, reached)
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
) -> Program:
    """Join kernels (G,S,2,S), the kernel of every cell (C*K,), reward (C*K,S,2), start (C,S), budget and phases (H,)."""
    (blocks, states), phases = start.shape, kernel_of.size // len(start)
    lanes = min(WIDE, max(NARROW, NODES // states))
    batches = -(-blocks // lanes)
    lanes = -(-blocks // batches)
    allowed = np.empty((batches * phases, states, 2, states), dtype=bool)
    marks, possible = mark(kernels, kernel_of, blocks, lanes, allowed)
    if lanes * marks > WASTE * possible:  # the blocks have little in common: each by itself
        batches, lanes = blocks, 1
        allowed = np.empty((batches * phases, states, 2, states), dtype=bool)
        marks, _ = mark(kernels, kernel_of, blocks, lanes, allowed)
    begins, columns = np.empty(allowed.size // states + 1, dtype=np.int64), np.empty(marks, dtype=np.uint32)
    chances = np.empty((marks, lanes))
    pack(kernels, kernel_of, blocks, allowed, begins, columns, chances)
    pays, masses = np.zeros((batches * phases, 2, states * lanes)), np.zeros((batches, states, lanes))
    lay_out(reward, start, pays, masses)
    return Program(begins, columns, chances, pays, masses, phase_of, blind_rates(budget, float(start.sum())))


def of_blocks(table: FloatArray, program: Program, blocks: int) -> FloatArray:
    """(C, H, S) a table of the nodes of some batches (., H, S*L), block by block."""
    _, states, lanes = program.start.shape
    apart = table.reshape(*table.shape[:2], states, lanes).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(apart.reshape(-1, table.shape[1], states)[:blocks])
