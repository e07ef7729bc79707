"""The dual of the KL projection (paper, eq. UCB_extended): its value and gradient, and a point to start from.

With flow potentials v[n,h,s] (v[n,H] = 0) and budget prices, each row (n,h,s,a) has its own closed form (rows.py): a
distribution p and a cost phi, hence the mass m = exp(-prices[h] a - v[n,h,s] - phi) and z = m p. The dual function is

    f(v, prices) = sum over n of weights[n] (sum m + v[n,0,start]) + sum over h of budget[h] prices[h],

convex; its gradient is the violation of flow and budget. Given the prices the arms are independent: kernels work on arms
first..last-1 and write their own parts only, so that chunks of arms can run side by side.
"""

import numpy as np

from rmab.arrays import FloatArray
from rmab.kernels.compile import compiled
from rmab.kernels.program import Program
from rmab.kernels.rows import ahead, nearest_row, same_rows

__all__ = ["dual", "opening"]


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
        same_rows(reference, low, high, successors, counts, reach, idle, first, last, v, kernel, constant, phi, sigma)
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
