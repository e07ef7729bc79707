"""The row of the projection over an L1 ball: p = clip(centre, u q, d q). See `rows.py` for what a row is."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled
from rmab.solvers.projection.compiled.box_rows import HALVINGS, SMALL, TINY


@compiled
def excess_scale(q: FloatArray, centre: FloatArray, count: int, half: float, rising: bool) -> float:
    """Return the u with sum max(u q - centre, 0) = half (rising), or the d with sum max(centre - d q, 0) = half.

    Both are convex and piecewise linear: Newton from the far end goes straight and ends after finitely many steps.
    """
    scale = np.inf if rising else 0.0
    if rising:  # at the least u at which one entry alone exceeds its centre by half
        for k in range(count):
            if q[k] > 0.0:
                scale = min(scale, (centre[k] + half) / q[k])
    for _ in range(1000):
        reached, slope = 0.0, 0.0
        for k in range(count):
            gap = scale * q[k] - centre[k] if rising else centre[k] - scale * q[k]
            if gap > 0.0:
                reached += gap
                slope += q[k]
        if slope <= 0.0:
            return scale
        new = scale - (reached - half) / slope if rising else scale + (reached - half) / slope
        if (new >= scale) if rising else (new <= scale):
            return scale
        scale = new
    return scale


@compiled
def excess_in_logs(q: FloatArray, centre: FloatArray, count: int, half: float, rising: bool) -> float:
    """Return the logarithm of what `excess_scale` returns, q holding logarithms."""
    smallest, largest = np.inf, -np.inf
    for k in range(count):
        smallest, largest = min(smallest, q[k]), max(largest, q[k])
    below, above = -largest - 800.0, -smallest + 1.0
    for _ in range(HALVINGS):
        middle, total = 0.5 * (below + above), 0.0
        for k in range(count):
            p = np.exp(min(q[k] + middle, 1.0))
            total += max(p - centre[k], 0.0) if rising else max(centre[k] - p, 0.0)
        if (total < half) if rising else (total > half):
            below = middle
        else:
            above = middle
    return below if rising else above


@compiled
def ball_in_logs(
    reference: FloatArray,
    radius: float,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    cell: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    kernel: FloatArray,
    q: FloatArray,
    centre: FloatArray,
) -> tuple[float, float]:
    """Solve the ball's row in logarithms: slower, for rows that underflow otherwise."""
    peak, total, distance = -np.inf, 0.0, 0.0
    for k in range(count):
        y = successors[cell, s, a, k]
        q[k] = np.log(reference[n, h, s, a, y]) + v[n, h + 1, y]
        peak = max(peak, q[k])
    for k in range(count):
        total += np.exp(q[k] - peak)
    for k in range(count):
        p = np.exp(q[k] - peak) / total
        kernel[n, h, s, a, successors[cell, s, a, k]] = p
        distance += abs(p - centre[k])
    if distance <= radius:
        return -np.log(total) - peak, 1.0
    up = excess_in_logs(q, centre, count, radius / 2, True)
    down = excess_in_logs(q, centre, count, radius / 2, False)
    phi, above = 0.0, 0.0
    for k in range(count):
        p = centre[k]
        if np.exp(min(up + q[k], 1.0)) > p:
            p = np.exp(up + q[k])
            above += p
        elif np.exp(min(down + q[k], 1.0)) < p:
            p = np.exp(down + q[k])
        kernel[n, h, s, a, successors[cell, s, a, k]] = p
        if p > 0.0:
            phi += p * (np.log(p) - q[k])
    return phi, above


@compiled
def ball_row(
    reference: FloatArray,
    low: FloatArray,
    radius: float,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    cell: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    expv: FloatArray,
    shift: float,
    kernel: FloatArray,
    q: FloatArray,
    centre: FloatArray,
) -> tuple[float, float]:
    """Solve for the L1 ball sum |p - centre| <= radius, centre in low: p = clip(centre, u q, d q)."""
    total, smallest = 0.0, np.inf
    for k in range(count):
        y = successors[cell, s, a, k]
        q[k] = reference[n, h, s, a, y] * expv[y]
        total += q[k]
        smallest = min(smallest, q[k])
        centre[k] = low[cell, s, a, y]
    if not (total > SMALL and smallest > TINY):
        return ball_in_logs(reference, radius, successors, count, n, cell, h, s, a, v, kernel, q, centre)
    distance = 0.0
    for k in range(count):
        y = successors[cell, s, a, k]
        kernel[n, h, s, a, y] = q[k] / total
        distance += abs(q[k] / total - centre[k])
    if distance <= radius:
        return -np.log(total) - shift, 1.0
    up = excess_scale(q, centre, count, radius / 2, True)
    down = excess_scale(q, centre, count, radius / 2, False)
    phi, above, below = 0.0, 0.0, 0.0
    for k in range(count):
        y = successors[cell, s, a, k]
        p = centre[k]
        if up * q[k] > p:
            p = up * q[k]
            above += p
        elif down * q[k] < p:
            p = down * q[k]
            below += p
        elif p > 0.0:
            phi += p * np.log(p / q[k])
        kernel[n, h, s, a, y] = p
    if above > 0.0:
        phi += above * np.log(up)
    if below > 0.0:
        phi += below * np.log(down)
    return phi - shift, above
