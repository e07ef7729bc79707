"""The dual of the KL projection (Xiong & Li 2024, Section 4.2): its value and gradient, and a point to start from.

With flow potentials v[n,h,s] (v[n,H] = 0) and budget prices, each row (n,h,s,a) has its own closed form (rows.py): a
distribution p and a cost phi, hence the mass m = exp(-prices[h] cost[n] a - v[n,h,s] - phi) and z = m p. The dual is

    f(v, prices) = sum over n of weights[n] (sum m + start[n] . v[n,0]) + sum over h of budget[h] prices[h],

convex; its gradient is the violation of flow and budget. Given the prices the arms are independent: functions that take
first and last work on arms first..last-1 and write their own parts only, so that chunks of arms can run side by side.
"""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled
from rmab.solvers.projection.compiled.full_rows import same_full_rows
from rmab.solvers.projection.compiled.program import Primal, Program
from rmab.solvers.projection.compiled.rows import same_rows, solve_rows

LEAST_PART = 0.1  # of a node's mass is left to it where next to nothing comes in
NEGLIGIBLE = 1e-25  # lower limit of masses: smaller ones do not matter, and would be dominated by rounding
TRIALS = 100
FITTED = 1e-3  # how well the first prices keep to the budget: Newton does the rest


@compiled
def dual(
    program: Program, first: int, last: int, v: FloatArray, prices: FloatArray, primal: Primal, used: FloatArray
) -> tuple[float, float]:
    """Evaluate the dual at v (N,H+1,S) and prices (H,). Returns these arms' part of f and their largest flow violation.

    Writes the rows; gradient (N,H,S) of each arm by itself (inflow - outflow, at step 0 start - outflow); and used (H,), the
    weighted active mass at its costs.
    """
    _, _, _, radius, successors, counts, reach, _, idle, _, start, weights, phase, phases, cost, _ = program
    kernel, _, mass, phi, sigma, gradient = primal
    horizon, states = reach.shape[1], reach.shape[2]
    used[:] = 0.0
    total, worst = 0.0, 0.0
    if radius is None:
        same_rows(program, first, last, v, primal)
        same_full_rows(program, first, last, v, primal)
    else:
        sigma[first:last] = -1.0
    solve_rows(program, first, last, -1, v, primal)
    for n in range(first, last):
        gradient[n] = 0.0
        begin, sum_masses = 0.0, 0.0
        for s in range(states):
            if start[n, s] > 0.0:
                gradient[n, 0, s] = start[n, s]
                begin += start[n, s] * v[n, 0, s]
        for h in range(horizon):
            cell = n * phases + phase[h]
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    count = counts[cell, s, a]
                    m = np.exp(-prices[h] * a * cost[n] - v[n, h, s] - phi[n, h, s, a])
                    mass[n, h, s, a] = m
                    sum_masses += m
                    gradient[n, h, s] -= m
                    used[h] += weights[n] * cost[n] * m * a
                    if h + 1 == horizon:
                        continue
                    if count == states:  # without the list it is twice as fast
                        for y in range(states):
                            gradient[n, h + 1, y] += m * kernel[n, h, s, a, y]
                        continue
                    for k in range(count):
                        y = successors[cell, s, a, k]
                        gradient[n, h + 1, y] += m * kernel[n, h, s, a, y]
        total += weights[n] * (sum_masses + begin)
        for h in range(horizon):
            for s in range(states):
                if not abs(gradient[n, h, s]) <= worst:
                    worst = abs(gradient[n, h, s])
    return total, worst


@compiled
def mean_masses(mass: FloatArray, gradient: FloatArray, mean: FloatArray) -> None:
    """Write the masses (N,H,S,2) that the Hessian is to be made of: at every node, the logarithmic mean of `in` and `out`.

    A node by itself, what comes in held, has f(x) = out exp(-x) + in x, with in = out + gradient. Newton's step, 1 - in/out,
    is lost where out is small; the right one, ln(out / in), is Newton's with (in - out) / ln(in / out) for a mass. As the
    gradient vanishes this is `out` itself, so that the last steps are Newton's own. A mean of less than LEAST_PART of `out`,
    or than NEGLIGIBLE, is raised to that.
    """
    arms, horizon, states, _ = mass.shape
    for n in range(arms):
        for h in range(horizon):
            for s in range(states):
                out, part = mass[n, h, s, 0] + mass[n, h, s, 1], 1.0
                excess = gradient[n, h, s] / out if out > 0.0 else 0.0
                if abs(excess) > 1e-6 and excess < np.inf:
                    part = excess / np.log1p(excess) if excess > -1.0 else 0.0
                for a in range(2):
                    if mass[n, h, s, a] > 0.0:
                        mean[n, h, s, a] = max(max(part, LEAST_PART) * mass[n, h, s, a], NEGLIGIBLE)
                    else:
                        mean[n, h, s, a] = 0.0


@compiled
def fit_step(program: Program, h: int, marginals: FloatArray, phi: FloatArray, prices: FloatArray, v: FloatArray) -> None:
    """Write prices[h] at which the marginals (N,H,S), split as every node would by itself, keep to the budget; and v[n,h].

    From a price of 0, Newton is lost where nearly all mass is active: there the masses hardly respond to the price.
    """
    reach, budget, idle, weights, cost = program.reach, program.budget, program.idle, program.weights, program.cost
    arms, states = reach.shape[0], reach.shape[2]
    price, low, high = 0.0, 0.0, 0.0
    for n in range(arms if program.binds[h] else 0):
        for s in range(states):
            if reach[n, h, s]:  # a share is at most exp(lead - price), so that this price is enough
                lead = phi[n, h, s, 0] - phi[n, h, s, 1]
                enough = lead + np.log(weights[n] * cost[n] * marginals[n, h, s] / budget[h] * arms * states)
                high = max(high, enough / cost[n])
    for _ in range(TRIALS if program.binds[h] else 0):
        used, slope = 0.0, 0.0
        for n in range(arms):
            for s in range(states):
                if reach[n, h, s]:
                    lead = min(max(phi[n, h, s, 0] - phi[n, h, s, 1] - price * cost[n], -700.0), 700.0)
                    share = 1.0 / (1.0 + np.exp(-lead))
                    spent = weights[n] * cost[n] * marginals[n, h, s] * share
                    used += spent
                    slope += spent * cost[n] / (1.0 + np.exp(lead))
        if price == 0.0 and used <= budget[h]:
            break
        if abs(used - budget[h]) <= FITTED * budget[h]:
            break
        if used > budget[h]:
            low = price
        else:
            high = price
        # Newton for ln(used) = ln(budget): straight where shares are small, and kept within what is known.
        price += np.log(used / budget[h]) * used / slope
        if not low < price < high:
            price = 0.5 * (low + high)
    prices[h] = price
    for n in range(arms):
        for s in range(states):
            v[n, h, s] = 0.0
            if reach[n, h, s]:
                passive, busy = -phi[n, h, s, 0], -phi[n, h, s, 1] - price * cost[n]
                if idle[h]:
                    busy = -np.inf
                peak = max(passive, busy)
                v[n, h, s] = peak + np.log(np.exp(passive - peak) + np.exp(busy - peak)) - np.log(marginals[n, h, s])


@compiled
def opening(program: Program, marginals: FloatArray, prices: FloatArray, v: FloatArray, primal: Primal) -> None:
    """Write prices (H,) and potentials v (N,H+1,S) that put the mass of every node at marginals (N,H,S): a backward pass."""
    arms, horizon = program.reach.shape[0], program.reach.shape[1]
    for h in range(horizon - 1, -1, -1):
        solve_rows(program, 0, arms, h, v, primal)
        fit_step(program, h, marginals, primal.phi, prices, v)


@compiled
def even_masses(reach: BoolArray, start: FloatArray) -> FloatArray:
    """(N,H,S) masses spread evenly over the nodes within reach; at step 0, where they are known, the start (N,S)."""
    arms, horizon, states = reach.shape
    masses = np.zeros((arms, horizon, states))
    for n in range(arms):
        for h in range(horizon):
            count = 0
            for s in range(states):
                count += reach[n, h, s]
            for s in range(states):
                if reach[n, h, s]:
                    masses[n, h, s] = 1.0 / count if h > 0 else max(start[n, s], NEGLIGIBLE)
    return masses


@compiled
def near_masses(mass: FloatArray, uniform: FloatArray, share: float) -> FloatArray:
    """(N,H,S) the masses of nodes, mass (N,H,S,2), of which a share is replaced by uniform ones (N,H,S)."""
    mixed = np.empty_like(uniform)
    arms, horizon, states = uniform.shape
    for n in range(arms):
        for h in range(horizon):
            for s in range(states):
                mixed[n, h, s] = (1.0 - share) * (mass[n, h, s, 0] + mass[n, h, s, 1]) + share * uniform[n, h, s]
    return mixed
