"""The dual of the projection with few states (see `dual.py`): eight arms at a time, all rows of a group in one pass."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled_contracting as compiled, compiled_on_loan as on_loan
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import Lanes, exp, least, load, log, most, select, size, spread, store, summed
from rmab.solvers.projection.compiled.dual import FITTED, TRIALS
from rmab.solvers.projection.compiled.few import FewProgram, FewRows
from rmab.solvers.projection.compiled.few_rows import other_rows, same_rows_of


@compiled
def few_dual(
    program: FewProgram, first: int, last: int, v: FloatArray, prices: FloatArray, rows: FewRows, known: bool,
    gradient: FloatArray, used: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Do as `dual.dual` does, for groups first..last-1: v (G*(H+1)*S,W), gradient (G*H*S,W).

    known: whether the rows are those of v already, but for their masses.
    """
    horizon, states, worst = program.budget.size, program.start.shape[0] // program.weights.shape[0], spread(0.0)
    work, single, again = np.empty((4 * states, WIDTH)), np.empty((2, WIDTH)), np.empty(horizon, dtype=np.bool_)
    expv, q, scales = work[:states], work[states : 2 * states], work[2 * states :]
    used[:] = 0.0
    value = 0.0
    for g in range(first, last):
        if not known:
            group_rows(program, v, g, rows, expv, q, scales, single, again)
        own, worst = group_masses(program, v, prices, g, rows, gradient, used, worst)
        value += own
    return value, highest(worst, single)


@on_loan
def highest(x: Lanes, ends: FloatArray) -> float:
    """Return the largest of lanes that are not negative, or one that is no number. Scratch: ends (.,W)."""
    store(ends, x, 0)
    largest = 0.0
    for i in range(WIDTH):
        if not ends[0, i] <= largest:
            largest = ends[0, i]
    return largest


@on_loan
def group_masses(
    program: FewProgram, v: FloatArray, prices: FloatArray, g: int, rows: FewRows, gradient: FloatArray, used: FloatArray,
    worst: Lanes,
) -> tuple[float, Lanes]:  # fmt: skip
    """Write the masses of the rows of group g, and its gradient; add to used. Return its part of the dual function, and the
    largest of worst and the group's violations of flow.
    """
    _, _, _, _, _, _, _, reach, start, weights, cost, _, _, budget, idle, _ = program
    kernel, mass, phis, _ = rows
    horizon, states, zero = budget.size, start.shape[0] // weights.shape[0], spread(0.0)
    weight, charge, masses = load(weights, g), load(cost, g), zero
    for s in range(states):
        begin = load(start, g * states + s)
        masses = masses + select(begin > 0.0, begin * load(v, g * (horizon + 1) * states + s), zero)
        store(gradient, begin, g * horizon * states + s)
    for h in range(horizon):
        actions, active, node, final = 1 if idle[h] else 2, zero, (g * horizon + h) * states, h + 1 == horizon
        for s in range(0 if final else states):
            store(gradient, 0.0, node + states + s)
        for s in range(states):
            live, potential = load(reach, node + s) > 0.0, load(v, (g * (horizon + 1) + h) * states + s)
            for a in range(actions):
                m = exp(-prices[h] * a * charge - potential - load(phis, 2 * (node + s) + a))
                store(mass, select(live, m, 0.0), 2 * (node + s) + a)
        for s in range(states):
            out = zero
            for a in range(actions):
                row = 2 * (node + s) + a
                m = load(mass, row)
                out, active = out + m, active + a * m
                for y in range(0 if final else states):
                    there = node + states + y
                    store(gradient, load(gradient, there) + m * load(kernel, row * states + y), there)
            masses = masses + out
            excess = load(gradient, node + s) - out
            store(gradient, excess, node + s)
            worst = select(size(excess) <= worst, worst, size(excess))
        used[h] += summed(weight * charge * active)
    return summed(weight * masses), worst


@on_loan
def group_rows(
    program: FewProgram, v: FloatArray, g: int, rows: FewRows, expv: FloatArray, q: FloatArray, scales: FloatArray,
    single: FloatArray, again: BoolArray,
) -> None:  # fmt: skip
    """Solve all rows of group g at potentials v. Loops of their own: a search within the quick one would cost it a third.

    Scratch: again (H,), the steps where some rows are pinned otherwise than before.
    """
    for h in range(again.size):
        again[h] = program.radius.size > 0 or same_rows_of(program, v, g, h, rows, expv, q, scales)
    for h in range(again.size):
        if again[h]:
            other_rows(program, v, g, h, h, rows, expv, q, single)


@on_loan
def step_rows(
    program: FewProgram, g: int, h: int, v: FloatArray, rows: FewRows, expv: FloatArray, q: FloatArray, single: FloatArray
) -> None:
    """Solve the rows of step h of group g at potentials v: write their kernel, phi and sigma.

    What is pinned at the next step is mostly pinned here, too.
    """
    states, horizon = expv.shape[0], program.budget.size
    for row in range((g * horizon + h) * states * 2, (g * horizon + h + 1) * states * 2):
        store(rows.sigma, -1.0, row)
    other_rows(program, v, g, h, min(h + 1, horizon - 1), rows, expv, q, single)


@compiled
def few_step_rows(program: FewProgram, first: int, last: int, h: int, v: FloatArray, rows: FewRows) -> None:
    """Do as `step_rows` does for groups first..last-1."""
    states = program.start.shape[0] // program.weights.shape[0]
    work, single = np.empty((2 * states, WIDTH)), np.empty((2, WIDTH))
    expv, q = work[:states], work[states:]
    for g in range(first, last):
        step_rows(program, g, h, v, rows, expv, q, single)


@on_loan
def fit_step_lanes(
    program: FewProgram, h: int, marginals: FloatArray, phi: FloatArray, prices: FloatArray, v: FloatArray, ends: FloatArray
) -> None:
    """Do as `dual.fit_step` does: marginals (G*H*S,W). Scratch: ends (.,W)."""
    _, _, _, _, _, _, _, reach, start, weights, cost, _, _, budget, idle, binds = program
    groups, horizon, zero = weights.shape[0], budget.size, spread(0.0)
    states = start.shape[0] // groups
    arms = groups * WIDTH
    bound = zero
    for g in range(groups if binds[h] else 0):
        for s in range(states):
            charge, node = load(cost, g), (g * horizon + h) * states + s
            weighed = load(weights, g) * charge * load(marginals, node)
            counts = (load(reach, node) > 0.0) & (weighed > 0.0)
            enough = load(phi, 2 * node) - load(phi, 2 * node + 1) + log(weighed / budget[h] * arms * states)
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
                node = (g * horizon + h) * states + s
                lead = load(phi, 2 * node) - load(phi, 2 * node + 1) - price * charge
                lead = least(most(lead, -700.0), 700.0)
                share = 1.0 / (1.0 + exp(-lead))
                live = load(reach, node) > 0.0
                spent = select(live, load(weights, g) * charge * load(marginals, node) * share, 0.0)
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
            node = (g * horizon + h) * states + s
            passive, busy = -load(phi, 2 * node), -load(phi, 2 * node + 1) - price * charge
            if idle[h]:
                busy = spread(-np.inf)
            peak = most(passive, busy)
            best = peak + log(exp(passive - peak) + exp(busy - peak)) - log(load(marginals, node))
            store(v, select(load(reach, node) > 0.0, best, 0.0), (g * (horizon + 1) + h) * states + s)


@compiled
def few_fit_step(
    program: FewProgram, h: int, marginals: FloatArray, phi: FloatArray, prices: FloatArray, v: FloatArray
) -> None:
    """Do as `fit_step_lanes` does."""
    fit_step_lanes(program, h, marginals, phi, prices, v, np.empty((1, WIDTH)))


@compiled
def few_opening(
    program: FewProgram, marginals: FloatArray, prices: FloatArray, v: FloatArray, rows: FewRows, gradient: FloatArray,
    used: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Do as `dual.opening` does, and evaluate the dual there (`few_dual`): its rows are known."""
    groups, horizon = program.weights.shape[0], program.budget.size
    states, value, worst = program.start.shape[0] // groups, 0.0, spread(0.0)
    work, single = np.empty((2 * states, WIDTH)), np.empty((2, WIDTH))
    expv, q = work[:states], work[states:]
    for h in range(horizon - 1, -1, -1):
        for g in range(groups):
            step_rows(program, g, h, v, rows, expv, q, single)
        fit_step_lanes(program, h, marginals, rows.phi, prices, v, single)
    used[:] = 0.0
    for g in range(groups):
        own, worst = group_masses(program, v, prices, g, rows, gradient, used, worst)
        value += own
    return value, highest(worst, single)
