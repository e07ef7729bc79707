"""Newton's method on the reduced dual of the KL projection (paper, eq. UCB_extended): what is done arm by arm.

With flow potentials v[n,h,s] (v[n,H] = 0) and budget prices, each row (n,h,s,a) has its own closed form (rows.py): a
distribution p and a cost phi, hence the mass m = exp(-prices[h] a - v[n,h,s] - phi) and z = m p. The dual function is

    f(v, prices) = sum over n of weights[n] (sum m + v[n,0,start]) + sum over h of budget[h] prices[h],

convex; its gradient is the violation of flow and budget. Given the prices the arms are independent, and an arm's Hessian is
block tridiagonal in h: U'U with U made of triangular blocks upper[h] and full blocks link[h]. The arms meet only in the
prices: `curvature` adds up what is left for them (the Schur complement) while it goes forward through the steps.

Kernels work on arms first..last-1 and write their own parts only, so that chunks of arms can run side by side.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.arrays import BoolArray, FloatArray, IntArray
from rmab.kernels.compile import compiled, compiled_inline
from rmab.kernels.linear import (
    add_squares,
    back_solve,
    factor,
    forward_solve,
    forward_vector,
    subtract_products,
)
from rmab.kernels.rows import nearest_row

__all__ = ["Program", "curvature", "direction", "dual", "opening"]

BUFFER = 64  # dense rows that are collected before they are added to a block together
LEAST = 1e-280  # pivot of a node without any mass


class Program(NamedTuple):
    """What is projected onto what.

    reference (N,H,S,2,S). ball: the confidence sets are L1 balls of radius (N,S,2) around low; otherwise boxes low..high
    (N,S,2,S). successors (N,S,2,S): the possible next states, in the first counts (N,S,2) places. reach (N,H,S): whether
    mass can get there. idle (H,): nobody may be active at step h. start (N,), weights (N,).
    """

    ball: bool
    reference: FloatArray
    low: FloatArray
    high: FloatArray
    radius: FloatArray
    successors: NDArray[np.int32]
    counts: NDArray[np.int32]
    reach: BoolArray
    idle: BoolArray
    start: IntArray
    weights: FloatArray


@compiled_inline
def ahead(v: FloatArray, reach: BoolArray, n: int, h: int, expv: FloatArray) -> float:
    """Fill expv (S,) = exp(v[n,h+1] - shift) over the states that can be reached, and return the shift: the largest v."""
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
        expv[y] = np.exp(v[n, h + 1, y] - shift) if reach[n, h + 1, y] else 0.0
    return shift


@compiled
def dual(
    program: Program,
    first: int,
    last: int,
    v: FloatArray,
    prices: FloatArray,
    kernel: FloatArray,
    constant: FloatArray,
    mass: FloatArray,
    phi: FloatArray,
    sigma: FloatArray,
    gradient: FloatArray,
    used: FloatArray,
) -> tuple[float, float]:
    """Evaluate the dual at v (N,H+1,S) and prices (H,). Returns these arms' part of f and their largest flow violation.

    Writes every row's kernel (N,H,S,2,S), and its constant, mass, phi and sigma (N,H,S,2); gradient (N,H,S) of each arm by
    itself (inflow - outflow, 1 - outflow at the start); and used (H,), the weighted active mass.
    """
    ball, reference, low, high, radius, successors, counts, reach, idle, start, weights = program
    horizon, states = reach.shape[1], reach.shape[2]
    q, least, most, expv = np.empty(states), np.empty(states), np.empty(states), np.empty(states)
    used[:] = 0.0
    total, worst = 0.0, 0.0
    for n in range(first, last):
        gradient[n] = 0.0
        gradient[n, 0, start[n]] = 1.0
        sum_masses = 0.0
        for h in range(horizon):
            shift = ahead(v, reach, n, h, expv)
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    count = counts[n, s, a]
                    cost, part = nearest_row(
                        ball, reference, low, high, radius, successors, count, n, h, s, a,
                        v, expv, shift, kernel, constant, q, least, most,
                    )  # fmt: skip
                    m = np.exp(-prices[h] * a - v[n, h, s] - cost)
                    mass[n, h, s, a], phi[n, h, s, a], sigma[n, h, s, a] = m, cost, part
                    sum_masses += m
                    gradient[n, h, s] -= m
                    used[h] += weights[n] * m * a
                    if h + 1 < horizon:
                        for k in range(count):
                            y = successors[n, s, a, k]
                            gradient[n, h + 1, y] += m * kernel[n, h, s, a, y]
        total += weights[n] * (sum_masses + v[n, 0, start[n]])
        for h in range(horizon):
            for s in range(states):
                if not abs(gradient[n, h, s]) <= worst:
                    worst = abs(gradient[n, h, s])
    return total, worst


@compiled_inline
def add_row(
    program: Program,
    n: int,
    h: int,
    s: int,
    a: int,
    kernel: FloatArray,
    mass: float,
    sigma: float,
    block: FloatArray,
    rows: FloatArray,
    scale: FloatArray,
    filled: int,
) -> int:
    """Add mass (p p' + dp/dv) of a row to the upper half of a block; dense rows wait in a buffer. Returns how many do."""
    ball, _, low, high, _, successors, counts, _, _, _, _ = program
    count, states = counts[n, s, a], block.shape[0]
    if sigma == 1.0:  # nothing is pinned: p p' and the rank-one part of dp/dv cancel
        for k in range(count):
            y = successors[n, s, a, k]
            block[y, y] += mass * kernel[n, h, s, a, y]
        return filled
    if count <= 8 and not ball:
        for k in range(count):
            x = successors[n, s, a, k]
            p = kernel[n, h, s, a, x]
            loose = low[n, s, a, x] < p < high[n, s, a, x]
            if loose:
                block[x, x] += mass * p
            for j in range(k, count):
                y = successors[n, s, a, j]
                other = kernel[n, h, s, a, y]
                both = loose and low[n, s, a, y] < other < high[n, s, a, y]
                block[x, y] += mass * p * (other - other / sigma if both else other)
        return filled
    parts = 3 if ball else 2
    for which in range(parts):  # p itself, then its loose parts (two for a ball: above and below the centre)
        for y in range(states):
            rows[filled, y] = 0.0
        total = 0.0
        for k in range(count):
            y = successors[n, s, a, k]
            p, bottom = kernel[n, h, s, a, y], low[n, s, a, y]
            if ball:
                taken = which == 0 or (which == 1 and p > bottom) or (which == 2 and p < bottom)
            else:
                taken = which == 0 or (bottom < p < high[n, s, a, y])
            if taken:
                rows[filled, y] = p
                total += p
                if which > 0:
                    block[y, y] += mass * p
        if which == 0:
            scale[filled] = mass
        elif total > 0.0:
            scale[filled] = -mass / total
        else:
            continue
        filled += 1
    if filled + 3 > rows.shape[0]:
        add_squares(block, rows, scale, filled, states)
        filled = 0
    return filled


@compiled
def curvature(
    program: Program,
    first: int,
    last: int,
    kernel: FloatArray,
    mass: FloatArray,
    sigma: FloatArray,
    gradient: FloatArray,
    column: IntArray,
    columns: int,
    upper: FloatArray,
    link: FloatArray,
    leave: FloatArray,
    enter: FloatArray,
    schur: FloatArray,
) -> None:
    """Factor the arms' Hessians at the point that `dual` saw last, and add up what they leave for the prices.

    column (H,) is the place of price h among the free ones, or -1 where it is held at zero; columns their number. Writes,
    per arm, upper and link (N,H,S,S), and the coupling of price h to the nodes at h, leave (N,H,S), and at h+1, enter.
    schur (1+columns, 1+columns), upper half: sum over arms of weight Y'Y, where column 0 of Y stands for the gradient.
    """
    successors, counts, reach, idle, weights = (
        program.successors, program.counts, program.reach, program.idle, program.weights,
    )  # fmt: skip
    horizon, states = reach.shape[1], reach.shape[2]
    block, coming = np.empty((states, states)), np.empty((states, states))
    rows, scale = np.empty((BUFFER, states)), np.empty(BUFFER)
    past, now = np.empty((states, 1 + columns)), np.empty((states, 1 + columns))
    minus, same = np.full(states, -1.0), np.empty(states)
    schur[:] = 0.0
    for n in range(first, last):
        coming[:] = 0.0
        width = 1
        same[:] = weights[n]
        for h in range(horizon):
            block, coming = coming, block
            coming[:] = 0.0
            cross = link[n, h]
            cross[:] = 0.0
            filled = 0
            for s in range(states):
                leave[n, h, s], enter[n, h, s] = 0.0, 0.0
            for s in range(states):
                if not reach[n, h, s]:
                    block[s, s] = 1.0
                    continue
                for a in range(1 if idle[h] else 2):
                    m = mass[n, h, s, a]
                    block[s, s] += m
                    if a == 1:
                        leave[n, h, s] = m
                    if h + 1 == horizon:
                        continue
                    for k in range(counts[n, s, a]):
                        y = successors[n, s, a, k]
                        moved = m * kernel[n, h, s, a, y]
                        cross[s, y] -= moved
                        enter[n, h, y] -= moved * a
                    filled = add_row(
                        program, n, h, s, a, kernel, m, sigma[n, h, s, a], coming, rows, scale, filled
                    )  # fmt: skip
            add_squares(coming, rows, scale, filled, states)
            # The block's own factor, once the step before is eliminated.
            before = width
            if column[h] >= 0:
                width += 1
            for s in range(states):
                now[s, 0] = gradient[n, h, s]
                for j in range(1, width):
                    now[s, j] = 0.0
                if column[h] >= 0:
                    now[s, 1 + column[h]] = leave[n, h, s]
                if h > 0 and column[h - 1] >= 0:
                    now[s, 1 + column[h - 1]] += enter[n, h - 1, s]
            if h > 0:
                add_squares(block, link[n, h - 1], minus, states, states)
                subtract_products(now, link[n, h - 1], past, states, states, before)
            factor(block, states, LEAST)
            for s in range(states):
                for j in range(s, states):
                    upper[n, h, s, j] = block[s, j]
            if h + 1 < horizon:
                forward_solve(block, cross, states, states)
            forward_solve(block, now, states, width)
            add_squares(schur, now, same, states, width)
            past, now = now, past


@compiled
def direction(
    horizon: int,
    states: int,
    weights: FloatArray,
    first: int,
    last: int,
    gradient: FloatArray,
    upper: FloatArray,
    link: FloatArray,
    leave: FloatArray,
    enter: FloatArray,
    price_step: FloatArray,
    step: FloatArray,
) -> float:
    """Write the Newton step (N,H,S) of the potentials for a step (H,) of the prices; return gradient . step, weighted."""
    slope = 0.0
    for n in range(first, last):
        for h in range(horizon):
            for s in range(states):
                step[n, h, s] = -gradient[n, h, s] - leave[n, h, s] * price_step[h]
                if h > 0:
                    step[n, h, s] -= enter[n, h - 1, s] * price_step[h - 1]
            if h > 0:
                for r in range(states):
                    a = step[n, h - 1, r]
                    for s in range(states):
                        step[n, h, s] -= link[n, h - 1, r, s] * a
            forward_vector(upper[n, h], step[n, h], states)
        for h in range(horizon - 1, -1, -1):
            if h + 1 < horizon:
                for r in range(states):
                    total = 0.0
                    for s in range(states):
                        total += link[n, h, r, s] * step[n, h + 1, s]
                    step[n, h, r] -= total
            back_solve(upper[n, h], step[n, h], states)
        for h in range(horizon):
            for s in range(states):
                slope += weights[n] * gradient[n, h, s] * step[n, h, s]
    return slope


@compiled
def opening(
    program: Program,
    first: int,
    last: int,
    marginals: FloatArray,
    prices: FloatArray,
    v: FloatArray,
    kernel: FloatArray,
    constant: FloatArray,
) -> None:
    """Write potentials v (N,H+1,S) that put the mass of every node at marginals (N,H,S): one backward pass.

    Every row of the kernel (N,H,S,2,S) is filled, also those that never carry mass.
    """
    ball, reference, low, high, radius, successors, counts, reach, idle, _, _ = program
    horizon, states = reach.shape[1], reach.shape[2]
    q, least, most, expv = np.empty(states), np.empty(states), np.empty(states), np.empty(states)
    for n in range(first, last):
        v[n, horizon] = 0.0
        for h in range(horizon - 1, -1, -1):
            shift = ahead(v, reach, n, h, expv)
            for s in range(states):
                peak, rest = -np.inf, 0.0
                for a in range(2):
                    for y in range(states):
                        kernel[n, h, s, a, y] = 0.0
                    cost, _ = nearest_row(
                        ball, reference, low, high, radius, successors, counts[n, s, a], n, h, s, a,
                        v, expv, shift, kernel, constant, q, least, most,
                    )  # fmt: skip
                    if a == 1 and idle[h]:
                        continue
                    exponent = -prices[h] * a - cost
                    rest = rest * np.exp(peak - exponent) + 1.0 if exponent > peak else rest + np.exp(exponent - peak)
                    peak = max(peak, exponent)
                v[n, h, s] = peak + np.log(rest) - np.log(marginals[n, h, s]) if reach[n, h, s] else 0.0
