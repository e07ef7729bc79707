"""The arrays of one projection with few states: eight arms side by side, so that compiled code works on all eight at once.

Arms are taken in groups of WIDTH = 8; the last group is filled up with copies of the last arm that weigh nothing. G counts
groups, W = WIDTH is the last axis everywhere (`rmab.solvers.compiled.lanes`). Compiled code has tables as lines of lanes,
(M,W), so that the place of an entry is one number: nodes (g,h,s) are in place (g H + h) S + s, rows (g,h,s,a) of node n in
2 n + a, entries (g,h,s,a,y) of row r in r S + y. Potentials have one step more. Cells c = g K + k have rows 2 (c S + s) + a.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import load, log, store


class FewProgram(NamedTuple):
    """What is projected onto what: `Program` in groups of arms, as lines of lanes.

    reference (G*H*S*2*S,W) and its logarithms; low, high (G*K*S*2*S,W) and theirs, both 0 for impossible transitions; radius
    (G*K*S*2,W), of balls around low, whose high is 1 for possible transitions, or an empty array for boxes. reach (G*H*S,W):
    1 where mass can get, 0 elsewhere. start (G*S,W); weights, cost (G,W). phase, budget, idle, binds (H,) as in `Program`.
    """

    reference: FloatArray
    logs: FloatArray
    low: FloatArray
    high: FloatArray
    low_logs: FloatArray
    high_logs: FloatArray
    radius: FloatArray
    reach: FloatArray
    start: FloatArray
    weights: FloatArray
    cost: FloatArray
    phase: IntArray
    phases: int
    budget: FloatArray
    idle: BoolArray
    binds: BoolArray


class FewRows(NamedTuple):
    """The rows at a dual point: kernel (G*H*S*2*S,W); mass, phi, sigma (G*H*S*2,W), as in `Primal`."""

    kernel: FloatArray
    mass: FloatArray
    phi: FloatArray
    sigma: FloatArray


class FewFactors(NamedTuple):
    """Every arm's factored Hessian, U'U: upper, link (G*H*S*S,W), with 1/U on the diagonal; leave, enter (G*H*S,W)."""

    upper: FloatArray
    link: FloatArray
    leave: FloatArray
    enter: FloatArray


@compiled
def pack_group(table: FloatArray | BoolArray, g: int, packed: FloatArray) -> None:
    """Write group g of table (N,M) into packed (G,M,W): arm 8 g + i in lane i, the last arm also in the lanes left over."""
    arms, width = table.shape
    first = g * WIDTH
    if first + WIDTH <= arms:
        for m in range(width):
            for i in range(WIDTH):
                packed[g, m, i] = table[first + i, m]
        return
    for m in range(width):
        for i in range(WIDTH):
            packed[g, m, i] = table[min(first + i, arms - 1), m]


@compiled
def pack(table: FloatArray | BoolArray, packed: FloatArray) -> None:
    """Write table (N,M) into packed (G,M,W), all groups as `pack_group` does."""
    for g in range(packed.shape[0]):
        pack_group(table, g, packed)


@compiled
def pack_all(
    reference: FloatArray, reach: BoolArray, start: FloatArray, weights: FloatArray, cost: FloatArray, radius: FloatArray,
    low: FloatArray, high: FloatArray, successors: NDArray[np.uint32], counts: NDArray[np.uint32], packed: FewProgram,
) -> None:  # fmt: skip
    """Write the tables of a program into `packed`, with their logarithms. Lanes without an arm have the weight 0."""
    arms, groups = weights.size, packed.weights.shape[0]
    tables, logs = packed.reference.reshape(groups, -1, WIDTH), packed.logs
    flat, width = reference.reshape(arms, -1), packed.reference.shape[0] // groups
    for g in range(groups):
        pack_group(flat, g, tables)
        for m in range(g * width, (g + 1) * width):
            store(logs, log(load(packed.reference, m)), m)
    pack(reach.reshape(arms, -1), packed.reach.reshape(groups, -1, WIDTH))
    pack(start, packed.start.reshape(groups, -1, WIDTH))
    pack(cost.reshape(arms, 1), packed.cost.reshape(groups, 1, WIDTH))
    pack(weights.reshape(arms, 1), packed.weights.reshape(groups, 1, WIDTH))
    for i in range(arms, groups * WIDTH):
        packed.weights[groups - 1, i % WIDTH] = 0.0
    ball = radius.size > 0
    if ball:
        pack(radius.reshape(arms, -1), packed.radius.reshape(groups, -1, WIDTH))
    pack_bounds(low, high, ball, successors, counts, packed.phases, packed.low, packed.high)
    for m in range(packed.low.shape[0]):
        store(packed.low_logs, log(load(packed.low, m)), m)
        store(packed.high_logs, log(load(packed.high, m)), m)


@compiled
def pack_bounds(
    low: FloatArray, high: FloatArray, ball: bool, successors: NDArray[np.uint32], counts: NDArray[np.uint32], phases: int,
    bottom: FloatArray, top: FloatArray,
) -> None:  # fmt: skip
    """Write low and high of the possible transitions (N*K,S,2,S) into bottom and top (G*K*S*2*S,W), 0 for others; 1 into the
    top of balls.
    """
    states, arms = low.shape[1], low.shape[0] // phases
    bottom[:] = 0.0
    top[:] = 0.0
    for n in range(-(-arms // WIDTH) * WIDTH):
        for k in range(phases):
            own, place = min(n, arms - 1) * phases + k, ((n // WIDTH) * phases + k) * states
            for s in range(states):
                for a in range(2):
                    for j in range(counts[own, s, a]):
                        y = successors[own, s, a, j]
                        entry = (2 * (place + s) + a) * states + y
                        bottom[entry, n % WIDTH] = low[own, s, a, y]
                        top[entry, n % WIDTH] = 1.0 if ball else high[own, s, a, y]


@compiled
def unpack(packed: FloatArray, table: FloatArray) -> None:
    """Write packed (G,M,W) into table (N,M)."""
    arms, width = table.shape
    for n in range(arms):
        g, i = n // WIDTH, n % WIDTH
        for m in range(width):
            table[n, m] = packed[g, m, i]


def packed(table: FloatArray | BoolArray, arms: int) -> FloatArray:
    """Return a table (N,...), or one of cells (N*K,...), in groups of arms, as lines (M,W)."""
    flat, groups = np.ascontiguousarray(table, dtype=np.float64).reshape(arms, -1), -(-arms // WIDTH)
    out = np.empty((groups, flat.shape[1], WIDTH))
    pack(flat, out)
    return out.reshape(-1, WIDTH)


def unpacked(table: FloatArray, arms: int) -> FloatArray:
    """Return a table (G,...,W) by arms (N,...)."""
    out = np.empty((arms, *table.shape[1:-1]))
    unpack(table.reshape(len(table), -1, WIDTH), out.reshape(arms, -1))
    return out
