"""Second derivatives of the projection's dual, added up: the blocks of every arm's Hessian and its coupling to the prices.

A row (n,h,s,a) of mass m adds m (g g' + J), g = -e(h,s) + p - a cost e(price h), J = dp/dv (see rows.py).
"""

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.linear import GROUP, add_squares
from rmab.solvers.projection.compiled.program import Factors, Primal, Program

BUFFER = 64  # dense rows that are collected before they are added to a block together
LEAST = 1e-280  # pivot of a node without any mass
ROUNDING = 1e-15  # what is left of a diagonal entry below this part of it is rounding, and must not be divided by


@compiled
def assemble_step(
    program: Program, n: int, h: int, primal: Primal, factors: Factors, rows: FloatArray, scale: FloatArray
) -> None:
    """Add what the rows of step h add to the diagonal blocks upper[n,h] and upper[n,h+1] (upper halves), where the former
    has what step h-1 adds already; write leave[n,h] and enter[n,h]. Scratch: rows (BUFFER + 1, S), scale (BUFFER,).

    Of a row, p p' + J without the diagonal of J is a sum of squares. For a box whose entries are pinned (P) or loose (F),

        p p' - p_F p_F' / sigma = p_P p_P' / rest - (rest / sigma) t t',    t = p_F - p_P sigma / rest,    rest = 1 - sigma:

    often one of them is sparse, and added entry by entry. Dense ones are collected and added to the block together.
    """
    _, low, high, radius, successors, counts, reach, _, idle, _, _, _, phase, phases, cost, _ = program
    kernel, _, mass, _, sigma, _ = primal
    upper, leave, enter = factors
    horizon, states = reach.shape[1], reach.shape[2]
    filled, cell = 0, n * phases + phase[h]
    if h + 1 < horizon:
        upper[n, h + 1] = 0.0
    for s in range(states):
        leave[n, h, s], enter[n, h, s] = 0.0, 0.0
    for s in range(states):
        if not reach[n, h, s]:
            upper[n, h, s, s] = 1.0
            continue
        for a in range(1 if idle[h] else 2):
            m, count = mass[n, h, s, a], counts[cell, s, a]
            upper[n, h, s, s] += m
            leave[n, h, s] += a * m * cost[n]
            if h + 1 == horizon:
                continue
            if a == 1:
                for k in range(count):
                    y = successors[cell, s, a, k]
                    enter[n, h, y] -= m * cost[n] * kernel[n, h, s, a, y]
            if sigma[n, h, s, a] == 1.0:
                for k in range(count):
                    y = successors[cell, s, a, k]
                    upper[n, h + 1, y, y] += m * kernel[n, h, s, a, y]
                continue
            loose, rest = 0.0, 0.0
            for k in range(count if radius is None else 0):
                y = successors[cell, s, a, k]
                p = kernel[n, h, s, a, y]
                if low[cell, s, a, y] < p < high[cell, s, a, y]:
                    loose += p
                    upper[n, h + 1, y, y] += m * p
                else:
                    rest += p
            for which in range(2 if radius is None else 3):  # a ball: p itself, then its parts above and below the centre
                entries, total = 0, 0.0
                for k in range(count):
                    y = successors[cell, s, a, k]
                    p, base = kernel[n, h, s, a, y], low[cell, s, a, y]
                    if radius is None:
                        free = base < p < high[cell, s, a, y]
                        value = 0.0 if free else p
                        if which == 1:
                            value = p if free else -p * (loose / rest)
                    else:
                        value = p if which == 0 or (p > base if which == 1 else p < base) else 0.0
                        if which > 0:
                            upper[n, h + 1, y, y] += m * value
                    rows[BUFFER, k] = value
                    total += value
                    entries += value != 0.0
                if radius is None:
                    factor = -m * (rest / loose) if which == 1 else m / rest
                    if not (rest > 0.0 and (which == 0 or loose > 0.0)):
                        continue
                else:
                    factor = m if which == 0 else -m / total
                    if not total > 0.0:
                        continue
                if 3 * entries <= states:
                    for k in range(count):
                        scaled, x = factor * rows[BUFFER, k], successors[cell, s, a, k]
                        for j in range(k if scaled != 0.0 else count, count):
                            upper[n, h + 1, x, successors[cell, s, a, j]] += scaled * rows[BUFFER, j]
                    continue
                for y in range(states):
                    rows[filled, y] = 0.0
                for k in range(count):
                    rows[filled, successors[cell, s, a, k]] = rows[BUFFER, k]
                scale[filled] = factor
                filled += 1
                if filled == BUFFER:
                    add_squares(upper[n, h + 1], rows, scale, filled, states)
                    filled = 0
    while filled % GROUP != 0:  # rows of zeros: a whole group costs less than a few rows one by one
        for y in range(states):
            rows[filled, y] = 0.0
        scale[filled] = 0.0
        filled += 1
    if filled > 0:
        add_squares(upper[n, h + 1], rows, scale, filled, states)


@compiled
def fill_link(program: Program, n: int, h: int, primal: Primal, link: FloatArray) -> None:
    """Write the Hessian's block between the nodes of steps h and h+1 into link (S,S): -sum over a of mass times kernel."""
    kernel, mass, states = primal.kernel, primal.mass, program.reach.shape[2]
    cell = n * program.phases + program.phase[h]
    for s in range(states):
        for y in range(states):
            link[s, y] = 0.0
        if not program.reach[n, h, s]:
            continue
        for a in range(1 if program.idle[h] else 2):
            m, count = mass[n, h, s, a], program.counts[cell, s, a]
            if count == states:
                for y in range(states):
                    link[s, y] -= m * kernel[n, h, s, a, y]
                continue
            for k in range(count):
                y = program.successors[cell, s, a, k]
                link[s, y] -= m * kernel[n, h, s, a, y]
