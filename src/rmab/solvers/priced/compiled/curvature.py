"""Second derivatives of the priced plans' value in the prices, of some blocks.

The Hessian is a sum over nodes of the undecided mass times the square of the derivative of the advantage in every
price: d(Q(s,1) - Q(s,0)), from derivatives of the values that are carried backward as a table of states by prices. Only
their differences between states matter, and these fade as an arm forgets its state: prices of steps so far ahead that
nothing is left are dropped, which makes the cost nearly linear in the horizon.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled_contracting, compiled_contracting_inline
from rmab.solvers.priced.compiled.program import Program, Rows


@compiled_contracting_inline
def add_rows(
    rows: Rows, row: int, lane: int, scale: float, values: FloatArray, target: FloatArray, place: int, low: int, high: int
) -> None:
    """target[place, j] += scale times the mean of values[., j] after a row, low <= j < high: four next states at a time."""
    begins, columns, chances = rows
    i, last = begins[row], begins[row + 1]
    while i + 4 <= last:
        w, x, y, z = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
        a, b = scale * chances[i, lane], scale * chances[i + 1, lane]
        c, d = scale * chances[i + 2, lane], scale * chances[i + 3, lane]
        for j in range(np.uint64(low), np.uint64(high)):
            target[place, j] += a * values[w, j] + b * values[x, j] + c * values[y, j] + d * values[z, j]
        i += 4
    while i < last:
        w, a = columns[i], scale * chances[i, lane]
        for j in range(np.uint64(low), np.uint64(high)):
            target[place, j] += a * values[w, j]
        i += 1


@compiled_contracting
def add_squares(target: FloatArray, rows: FloatArray, scale: FloatArray, count: int, low: int, high: int) -> None:
    """target[i, j] += sum over r < count of scale[r] rows[r, i] rows[r, j], low <= i <= j < high: upper half only.

    Rows are processed four at a time: there must be space for three more.
    """
    for r in range(count, (count + 3) // 4 * 4):
        scale[r] = 0.0
        for j in range(low, high):
            rows[r, j] = 0.0
    for r in range(0, count, 4):
        for i in range(low, high):
            a, b = scale[r] * rows[r, i], scale[r + 1] * rows[r + 1, i]
            c, d = scale[r + 2] * rows[r + 2, i], scale[r + 3] * rows[r + 3, i]
            for j in range(np.uint64(i), np.uint64(high)):
                target[i, j] += (a * rows[r, j] + b * rows[r + 1, j]) + (c * rows[r + 2, j] + d * rows[r + 3, j])


@compiled_contracting_inline
def follow(rows: Rows, row: int, lane: int, lanes: int, share: FloatArray, here: FloatArray, ahead: FloatArray) -> None:
    """Move the masses here (S,) of one lane to ahead (S,), by the rows of a cell and the share (S*L,) of a step."""
    begins, columns, chances = rows
    ahead[:] = 0.0
    for s in range(here.size):
        if here[s] > 0.0:
            busy = here[s] * share[s * lanes + lane]
            for a in range(2):
                moved = busy if a == 1 else here[s] - busy
                for i in range(begins[row + 2 * s + a], begins[row + 2 * s + a + 1]):
                    ahead[columns[i]] += moved * chances[i, lane]


@compiled_contracting_inline
def centre(table: FloatArray, mass: FloatArray, low: int, high: int, faint: float) -> int:
    """Count the derivatives (S, H) from those of the state with most mass (S,); return the first place that is not faint."""
    most = 0
    for s in range(mass.size):
        if mass[s] > mass[most]:
            most = s
    for s in range(mass.size):
        if s != most:
            for j in range(np.uint64(low), np.uint64(high)):
                table[s, j] -= table[most, j]
    for j in range(low, high):
        table[most, j] = 0.0
    while low < high:
        for s in range(mass.size):
            if mass[s] > 0.0 and abs(table[s, low]) > faint:
                return low
        low += 1
    return low


@compiled_contracting
def curve(
    program: Program,
    sample: IntArray,
    weight: FloatArray,
    certain: float,
    faint: float,
    share: FloatArray,
    hessian: FloatArray,
    spread: FloatArray,
) -> None:
    """Write the second derivatives of the value of some blocks, times their weight, into hessian (H,H), upper half.

    Place H - 1 - h stands for the scaled price of step h. share (.,H,S*L) is that of the point, from the first batch on.
    Choices with less undecided mass than `certain` are left out, and so are derivatives that are `faint`.
    spread (H,): the mass of these
    blocks that is undecided at every step, times their weight.
    """
    kernels, start, phase_of = program.rows, program.start, program.phase_of
    batches, states, lanes = start.shape
    horizon, phases = phase_of.size, program.reward.shape[0] // batches
    ahead, here = np.zeros((states, horizon)), np.zeros((states, horizon))
    rows, scale = np.empty((states + 3, horizon)), np.empty(states + 3)
    mass = np.empty((horizon, states))
    hessian[:] = 0.0
    spread[:] = 0.0
    for k in range(sample.size):
        m, lane = sample[k] // lanes, sample[k] % lanes
        plan = share[m - sample[0] // lanes]
        for s in range(states):
            mass[0, s] = start[m, s, lane]
        for h in range(horizon - 1):
            row = (m * phases + phase_of[h]) * states * 2
            follow(kernels, row, lane, lanes, plan[h], mass[h], mass[h + 1])
        low = 0
        for h in range(horizon - 1, -1, -1):
            own, filled = horizon - 1 - h, 0  # the derivatives at h + 1 fill the places below `own`
            first = (m * phases + phase_of[h]) * states * 2
            for s in range(states):
                for j in range(low, own + 1):
                    here[s, j] = 0.0
                now, part = mass[h, s], plan[h, s * lanes + lane]
                if now == 0.0:
                    continue
                here[s, own] = -part
                loose, row = now * part * (1.0 - part), first + 2 * s
                spread[h] += weight[k] * loose
                if loose > certain:
                    for j in range(low, own + 1):
                        rows[filled, j] = 0.0
                    if low < own:
                        add_rows(kernels, row, lane, 1.0, ahead, here, s, low, own)
                        add_rows(kernels, row + 1, lane, 1.0, ahead, rows, filled, low, own)
                    for j in range(low, own):
                        rows[filled, j] -= here[s, j]
                        here[s, j] += part * rows[filled, j]
                    rows[filled, own] = -1.0
                    scale[filled] = weight[k] * loose
                    filled += 1
                elif low < own:
                    if now * (1.0 - part) > certain:
                        add_rows(kernels, row, lane, 1.0 - part, ahead, here, s, low, own)
                    if now * part > certain:
                        add_rows(kernels, row + 1, lane, part, ahead, here, s, low, own)
            if filled > 0:
                add_squares(hessian, rows, scale, filled, low, own + 1)
            low = centre(here, mass[h], low, own + 1, faint)
            ahead, here = here, ahead
