"""The inner problem of the projection: for one (arm, step, state, action), the closest next-state distribution.

Given q(y) = w(y) exp(v(y)) over the possible successors, minimise sum p ln(p/q) over the row's confidence set. A solver
writes p into the row's place in the kernel and returns (phi, sigma): phi the minimum, and sigma the total of the entries
that are not pinned by the set, 1 where none is. For a ball, sigma is the total above the centre (1 inside the ball).

What is pinned can be read off p afterwards, and p answers to a change of the potentials v as dp = J dv with

    box    J = diag(p_F) - p_F p_F' / sigma        F: strictly between its bounds
    ball   the same for the entries above the centre, plus the same for those below it, whose totals are pinned.

The row is named by its place (n,h,s,a) in the arrays: slicing it out would cost more than a small row's whole solution,
because compiled code counts references to every slice.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.arrays import BoolArray, FloatArray
from rmab.kernels.compile import compiled, compiled_inline

__all__ = ["ahead", "any_row", "nearest_row", "same_rows"]

SMALL = 1e-200  # where the products w exp(v) of a row sum to less, or
TINY = 1e-290  # one of them is less, the row is solved in logarithms
HALVINGS = 80


@compiled
def box_in_logs(
    reference: FloatArray,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    low: FloatArray,
    high: FloatArray,
    q: FloatArray,
) -> float:
    """Return ln c with sum clip(c w exp(v), low, high) = 1, and fill q with c w exp(v): for rows that would underflow."""
    smallest, largest = np.inf, -np.inf
    for k in range(count):
        y = successors[n, s, a, k]
        q[k] = np.log(reference[n, h, s, a, y]) + v[n, h + 1, y]
        smallest, largest = min(smallest, q[k]), max(largest, q[k])
    below, above = -largest - 800.0, -smallest + 1.0  # all at their lower bounds; all at their upper bounds
    middle = -largest
    for _ in range(2 * HALVINGS):
        total, slope = 0.0, 0.0
        for k in range(count):
            p = np.exp(min(q[k] + middle, 1.0))
            if low[k] < p < high[k]:
                slope += p
            total += min(max(p, low[k]), high[k])
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
        q[k] = np.exp(min(q[k] + above, 700.0))
    return above


@compiled
def box_scale(q: FloatArray, low: FloatArray, high: FloatArray, count: int) -> float:
    """Return c with sum clip(c q, low, high) = 1: safeguarded Newton on a piecewise linear, increasing function."""
    total = 0.0
    for k in range(count):
        total += q[k]
    c, below, above = 1.0 / total, 0.0, np.inf
    for _ in range(200):
        reached, slope = 0.0, 0.0
        raised, lowered = np.inf, 0.0  # the nearest c at which a pinned entry comes loose
        for k in range(count):
            x = c * q[k]
            if x <= low[k]:
                reached += low[k]
                if q[k] > 0.0:
                    raised = min(raised, low[k] / q[k])
            elif x >= high[k]:
                reached += high[k]
                lowered = max(lowered, high[k] / q[k])
            else:
                reached += x
                slope += q[k]
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
def box_row(
    reference: FloatArray,
    low: FloatArray,
    high: FloatArray,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    expv: FloatArray,
    shift: float,
    kernel: FloatArray,
    constant: FloatArray,
    q: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> tuple[float, float]:
    """Solve for the box low <= p <= high, from scratch: p = clip(c q, low, high).

    Writes constant[n,h,s,a], the part of phi that the pinned entries cost without the potentials: sum p ln(p/w).
    """
    total, smallest = 0.0, np.inf
    for k in range(count):
        y = successors[n, s, a, k]
        q[k] = reference[n, h, s, a, y] * expv[y]
        total += q[k]
        smallest = min(smallest, q[k])
        least[k], most[k] = low[n, s, a, y], high[n, s, a, y]
    if total > SMALL and smallest > TINY:
        c, base = box_scale(q, least, most, count), shift
    else:
        c, base = 1.0, -box_in_logs(reference, successors, count, n, h, s, a, v, least, most, q)
    fixed, pinned, loose, tilt = 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        y = successors[n, s, a, k]
        x = c * q[k]
        if least[k] < x < most[k]:
            loose += q[k]
            kernel[n, h, s, a, y] = x
        else:
            p = least[k] if x <= least[k] else most[k]
            kernel[n, h, s, a, y] = p
            pinned += p
            tilt += p * v[n, h + 1, y]
            if p > 0.0:
                fixed += p * (np.log(p) - np.log(reference[n, h, s, a, y]))
    constant[n, h, s, a] = fixed
    if not loose > 0.0:
        return fixed - tilt, 0.0
    sigma = max(1.0 - pinned, 1e-16)
    correction = sigma / (c * loose)  # exact for this choice of pinned entries
    for k in range(count):
        y = successors[n, s, a, k]
        if least[k] < kernel[n, h, s, a, y] < most[k]:
            # Still strictly inside: on its bound it would be taken for pinned the next time, without its cost.
            x = kernel[n, h, s, a, y] * correction
            kernel[n, h, s, a, y] = min(max(x, np.nextafter(least[k], 1.0)), np.nextafter(most[k], 0.0))
    return fixed - tilt + sigma * (np.log(c * correction) - base), sigma


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
        y = successors[n, s, a, k]
        q[k] = np.log(reference[n, h, s, a, y]) + v[n, h + 1, y]
        peak = max(peak, q[k])
    for k in range(count):
        total += np.exp(q[k] - peak)
    for k in range(count):
        p = np.exp(q[k] - peak) / total
        kernel[n, h, s, a, successors[n, s, a, k]] = p
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
        kernel[n, h, s, a, successors[n, s, a, k]] = p
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
        y = successors[n, s, a, k]
        q[k] = reference[n, h, s, a, y] * expv[y]
        total += q[k]
        smallest = min(smallest, q[k])
        centre[k] = low[n, s, a, y]
    if not (total > SMALL and smallest > TINY):
        return ball_in_logs(reference, radius, successors, count, n, h, s, a, v, kernel, q, centre)
    distance = 0.0
    for k in range(count):
        y = successors[n, s, a, k]
        kernel[n, h, s, a, y] = q[k] / total
        distance += abs(q[k] / total - centre[k])
    if distance <= radius:
        return -np.log(total) - shift, 1.0
    up = excess_scale(q, centre, count, radius / 2, True)
    down = excess_scale(q, centre, count, radius / 2, False)
    phi, above, below = 0.0, 0.0, 0.0
    for k in range(count):
        y = successors[n, s, a, k]
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


@compiled_inline
def nearest_row(
    reference: FloatArray,
    low: FloatArray,
    high: FloatArray,
    radius: FloatArray | None,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    expv: FloatArray,
    shift: float,
    kernel: FloatArray,
    constant: FloatArray,
    q: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> tuple[float, float]:
    """Solve the row (n, h, s, a) over its box, or over the ball of its radius around low, at potentials v (N,H+1,S).

    expv (S,) holds exp(v[n,h+1] - shift). Writes kernel[n,h,s,a] and constant[n,h,s,a]; q, least, most (S,) are work space.
    """
    if radius is not None:  # settled when it is compiled: None and an array are different types
        size = radius[n, s, a]
        return ball_row(reference, low, size, successors, count, n, h, s, a, v, expv, shift, kernel, q, least)
    return box_row(reference, low, high, successors, count, n, h, s, a, v, expv, shift, kernel, constant, q, least, most)


@compiled_inline
def any_row(
    low: FloatArray,
    high: FloatArray,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    h: int,
    s: int,
    a: int,
    kernel: FloatArray,
) -> None:
    """Write some distribution of the set into a row that carries no mass: evenly between the bounds, or the centre."""
    spare, room = 1.0, 0.0
    for k in range(count):
        y = successors[n, s, a, k]
        spare -= low[n, s, a, y]
        room += high[n, s, a, y] - low[n, s, a, y]
    part = min(spare / room, 1.0) if room > 0.0 and spare > 0.0 else 0.0
    for k in range(count):
        y = successors[n, s, a, k]
        kernel[n, h, s, a, y] = low[n, s, a, y] + part * (high[n, s, a, y] - low[n, s, a, y])


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
def same_rows(
    reference: FloatArray,
    low: FloatArray,
    high: FloatArray,
    successors: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    reach: BoolArray,
    idle: BoolArray,
    first: int,
    last: int,
    v: FloatArray,
    kernel: FloatArray,
    constant: FloatArray,
    phi: FloatArray,
    sigma: FloatArray,
) -> None:
    """Solve the rows of arms first..last-1 whose pinned entries are those of the last time, as the kernel tells.

    Most are, from one evaluation to the next. Writes their kernel, phi and sigma; sigma is -1 where the row is another.
    Nothing is called from this loop: that alone makes it four times as fast.
    """
    horizon, states = reach.shape[1], reach.shape[2]
    q, expv = np.empty(states), np.empty(states)
    for n in range(first, last):
        for h in range(horizon):
            shift = ahead(v, reach, n, h, expv)
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    total, pinned, loose, tilt, known, free = 0.0, 0.0, 0.0, 0.0, True, 0
                    for k in range(counts[n, s, a]):
                        y = successors[n, s, a, k]
                        old, bottom, top = kernel[n, h, s, a, y], low[n, s, a, y], high[n, s, a, y]
                        q[k] = reference[n, h, s, a, y] * expv[y]
                        total += q[k]
                        if bottom < old < top:
                            loose += q[k]
                            free += 1
                        else:
                            pinned += old
                            tilt += old * v[n, h + 1, y]
                            known &= bottom == top == old
                    rest = 1.0 - pinned
                    c = rest / loose
                    same = (total > SMALL) & (loose > 0.0) & (rest > 0.0)
                    for k in range(counts[n, s, a]):
                        y = successors[n, s, a, k]
                        old, bottom, top = kernel[n, h, s, a, y], low[n, s, a, y], high[n, s, a, y]
                        x = c * q[k]
                        if bottom < old < top:
                            same &= (bottom < x) & (x < top)
                            kernel[n, h, s, a, y] = x
                        else:
                            same &= (x <= bottom) if old <= bottom else (x >= top)
                    if same:
                        phi[n, h, s, a] = constant[n, h, s, a] - tilt + rest * (np.log(c) - shift)
                        sigma[n, h, s, a] = rest
                    elif known and free == 0:
                        phi[n, h, s, a] = constant[n, h, s, a] - tilt
                        sigma[n, h, s, a] = 0.0
                    else:
                        sigma[n, h, s, a] = -1.0
