"""Rows over many states in a few numbers each: a multiple of a pattern that the rows of a step share, and a row's own entries.

A plan begins as the projection of uniform occupancies. From then on, every row is tilted by the same potentials, so that two
rows stay multiples of each other, except where an entry was pinned by its confidence set at some time: with many states, one
or two of a hundred. Rows with few possible successors have entries of their own only.

Row r = ((n H + h) S + s) 2 + a of the reference is scale[r] pattern[n,h] outside of its own entries. These are at places
begin[r] up to begin[r] + count[r] - 1 of the lists; there is room for more of them up to begin[r+1]. All entries with a
positive lower bound are own ones, and all that an upper bound has pinned so far: the rest of the row is never pinned.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled, compiled_in_any_order
from rmab.solvers.projection.compiled.program import Program

ALIKE = 1e-12  # what entries of two rows may differ by, relatively: an episode rounds less
OTHERS = 8  # a row is unlike its pattern where more than one entry in so many is its own
SPARE = 2  # places for entries that come to be pinned
SAMPLE = 3  # rows that a pattern is made of


class Compact(NamedTuple):
    """The rows of a reference, and of the kernel at a dual point.

    pattern, tilted (N,H,S): of the reference, and times exp(v - shift). scale, alpha (N,H,S,2): the multiples of the former
    and, in the kernel, of the latter. ceiling (N,H,S,2): the least upper bound of entries that are not own. Of own entries:
    state, weight (the reference), low, high, and p, the kernel.
    """

    pattern: FloatArray
    tilted: FloatArray
    scale: FloatArray
    alpha: FloatArray
    ceiling: FloatArray
    begin: IntArray
    count: IntArray
    state: NDArray[np.uint32]
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray


@compiled_in_any_order
def count_own(row: FloatArray, low: FloatArray, u: FloatArray) -> tuple[float, int]:
    """Return the multiple of u (S,) that most of the row is, and how many entries are its own."""
    best, fewest, states = 0.0, u.size + 1, u.size
    for trial in range(1, SAMPLE):
        place = trial * states // SAMPLE
        scale, others = row[place] / u[place], 0
        for y in range(states):
            w = row[y]
            others += 0 if (abs(w - scale * u[y]) <= ALIKE * w) & (low[y] == 0.0) else 1
        if others < fewest:
            best, fewest = scale, others
        if OTHERS * others <= states:
            break
    return best, fewest


@compiled
def write_pattern(program: Program, n: int, h: int, rows: FloatArray, u: FloatArray) -> bool:
    """Write the pattern u (S,) of a step: entry by entry, the middle one of three rows that lead everywhere, spread over the
    states; return False where there is none. One or two rows have entries of their own, but seldom the same.
    """
    states, cell, found, last = u.size, n * program.phases + program.phase[h], 0, -1
    anchor = states // SAMPLE
    for turn in range(SAMPLE):
        for k in range(states):
            s = (turn * states // SAMPLE + k) % states
            if program.reach[n, h, s] and program.counts[cell, s, 0] == states and s != last:
                for y in range(states):
                    rows[found, y] = program.reference[n, h, s, 0, y] / program.reference[n, h, s, 0, anchor]
                found, last = found + 1, s
                break
    for y in range(states if found > 0 else 0):
        u[y] = rows[0, y]
        if found == SAMPLE:
            a, b = min(rows[0, y], rows[1, y]), max(rows[0, y], rows[1, y])
            u[y] = max(a, min(b, rows[2, y]))
    return found > 0


@compiled
def list_entries(
    program: Program, n: int, h: int, s: int, a: int, u: FloatArray, likeness: tuple[float, int], used: int, compact: Compact
) -> tuple[int, float, float]:
    """List the own entries of a row from place `used` on; return the next place, the row's scale and its ceiling.

    likeness: from `count_own`. A row that is not like u has entries of its own only.
    """
    states, cell = program.reach.shape[2], n * program.phases + program.phase[h]
    scale, others = likeness
    ceiling = np.inf
    if OTHERS * others <= states:
        for y in range(states):
            w, bottom = program.reference[n, h, s, a, y], program.low[cell, s, a, y]
            if bottom == 0.0 and abs(w - scale * u[y]) <= ALIKE * w:
                ceiling = min(ceiling, program.high[cell, s, a, y])
                continue
            compact.state[used], compact.weight[used] = y, w
            compact.low[used], compact.high[used] = bottom, program.high[cell, s, a, y]
            used += 1
        return used, scale, ceiling
    for k in range(program.counts[cell, s, a]):
        y = program.successors[cell, s, a, k]
        compact.state[used], compact.weight[used] = y, program.reference[n, h, s, a, y]
        compact.low[used], compact.high[used] = program.low[cell, s, a, y], program.high[cell, s, a, y]
        used += 1
    return used, 0.0, ceiling


@compiled
def list_rows(program: Program, first: int, last: int, compact: Compact) -> int:
    """Fill pattern, scale, ceiling and the lists for arms first..last-1; begin and the lists are theirs alone.

    Returns how many places are used, or -1 where the lists are too short.
    """
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    rows, used, r = np.empty((SAMPLE, states)), 0, 0
    for n in range(first, last):
        for h in range(horizon):
            u, cell = compact.pattern[n, h], n * program.phases + program.phase[h]
            some = write_pattern(program, n, h, rows, u)
            if used + 2 * states * (states + SPARE) > compact.state.size:
                return -1
            for s in range(states):
                for a in range(2):
                    compact.begin[r] = used
                    compact.scale[n, h, s, a], compact.ceiling[n, h, s, a] = 0.0, np.inf
                    if program.reach[n, h, s] and not (a == 1 and program.idle[h]):
                        likeness = (0.0, states)
                        if some and program.counts[cell, s, a] == states:
                            likeness = count_own(program.reference[n, h, s, a], program.low[cell, s, a], u)
                        used, compact.scale[n, h, s, a], compact.ceiling[n, h, s, a] = list_entries(
                            program, n, h, s, a, u, likeness, used, compact
                        )
                        compact.count[r] = used - compact.begin[r]
                        used += SPARE
                    else:
                        compact.count[r] = 0
                    r += 1
    compact.begin[r] = used
    return used
