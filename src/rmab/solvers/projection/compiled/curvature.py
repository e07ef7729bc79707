"""Second derivatives of the projection's dual: the Hessian of every arm, factored, and what is left for the prices.

An arm's Hessian is block tridiagonal in h: U'U with U made of triangular blocks upper[h] and full blocks link[h]. Price h is
coupled to the nodes of step h (leave) and of step h+1 (enter). Eliminating the arms leaves a Schur complement in the prices.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled, compiled_in_any_order
from rmab.solvers.compiled.linear import add_squares, back_solve, factor, forward_solve, forward_vector, subtract_products
from rmab.solvers.projection.compiled.assembly import BUFFER, LEAST, ROUNDING, assemble_step, fill_link
from rmab.solvers.projection.compiled.prices import couple_prices, invert_blocks
from rmab.solvers.projection.compiled.program import Factors, Primal, Program


@compiled
def curvature(
    program: Program, first: int, last: int, primal: Primal, column: IntArray, factors: Factors, schur: FloatArray
) -> None:
    """Factor the arms' Hessians at the point that `dual` saw last, and add up what they leave for the prices.

    column (H,) is the place of price h among the free ones, or -1 where it is held at zero. Writes the factors, and schur
    (1+columns, 1+columns), upper half: sum over arms of weight Y'Y, where column 0 of Y stands for the gradient.
    """
    upper, leave, enter = factors
    weights, horizon, states = program.weights, program.reach.shape[1], program.reach.shape[2]
    gradient, columns = primal.gradient, schur.shape[0] - 1
    # Two ways to the Schur complement, by their cost: Y'Y, or the semiseparable inverse where the horizon is long.
    squares = 3 * states * states * horizon * columns // 2 + states * columns * columns * columns // 3
    separable = 5 * states**3 * horizon + states * states * columns * columns
    wide = columns if squares <= separable else 0
    onward, inverse = np.empty((0, 0, 0)), np.empty((0, 0, 0))
    if wide < columns:
        onward, inverse = np.empty((horizon, states, states)), np.empty((horizon, states, states))
    # With many states a block between steps is kept only as long as it is needed: all of them would take half as much as z.
    kept = horizon if wide < columns else 1
    links = np.empty((1, kept, states, states))
    rows, scale = np.empty((BUFFER + 1, states)), np.empty(BUFFER)
    carried, spare, answer = np.empty((states, columns)), np.empty((states, columns)), np.empty((horizon, states))
    past, now = np.empty((states, 1 + columns)), np.empty((states, 1 + columns))
    minus, same, least = np.full(states, -1.0), np.empty(states), np.empty(states)
    schur[:] = 0.0
    for n in range(first, last):
        width = 1
        same[:] = weights[n]
        upper[n, 0] = 0.0
        for h in range(horizon):
            before = width
            if wide > 0 and column[h] >= 0:
                width += 1
            assemble_step(program, n, h, primal, factors, rows, scale)
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
                joining = links[0, (h - 1) % kept]
                add_squares(block, joining, minus, states, states)
                subtract_products(now, joining, past, states, states, before)
            factor(block, states, least)
            if h + 1 < horizon:
                joining = links[0, h % kept]
                fill_link(program, n, h, primal, joining)
                forward_solve(block, joining, states, states)
            forward_solve(block, now, states, width)
            add_squares(schur, now, same, states, width)
            if wide < columns:
                for s in range(states):
                    answer[h, s] = now[s, 0]
            past, now = now, past
        if wide < columns:
            invert_blocks(upper, links, n, 0, onward, inverse)
            solve_back(upper, links, n, 0, answer)
            couple_prices(weights[n], n, column, leave, enter, onward, inverse, answer, carried, spare, schur)


@compiled
def solve_back(upper: FloatArray, link: FloatArray, n: int, own: int, target: FloatArray) -> None:
    """Overwrite target (H,S) with the solution of U x = target, U the whole factor of arm n: upper[n], link[own]."""
    horizon, states = target.shape
    for h in range(horizon - 1, -1, -1):
        if h + 1 < horizon:
            for r in range(states):
                total = 0.0
                for s in range(states):
                    total += link[own, h, r, s] * target[h + 1, s]
                target[h, r] -= total
        back_solve(upper[n, h], target[h], states)


@compiled_in_any_order
def solve_large(program: Program, n: int, primal: Primal, upper: FloatArray, target: FloatArray) -> None:
    """Overwrite target (H,S) with the solution of U'U x = target for arm n, without its links: they are U^-T E, with E the
    Hessian's own blocks between steps, made of mass and kernel.
    """
    kernel, mass = primal.kernel, primal.mass
    horizon, states = target.shape
    part = np.empty(states)
    for h in range(horizon):
        forward_vector(upper[n, h], target[h], states)
        if h + 1 == horizon:
            break
        part[:] = target[h]
        back_solve(upper[n, h], part, states)
        cell = n * program.phases + program.phase[h]
        for s in range(states):
            for a in range(1 if program.idle[h] else 2):
                flow, count = mass[n, h, s, a] * part[s], program.counts[cell, s, a] if program.reach[n, h, s] else 0
                if count == states:
                    for y in range(states):
                        target[h + 1, y] += flow * kernel[n, h, s, a, y]
                    continue
                for k in range(count):
                    y = program.successors[cell, s, a, k]
                    target[h + 1, y] += flow * kernel[n, h, s, a, y]
    for h in range(horizon - 1, -1, -1):
        part[:] = 0.0
        cell = n * program.phases + program.phase[h]
        for s in range(states if h + 1 < horizon else 0):
            for a in range(1 if program.idle[h] else 2):
                total, count = 0.0, program.counts[cell, s, a] if program.reach[n, h, s] else 0
                full = count == states
                for y in range(states if full else 0):
                    total += kernel[n, h, s, a, y] * target[h + 1, y]
                for k in range(0 if full else count):
                    y = program.successors[cell, s, a, k]
                    total += kernel[n, h, s, a, y] * target[h + 1, y]
                part[s] += mass[n, h, s, a] * total
        forward_vector(upper[n, h], part, states)
        for s in range(states):
            target[h, s] += part[s]
        back_solve(upper[n, h], target[h], states)


@compiled
def direction(
    program: Program, first: int, last: int, primal: Primal, factors: Factors, price_step: FloatArray, step: FloatArray
) -> float:
    """Write the Newton step (N,H,S) of the potentials for a step (H,) of the prices; return gradient . step, weighted."""
    upper, leave, enter = factors
    slope, gradient, horizon, states = 0.0, primal.gradient, program.reach.shape[1], program.reach.shape[2]
    for n in range(first, last):
        for h in range(horizon):
            for s in range(states):
                step[n, h, s] = -gradient[n, h, s] - leave[n, h, s] * price_step[h]
                if h > 0:
                    step[n, h, s] -= enter[n, h - 1, s] * price_step[h - 1]
        solve_large(program, n, primal, upper, step[n])
        for h in range(horizon):
            for s in range(states):
                slope += program.weights[n] * gradient[n, h, s] * step[n, h, s]
    return slope
