"""The inner problem of the projection: for one (arm, step, state, action), the closest next-state distribution.

Given q(y) = w(y) exp(v(y)) over the possible successors, minimise sum p ln(p/q) over the row's confidence set. A solver
writes p into the row's place in the kernel and returns (phi, sigma): phi the minimum, and sigma the total of the entries
that are not pinned by the set, 1 where none is. For a ball, sigma is the total above the centre (1 inside the ball).

What is pinned can be read off p afterwards, and p answers to a change of the potentials v as dp = J dv with

    box    J = diag(p_F) - p_F p_F' / sigma        F: strictly between its bounds
    ball   the same for the entries above the centre, plus the same for those below it, whose totals are pinned.

A row is gathered into a table (6, S) with one line for each quantity, and solved there: called with slices of the arrays, or
with the tuples of `program.py`, a small row would take longer to hand over than to solve, because compiled code counts
references.
"""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled, compiled_inline
from rmab.solvers.projection.compiled.ball_rows import ball_row
from rmab.solvers.projection.compiled.box_rows import SMALL, ahead, box_row
from rmab.solvers.projection.compiled.full_rows import full_row
from rmab.solvers.projection.compiled.program import FEW_STATES, HIGH, LOW, P, Primal, Program, Q, V, W


@compiled
def solve_rows(program: Program, first: int, last: int, step: int, v: FloatArray, primal: Primal) -> None:
    """Solve rows of arms first..last-1 at potentials v (N,H+1,S): write their kernel, phi, sigma and constant.

    At one step, all rows are solved, and those that carry no mass get some kernel of their set. With step -1, at all steps,
    those whose sigma is -1.
    """
    reference, low, high, radius, successors, counts, reach, _, idle, _, _, _, phase, phases, _, _ = program
    kernel, constant, _, phi, sigma, _ = primal
    horizon, states = reach.shape[1], reach.shape[2]
    row, expv, every = np.empty((6, states)), np.empty(states), step >= 0
    for n in range(first, last):
        for h in range(step if every else 0, step + 1 if every else horizon):
            shift, cell = np.nan, n * phases + phase[h]
            for s in range(states):
                for a in range(2):
                    live, count = reach[n, h, s] and not (a == 1 and idle[h]), counts[cell, s, a]
                    if not every and not (live and sigma[n, h, s, a] < 0.0):
                        continue
                    if live and np.isnan(shift):  # the first row of this step that asks for it
                        shift = ahead(v, reach, n, h, expv)
                    if live and radius is None and count == states > FEW_STATES:
                        phi[n, h, s, a], sigma[n, h, s, a], constant[n, h, s, a] = full_row(
                            reference[n, h, s, a],
                            low[cell, s, a],
                            high[cell, s, a],
                            v[n, h + 1],
                            expv,
                            shift,
                            kernel[n, h, s, a],
                            row[Q],
                        )
                        if sigma[n, h, s, a] >= 0.0:
                            continue
                    for k in range(count):
                        y = successors[cell, s, a, k]
                        row[W, k], row[V, k] = reference[n, h, s, a, y], v[n, h + 1, y]
                        row[Q, k] = row[W, k] * expv[y]
                        row[LOW, k], row[HIGH, k] = low[cell, s, a, y], high[cell, s, a, y]
                    if live:
                        phi[n, h, s, a], sigma[n, h, s, a], constant[n, h, s, a] = nearest_row(
                            row, count, radius, cell, s, a, shift
                        )
                    else:
                        some_row(row, count)
                    for k in range(count):
                        kernel[n, h, s, a, successors[cell, s, a, k]] = row[P, k]


@compiled_inline
def nearest_row(
    row: FloatArray, count: int, radius: FloatArray | None, cell: int, s: int, a: int, shift: float
) -> tuple[float, float, float]:
    """Solve a row over its box, or over its ball; return phi, sigma, and what `box_row` returns."""
    if radius is not None:  # decided when it is compiled: None and an array are different types
        phi, sigma = ball_row(row, count, radius[cell, s, a], shift)
        return phi, sigma, 0.0
    return box_row(row, count, shift)


@compiled
def some_row(row: FloatArray, count: int) -> None:
    """Write some distribution of the set as the answer: evenly between the bounds, or the centre."""
    spare, room = 1.0, 0.0
    for k in range(count):
        spare -= row[LOW, k]
        room += row[HIGH, k] - row[LOW, k]
    part = min(spare / room, 1.0) if room > 0.0 and spare > 0.0 else 0.0
    for k in range(count):
        row[P, k] = row[LOW, k] + part * (row[HIGH, k] - row[LOW, k])


@compiled
def same_rows(program: Program, first: int, last: int, v: FloatArray, primal: Primal) -> None:
    """Solve the rows of arms first..last-1 whose pinned entries are those of the last time, as the kernel tells.

    Most are, from one evaluation to the next. Writes their kernel, phi and sigma; sigma is -1 where the row is another.
    Nothing is called from this loop: that alone makes it four times as fast.
    """
    reference, low, high, _, successors, counts, reach, _, idle, _, _, _, phase, phases, _, _ = program
    kernel, constant, _, phi, sigma, _ = primal
    horizon, states = reach.shape[1], reach.shape[2]
    q, expv = np.empty(states), np.empty(states)
    for n in range(first, last):
        for h in range(horizon):
            shift, cell = ahead(v, reach, n, h, expv), n * phases + phase[h]
            for s in range(states):
                if not reach[n, h, s]:
                    continue
                for a in range(1 if idle[h] else 2):
                    if counts[cell, s, a] == states > FEW_STATES:  # `same_full_rows` has them
                        continue
                    total, pinned, loose, tilt, known, free = 0.0, 0.0, 0.0, 0.0, True, 0
                    for k in range(counts[cell, s, a]):
                        y = successors[cell, s, a, k]
                        old, bottom, top = kernel[n, h, s, a, y], low[cell, s, a, y], high[cell, s, a, y]
                        q[k] = reference[n, h, s, a, y] * expv[y]
                        total += q[k]
                        if bottom < old < top:
                            loose += q[k]
                            free += 1
                        else:
                            pinned += old
                            tilt += old * v[n, h + 1, y]
                            known &= bottom == top == old
                    rest = 1.0 - pinned
                    c = rest / loose
                    same = (total > SMALL) & (loose > 0.0) & (rest > 0.0)
                    for k in range(counts[cell, s, a]):
                        y = successors[cell, s, a, k]
                        old, bottom, top = kernel[n, h, s, a, y], low[cell, s, a, y], high[cell, s, a, y]
                        x = c * q[k]
                        if bottom < old < top:
                            same &= (bottom < x) & (x < top)
                            kernel[n, h, s, a, y] = x
                        else:
                            same &= (x <= bottom) if old <= bottom else (x >= top)
                    if same:
                        phi[n, h, s, a] = constant[n, h, s, a] - tilt + rest * (np.log(c) - shift)
                        sigma[n, h, s, a] = rest
                    elif known and free == 0:
                        phi[n, h, s, a] = constant[n, h, s, a] - tilt
                        sigma[n, h, s, a] = 0.0
                    else:
                        sigma[n, h, s, a] = -1.0
