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
from rmab.kernels.compile import compiled
from rmab.kernels.linear import (
    add_squares,
    back_solve,
    factor,
    forward_solve,
    forward_vector,
    subtract_products,
)
from rmab.kernels.rows import ahead, nearest_row, same_rows

__all__ = ["Program", "curvature", "direction", "dual", "opening"]

SMALL = 12  # states up to which blocks are added up entry by entry
BUFFER = 64  # dense rows that are collected before they are added to a block together
LEAST = 1e-280  # pivot of a node without any mass


class Program(NamedTuple):
    """What is projected onto what.

    reference (N,H,S,2,S). The confidence sets are boxes low..high (N,S,2,S) where radius is None, and otherwise L1 balls of
    radius (N,S,2) around low. successors (N,S,2,S): the possible next states, in the first counts (N,S,2) places. reach
    (N,H,S): whether mass can get there. idle (H,): nobody may be active at step h. start (N,), weights (N,).
    """

    reference: FloatArray
    low: FloatArray
    high: FloatArray
    radius: FloatArray | None
    successors: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    reach: BoolArray
    idle: BoolArray
    start: IntArray
    weights: FloatArray

    @property
    def ball(self) -> bool:
        """Whether the sets are balls."""
        return self.radius is not None


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
    reference, low, high, radius, successors, counts, reach, idle, start, weights = program
    horizon, states = reach.shape[1], reach.shape[2]
    q, least, most, expv = np.empty(states), np.empty(states), np.empty(states), np.empty(states)
    used[:] = 0.0
    total, worst = 0.0, 0.0
    if radius is None:
        same_rows(reference, low, high, successors, counts, reach, first, last, v, kernel, constant, phi, sigma)
    else:
        sigma[first:last] = -1.0
    for n in range(first, last):
        gradient[n] = 0.0
        gradient[n, 0, start[n]] = 1.0
        sum_masses = 0.0
        for h in range(horizon):
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    count = counts[n, s, a]
                    if sigma[n, h, s, a] < 0.0:
                        shift = ahead(v, reach, n, h, expv)
                        phi[n, h, s, a], sigma[n, h, s, a] = nearest_row(
                            reference, low, high, radius, successors, count, n, h, s, a,
                            v, expv, shift, kernel, constant, q, least, most,
                        )  # fmt: skip
                    m = np.exp(-prices[h] * a - v[n, h, s] - phi[n, h, s, a])
                    mass[n, h, s, a] = m
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


@compiled
def assemble_small(
    program: Program,
    first: int,
    last: int,
    kernel: FloatArray,
    mass: FloatArray,
    sigma: FloatArray,
    upper: FloatArray,
    link: FloatArray,
    leave: FloatArray,
    enter: FloatArray,
) -> None:
    """Write the Hessian blocks of arms first..last-1 with few states: diagonal blocks into upper (upper halves), the blocks
    that join steps h and h+1 into link, and the coupling to the prices into leave and enter.

    A row adds mass (p p' + dp/dv); where nothing is pinned, p p' cancels against the rank-one part of dp/dv.
    """
    _, low, high, radius, successors, counts, reach, idle, _, _ = program
    horizon, states = reach.shape[1], reach.shape[2]
    for n in range(first, last):
        for h in range(horizon):
            for s in range(states):
                leave[n, h, s], enter[n, h, s] = 0.0, 0.0
                for y in range(states):
                    upper[n, h, s, y], link[n, h, s, y] = 0.0, 0.0
        for h in range(horizon):
            for s in range(states):
                if not reach[n, h, s]:
                    upper[n, h, s, s] = 1.0
                    continue
                for a in range(1 if idle[h] else 2):
                    m, loose = mass[n, h, s, a], sigma[n, h, s, a]
                    upper[n, h, s, s] += m
                    leave[n, h, s] += a * m
                    if h + 1 == horizon:
                        continue
                    below = 1.0 - loose
                    if radius is not None:  # a ball has a second part: what lies below its centre
                        below = 0.0
                        for k in range(counts[n, s, a]):
                            y = successors[n, s, a, k]
                            if kernel[n, h, s, a, y] < low[n, s, a, y]:
                                below += kernel[n, h, s, a, y]
                    for k in range(counts[n, s, a]):
                        x = successors[n, s, a, k]
                        p, base = kernel[n, h, s, a, x], low[n, s, a, x]
                        link[n, h, s, x] -= m * p
                        enter[n, h, x] -= a * m * p
                        if radius is None:
                            side = 1 if base < p < high[n, s, a, x] else 0
                        else:
                            side = 1 if loose == 1.0 or p > base else (2 if p < base else 0)
                        if side > 0:
                            upper[n, h + 1, x, x] += m * p
                        if loose == 1.0:
                            continue
                        for j in range(counts[n, s, a]):
                            y = successors[n, s, a, j]
                            if y < x:
                                continue
                            other, edge = kernel[n, h, s, a, y], low[n, s, a, y]
                            if radius is None:
                                same = side == 1 and edge < other < high[n, s, a, y]
                            else:
                                same = (side == 1 and other > edge) or (side == 2 and other < edge)
                            value = m * p * other
                            if same:
                                value -= value / (loose if side == 1 else below)
                            upper[n, h + 1, x, y] += value


@compiled
def assemble_large(
    program: Program,
    first: int,
    last: int,
    kernel: FloatArray,
    mass: FloatArray,
    sigma: FloatArray,
    upper: FloatArray,
    link: FloatArray,
    leave: FloatArray,
    enter: FloatArray,
) -> None:
    """Do what `assemble_small` does, for many states: rows are collected in a buffer and added to their block together."""
    _, low, high, radius, successors, counts, reach, idle, _, _ = program
    horizon, states = reach.shape[1], reach.shape[2]
    rows, scale = np.empty((BUFFER, states)), np.empty(BUFFER)
    for n in range(first, last):
        upper[n] = 0.0
        link[n] = 0.0
        leave[n] = 0.0
        enter[n] = 0.0
        for h in range(horizon):
            filled = 0
            for s in range(states):
                if not reach[n, h, s]:
                    upper[n, h, s, s] = 1.0
                    continue
                for a in range(1 if idle[h] else 2):
                    m = mass[n, h, s, a]
                    upper[n, h, s, s] += m
                    leave[n, h, s] += a * m
                    if h + 1 == horizon:
                        continue
                    for k in range(counts[n, s, a]):
                        y = successors[n, s, a, k]
                        link[n, h, s, y] -= m * kernel[n, h, s, a, y]
                        enter[n, h, y] -= a * m * kernel[n, h, s, a, y]
                    if sigma[n, h, s, a] == 1.0:
                        for k in range(counts[n, s, a]):
                            y = successors[n, s, a, k]
                            upper[n, h + 1, y, y] += m * kernel[n, h, s, a, y]
                        continue
                    for which in range(2 if radius is None else 3):  # p itself, then its loose parts
                        for y in range(states):
                            rows[filled, y] = 0.0
                        total = 0.0
                        for k in range(counts[n, s, a]):
                            y = successors[n, s, a, k]
                            p, base = kernel[n, h, s, a, y], low[n, s, a, y]
                            if radius is None:
                                taken = which == 0 or (base < p < high[n, s, a, y])
                            else:
                                taken = which == 0 or (which == 1 and p > base) or (which == 2 and p < base)
                            if taken:
                                rows[filled, y] = p
                                total += p
                                if which > 0:
                                    upper[n, h + 1, y, y] += m * p
                        if total > 0.0:
                            scale[filled] = m if which == 0 else -m / total
                            filled += 1
                    if filled + 3 > BUFFER:
                        add_squares(upper[n, h + 1], rows, scale, filled, states)
                        filled = 0
            if filled > 0:
                add_squares(upper[n, h + 1], rows, scale, filled, states)


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
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    if states <= SMALL:
        assemble_small(program, first, last, kernel, mass, sigma, upper, link, leave, enter)
    else:
        assemble_large(program, first, last, kernel, mass, sigma, upper, link, leave, enter)
    past, now = np.empty((states, 1 + columns)), np.empty((states, 1 + columns))
    minus, same = np.full(states, -1.0), np.empty(states)
    schur[:] = 0.0
    for n in range(first, last):
        width = 1
        same[:] = program.weights[n]
        for h in range(horizon):
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
            block = upper[n, h]
            if h > 0:
                add_squares(block, link[n, h - 1], minus, states, states)
                subtract_products(now, link[n, h - 1], past, states, states, before)
            factor(block, states, LEAST)
            if h + 1 < horizon:
                forward_solve(block, link[n, h], states, states)
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
    reference, low, high, radius, successors, counts, reach, idle, _, _ = program
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
                        reference, low, high, radius, successors, counts[n, s, a], n, h, s, a,
                        v, expv, shift, kernel, constant, q, least, most,
                    )  # fmt: skip
                    if a == 1 and idle[h]:
                        continue
                    exponent = -prices[h] * a - cost
                    rest = rest * np.exp(peak - exponent) + 1.0 if exponent > peak else rest + np.exp(exponent - peak)
                    peak = max(peak, exponent)
                v[n, h, s] = peak + np.log(rest) - np.log(marginals[n, h, s]) if reach[n, h, s] else 0.0
