"""Second derivatives of the projection's dual: the Hessian of every arm, factored, and what is left for the prices.

An arm's Hessian is block tridiagonal in h: U'U with U made of triangular blocks upper[h] and full blocks link[h]. Price h is
coupled to the nodes of step h (leave) and of step h+1 (enter). Eliminating the arms leaves a Schur complement in the prices.
"""

import numpy as np

from rmab.arrays import FloatArray, IntArray
from rmab.kernels.compile import compiled
from rmab.kernels.linear import (
    add_squares,
    back_solve,
    factor,
    forward_solve,
    forward_vector,
    subtract_products,
)
from rmab.kernels.program import Program

__all__ = ["curvature", "direction"]

SMALL = 12  # states up to which blocks are added up entry by entry
BUFFER = 64  # dense rows that are collected before they are added to a block together
LEAST = 1e-280  # pivot of a node without any mass
ROUNDING = 1e-15  # what is left of a diagonal entry below this part of it is rounding, and must not be divided by


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
    _, low, high, radius, successors, counts, reach, _, idle, _, _, _ = program
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
                            side = 1 if loose == 1.0 or base < p < high[n, s, a, x] else 0
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
                            if same and value > 0.0:  # 0 where the whole part has underflown
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
    _, low, high, radius, successors, counts, reach, _, idle, _, _, _ = program
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
def solve_back(upper: FloatArray, link: FloatArray, n: int, target: FloatArray) -> None:
    """Overwrite target (H,S) with the solution of U x = target, U the whole factor of arm n."""
    horizon, states = target.shape
    for h in range(horizon - 1, -1, -1):
        if h + 1 < horizon:
            for r in range(states):
                total = 0.0
                for s in range(states):
                    total += link[n, h, r, s] * target[h + 1, s]
                target[h, r] -= total
        back_solve(upper[n, h], target[h], states)


@compiled
def invert_blocks(upper: FloatArray, link: FloatArray, n: int, onward: FloatArray, inverse: FloatArray) -> None:
    """From the factors of arm n, write onward (H,S,S) = -U^-1 link, which carries the solution at h+1 back to h, and the
    diagonal blocks of the inverse Hessian, inverse (H,S,S), from the last step to the first.
    """
    horizon, states = onward.shape[0], onward.shape[1]
    root, work = np.empty((states, states)), np.empty((states, states))
    for h in range(horizon - 1, -1, -1):
        for j in range(states):  # root = U^-1, upper triangular
            for i in range(states):
                root[i, j] = 0.0
            root[j, j] = 1.0 / upper[n, h, j, j]
            for i in range(j - 1, -1, -1):
                total = 0.0
                for k in range(i + 1, j + 1):
                    total += upper[n, h, i, k] * root[k, j]
                root[i, j] = -total / upper[n, h, i, i]
        for i in range(states):
            for j in range(states):
                total, product = 0.0, 0.0
                for k in range(max(i, j), states):
                    total += root[i, k] * root[j, k]
                for k in range(i, states):
                    product += root[i, k] * link[n, h, k, j]
                inverse[h, i, j] = total
                onward[h, i, j] = -product
        if h + 1 == horizon:
            continue
        for i in range(states):
            for j in range(states):
                total = 0.0
                for k in range(states):
                    total += onward[h, i, k] * inverse[h + 1, k, j]
                work[i, j] = total
        for i in range(states):
            for j in range(states):
                for k in range(states):
                    inverse[h, i, j] += work[i, k] * onward[h, j, k]


@compiled
def couple_prices(
    weight: float,
    n: int,
    column: IntArray,
    leave: FloatArray,
    enter: FloatArray,
    onward: FloatArray,
    inverse: FloatArray,
    solved: FloatArray,
    carried: FloatArray,
    spare: FloatArray,
    schur: FloatArray,
) -> None:
    """Add weight C'A^-1 [g, C] to schur, as Y'Y would: A is arm n's Hessian, C its coupling to the prices, A^-1 g in solved.

    The inverse of a block tridiagonal matrix is semiseparable: block (j, i), j < i, is onward[j] ... onward[i-1] inverse[i].
    So the rows of all earlier prices are carried forward together, carried (S, columns), and a step costs S^2 per price
    where squaring Y costs S per pair of prices.
    """
    horizon, states = onward.shape[0], onward.shape[1]
    after, here = np.empty(states), np.empty(states)
    earlier = 0
    for i in range(horizon):
        final = i + 1 == horizon
        if column[i] >= 0:
            place = 1 + column[i]
            own, slope = 0.0, 0.0
            for k in range(states):
                after[k] = 0.0
                slope += leave[n, i, k] * solved[i, k]
                if not final:
                    slope += enter[n, i, k] * solved[i + 1, k]
                    for y in range(states):
                        after[k] += inverse[i + 1, k, y] * enter[n, i, y]
                    own += enter[n, i, k] * after[k]
            for k in range(states):
                direct, through = 0.0, 0.0
                for y in range(states):
                    direct += inverse[i, k, y] * leave[n, i, y]
                    through += onward[i, k, y] * after[y]
                here[k] = direct + through
                own += leave[n, i, k] * (direct + 2.0 * through)
            schur[0, place] += weight * slope
            schur[place, place] += weight * own
            for j in range(earlier):
                total = 0.0
                for k in range(states):
                    total += carried[k, j] * here[k]
                schur[1 + j, place] += weight * total
        if final:
            continue
        for y in range(states):
            for j in range(earlier):
                spare[y, j] = carried[0, j] * onward[i, 0, y]
            for k in range(1, states):
                a = onward[i, k, y]
                for j in range(earlier):
                    spare[y, j] += carried[k, j] * a
        carried, spare = spare, carried
        if column[i] >= 0:
            for y in range(states):
                total = enter[n, i, y]
                for k in range(states):
                    total += leave[n, i, k] * onward[i, k, y]
                carried[y, earlier] = total
            earlier += 1


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
    weights, horizon, states = program.weights, program.reach.shape[1], program.reach.shape[2]
    if states <= SMALL:
        assemble_small(program, first, last, kernel, mass, sigma, upper, link, leave, enter)
    else:
        assemble_large(program, first, last, kernel, mass, sigma, upper, link, leave, enter)
    # Two ways to the Schur complement, by their cost: Y'Y, or the semiseparable inverse where the horizon is long.
    squares = 3 * states * states * horizon * columns // 2 + states * columns * columns * columns // 3
    separable = 5 * states**3 * horizon + states * states * columns * columns
    wide = columns if squares <= separable else 0
    onward, inverse = np.empty((0, 0, 0)), np.empty((0, 0, 0))
    if wide < columns:
        onward, inverse = np.empty((horizon, states, states)), np.empty((horizon, states, states))
    carried, spare, solved = np.empty((states, columns)), np.empty((states, columns)), np.empty((horizon, states))
    past, now = np.empty((states, 1 + columns)), np.empty((states, 1 + columns))
    minus, same, least = np.full(states, -1.0), np.empty(states), np.empty(states)
    schur[:] = 0.0
    for n in range(first, last):
        width = 1
        same[:] = weights[n]
        for h in range(horizon):
            before = width
            if wide > 0 and column[h] >= 0:
                width += 1
            for s in range(states):
                now[s, 0] = gradient[n, h, s]
                for j in range(1, width):
                    now[s, j] = 0.0
                if wide > 0 and column[h] >= 0:
                    now[s, 1 + column[h]] = leave[n, h, s]
                if wide > 0 and h > 0 and column[h - 1] >= 0:
                    now[s, 1 + column[h - 1]] += enter[n, h - 1, s]
            block = upper[n, h]
            for s in range(states):
                least[s] = ROUNDING * block[s, s] + LEAST
            if h > 0:
                add_squares(block, link[n, h - 1], minus, states, states)
                subtract_products(now, link[n, h - 1], past, states, states, before)
            factor(block, states, least)
            if h + 1 < horizon:
                forward_solve(block, link[n, h], states, states)
            forward_solve(block, now, states, width)
            add_squares(schur, now, same, states, width)
            if wide < columns:
                for s in range(states):
                    solved[h, s] = now[s, 0]
            past, now = now, past
        if wide < columns:
            invert_blocks(upper, link, n, onward, inverse)
            solve_back(upper, link, n, solved)
            couple_prices(weights[n], n, column, leave, enter, onward, inverse, solved, carried, spare, schur)


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
        solve_back(upper, link, n, step[n])
        for h in range(horizon):
            for s in range(states):
                slope += weights[n] * gradient[n, h, s] * step[n, h, s]
    return slope
