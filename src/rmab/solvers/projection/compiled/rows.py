"""The inner problem of the projection: for one (arm, step, state, action), the closest next-state distribution.

Given q(y) = w(y) exp(v(y)) over the possible successors, minimise sum p ln(p/q) over the row's confidence set. A solver
writes p into the row's place in the kernel and returns (phi, sigma): phi the minimum, and sigma the total of the entries
that are not pinned by the set, 1 where none is. For a ball, sigma is the total above the centre (1 inside the ball).

What is pinned can be read off p afterwards, and p answers to a change of the potentials v as dp = J dv with

    box    J = diag(p_F) - p_F p_F' / sigma        F: strictly between its bounds
    ball   the same for the entries above the centre, plus the same for those below it, whose totals are pinned.

The row is named by its place (n,h,s,a) in the arrays, and by its cell in those of the sets: slicing it out would cost more
than a small row's whole solution, because compiled code counts references to every slice. For the same reason these
functions take loose arrays, not the tuples of `program.py`: called for every row, those would cost a tenth of the time, and
half of it for balls.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled, compiled_inline
from rmab.solvers.projection.compiled.ball_rows import ball_row
from rmab.solvers.projection.compiled.box_rows import SMALL, ahead, box_row
from rmab.solvers.projection.compiled.full_rows import full_row
from rmab.solvers.projection.compiled.program import FEW_STATES, Primal, Program


@compiled_inline
def nearest_row(
    reference: FloatArray,
    low: FloatArray,
    high: FloatArray,
    radius: FloatArray | None,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    cell: int,
    h: int,
    s: int,
    a: int,
    v: FloatArray,
    expv: FloatArray,
    shift: float,
    kernel: FloatArray,
    constant: FloatArray,
    q: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> tuple[float, float]:
    """Solve the row (n, h, s, a) over the box of its cell, or over the ball around low, at potentials v (N,H+1,S).

    expv (S,) holds exp(v[n,h+1] - shift). Writes kernel[n,h,s,a] and constant[n,h,s,a]; q, least, most (S,) are work space.
    """
    if radius is not None:  # decided when it is compiled: None and an array are different types
        size = radius[cell, s, a]
        return ball_row(reference, low, size, successors, count, n, cell, h, s, a, v, expv, shift, kernel, q, least)
    if count == expv.size > FEW_STATES:
        phi, sigma = full_row(reference, low, high, n, cell, h, s, a, v, expv, shift, kernel, constant, q)
        if sigma >= 0.0:
            return phi, sigma
    return box_row(
        reference, low, high, successors, count, n, cell, h, s, a, v, expv, shift, kernel, constant, q, least, most
    )


@compiled_inline
def any_row(
    low: FloatArray,
    high: FloatArray,
    successors: NDArray[np.uint32],
    count: int,
    n: int,
    cell: int,
    h: int,
    s: int,
    a: int,
    kernel: FloatArray,
) -> None:
    """Write some distribution of the set into a row that carries no mass: evenly between the bounds, or the centre."""
    spare, room = 1.0, 0.0
    for k in range(count):
        y = successors[cell, s, a, k]
        spare -= low[cell, s, a, y]
        room += high[cell, s, a, y] - low[cell, s, a, y]
    part = min(spare / room, 1.0) if room > 0.0 and spare > 0.0 else 0.0
    for k in range(count):
        y = successors[cell, s, a, k]
        kernel[n, h, s, a, y] = low[cell, s, a, y] + part * (high[cell, s, a, y] - low[cell, s, a, y])


@compiled
def same_rows(program: Program, first: int, last: int, v: FloatArray, primal: Primal) -> None:
    """Solve the rows of arms first..last-1 whose pinned entries are those of the last time, as the kernel tells.

    Most are, from one evaluation to the next. Writes their kernel, phi and sigma; sigma is -1 where the row is another.
    Nothing is called from this loop: that alone makes it four times as fast.
    """
    reference, low, high, _, successors, counts, reach, _, idle, _, _, _, phase, phases = program
    kernel, constant, _, phi, sigma = primal
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
