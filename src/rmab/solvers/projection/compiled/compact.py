"""Rows over many states in a few numbers each: a multiple of a pattern that the rows of a step share, and own entries.

A plan begins as the projection of uniform occupancies. From then on, every row is tilted by the same potentials, so that two
rows stay multiples of each other, except where an entry was pinned by its confidence set at some time: with many states, one
or two of a hundred. Rows with few possible successors have entries of their own only.

Row r = ((n H + h) S + s) 2 + a of the reference is a multiple of pattern[n,h] outside of its own entries. These are at
places begin[r] up to begin[r] + counts[r] - 1 of the lists. All entries with a positive lower bound are own ones, and all
that an upper bound has pinned so far: the rest of the row is not pinned. A list that grows beyond its room moves to the end
of what its arm has used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled, compiled_in_any_order
from rmab.solvers.projection.compiled.program import Program

ALIKE = 1e-12  # what entries of two rows may differ by, relatively: an episode rounds less
OTHERS = 8  # a row is unlike its pattern where more than one entry in so many is its own
FEWEST = 4  # rows are not compact where one entry in so many, of all, is an own one
SAMPLE = 3  # rows that a pattern is made of


class Compact(NamedTuple):
    """The rows of a reference, and of the kernel at a dual point.

    pattern, tilted (N,H,S): of the reference, and times exp(v - shift). scale, alpha (N,H,S,2): the multiples of the former
    and, in the kernel, of the latter. ceiling (N,H,S,2): the least upper bound of entries that are not own. Of own entries:
    state, weight (the reference), low, high, and p, the kernel. begin, counts, room (R,): of the rows' lists. used (N,2):
    the next place that is free, and the end of the arm's places.
    """

    pattern: FloatArray
    tilted: FloatArray
    scale: FloatArray
    alpha: FloatArray
    ceiling: FloatArray
    begin: IntArray
    counts: IntArray
    room: IntArray
    used: IntArray
    state: NDArray[np.uint32]
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray


@compiled
def gather(program: Program, n: int, h: int, s: int, a: int, w: FloatArray) -> None:
    """Write a row of the reference into w (S,), with zeros where the next state is impossible."""
    states, cell = w.size, n * program.phases + program.phase[h]
    whole = program.counts[cell, s, a] == states
    for y in range(states):
        w[y] = program.reference[n, h, s, a, y] if whole else 0.0
    for k in range(0 if whole else program.counts[cell, s, a]):
        y = program.successors[cell, s, a, k]
        w[y] = program.reference[n, h, s, a, y]


@compiled
def write_pattern(program: Program, n: int, h: int, rows: FloatArray, u: FloatArray) -> bool:
    """Write the pattern u (S,) of a step: entry by entry, the middle one of three rows that lead to most states.

    These are spread over the states: each has entries of its own, but seldom the same. Returns False where there is none, or
    none that is finite.
    """
    states, cell, found, last, anchor = u.size, n * program.phases + program.phase[h], 0, -1, 0
    for turn in range(SAMPLE):
        for k in range(states):
            s = (turn * states // SAMPLE + k) % states
            if program.reach[n, h, s] and 2 * program.counts[cell, s, 0] > states and s != last:
                gather(program, n, h, s, 0, rows[found])
                while rows[0, anchor] == 0.0:
                    anchor += 1
                unit = rows[found, anchor]
                if unit > 0.0:
                    for y in range(states):
                        rows[found, y] /= unit
                    found, last = found + 1, s
                    break
    for y in range(states):
        u[y] = rows[0, y] if found > 0 else 0.0
        if found == SAMPLE:
            less, more = min(rows[0, y], rows[1, y]), max(rows[0, y], rows[1, y])
            u[y] = max(less, min(more, rows[2, y]))
        if not u[y] < np.inf:
            u[:] = 0.0
            return False
    return found > 0


@compiled_in_any_order
def count_own(w: FloatArray, low: FloatArray, u: FloatArray) -> tuple[float, int]:
    """Return the multiple of u (S,) that most of the row w (S,) is, and how many entries are its own.

    That is all of them where the row does not lead to all states of the pattern.
    """
    states = u.size
    best, fewest, missing = 0.0, states, 0
    for y in range(states):
        missing += 1 if (w[y] == 0.0) & (u[y] > 0.0) else 0
    for trial in range(SAMPLE - 1 if missing == 0 else 0):
        place = (trial + 1) * states // SAMPLE
        while u[place] == 0.0:
            place = (place + 1) % states
        scale, others = w[place] / u[place], 0
        for y in range(states):
            x = w[y]
            others += 0 if (abs(x - scale * u[y]) <= ALIKE * x) & (low[y] == 0.0) else 1
        if others < fewest:
            best, fewest = scale, others
        if OTHERS * others <= states:
            break
    return best, fewest


@compiled_in_any_order
def least_bound(w: FloatArray, low: FloatArray, high: FloatArray, u: FloatArray, scale: float) -> float:
    """Return the least upper bound of the entries of a row that are not its own."""
    least = np.inf
    for y in range(u.size):
        x = w[y]
        common = (abs(x - scale * u[y]) <= ALIKE * x) & (low[y] == 0.0) & (x > 0.0)
        least = min(least, high[y] if common else np.inf)
    return least


@compiled
def list_rows(program: Program, n: int, compact: Compact, constant: FloatArray) -> int:
    """Fill pattern, scale, ceiling and the lists of arm n, which begin at place 0; return how many places are used.

    Returns -1 where the lists are too short. The first guess: entries with a positive lower bound are pinned there, others
    are not; constant (N,H,S,2) is then that of `rows.py`.
    """
    pattern, _, scales, _, ceilings, begin, counts, room, _, state, weight, low, high, p = compact
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    rows, w, used = np.empty((SAMPLE, states)), np.empty(states), 0
    constant[n] = 0.0
    for h in range(horizon):
        u, cell = pattern[n, h], n * program.phases + program.phase[h]
        some = write_pattern(program, n, h, rows, u)
        for s in range(states):
            for a in range(2):
                r, first = ((n * horizon + h) * states + s) * 2 + a, used
                scale, others, many = 0.0, states, program.counts[cell, s, a]
                if not program.reach[n, h, s] or (a == 1 and program.idle[h]):
                    many = 0
                elif some and 2 * many > states:
                    gather(program, n, h, s, a, w)
                    scale, others = count_own(w, program.low[cell, s, a], u)
                alike = OTHERS * others <= states
                if alike:
                    ceilings[n, h, s, a] = least_bound(w, program.low[cell, s, a], program.high[cell, s, a], u, scale)
                    scales[n, h, s, a] = scale
                    many = others
                k = 0
                if used + many > state.size:
                    return -1
                while used - first < many:
                    y = k if alike else program.successors[cell, s, a, k]
                    k += 1
                    bottom = program.low[cell, s, a, y]
                    if alike and bottom == 0.0 and abs(w[y] - scale * u[y]) <= ALIKE * w[y]:
                        continue
                    state[used], weight[used] = y, program.reference[n, h, s, a, y]
                    low[used], high[used] = bottom, program.high[cell, s, a, y]
                    p[used] = bottom if bottom > 0.0 else 0.5 * high[used]
                    if bottom > 0.0:
                        constant[n, h, s, a] += bottom * (np.log(bottom) - np.log(weight[used]))
                    used += 1
                begin[r], counts[r], room[r] = first, many, many
    return used


@compiled
def make_room(compact: Compact, n: int, r: int) -> bool:
    """Move a row's list to where it can grow to twice its length and more; return False where the arm has no place left."""
    _, _, _, _, _, begin, counts, room, used, state, weight, low, high, p = compact
    old, new = begin[r], used[n, 0]
    more = 2 * counts[r] + 2
    if new + more > used[n, 1]:
        return False
    for k in range(counts[r]):
        state[new + k], weight[new + k], p[new + k] = state[old + k], weight[old + k], p[old + k]
        low[new + k], high[new + k] = low[old + k], high[old + k]
    begin[r], room[r] = new, more
    used[n, 0] += more
    return True
