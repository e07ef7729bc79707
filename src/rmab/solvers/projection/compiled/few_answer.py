"""From a dual point of the projection with few states to a feasible primal one, and what that costs."""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting as compiled
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import load, log, select, size, some, spread, store, summed
from rmab.solvers.projection.compiled.few import FewProgram, FewRows, unpack


@compiled
def few_flow(program: FewProgram, rows: FewRows, flow: FloatArray) -> None:
    """Follow the arms from the start with the shares and kernels of the rows; write the masses into flow (G*H*S*2,W).

    Where the active mass of a step exceeds the budget, its shares are scaled down: the masses are feasible.
    """
    _, _, _, _, _, _, _, _, start, weights, cost, _, _, budget, _, _ = program
    kernel, mass, _, _ = rows
    groups, horizon = weights.shape[0], budget.size
    states = start.shape[0] // groups
    for g in range(groups):
        for s in range(states):
            store(flow, load(start, g * states + s), 2 * (g * horizon * states + s))
    for h in range(horizon):
        total = spread(0.0)
        for g in range(groups):
            charge = load(weights, g) * load(cost, g)
            for s in range(states):
                row = 2 * ((g * horizon + h) * states + s)
                active = load(mass, row + 1)
                share = select(active > 0.0, active / (load(mass, row) + active), 0.0)
                moving = share * load(flow, row)
                store(flow, moving, row + 1)
                total = total + charge * moving
        spent = summed(total)
        scale = budget[h] / spent if spent > budget[h] else 1.0
        for g in range(groups):
            node = (g * horizon + h) * states
            for y in range(states if h + 1 < horizon else 0):
                store(flow, 0.0, 2 * (node + states + y))
            for s in range(states):
                row = 2 * (node + s)
                active = scale * load(flow, row + 1)
                passive = load(flow, row) - active
                store(flow, active, row + 1)
                store(flow, passive, row)
                for y in range(states if h + 1 < horizon else 0):
                    there, entry = 2 * (node + states + y), row * states + y
                    moved = passive * load(kernel, entry) + active * load(kernel, entry + states)
                    store(flow, load(flow, there) + moved, there)


@compiled
def few_fill(program: FewProgram, rows: FewRows) -> None:
    """Give the rows that carry no mass some kernel of their set: evenly between the bounds, or the centre."""
    _, _, low, high, _, _, radius, reach, start, weights, _, phase, phases, budget, idle, _ = program
    groups, horizon, zero, ball = weights.shape[0], budget.size, spread(0.0), radius.size > 0
    states = start.shape[0] // groups
    for g in range(groups):
        for h in range(horizon):
            node, bound = (g * horizon + h) * states, (g * phases + phase[h]) * states * 2
            for s in range(states):
                reached = load(reach, node + s) > 0.0
                for a in range(2):
                    live = reached & (spread(0.0 if a == 1 and idle[h] else 1.0) > 0.0)
                    if not some(~live):
                        continue
                    entry, cell = (2 * (node + s) + a) * states, (bound + 2 * s + a) * states
                    spare, room, part = spread(1.0), zero, zero
                    for y in range(0 if ball else states):
                        bottom, top = load(low, cell + y), load(high, cell + y)
                        spare, room = spare - bottom, room + (top - bottom)
                    if not ball:
                        part = select((room > 0.0) & (spare > 0.0), spare / room, zero)
                        part = select(part < 1.0, part, 1.0)
                    for y in range(states):
                        bottom, top = load(low, cell + y), load(high, cell + y)
                        between = bottom if ball else bottom + part * (top - bottom)
                        store(rows.kernel, select(live, load(rows.kernel, entry + y), between), entry + y)


@compiled
def few_spent(program: FewProgram, rows: FewRows, v: FloatArray, flow: FloatArray) -> tuple[float, float]:
    """Return the weighted divergence of the masses in flow (G*H*S*2,W) and the kernel of the rows, without its constant, and
    how far the sum of a live row is from 1 at most.
    """
    kernel, _, phis, _ = rows
    reach, weights, idle = program.reach, program.weights, program.idle
    groups, horizon, zero = weights.shape[0], idle.size, spread(0.0)
    states = program.start.shape[0] // groups
    spent, worst = 0.0, zero
    for g in range(groups):
        total = zero
        for h in range(horizon):
            node, after = (g * horizon + h) * states, (g * (horizon + 1) + h + 1) * states
            for s in range(states):
                live = load(reach, node + s) > 0.0
                for a in range(1 if idle[h] else 2):
                    row = 2 * (node + s) + a
                    m, cost, off = load(flow, row), load(phis, row), spread(-1.0)
                    for y in range(states):
                        p = load(kernel, row * states + y)
                        cost, off = cost + p * load(v, after + y), off + p
                    total = total + select(m > 0.0, m * (log(m) + cost - 1.0), zero)
                    worst = select(~live | (size(off) <= worst), worst, size(off))
        spent += summed(load(weights, g) * total)
    ends, most_off = np.empty((1, WIDTH)), 0.0
    store(ends, worst, 0)
    for i in range(WIDTH):
        if not ends[0, i] <= most_off:
            most_off = ends[0, i]
    return spent, most_off


@compiled
def few_answer(
    program: FewProgram, rows: FewRows, v: FloatArray, mass: FloatArray, kernel: FloatArray, potentials: FloatArray
) -> tuple[float, float]:
    """Write the feasible primal point by arms, mass (N,H,S,2) and kernel (N,H,S,2,S), and potentials (N,H,S).

    Returns what `few_spent` does. The sigma of the rows is lost.
    """
    groups, arms = program.weights.shape[0], mass.shape[0]
    flow = rows.sigma  # not needed any more, and of the right size
    few_flow(program, rows, flow)
    spent, off = few_spent(program, rows, v, flow)
    few_fill(program, rows)
    unpack(flow.reshape(groups, -1, WIDTH), mass.reshape(arms, -1))
    unpack(rows.kernel.reshape(groups, -1, WIDTH), kernel.reshape(arms, -1))
    unpack(v.reshape(groups, -1, WIDTH), potentials.reshape(arms, -1))
    return spent, off
