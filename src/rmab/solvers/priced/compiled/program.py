"""The arrays of one priced step, and rows of kernels with only possible transitions.

Blocks are handled in batches of L at a time, their lanes, to work on several in parallel: arrays of a batch
have the lanes last. The rows of a batch contain every next state that is possible for any of its blocks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # see `rmab.solvers.compiled.linear`


class Rows(NamedTuple):
    """Row (batch, phase, state, action) has the entries from begins[row] to begins[row+1].

    The next state is in columns, the probabilities of all lanes are in chances (entries, L).
    """

    begins: IntArray
    columns: NDArray[np.uint32]
    chances: FloatArray


class Program(NamedTuple):
    """The programme: M batches of L lanes, one for each block of identical arms; K phases, H steps, S states.

    reward (M*K,2,S*L) by cell. start (M,S,L): the mass in every state; lanes without a block have none. phase_of (H,).
    uniform (H,): the rate at which the uniform policy activates, 0 where the budget is 0.
    """

    rows: Rows
    reward: FloatArray
    start: FloatArray
    phase_of: IntArray
    uniform: FloatArray


@compiled
def reach(kernels: FloatArray, kernel_of: IntArray, start: FloatArray, phase_of: IntArray, reached: BoolArray) -> None:
    """Write into reached (C*K,S) the states that a block can reach from the masses (C,S) at the steps of each phase.

    kernels (G,S,2,S), kernel_of (C*K,) the kernel of every cell, phase_of (H,).
    """
    blocks, states = start.shape
    phases = kernel_of.size // blocks
    now, after, known = np.empty(states, np.bool_), np.empty(states, np.bool_), np.empty(states, np.bool_)
    reached[:] = False
    for n in range(blocks):
        for s in range(states):
            now[s], known[s] = start[n, s] > 0.0, False
        for h in range(phase_of.size):
            cell, fresh = n * phases + phase_of[h], False
            after[:] = False
            for s in range(states):
                if not now[s]:
                    continue
                reached[cell, s] = True
                if phases == 1 and known[s]:  # the successors are known, too
                    continue
                known[s], fresh = True, True
                for a in range(2):
                    for y in range(states):
                        if kernels[kernel_of[cell], s, a, y] > 0.0:
                            after[y] = True
            if not fresh:
                break
            now, after = after, now


@compiled
def mark(kernels: FloatArray, kernel_of: IntArray, blocks: int, lanes: int, allowed: BoolArray) -> tuple[int, int]:
    """Mark what is possible for some block of a batch in allowed (M*K,S,2,S).

    Returns how many marks there are, and how many transitions are possible for every block by itself. kernels (G,S,2,S),
    kernel_of (C*K,) the kernel of every cell.
    """
    states, phases = kernels.shape[1], kernel_of.size // blocks
    allowed[:] = False
    marks, possible = 0, 0
    for n in range(blocks):
        for k in range(phases):
            row, g = (n // lanes) * phases + k, kernel_of[n * phases + k]
            for s in range(states):
                for a in range(2):
                    for y in range(states):
                        if kernels[g, s, a, y] > 0.0:
                            possible += 1
                            if not allowed[row, s, a, y]:
                                allowed[row, s, a, y] = True
                                marks += 1
    return marks, possible


@compiled
def pack(kernels: FloatArray, kernel_of: IntArray, blocks: int, allowed: BoolArray, rows: Rows) -> None:
    """Write the rows of a `Program`, given what `mark` has marked."""
    begins, columns, chances = rows
    states, phases, lanes = kernels.shape[1], kernel_of.size // blocks, chances.shape[1]
    at, row = 0, 0
    for cell in range(allowed.shape[0]):
        batch, k = cell // phases, cell % phases
        for s in range(states):
            for a in range(2):
                begins[row] = at
                row += 1
                for y in range(states):
                    if not allowed[cell, s, a, y]:
                        continue
                    columns[at] = y
                    for lane in range(lanes):
                        n = batch * lanes + lane
                        chances[at, lane] = kernels[kernel_of[n * phases + k], s, a, y] if n < blocks else 0.0
                    at += 1
    begins[row] = at


@compiled
def lay_out(reward: FloatArray, start: FloatArray, pays: FloatArray, masses: FloatArray) -> None:
    """Write the reward (C*K,S,2) and start (C,S) of blocks in lanes: pays (M*K,2,S*L), masses (M,S,L), both 0 before."""
    blocks, states = start.shape
    phases, lanes = reward.shape[0] // blocks, masses.shape[2]
    for n in range(blocks):
        m, lane = n // lanes, n % lanes
        for s in range(states):
            masses[m, s, lane] = start[n, s]
            for k in range(phases):
                for a in range(2):
                    pays[m * phases + k, a, s * lanes + lane] = reward[n * phases + k, s, a]


@compiled_inline
def add_means(rows: Rows, first: int, actions: int, values: FloatArray, passive: FloatArray, active: FloatArray) -> None:
    """Add to passive and active (S*L,) the mean of the values (S*L,) after the rows of a cell, whose first row is given.

    With one action, those of passive rows only.
    """
    begins, columns, chances = rows
    lanes = chances.shape[1]
    states = values.size // lanes
    for s in range(states):
        for a in range(actions):
            target, row = passive if a == 0 else active, first + 2 * s + a
            if lanes == 1:
                target[s] += mean_alone(begins, columns, chances, row, values)
                continue
            for i in range(np.uint64(begins[row]), np.uint64(begins[row + 1])):
                source, sink = columns[i] * lanes, s * lanes
                for lane in range(lanes):
                    target[sink + lane] += chances[i, lane] * values[source + lane]


@compiled_inline
def mean_alone(begins: IntArray, columns: NDArray[np.uint32], chances: FloatArray, row: int, values: FloatArray) -> float:
    """Return the mean of the values (S,) after a row: four independent sums, for speed."""
    i, last, a, b, c, d = np.uint64(begins[row]), np.uint64(begins[row + 1]), 0.0, 0.0, 0.0, 0.0
    while i + FOUR <= last:
        j, k, m = i + ONE, i + TWO, i + THREE
        a += chances[i, 0] * values[columns[i]]
        b += chances[j, 0] * values[columns[j]]
        c += chances[k, 0] * values[columns[k]]
        d += chances[m, 0] * values[columns[m]]
        i += FOUR
    while i < last:
        a += chances[i, 0] * values[columns[i]]
        i += ONE
    return (a + b) + (c + d)


@compiled_inline
def move(rows: Rows, first: int, actions: int, passive: FloatArray, active: FloatArray, target: FloatArray) -> None:
    """Add to target (S*L,) the masses passive and active (S*L,) that move by the rows of a cell; its first row is given."""
    begins, columns, chances = rows
    lanes = chances.shape[1]
    states = target.size // lanes
    for s in range(states):
        for a in range(actions):
            mass, row = passive if a == 0 else active, first + 2 * s + a
            if lanes == 1 and mass[s] == 0.0:
                continue
            for i in range(np.uint64(begins[row]), np.uint64(begins[row + 1])):
                source, sink = s * lanes, columns[i] * lanes
                if lanes == 1:
                    target[sink] += mass[source] * chances[i, 0]
                else:
                    for lane in range(lanes):
                        target[sink + lane] += mass[source + lane] * chances[i, lane]
