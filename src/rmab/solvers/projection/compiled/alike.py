"""The Hessian of rows that are alike: multiples of one distribution but for a few entries each, which are often pinned.

A plan begins as the projection of uniform occupancies. From then on every row is tilted by the same potentials, so that two
rows stay multiples of each other, except where an entry of one was pinned by its confidence set at some time: with many
states, one or two of a hundred. With p = alpha u + d, loose part p_F = alpha u + f, and d, f zero but for these entries,

    p p' - p_F p_F' / sigma = -alpha^2 (rest / sigma) u u' + u b' + b u' + (d d' - f f' / sigma),    rest = 1 - sigma,

where b = alpha (d - f / sigma). All rows of a step together cost S^2 and a few entries each, not S^2 each.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled_in_any_order
from rmab.solvers.projection.compiled.program import Primal, Program

ALIKE = 1e-12  # what entries of two rows may differ by, relatively: a hundred episodes round less, and Newton bears more
OTHERS = 8  # a row is unlike where more than one entry in so many is its own,
LARGEST = 10.0  # or where (alpha u)^2 / sigma is larger at one of these: it would cancel against others, and leave rounding


@compiled_in_any_order
def all_full(program: Program, n: int, h: int) -> bool:
    """Return whether all rows of arm n at step h are boxes that lead to every state."""
    states, cell = program.reach.shape[2], n * program.phases + program.phase[h]
    if program.radius is not None:
        return False
    for s in range(states):
        for a in range(2):
            if program.counts[cell, s, a] < states:
                return False
    return True


@compiled_in_any_order
def pattern_of(program: Program, n: int, h: int, primal: Primal) -> tuple[int, int]:
    """Return state and action of the row that the others are compared with: the first without pinned entries, or any."""
    found_s, found_a = -1, 0
    for s in range(program.reach.shape[2]):
        for a in range(1 if program.idle[h] else 2):
            if program.reach[n, h, s]:
                if primal.sigma[n, h, s, a] == 1.0:
                    return s, a
                if found_s < 0:
                    found_s, found_a = s, a
    return found_s, found_a


@compiled_in_any_order
def own_entries(
    row: FloatArray, low: FloatArray, high: FloatArray, sigma: float, u: FloatArray, own: IntArray
) -> tuple[float, int]:
    """Return alpha, and how many entries of the row are its own: pinned, or not alpha u. Their states are in own (S,).

    The number is -1 where the row is not like u.
    """
    states = u.size
    for trial in range(2):
        place = (trial + 1) * states // 3
        alpha, others = row[place] / u[place], 0
        for y in range(states):
            p = row[y]
            alike = abs(p - alpha * u[y]) <= ALIKE * p
            others += 0 if alike & (p > low[y]) & (p < high[y]) else 1
        if OTHERS * others > states:
            continue
        found = 0
        for y in range(states if others > 0 else 0):
            p = row[y]
            if not (abs(p - alpha * u[y]) <= ALIKE * p and low[y] < p < high[y]):
                if (alpha * u[y]) ** 2 > LARGEST * sigma:
                    return 0.0, -1
                own[found] = y
                found += 1
        return alpha, found
    return 0.0, -1


@compiled_in_any_order
def add_alike(
    block: FloatArray, row: FloatArray, low: FloatArray, high: FloatArray, m: float, sigma: float, alpha: float,
    u: FloatArray, own: IntArray, linear: FloatArray,
) -> float:  # fmt: skip
    """Add the individual entries of a row of mass m to the block (S,S), upper half, and m b to linear (S,).

    own holds the states of these entries. Returns what it adds to the factor of u u'.
    """
    rest = 0.0
    for x in own:
        rest += 0.0 if low[x] < row[x] < high[x] else row[x]
    ratio = rest / sigma
    for i in range(own.size):
        x = own[i]
        p, common, pinned = row[x], alpha * u[x], not low[x] < row[x] < high[x]
        lean = p + common * ratio if pinned else (common - p) * ratio  # d - f / sigma
        linear[x] += m * alpha * lean
        for y in own[i:]:
            other, shared = row[y], alpha * u[y]
            if low[y] < other < high[y]:  # d = f there
                block[x, y] += m * lean * (other - shared)
            elif pinned:
                block[x, y] += m * (p * other - p * shared - common * (other + shared * ratio))
            else:
                block[x, y] += m * (p - common) * (other + shared * ratio)
    return -m * alpha * alpha * ratio


@compiled_in_any_order
def assemble_alike(
    program: Program, n: int, h: int, primal: Primal, upper: FloatArray, leave: FloatArray, enter: FloatArray
) -> bool:
    """Do as `assemble_step` does where all rows are full and alike; return False, with nothing done, where they are not."""
    kernel, mass, sigma, low, high = primal.kernel, primal.mass, primal.sigma, program.low, program.high
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    cell, actions, last = n * program.phases + program.phase[h], 1 if program.idle[h] else 2, h + 1 == horizon
    if not all_full(program, n, h):
        return False
    first, which = pattern_of(program, n, h, primal)
    u, own, counts = np.empty(states), np.empty((states, 2, states), dtype=np.int64), np.zeros((states, 2), dtype=np.int64)
    alphas, linear, diagonal, along = np.empty((states, 2)), np.zeros(states), np.zeros(states), 0.0
    for y in range(states):
        u[y] = kernel[n, h, first, which, y]
    for s in range(0 if last else states):
        for a in range(actions if program.reach[n, h, s] else 0):
            if sigma[n, h, s, a] != 1.0:
                row = (kernel[n, h, s, a], low[cell, s, a], high[cell, s, a], sigma[n, h, s, a])
                alphas[s, a], counts[s, a] = own_entries(*row, u, own[s, a])
                if counts[s, a] < 0:
                    return False
    if not last:
        upper[n, h + 1] = 0.0
    for s in range(states):
        leave[n, h, s], enter[n, h, s] = 0.0, 0.0
    for s in range(states):
        if not program.reach[n, h, s]:
            upper[n, h, s, s] = 1.0
            continue
        for a in range(actions):
            m = mass[n, h, s, a]
            upper[n, h, s, s] += m
            leave[n, h, s] += a * m * program.cost[n]
            if last:
                continue
            for y in range(states):
                p = kernel[n, h, s, a, y]
                diagonal[y] += m * p if (p > low[cell, s, a, y]) & (p < high[cell, s, a, y]) else 0.0
            if a == 1:
                for y in range(states):
                    enter[n, h, y] -= m * program.cost[n] * kernel[n, h, s, a, y]
            if sigma[n, h, s, a] != 1.0:
                part = (kernel[n, h, s, a], low[cell, s, a], high[cell, s, a], m, sigma[n, h, s, a], alphas[s, a])
                along += add_alike(upper[n, h + 1], *part, u, own[s, a, : counts[s, a]], linear)
    for x in range(0 if last else states):
        upper[n, h + 1, x, x] += diagonal[x]
        lean, common = along * u[x] + linear[x], u[x]
        for y in range(np.uint64(x), np.uint64(states)):
            upper[n, h + 1, x, y] += lean * u[y] + common * linear[y]
    return True
