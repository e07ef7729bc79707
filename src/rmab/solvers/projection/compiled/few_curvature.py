"""Second derivatives of the projection's dual with few states (see `curvature.py`): eight arms at a time.

The Schur complement of the prices comes from the semiseparable inverse of every arm's Hessian, as in `prices.py`.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled_contracting as compiled, compiled_contracting_inline as inline
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import load, most, root, select, some, spread, store, summed
from rmab.solvers.projection.compiled.assembly import LEAST, ROUNDING
from rmab.solvers.projection.compiled.few import FewFactors, FewProgram, FewRows


@inline
def assemble_lanes(
    low: FloatArray, high: FloatArray, ball: bool, reach: FloatArray, kernel: FloatArray, mass: FloatArray,
    sigmas: FloatArray, charges: FloatArray, g: int, h: int, cell: int, actions: int, upper: FloatArray, link: FloatArray,
    leave: FloatArray, enter: FloatArray, coming: FloatArray,
) -> None:  # fmt: skip
    """Add what the rows of step h add to upper[g,h], write link[g,h], leave[g,h] and enter[g,h], and what the rows add to
    the block of the next step into coming (S,S,W). See `assemble_small` for the formulas.
    """
    horizon, states, zero = reach.shape[1], reach.shape[2], spread(0.0)
    charge, final = load(charges, g), h + 1 == horizon
    for x in range(states):
        store(enter, 0.0, g, h, x)
        for y in range(states):
            store(coming, 0.0, x, y)
            store(link, 0.0, g, h, x, y)
    for s in range(states):
        out, busy = zero, zero
        for a in range(actions):
            m, loose = load(mass, g, h, s, a), load(sigmas, g, h, s, a)
            out, busy = out + m, busy + a * m
            if final:
                continue
            whole, below = loose == 1.0, zero
            for y in range(states if ball else 0):
                p = load(kernel, g, h, s, a, y)
                below = below + select(p < load(low, cell, s, a, y), p, zero)
            above_rate = select(loose > 0.0, 1.0 / loose, zero)
            below_rate = select(below > 0.0, 1.0 / below, zero)
            mixed = some(~whole)
            for x in range(states):
                p, base = load(kernel, g, h, s, a, x), load(low, cell, s, a, x)
                mp = m * p
                store(link, load(link, g, h, s, x) - mp, g, h, s, x)
                if a == 1:
                    store(enter, load(enter, g, h, x) - mp * charge, g, h, x)
                inside = p > base
                if not ball:
                    inside = inside & (p < load(high, cell, s, a, x))
                under = (p < base) if ball else (zero < -1.0)
                own = select(whole | inside | under, mp, zero)
                store(coming, load(coming, x, x) + own, x, x)
                for y in range(x, states if mixed else x):
                    other, edge = load(kernel, g, h, s, a, y), load(low, cell, s, a, y)
                    both = inside & (other > edge)
                    if not ball:
                        both = both & (other < load(high, cell, s, a, y))
                    rate = select(both, above_rate, zero)
                    if ball:
                        rate = select(under & (other < edge), below_rate, rate)
                    value = mp * other
                    value = select(whole, zero, value - value * rate)
                    store(coming, load(coming, x, y) + value, x, y)
        store(leave, busy * charge, g, h, s)
        own = select(load(reach, g, h, s) > 0.0, out, 1.0)
        store(upper, load(upper, g, h, s, s) + own, g, h, s, s)


@inline
def factor_lanes(upper: FloatArray, link: FloatArray, g: int, h: int, joined: bool) -> None:
    """Overwrite upper[g,h], less what link[g,h-1] takes away (joined), with its factor U, and link[g,h] with U^-T link.

    The diagonal holds 1/U. Pivots are at least as in `curvature.curvature`.
    """
    states = upper.shape[2]
    for i in range(states):
        bottom = ROUNDING * load(upper, g, h, i, i) + LEAST
        for j in range(i, states):
            x = load(upper, g, h, i, j)
            for r in range(states if joined else 0):
                x = x - load(link, g, h - 1, r, i) * load(link, g, h - 1, r, j)
            for r in range(i):
                x = x - load(upper, g, h, r, i) * load(upper, g, h, r, j)
            x = 1.0 / root(most(x, bottom)) if j == i else x * load(upper, g, h, i, i)
            store(upper, x, g, h, i, j)
    for j in range(states):
        for i in range(states):
            x = load(link, g, h, i, j)
            for r in range(i):
                x = x - load(upper, g, h, r, i) * load(link, g, h, r, j)
            store(link, x * load(upper, g, h, i, i), g, h, i, j)


@inline
def forward_lanes(upper: FloatArray, link: FloatArray, g: int, h: int, target: FloatArray) -> None:
    """Overwrite target[g,h] with U^-T (target[g,h] - link[g,h-1]' target[g,h-1]); target (G,H,S,W)."""
    states = upper.shape[2]
    for i in range(states):
        x = load(target, g, h, i)
        for r in range(states if h > 0 else 0):
            x = x - load(link, g, h - 1, r, i) * load(target, g, h - 1, r)
        for r in range(i):
            x = x - load(upper, g, h, r, i) * load(target, g, h, r)
        store(target, x * load(upper, g, h, i, i), g, h, i)


@inline
def back_lanes(upper: FloatArray, link: FloatArray, g: int, h: int, target: FloatArray) -> None:
    """Overwrite target[g,h] with U^-1 (target[g,h] - link[g,h] target[g,h+1])."""
    horizon, states = upper.shape[1], upper.shape[2]
    for i in range(states - 1, -1, -1):
        x = load(target, g, h, i)
        for r in range(states if h + 1 < horizon else 0):
            x = x - load(link, g, h, i, r) * load(target, g, h + 1, r)
        for r in range(i + 1, states):
            x = x - load(upper, g, h, i, r) * load(target, g, h, r)
        store(target, x * load(upper, g, h, i, i), g, h, i)


@inline
def invert_lanes(
    upper: FloatArray, link: FloatArray, g: int, h: int, solved: FloatArray, onward: FloatArray, inverse: FloatArray
) -> None:
    """Write onward[h] and inverse[h] (H,S,S,W) as `prices.invert_blocks` does. Scratch: solved (S,S,W)."""
    horizon, states, zero = upper.shape[1], upper.shape[2], spread(0.0)
    for j in range(states):  # solved = U^-1
        for i in range(states - 1, -1, -1):
            if i > j:
                store(solved, 0.0, i, j)
                continue
            x = spread(1.0) if i == j else zero
            for k in range(i + 1, j + 1):
                x = x - load(upper, g, h, i, k) * load(solved, k, j)
            store(solved, x * load(upper, g, h, i, i), i, j)
    for i in range(states):
        for j in range(states):
            x, product = zero, zero
            for k in range(max(i, j), states):
                x = x + load(solved, i, k) * load(solved, j, k)
            for k in range(i, states):
                product = product + load(solved, i, k) * load(link, g, h, k, j)
            store(inverse, x, h, i, j)
            store(onward, -product, h, i, j)
    if h + 1 == horizon:
        return
    for i in range(states):
        for j in range(states):
            x = zero
            for k in range(states):
                x = x + load(onward, h, i, k) * load(inverse, h + 1, k, j)
            store(solved, x, i, j)
    for i in range(states):
        for j in range(states):
            x = load(inverse, h, i, j)
            for k in range(states):
                x = x + load(solved, i, k) * load(onward, h, j, k)
            store(inverse, x, h, i, j)


@compiled
def couple_lanes(
    weights: FloatArray, g: int, column: IntArray, leave: FloatArray, enter: FloatArray, onward: FloatArray,
    inverse: FloatArray, answer: FloatArray, carried: FloatArray, schur: FloatArray,
) -> None:  # fmt: skip
    """Add the arms of group g to schur as `prices.couple_prices` does. answer (G,H,S,W); scratch: carried (columns,S,W)."""
    horizon, states, zero = onward.shape[0], onward.shape[1], spread(0.0)
    after, here, spare = np.empty((states, WIDTH)), np.empty((states, WIDTH)), np.empty((states, WIDTH))
    weight, earlier = load(weights, g), 0
    for i in range(horizon):
        final = i + 1 == horizon
        if column[i] >= 0:
            place = 1 + column[i]
            own, slope = zero, zero
            for k in range(states):
                x = zero
                slope = slope + load(leave, g, i, k) * load(answer, g, i, k)
                if not final:
                    slope = slope + load(enter, g, i, k) * load(answer, g, i + 1, k)
                    for y in range(states):
                        x = x + load(inverse, i + 1, k, y) * load(enter, g, i, y)
                    own = own + load(enter, g, i, k) * x
                store(after, x, k)
            for k in range(states):
                direct, through = zero, zero
                for y in range(states):
                    direct = direct + load(inverse, i, k, y) * load(leave, g, i, y)
                    through = through + load(onward, i, k, y) * load(after, y)
                store(here, weight * (direct + through), k)
                own = own + load(leave, g, i, k) * (direct + 2.0 * through)
            schur[0, place] += summed(weight * slope)
            schur[place, place] += summed(weight * own)
            for j in range(earlier):
                x = zero
                for k in range(states):
                    x = x + load(carried, j, k) * load(here, k)
                schur[1 + j, place] += summed(x)
        if final:
            continue
        for j in range(earlier):
            for y in range(states):
                x = zero
                for k in range(states):
                    x = x + load(carried, j, k) * load(onward, i, k, y)
                store(spare, x, y)
            for y in range(states):
                store(carried, load(spare, y), j, y)
        if column[i] >= 0:
            for y in range(states):
                x = load(enter, g, i, y)
                for k in range(states):
                    x = x + load(leave, g, i, k) * load(onward, i, k, y)
                store(carried, x, earlier, y)
            earlier += 1


@compiled
def few_curvature(
    program: FewProgram, first: int, last: int, rows: FewRows, mass: FloatArray, gradient: FloatArray, column: IntArray,
    factors: FewFactors, answer: FloatArray, schur: FloatArray,
) -> None:  # fmt: skip
    """Do as `curvature.curvature` does, for groups first..last-1 and the masses (G,H,S,2,W) given.

    Of schur, row 0 from column 1 on and the upper half below it are written. Scratch: answer (G,H,S,W).
    """
    _, _, low, high, _, _, radius, reach, _, weights, cost, phase, phases, _, idle, _ = program
    kernel, _, _, sigmas = rows
    upper, link, leave, enter = factors
    horizon, states, columns, ball = reach.shape[1], reach.shape[2], schur.shape[0] - 1, radius.size > 0
    coming = np.empty((states, states, WIDTH))
    onward, inverse = np.empty((horizon, states, states, WIDTH)), np.empty((horizon, states, states, WIDTH))
    carried = np.empty((columns, states, WIDTH))
    schur[:] = 0.0
    for g in range(first, last):
        for h in range(horizon):
            for x in range(states):
                for y in range(x, states):
                    store(upper, load(coming, x, y) if h > 0 else spread(0.0), g, h, x, y)
            cell, actions = g * phases + phase[h], 1 if idle[h] else 2
            assemble_lanes(
                low, high, ball, reach, kernel, mass, sigmas, cost, g, h, cell, actions, upper, link, leave, enter, coming
            )
            factor_lanes(upper, link, g, h, h > 0)
        if columns == 0:
            continue
        for h in range(horizon):
            for s in range(states):
                store(answer, load(gradient, g, h, s), g, h, s)
            forward_lanes(upper, link, g, h, answer)
        for h in range(horizon - 1, -1, -1):
            back_lanes(upper, link, g, h, answer)
            invert_lanes(upper, link, g, h, coming, onward, inverse)
        couple_lanes(weights, g, column, leave, enter, onward, inverse, answer, carried, schur)


@compiled
def few_direction(
    program: FewProgram, first: int, last: int, gradient: FloatArray, factors: FewFactors, price_step: FloatArray,
    step: FloatArray,
) -> float:  # fmt: skip
    """Do as `curvature.direction` does."""
    upper, link, leave, enter = factors
    horizon, states = upper.shape[1], upper.shape[2]
    slope = 0.0
    for g in range(first, last):
        for h in range(horizon):
            for s in range(states):
                x = -load(gradient, g, h, s) - load(leave, g, h, s) * price_step[h]
                if h > 0:
                    x = x - load(enter, g, h - 1, s) * price_step[h - 1]
                store(step, x, g, h, s)
            forward_lanes(upper, link, g, h, step)
        total = spread(0.0)
        for h in range(horizon - 1, -1, -1):
            back_lanes(upper, link, g, h, step)
            for s in range(states):
                total = total + load(gradient, g, h, s) * load(step, g, h, s)
        slope += summed(load(program.weights, g) * total)
    return slope
