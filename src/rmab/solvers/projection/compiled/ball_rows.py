"""The row of the projection over an L1 ball: p = clip(centre, u q, d q). See `rows.py` for what a row is."""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled
from rmab.solvers.projection.compiled.box_rows import HALVINGS, SMALL, TINY
from rmab.solvers.projection.compiled.program import LOW as CENTRE, P, Q, V, W


@compiled
def excess_scale(row: FloatArray, count: int, half: float, rising: bool) -> float:
    """Return the u with sum max(u q - centre, 0) = half (rising), or the d with sum max(centre - d q, 0) = half.

    Both are convex and piecewise linear: Newton from the far end goes straight and ends after finitely many steps.
    """
    scale = np.inf if rising else 0.0
    if rising:  # at the least u at which one entry alone exceeds its centre by half
        for k in range(count):
            if row[Q, k] > 0.0:
                scale = min(scale, (row[CENTRE, k] + half) / row[Q, k])
    for _ in range(1000):
        reached, slope = 0.0, 0.0
        for k in range(count):
            gap = scale * row[Q, k] - row[CENTRE, k] if rising else row[CENTRE, k] - scale * row[Q, k]
            if gap > 0.0:
                reached += gap
                slope += row[Q, k]
        if slope <= 0.0:
            return scale
        new = scale - (reached - half) / slope if rising else scale + (reached - half) / slope
        if (new >= scale) if rising else (new <= scale):
            return scale
        scale = new
    return scale


@compiled
def excess_in_logs(row: FloatArray, count: int, half: float, rising: bool) -> float:
    """Return the logarithm of what `excess_scale` returns, q holding logarithms."""
    smallest, largest = np.inf, -np.inf
    for k in range(count):
        smallest, largest = min(smallest, row[Q, k]), max(largest, row[Q, k])
    below, above = -largest - 800.0, -smallest + 1.0
    for _ in range(HALVINGS):
        middle, total = 0.5 * (below + above), 0.0
        for k in range(count):
            p = np.exp(min(row[Q, k] + middle, 1.0))
            total += max(p - row[CENTRE, k], 0.0) if rising else max(row[CENTRE, k] - p, 0.0)
        if (total < half) if rising else (total > half):
            below = middle
        else:
            above = middle
    return below if rising else above


@compiled
def ball_in_logs(row: FloatArray, count: int, radius: float) -> tuple[float, float]:
    """Solve the ball's row in logarithms: slower, for rows that underflow otherwise."""
    peak, total, distance = -np.inf, 0.0, 0.0
    for k in range(count):
        row[Q, k] = np.log(row[W, k]) + row[V, k]
        peak = max(peak, row[Q, k])
    for k in range(count):
        total += np.exp(row[Q, k] - peak)
    for k in range(count):
        row[P, k] = np.exp(row[Q, k] - peak) / total
        distance += abs(row[P, k] - row[CENTRE, k])
    if distance <= radius:
        return -np.log(total) - peak, 1.0
    up = excess_in_logs(row, count, radius / 2, True)
    down = excess_in_logs(row, count, radius / 2, False)
    phi, above = 0.0, 0.0
    for k in range(count):
        p = row[CENTRE, k]
        if np.exp(min(up + row[Q, k], 1.0)) > p:
            p = np.exp(up + row[Q, k])
            above += p
        elif np.exp(min(down + row[Q, k], 1.0)) < p:
            p = np.exp(down + row[Q, k])
        row[P, k] = p
        if p > 0.0:
            phi += p * (np.log(p) - row[Q, k])
    return phi, above


@compiled
def ball_row(row: FloatArray, count: int, radius: float, shift: float) -> tuple[float, float]:
    """Solve for the L1 ball sum |p - centre| <= radius: p = clip(centre, u q, d q)."""
    total, smallest, distance = 0.0, np.inf, 0.0
    for k in range(count):
        total += row[Q, k]
        smallest = min(smallest, row[Q, k])
    if not (total > SMALL and smallest > TINY):
        return ball_in_logs(row, count, radius)
    for k in range(count):
        row[P, k] = row[Q, k] / total
        distance += abs(row[P, k] - row[CENTRE, k])
    if distance <= radius:
        return -np.log(total) - shift, 1.0
    up = excess_scale(row, count, radius / 2, True)
    down = excess_scale(row, count, radius / 2, False)
    phi, above, below = 0.0, 0.0, 0.0
    for k in range(count):
        p, q = row[CENTRE, k], row[Q, k]
        if up * q > p:
            p = up * q
            above += p
        elif down * q < p:
            p = down * q
            below += p
        elif p > 0.0:
            phi += p * np.log(p / q)
        row[P, k] = p
    if above > 0.0:
        phi += above * np.log(up)
    if below > 0.0:
        phi += below * np.log(down)
    return phi - shift, above
