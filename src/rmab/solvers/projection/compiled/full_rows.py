"""Rows over boxes that may lead to every one of many states: what `box_rows.py` and `rows.py` do, along whole arrays.

Without lists of successors the processor works on several states at a time, if it may also add them up in any order. A row
of which that cannot be asked (it would underflow, or all its entries are pinned) goes the other way.
"""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_in_any_order
from rmab.solvers.projection.compiled.box_rows import SMALL, TINY, ahead
from rmab.solvers.projection.compiled.program import FEW_STATES, Primal, Program

TRIALS = 60  # steps to the scale of a row; more than ten were never seen


@compiled_in_any_order
def full_scale(q: FloatArray, low: FloatArray, high: FloatArray, total: float) -> float:
    """Return c with sum clip(c q, low, high) = 1, or -1 where a plain Newton iteration does not find it. total is sum q."""
    states, c = q.size, 1.0 / total
    for _ in range(TRIALS):
        reached, slope = 0.0, 0.0
        for y in range(states):
            x, bottom, top = c * q[y], low[y], high[y]
            reached += min(max(x, bottom), top)
            slope += q[y] if (x > bottom) & (x < top) else 0.0
        excess = reached - 1.0
        if abs(excess) <= 1e-15 * states:
            return c
        new = c - excess / slope
        if not 0.0 < new < np.inf:
            return -1.0
        if new == c:
            return c
        c = new
    return -1.0


@compiled_in_any_order
def full_row(
    w: FloatArray,
    low: FloatArray,
    high: FloatArray,
    v: FloatArray,
    expv: FloatArray,
    shift: float,
    p: FloatArray,
    q: FloatArray,
) -> tuple[float, float, float]:
    """Do as `box_row` does, or return sigma = -1 where that is to be asked. All arrays are (S,)."""
    states = q.size
    total, tiny = 0.0, 0
    for y in range(states):
        x = w[y] * expv[y]
        q[y] = x
        total += x
        tiny += 1 if x <= TINY else 0
    if tiny > 0 or not total > SMALL:
        return 0.0, -1.0, 0.0
    c = full_scale(q, low, high, total)
    if not c > 0.0:
        return 0.0, -1.0, 0.0
    loose, count = 0.0, 0
    for y in range(states):
        x, bottom, top = c * q[y], low[y], high[y]
        inside = (x > bottom) & (x < top)
        loose += q[y] if inside else 0.0
        count += 0 if inside else 1
        p[y] = min(max(x, bottom), top)
    fixed, pinned, tilt = 0.0, 0.0, 0.0
    for y in range(states if count > 0 else 0):
        x = p[y]
        if low[y] < x < high[y]:
            continue
        pinned += x
        tilt += x * v[y]
        if x > 0.0:
            fixed += x * (np.log(x) - np.log(w[y]))
    sigma = 1.0 - pinned
    if not (loose > 0.0 and sigma > 1e-16):
        return 0.0, -1.0, 0.0
    correction, lost = sigma / (c * loose), 0  # exact for this choice of pinned entries
    for y in range(states):
        old, bottom, top = p[y], low[y], high[y]
        x = old * correction if (old > bottom) & (old < top) else old
        lost += 1 if (old > bottom) & (old < top) & ((x <= bottom) | (x >= top)) else 0
        p[y] = x
    if lost > 0:  # an entry that is no longer strictly inside would be taken for pinned the next time, without its cost
        return 0.0, -1.0, 0.0
    return fixed - tilt + sigma * (np.log(c * correction) - shift), sigma, fixed


@compiled_in_any_order
def same_full_rows(program: Program, first: int, last: int, v: FloatArray, primal: Primal) -> None:
    """Do as `same_rows` does, for the rows that may lead to every one of many states."""
    reference, low, high, _, _, counts, reach, _, idle, _, _, _, phase, phases, _, _ = program
    kernel, constant, _, phi, sigma, _ = primal
    horizon, states = reach.shape[1], reach.shape[2]
    q, expv = np.empty(states), np.empty(states)
    for n in range(first if states > FEW_STATES else last, last):
        for h in range(horizon):
            shift, cell = ahead(v, reach, n, h, expv), n * phases + phase[h]
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    if counts[cell, s, a] < states:
                        continue
                    total, pinned, loose, tilt = 0.0, 0.0, 0.0, 0.0
                    for y in range(states):
                        old, bottom, top = kernel[n, h, s, a, y], low[cell, s, a, y], high[cell, s, a, y]
                        x, inside = reference[n, h, s, a, y] * expv[y], (old > bottom) & (old < top)
                        q[y] = x
                        total += x
                        loose += x if inside else 0.0
                        held = 0.0 if inside else old
                        pinned += held
                        tilt += held * v[n, h + 1, y]
                    rest = 1.0 - pinned
                    c, wrong, unknown = rest / loose, 0, 0
                    for y in range(states):
                        old, bottom, top = kernel[n, h, s, a, y], low[cell, s, a, y], high[cell, s, a, y]
                        x, inside = c * q[y], (old > bottom) & (old < top)
                        below, above = x <= bottom, x >= top
                        holds = (below if old <= bottom else above) if not inside else not (below | above)
                        wrong += 0 if holds else 1
                        unknown += 0 if (bottom == top) & (old == top) else 1
                        kernel[n, h, s, a, y] = x if inside else old
                    sigma[n, h, s, a] = -1.0
                    if wrong == 0 and total > SMALL and loose > 0.0 and rest > 0.0:
                        phi[n, h, s, a] = constant[n, h, s, a] - tilt + rest * (np.log(c) - shift)
                        sigma[n, h, s, a] = rest
                    elif unknown == 0:
                        phi[n, h, s, a], sigma[n, h, s, a] = constant[n, h, s, a] - tilt, 0.0
