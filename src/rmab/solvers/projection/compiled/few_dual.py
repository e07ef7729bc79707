"""The dual of the projection with few states (see `dual.py`): eight arms at a time, all rows of a group in one pass."""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting as compiled
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import exp, least, load, log, most, select, size, some, spread, store, summed
from rmab.solvers.projection.compiled.dual import FITTED, LEAST_PART, NEGLIGIBLE, TRIALS
from rmab.solvers.projection.compiled.few import FewProgram, FewRows
from rmab.solvers.projection.compiled.few_rows import other_rows, same_rows_of


@compiled
def few_dual(
    program: FewProgram, first: int, last: int, v: FloatArray, prices: FloatArray, rows: FewRows, gradient: FloatArray,
    used: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Do as `dual.dual` does, for groups first..last-1: v (G,H+1,S,W), gradient (G,H,S,W)."""
    _, _, _, _, _, _, _, reach, start, weights, cost, _, _, _, idle, _ = program
    kernel, mass, phis, _ = rows
    horizon, states, zero = reach.shape[1], reach.shape[2], spread(0.0)
    expv, q, single = np.empty((states, WIDTH)), np.empty((states, WIDTH)), np.empty((2, WIDTH))
    coming, now = np.empty((states, WIDTH)), np.empty((states, WIDTH))
    used[:] = 0.0
    value, worst = 0.0, zero
    for g in range(first, last):
        weight, charge, masses = load(weights, g), load(cost, g), zero
        for s in range(states):
            begin = load(start, g, s)
            store(now, begin, s)
            masses = masses + select(begin > 0.0, begin * load(v, g, 0, s), zero)
        group_rows(program, v, g, rows, expv, q, single)
        for h in range(horizon):
            actions, active = 1 if idle[h] else 2, zero
            for s in range(states):
                store(coming, 0.0, s)
            for s in range(states):
                live, potential = load(reach, g, h, s) > 0.0, load(v, g, h, s)
                for a in range(actions):
                    m = exp(-prices[h] * a * charge - potential - load(phis, g, h, s, a))
                    store(mass, select(live, m, 0.0), g, h, s, a)
            for s in range(states):
                out = zero
                for a in range(actions):
                    m = load(mass, g, h, s, a)
                    out, active = out + m, active + a * m
                    for y in range(states):
                        store(coming, load(coming, y) + m * load(kernel, g, h, s, a, y), y)
                masses = masses + out
                excess = load(now, s) - out
                store(gradient, excess, g, h, s)
                worst = select(size(excess) <= worst, worst, size(excess))
            used[h] += summed(weight * charge * active)
            now, coming = coming, now
        value += summed(weight * masses)
    store(single, worst, 0)
    flow = 0.0
    for i in range(WIDTH):
        if not single[0, i] <= flow:
            flow = single[0, i]
    return value, flow


@compiled
def group_rows(
    program: FewProgram, v: FloatArray, g: int, rows: FewRows, expv: FloatArray, q: FloatArray, single: FloatArray
) -> None:
    """Solve all rows of group g at potentials v. Loops of their own: a search within the quick one would cost it a third."""
    ball, failures = program.radius.size > 0, spread(0.0)
    for h in range(0 if ball else program.reach.shape[1]):
        failures = failures + same_rows_of(program, v, g, h, rows, expv, q)
    if ball or some(failures > 0.0):
        for h in range(program.reach.shape[1]):
            other_rows(program, v, g, h, h, rows, expv, q, single)


@compiled
def few_step_rows(program: FewProgram, first: int, last: int, h: int, v: FloatArray, rows: FewRows) -> None:
    """Solve the rows of step h of groups first..last-1 at potentials v: write their kernel, phi and sigma.

    What is pinned at the next step is mostly pinned here, too.
    """
    states, guess = program.reach.shape[2], min(h + 1, program.reach.shape[1] - 1)
    expv, q, single = np.empty((states, WIDTH)), np.empty((states, WIDTH)), np.empty((2, WIDTH))
    for g in range(first, last):
        for s in range(states):
            for a in range(2):
                store(rows.sigma, -1.0, g, h, s, a)
        other_rows(program, v, g, h, guess, rows, expv, q, single)


@compiled
def few_fit_step(
    program: FewProgram, h: int, marginals: FloatArray, phi: FloatArray, prices: FloatArray, v: FloatArray
) -> None:
    """Do as `dual.fit_step` does: marginals (G,H,S,W)."""
    _, _, _, _, _, _, _, reach, _, weights, cost, _, _, budget, idle, binds = program
    groups, states, zero = reach.shape[0], reach.shape[2], spread(0.0)
    arms = groups * WIDTH
    bound, ends = zero, np.empty((1, WIDTH))
    for g in range(groups if binds[h] else 0):
        for s in range(states):
            charge = load(cost, g)
            weighed = load(weights, g) * charge * load(marginals, g, h, s)
            counts = (load(reach, g, h, s) > 0.0) & (weighed > 0.0)
            enough = load(phi, g, h, s, 0) - load(phi, g, h, s, 1) + log(weighed / budget[h] * arms * states)
            bound = select(counts, most(enough / charge, bound), bound)
    store(ends, bound, 0)
    price, low, high = 0.0, 0.0, 0.0
    for i in range(WIDTH):
        high = max(high, ends[0, i])
    for _ in range(TRIALS if binds[h] else 0):
        used, slope = zero, zero
        for g in range(groups):
            charge = load(cost, g)
            for s in range(states):
                lead = load(phi, g, h, s, 0) - load(phi, g, h, s, 1) - price * charge
                lead = least(most(lead, -700.0), 700.0)
                share = 1.0 / (1.0 + exp(-lead))
                live = load(reach, g, h, s) > 0.0
                spent = select(live, load(weights, g) * charge * load(marginals, g, h, s) * share, 0.0)
                used = used + spent
                slope = slope + spent * charge / (1.0 + exp(lead))
        total = summed(used)
        if price == 0.0 and total <= budget[h]:
            break
        if abs(total - budget[h]) <= FITTED * budget[h]:
            break
        if total > budget[h]:
            low = price
        else:
            high = price
        price += np.log(total / budget[h]) * total / summed(slope)
        if not low < price < high:
            price = 0.5 * (low + high)
    prices[h] = price
    for g in range(groups):
        charge = load(cost, g)
        for s in range(states):
            passive, busy = -load(phi, g, h, s, 0), -load(phi, g, h, s, 1) - price * charge
            if idle[h]:
                busy = spread(-np.inf)
            peak = most(passive, busy)
            node = peak + log(exp(passive - peak) + exp(busy - peak)) - log(load(marginals, g, h, s))
            store(v, select(load(reach, g, h, s) > 0.0, node, 0.0), g, h, s)


@compiled
def few_opening(program: FewProgram, marginals: FloatArray, prices: FloatArray, v: FloatArray, rows: FewRows) -> None:
    """Do as `dual.opening` does."""
    groups, horizon = program.reach.shape[0], program.reach.shape[1]
    for h in range(horizon - 1, -1, -1):
        few_step_rows(program, 0, groups, h, v, rows)
        few_fit_step(program, h, marginals, rows.phi, prices, v)


@compiled
def few_mean_masses(mass: FloatArray, gradient: FloatArray, mean: FloatArray) -> None:
    """Do as `dual.mean_masses` does: mass, mean (G,H,S,2,W)."""
    for g in range(mass.shape[0]):
        for h in range(mass.shape[1]):
            for s in range(mass.shape[2]):
                passive, active = load(mass, g, h, s, 0), load(mass, g, h, s, 1)
                out = passive + active
                excess = select(out > 0.0, load(gradient, g, h, s) / out, 0.0)
                part = spread(1.0)
                far = (size(excess) > 1e-6) & (excess < np.inf)
                if some(far):
                    curved = select(excess > -1.0, excess / log(1.0 + excess), 0.0)
                    part = select(far, curved, part)
                part = most(part, LEAST_PART)
                store(mean, select(passive > 0.0, most(part * passive, NEGLIGIBLE), 0.0), g, h, s, 0)
                store(mean, select(active > 0.0, most(part * active, NEGLIGIBLE), 0.0), g, h, s, 1)
