"""The row of the projection over a box: p = clip(c q, low, high). See `rows.py` for what a row is."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled, compiled_inline
from rmab.solvers.projection.compiled.program import HIGH, LOW, P, Q, V, W

SMALL = 1e-200  # where the products w exp(v) of a row sum to less, or
TINY = 1e-290  # one of them is less, the row is solved in logarithms
HALVINGS = 80


@compiled_inline
def ahead(v: FloatArray, reach: BoolArray, n: int, h: int, expv: FloatArray) -> float:
    """Fill expv (S,) = exp(v[n,h+1] - shift), and return the shift: the largest v of a state that can be reached.

    States out of reach count with at most 1: they are next states of rows that carry no mass, which want some kernel too.
    """
    states = expv.size
    if h + 1 == reach.shape[1]:
        for y in range(states):
            expv[y] = 1.0
        return 0.0
    shift = -np.inf
    for y in range(states):
        if reach[n, h + 1, y]:
            shift = max(shift, v[n, h + 1, y])
    for y in range(states):
        expv[y] = np.exp(min(v[n, h + 1, y] - shift, 0.0))
    return shift


@compiled
def box_in_logs(row: FloatArray, count: int) -> float:
    """Return ln c with sum clip(c w exp(v), low, high) = 1, and fill q with c w exp(v): for rows that would underflow."""
    smallest, largest = np.inf, -np.inf
    for k in range(count):
        row[Q, k] = np.log(row[W, k]) + row[V, k]
        smallest, largest = min(smallest, row[Q, k]), max(largest, row[Q, k])
    below, above = -largest - 800.0, -smallest + 1.0  # all at their lower bounds; all at their upper bounds
    middle = -largest
    for _ in range(2 * HALVINGS):
        total, slope = 0.0, 0.0
        for k in range(count):
            p = np.exp(min(row[Q, k] + middle, 1.0))
            if row[LOW, k] < p < row[HIGH, k]:
                slope += p
            total += min(max(p, row[LOW, k]), row[HIGH, k])
        if abs(total - 1.0) <= 1e-15 * count:
            above = middle
            break
        if total < 1.0:
            below = middle
        else:
            above = middle
        # Newton for the logarithm of what the loose entries must sum to, or else the middle of what is known.
        rest = slope + 1.0 - total
        middle += np.log(rest / slope) if slope > 0.0 and rest > 0.0 else np.inf
        if not below < middle < above:
            middle = 0.5 * (below + above)
        if above - below <= 1e-15 * (abs(above) + abs(below)):
            break
    for k in range(count):
        row[Q, k] = np.exp(min(row[Q, k] + above, 700.0))
    return above


@compiled
def box_scale(row: FloatArray, count: int, total: float) -> float:
    """Return c with sum clip(c q, low, high) = 1: safeguarded Newton on a piecewise linear, increasing function.

    total is sum q.
    """
    c, below, above = 1.0 / total, 0.0, np.inf
    for _ in range(200):
        reached, slope = 0.0, 0.0
        raised, lowered = np.inf, 0.0  # the nearest c at which a pinned entry comes loose
        for k in range(count):
            q, low, high = row[Q, k], row[LOW, k], row[HIGH, k]
            x = c * q
            if x <= low:
                reached += low
                if q > 0.0:
                    raised = min(raised, low / q)
            elif x >= high:
                reached += high
                lowered = max(lowered, high / q)
            else:
                reached += x
                slope += q
        excess = reached - 1.0
        if abs(excess) <= 1e-15 * count:
            return c
        if excess > 0.0:
            above = c
        else:
            below = c
        if slope > 0.0:
            new = c - excess / slope
        else:
            # All entries are pinned: go just past the nearest point where one comes loose.
            new = lowered * (1.0 - 2e-15) if excess > 0.0 else raised * (1.0 + 2e-15)
            if not 0.0 < new < np.inf:
                return c  # none does: the box meets the simplex in this corner only
        if not below < new < above:
            if below > 0.0 and above < np.inf:
                new = np.sqrt(below) * np.sqrt(above)
            else:
                new = 0.5 * above if below == 0.0 else 2.0 * below
        if new == c:
            return c
        c = new
    return c


@compiled
def box_row(row: FloatArray, count: int, shift: float) -> tuple[float, float, float]:
    """Solve for the box low <= p <= high, from scratch: p = clip(c q, low, high).

    The third number is the part of phi that the pinned entries cost without the potentials: sum p ln(p/w).
    """
    total, smallest = 0.0, np.inf
    for k in range(count):
        total += row[Q, k]
        smallest = min(smallest, row[Q, k])
    if total > SMALL and smallest > TINY:
        c, base = box_scale(row, count, total), shift
    else:
        c, base = 1.0, -box_in_logs(row, count)
    fixed, pinned, loose, tilt = 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        x = c * row[Q, k]
        if row[LOW, k] < x < row[HIGH, k]:
            loose += row[Q, k]
            row[P, k] = x
        else:
            p = row[LOW, k] if x <= row[LOW, k] else row[HIGH, k]
            row[P, k] = p
            pinned += p
            tilt += p * row[V, k]
            if p > 0.0:
                fixed += p * (np.log(p) - np.log(row[W, k]))
    if not loose > 0.0:
        return fixed - tilt, 0.0, fixed
    sigma = max(1.0 - pinned, 1e-16)
    correction = sigma / (c * loose)  # exact for this choice of pinned entries
    for k in range(count):
        low, high = row[LOW, k], row[HIGH, k]
        if low < row[P, k] < high:
            # Still strictly inside: on its bound it would be taken for pinned the next time, without its cost.
            row[P, k] = min(max(row[P, k] * correction, np.nextafter(low, 1.0)), np.nextafter(high, 0.0))
    return fixed - tilt + sigma * (np.log(c * correction) - base), sigma, fixed
