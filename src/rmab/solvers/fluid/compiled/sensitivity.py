"""Second derivatives of the softened plan (see `soft`) in the prices and in eta.

The priced value is a chain of softened maxima. Its Hessian is a sum over nodes of mass times the spread of the choice made
there, times the square of its derivative in every price: dQ = d(Q(s,1) - Q(s,0)), carried backward as a table of
states by prices. Nodes whose choice is certain add nothing, so the cost falls as eta grows.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled_contracting, compiled_inline
from rmab.solvers.compiled.linear import add_squares
from rmab.solvers.compiled.optimism import Rows


@compiled_inline
def add_mean(
    kernels: FloatArray,
    successors: NDArray[np.uint32],
    count: int,
    chosen: int,
    cell: int,
    s: int,
    a: int,
    scale: float,
    rows: FloatArray,
    target: FloatArray,
    place: int,
    width: int,
) -> None:
    """target[place, j] += scale sum over successors y of p(y) rows[y, j], j < width: four rows at a time."""
    k = 0
    while k + 4 <= count:
        w, x = successors[cell, s, a, k], successors[cell, s, a, k + 1]
        y, z = successors[cell, s, a, k + 2], successors[cell, s, a, k + 3]
        e, f = scale * kernels[chosen, s, a, w], scale * kernels[chosen, s, a, x]
        g, i = scale * kernels[chosen, s, a, y], scale * kernels[chosen, s, a, z]
        for j in range(width):
            target[place, j] += e * rows[w, j] + f * rows[x, j] + g * rows[y, j] + i * rows[z, j]
        k += 4
    while k < count:
        w = successors[cell, s, a, k]
        e = scale * kernels[chosen, s, a, w]
        for j in range(width):
            target[place, j] += e * rows[w, j]
        k += 1


@compiled_inline
def add_choice(
    boxes: Rows,
    kernels: FloatArray,
    chosen: int,
    cell: int,
    s: int,
    a: int,
    mass: float,
    certain: float,
    ahead: FloatArray,
    weight: FloatArray,
    rows: FloatArray,
    scale: FloatArray,
    filled: int,
    width: int,
) -> int:
    """Add the contribution of a row's choice to the curvature, mass (diag(b) - b b' / sum b), b = part (1 - part) room.

    The diagonal part goes into weight (S,), the other into rows[filled] and its scale. Returns how many rows are filled.
    """
    low, high, _, successors, counts = boxes
    total, largest = 0.0, 0.0
    for k in range(counts[cell, s, a]):
        y = successors[cell, s, a, k]
        room = high[cell, s, a, y] - low[cell, s, a, y]
        if room > 0.0:
            p = kernels[chosen, s, a, y]
            b = (p - low[cell, s, a, y]) * (high[cell, s, a, y] - p) / room
            total += b
            largest = max(largest, b)
    if mass * (total - largest) <= certain:  # one entry is free: nothing can move
        return filled
    for j in range(width + 1):  # one more: the others of the buffer have it, for the price of this step
        rows[filled, j] = 0.0
    for k in range(counts[cell, s, a]):
        y = successors[cell, s, a, k]
        room = high[cell, s, a, y] - low[cell, s, a, y]
        if room > 0.0:
            p = kernels[chosen, s, a, y]
            b = (p - low[cell, s, a, y]) * (high[cell, s, a, y] - p) / room
            if b > 0.0:
                weight[y] += mass * b
                for j in range(width):
                    rows[filled, j] += b * ahead[y, j]
    scale[filled] = -mass / total
    return filled + 1


@compiled_contracting
def curve(
    boxes: Rows,
    reward: FloatArray,
    phase_of: IntArray,
    idle: BoolArray,
    free: FloatArray | None,
    kernels: FloatArray,
    share: FloatArray,
    mass: FloatArray,
    certain: float,
    hessian: FloatArray,
) -> None:
    """Write the second derivatives of the priced value, summed over blocks, into hessian (1+H, 1+H), upper half.

    Place 0 stands for eta, place H - h for the scaled price of step h: a node's derivatives are then the first 1 + H - h.
    Derivatives of the values are carried backward, (S, 1+H) at a time; `share` and `mass` are those at the point. Choices
    with less undecided mass than `certain` are left out. free (C*K,S,2): the spare mass of the rows; None
    if all kernels are known.
    """
    successors, counts = boxes.successors, boxes.counts
    blocks, horizon, states = share.shape
    phases = reward.shape[0] // blocks
    ahead, here = np.zeros((states, 1 + horizon)), np.zeros((states, 1 + horizon))
    rows, scale = np.empty((3 * states, 1 + horizon)), np.empty(3 * states)
    weight = np.empty(states)
    hessian[:] = 0.0
    for n in range(blocks):
        for s in range(states):
            for j in range(1 + horizon):
                ahead[s, j] = 0.0
        for h in range(horizon - 1, -1, -1):
            own, filled = horizon - h, 0  # the derivatives at h + 1 fill the places below `own`
            cell = n * phases + phase_of[h]
            chosen = cell if free is None else n * horizon + h
            for s in range(states):
                weight[s] = 0.0
            for s in range(states):
                for j in range(own + 1):
                    here[s, j] = 0.0
                m, part = mass[n, h, s], share[n, h, s]
                if m == 0.0:
                    continue
                loose = m * part * (1.0 - part)
                if loose > certain:
                    for j in range(own + 1):
                        rows[filled, j] = 0.0
                    if h + 1 < horizon:
                        add_mean(kernels, successors, counts[cell, s, 0], chosen, cell, s, 0, 1.0, ahead, here, s, own)
                        add_mean(kernels, successors, counts[cell, s, 1], chosen, cell, s, 1, 1.0, ahead, rows, filled, own)
                    for j in range(own):
                        rows[filled, j] -= here[s, j]
                        here[s, j] += part * rows[filled, j]
                    change = reward[cell, s, 1] - reward[cell, s, 0]
                    rows[filled, 0] += change
                    here[s, 0] += reward[cell, s, 0] + part * change
                    rows[filled, own] = -1.0
                    here[s, own] = -part
                    scale[filled] = loose
                    filled += 1
                else:
                    here[s, 0] = (1.0 - part) * reward[cell, s, 0] + part * reward[cell, s, 1]
                    here[s, own] = -part
                    if h + 1 < horizon:
                        for a in range(2):
                            taken = part if a == 1 else 1.0 - part
                            if m * taken > certain:
                                add_mean(
                                    kernels, successors, counts[cell, s, a], chosen, cell, s, a, taken, ahead, here, s, own
                                )
                if free is not None:
                    for a in range(0 if h + 1 == horizon else 1 if idle[h] else 2):
                        moved = m * (part if a == 1 else 1.0 - part)
                        if moved > certain and free[cell, s, a] > 0.0:
                            filled = add_choice(
                                boxes, kernels, chosen, cell, s, a, moved, certain, ahead, weight, rows, scale, filled, own
                            )
            if filled > 0:
                add_squares(hessian, rows, scale, filled, own + 1)
            if free is not None:
                add_squares(hessian, ahead, weight, states, own if h + 1 < horizon else 0)
            ahead, here = here, ahead
