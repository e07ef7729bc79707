"""From a dual point of the projection with few states to a feasible primal one, and what that costs."""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting as compiled
from rmab.solvers.compiled.lanes import load, log, select, size, spread, store, summed
from rmab.solvers.projection.compiled.few import FewProgram, FewRows


@compiled
def few_flow(program: FewProgram, rows: FewRows, flow: FloatArray) -> None:
    """Follow the arms from the start with the shares and kernels of the rows; write the masses into flow (G,H,S,2,W).

    Where the active mass of a step exceeds the budget, its shares are scaled down: the masses are feasible.
    """
    _, _, _, _, _, _, _, reach, start, weights, cost, _, _, budget, _, _ = program
    kernel, mass, _, _ = rows
    groups, horizon, states = reach.shape[0], reach.shape[1], reach.shape[2]
    for g in range(groups):
        for s in range(states):
            store(flow, load(start, g, s), g, 0, s, 0)
    for h in range(horizon):
        total = spread(0.0)
        for g in range(groups):
            charge = load(weights, g) * load(cost, g)
            for s in range(states):
                active = load(mass, g, h, s, 1)
                share = select(active > 0.0, active / (load(mass, g, h, s, 0) + active), 0.0)
                store(flow, share * load(flow, g, h, s, 0), g, h, s, 1)
                total = total + charge * load(flow, g, h, s, 1)
        spent = summed(total)
        scale = budget[h] / spent if spent > budget[h] else 1.0
        for g in range(groups):
            for y in range(states if h + 1 < horizon else 0):
                store(flow, 0.0, g, h + 1, y, 0)
            for s in range(states):
                active = scale * load(flow, g, h, s, 1)
                passive = load(flow, g, h, s, 0) - active
                store(flow, active, g, h, s, 1)
                store(flow, passive, g, h, s, 0)
                for y in range(states if h + 1 < horizon else 0):
                    moved = passive * load(kernel, g, h, s, 0, y) + active * load(kernel, g, h, s, 1, y)
                    store(flow, load(flow, g, h + 1, y, 0) + moved, g, h + 1, y, 0)


@compiled
def few_fill(program: FewProgram, rows: FewRows) -> None:
    """Give the rows that carry no mass some kernel of their set: evenly between the bounds, or the centre."""
    _, _, low, high, _, _, radius, reach, _, _, _, phase, phases, _, idle, _ = program
    groups, horizon, states, zero = reach.shape[0], reach.shape[1], reach.shape[2], spread(0.0)
    for g in range(groups):
        for h in range(horizon):
            cell = g * phases + phase[h]
            for s in range(states):
                for a in range(2):
                    live = (load(reach, g, h, s) > 0.0) & (spread(0.0 if a == 1 and idle[h] else 1.0) > 0.0)
                    spare, room, part = spread(1.0), zero, zero
                    for y in range(states if radius.size == 0 else 0):
                        bottom, top = load(low, cell, s, a, y), load(high, cell, s, a, y)
                        spare, room = spare - bottom, room + (top - bottom)
                    if radius.size == 0:
                        part = select((room > 0.0) & (spare > 0.0), spare / room, zero)
                        part = select(part < 1.0, part, 1.0)
                    for y in range(states):
                        bottom, top = load(low, cell, s, a, y), load(high, cell, s, a, y)
                        between = bottom + part * (top - bottom) if radius.size == 0 else bottom
                        store(rows.kernel, select(live, load(rows.kernel, g, h, s, a, y), between), g, h, s, a, y)


@compiled
def few_spent(program: FewProgram, rows: FewRows, v: FloatArray, flow: FloatArray) -> tuple[float, float]:
    """Return the weighted divergence of the masses in flow (G,H,S,2,W) and the kernel of the rows, without its constant, and
    how far the sum of a live row is from 1 at most.
    """
    kernel, _, phis, _ = rows
    reach, weights, idle = program.reach, program.weights, program.idle
    groups, horizon, states, zero = reach.shape[0], reach.shape[1], reach.shape[2], spread(0.0)
    spent, worst = 0.0, zero
    for g in range(groups):
        total = zero
        for h in range(horizon):
            for s in range(states):
                live = load(reach, g, h, s) > 0.0
                for a in range(1 if idle[h] else 2):
                    m, cost, off = load(flow, g, h, s, a), load(phis, g, h, s, a), spread(-1.0)
                    for y in range(states):
                        p = load(kernel, g, h, s, a, y)
                        cost, off = cost + p * load(v, g, h + 1, y), off + p
                    total = total + select(m > 0.0, m * (log(m) + cost - 1.0), zero)
                    worst = select(~live | (size(off) <= worst), worst, size(off))
        spent += summed(load(weights, g) * total)
    ends, most_off = np.empty((1, 8)), 0.0
    store(ends, worst, 0)
    for i in range(8):
        if not ends[0, i] <= most_off:
            most_off = ends[0, i]
    return spent, most_off
