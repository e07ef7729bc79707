"""Second derivatives of the projection's dual with few states (see `curvature.py`): eight arms at a time.

The Schur complement of the prices comes from the semiseparable inverse of every arm's Hessian, as in `prices.py`.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled_contracting as compiled, compiled_on_loan_inline as inline
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import Lanes, load, log, most, root, select, size, some, spread, store, summed
from rmab.solvers.projection.compiled.assembly import LEAST, ROUNDING
from rmab.solvers.projection.compiled.dual import LEAST_PART, NEGLIGIBLE
from rmab.solvers.projection.compiled.few import FewFactors, FewProgram, FewRows
from rmab.solvers.projection.compiled.few_dual import highest
from rmab.solvers.projection.compiled.few_prices import couple_lanes, invert_lanes


@inline
def mean_lanes(
    mass: FloatArray, gradient: FloatArray, states: int, node: int, own: bool, weight: Lanes, mean: FloatArray
) -> float:
    """Write the masses of a step, whose nodes begin at `node`, into mean (2*S,W): means, as `dual.mean_masses` does, or
    (own) the masses themselves. Return the sum of the active ones, weighted.
    """
    total = spread(0.0)
    for s in range(states):
        passive, active = load(mass, 2 * (node + s)), load(mass, 2 * (node + s) + 1)
        out = passive + active
        excess = select(out > 0.0, load(gradient, node + s) / out, 0.0)
        part = spread(1.0)
        far = (size(excess) > 1e-6) & (excess < np.inf)
        if some(far):
            curved = select(excess > -1.0, excess / log(1.0 + excess), 0.0)
            part = select(far, curved, part)
        part = most(part, LEAST_PART)
        if not own:
            passive = select(passive > 0.0, most(part * passive, NEGLIGIBLE), 0.0)
            active = select(active > 0.0, most(part * active, NEGLIGIBLE), 0.0)
        store(mean, passive, 2 * s)
        store(mean, active, 2 * s + 1)
        total = total + active
    return summed(weight * total)


@inline
def assemble_lanes(
    low: FloatArray, high: FloatArray, ball: bool, reach: FloatArray, kernel: FloatArray, mean: FloatArray,
    sigmas: FloatArray, charge: Lanes, states: int, node: int, bound: int, actions: int, final: bool, upper: FloatArray,
    link: FloatArray, leave: FloatArray, enter: FloatArray, coming: FloatArray,
) -> None:  # fmt: skip
    """Add what the rows of a step add to its block of upper, write link, leave and enter, and what the rows add to the block
    of the next step into coming (S*S,W). See `assembly.assemble_step` for the formulas.

    mean (2*S,W): the masses of the rows. node, bound: where the nodes of the step begin, and the rows of its sets.
    """
    zero, block = spread(0.0), node * states
    for x in range(states):
        store(enter, 0.0, node + x)
        for y in range(states):
            store(coming, 0.0, x * states + y)
            store(link, 0.0, block + x * states + y)
    for s in range(states):
        out, busy, edge_row = zero, zero, block + s * states
        for a in range(actions):
            row = 2 * (node + s) + a
            m, loose = load(mean, 2 * s + a), load(sigmas, row)
            out, busy = out + m, busy + a * m
            if final:
                continue
            entry, cell = row * states, (bound + 2 * s + a) * states
            whole, below = loose == 1.0, zero
            for y in range(states if ball else 0):
                p = load(kernel, entry + y)
                below = below + select(p < load(low, cell + y), p, zero)
            above_rate = select(loose > 0.0, 1.0 / loose, zero)
            below_rate, mixed = zero, some(~whole)
            if ball:
                below_rate = select(below > 0.0, 1.0 / below, zero)
            for x in range(states):
                p, base = load(kernel, entry + x), load(low, cell + x)
                mp = m * p
                store(link, load(link, edge_row + x) - mp, edge_row + x)
                if a == 1:
                    store(enter, load(enter, node + x) - mp * charge, node + x)
                inside = p > base
                if not ball:
                    inside = inside & (p < load(high, cell + x))
                under = (p < base) if ball else (zero < -1.0)
                own = select(whole | inside | under, mp, zero)
                store(coming, load(coming, x * states + x) + own, x * states + x)
                for y in range(x, states if mixed else x):
                    other, edge = load(kernel, entry + y), load(low, cell + y)
                    both = inside & (other > edge)
                    if not ball:
                        both = both & (other < load(high, cell + y))
                    rate = select(both, above_rate, zero)
                    if ball:
                        rate = select(under & (other < edge), below_rate, rate)
                    value = mp * other
                    value = select(whole, zero, value - value * rate)
                    store(coming, load(coming, x * states + y) + value, x * states + y)
        store(leave, busy * charge, node + s)
        own = select(load(reach, node + s) > 0.0, out, 1.0)
        store(upper, load(upper, edge_row + s) + own, edge_row + s)


@inline
def factor_lanes(upper: FloatArray, link: FloatArray, states: int, block: int, joined: bool) -> None:
    """Overwrite the block of upper, less what the link before it takes away (joined), with its factor U, and the block of
    link with U^-T link. Blocks of S*S begin at `block`.

    The diagonal holds 1/U. Pivots are at least as in `curvature.curvature`.
    """
    before = block - states * states
    for i in range(states):
        bottom = ROUNDING * load(upper, block + i * states + i) + LEAST
        for j in range(i, states):
            x = load(upper, block + i * states + j)
            for r in range(states if joined else 0):
                x = x - load(link, before + r * states + i) * load(link, before + r * states + j)
            for r in range(i):
                x = x - load(upper, block + r * states + i) * load(upper, block + r * states + j)
            x = 1.0 / root(most(x, bottom)) if j == i else x * load(upper, block + i * states + i)
            store(upper, x, block + i * states + j)
    for j in range(states):
        for i in range(states):
            x = load(link, block + i * states + j)
            for r in range(i):
                x = x - load(upper, block + r * states + i) * load(link, block + r * states + j)
            store(link, x * load(upper, block + i * states + i), block + i * states + j)


@inline
def forward_lanes(upper: FloatArray, link: FloatArray, states: int, node: int, joined: bool, target: FloatArray) -> None:
    """Overwrite target at a step, whose nodes begin at `node`, with U^-T (target - link' target before), link the one that
    leads here (joined: there is one); target (G*H*S,W).
    """
    block = node * states
    before = block - states * states
    for i in range(states):
        x = load(target, node + i)
        for r in range(states if joined else 0):
            x = x - load(link, before + r * states + i) * load(target, node - states + r)
        for r in range(i):
            x = x - load(upper, block + r * states + i) * load(target, node + r)
        store(target, x * load(upper, block + i * states + i), node + i)


@inline
def back_lanes(upper: FloatArray, link: FloatArray, states: int, node: int, final: bool, target: FloatArray) -> None:
    """Overwrite target at a step with U^-1 (target - link target after)."""
    for i in range(states - 1, -1, -1):
        x, line = load(target, node + i), (node + i) * states
        for r in range(0 if final else states):
            x = x - load(link, line + r) * load(target, node + states + r)
        for r in range(i + 1, states):
            x = x - load(upper, line + r) * load(target, node + r)
        store(target, x * load(upper, line + i), node + i)


@compiled
def few_curvature(
    program: FewProgram, first: int, last: int, rows: FewRows, gradient: FloatArray, own: bool, column: IntArray,
    factors: FewFactors, answer: FloatArray, active: FloatArray, schur: FloatArray,
) -> None:  # fmt: skip
    """Do as `curvature.curvature` does, for groups first..last-1 and the means of their masses, or (own) these themselves.

    Of schur, row 0 from column 1 on and the upper half below it are written; active (H,): the active masses, at the squares
    of their costs. Scratch: answer (G*H*S,W).
    """
    _, _, low, high, _, _, radius, reach, start, weights, cost, phase, phases, _, idle, _ = program
    kernel, mass, _, sigmas = rows
    upper, link, leave, enter = factors
    horizon, states, columns, ball = phase.size, start.shape[0] // weights.shape[0], schur.shape[0] - 1, radius.size > 0
    square, even = states * states, spread(0.0)
    coming, near, carried = np.empty((square, WIDTH)), np.empty((3 * states, WIDTH)), np.empty((columns * states, WIDTH))
    onward, inverse = np.empty((horizon * square, WIDTH)), np.empty((horizon * square, WIDTH))
    mean = np.empty((2 * states, WIDTH))
    schur[:] = 0.0
    active[:] = 0.0
    for g in range(first, last):
        charge, begin = load(cost, g), g * horizon * states
        squared = load(weights, g) * charge * charge
        for h in range(horizon):
            node = begin + h * states
            for x in range(states):
                for y in range(x, states):
                    place = x * states + y
                    store(upper, load(coming, place) if h > 0 else even, node * states + place)
            bound, actions = (g * phases + phase[h]) * states * 2, 1 if idle[h] else 2
            active[h] += mean_lanes(mass, gradient, states, node, own, squared, mean)
            assemble_lanes(
                low, high, ball, reach, kernel, mean, sigmas, charge, states, node, bound, actions, h + 1 == horizon,
                upper, link, leave, enter, coming,
            )  # fmt: skip
            factor_lanes(upper, link, states, node * states, h > 0)
        if columns == 0:
            continue
        for h in range(horizon):
            node = begin + h * states
            for s in range(states):
                store(answer, load(gradient, node + s), node + s)
            forward_lanes(upper, link, states, node, h > 0, answer)
        for h in range(horizon - 1, -1, -1):
            node, final = begin + h * states, h + 1 == horizon
            back_lanes(upper, link, states, node, final, answer)
            invert_lanes(upper, link, states, node * states, h * square, final, coming, onward, inverse)
        couple_lanes(load(weights, g), begin, column, leave, enter, onward, inverse, answer, carried, near, schur)


@compiled
def few_direction(
    program: FewProgram, first: int, last: int, gradient: FloatArray, factors: FewFactors, price_step: FloatArray,
    step: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Do as `curvature.direction` does; return the largest change of a potential, too."""
    upper, link, leave, enter = factors
    horizon, states = price_step.size, program.start.shape[0] // program.weights.shape[0]
    slope, longest, ends = 0.0, spread(0.0), np.empty((1, WIDTH))
    for g in range(first, last):
        begin = g * horizon * states
        for h in range(horizon):
            node = begin + h * states
            for s in range(states):
                x = -load(gradient, node + s) - load(leave, node + s) * price_step[h]
                if h > 0:
                    x = x - load(enter, node - states + s) * price_step[h - 1]
                store(step, x, node + s)
            forward_lanes(upper, link, states, node, h > 0, step)
        total = spread(0.0)
        for h in range(horizon - 1, -1, -1):
            node = begin + h * states
            back_lanes(upper, link, states, node, h + 1 == horizon, step)
            for s in range(states):
                x = load(step, node + s)
                total = total + load(gradient, node + s) * x
                longest = select(size(x) <= longest, longest, size(x))
        slope += summed(load(program.weights, g) * total)
    return slope, highest(longest, ends)
