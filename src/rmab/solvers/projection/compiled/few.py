"""The arrays of one projection with few states: eight arms side by side, so that compiled code works on all eight at once.

Arms are taken in groups of WIDTH = 8; the last group is filled up with copies of the last arm that weigh nothing. G counts
groups, W = WIDTH is the last axis everywhere (`rmab.solvers.compiled.lanes`).
"""

from typing import NamedTuple

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import load, log, store


class FewProgram(NamedTuple):
    """What is projected onto what: `Program` in groups of arms.

    reference (G,H,S,2,S,W) and its logarithms; low, high (G*K,S,2,S,W) and theirs, both 0 for impossible transitions; radius
    (G*K,S,2,W), of balls around low, whose high is 1 for possible transitions, or an empty array for boxes. reach (G,H,S,W):
    1 where mass can get, 0 elsewhere. start (G,S,W); weights, cost (G,W). phase, budget, idle, binds (H,) as in `Program`.
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
    """The rows at a dual point: kernel (G,H,S,2,S,W); mass, phi, sigma (G,H,S,2,W), as in `Primal`."""

    kernel: FloatArray
    mass: FloatArray
    phi: FloatArray
    sigma: FloatArray


class FewFactors(NamedTuple):
    """Every arm's factored Hessian, U'U: upper, link (G,H,S,S,W), with 1/U on the diagonal; leave, enter (G,H,S,W)."""

    upper: FloatArray
    link: FloatArray
    leave: FloatArray
    enter: FloatArray


@compiled
def pack(table: FloatArray, groups: int, packed: FloatArray) -> None:
    """Write table (N,M) into packed (G,M,W): arm 8 g + i in lane i of group g, the last arm also in the lanes left over."""
    arms, width = table.shape
    for g in range(groups):
        if (g + 1) * WIDTH <= arms:
            first = g * WIDTH
            for m in range(width):
                for i in range(WIDTH):
                    packed[g, m, i] = table[first + i, m]
            continue
        for m in range(width):
            for i in range(WIDTH):
                packed[g, m, i] = table[min(g * WIDTH + i, arms - 1), m]


@compiled
def unpack(packed: FloatArray, table: FloatArray) -> None:
    """Write packed (G,M,W) into table (N,M)."""
    arms, width = table.shape
    for n in range(arms):
        g, i = n // WIDTH, n % WIDTH
        for m in range(width):
            table[n, m] = packed[g, m, i]


@compiled
def write_logs(table: FloatArray, logs: FloatArray) -> None:
    """Write the logarithms of a table (M,W), -infinity for 0."""
    for m in range(table.shape[0]):
        store(logs, log(load(table, m)), m)


def logs_of(table: FloatArray) -> FloatArray:
    """Return the logarithms of a table (...,W), -infinity for 0."""
    out = np.empty_like(table)
    write_logs(table.reshape(-1, WIDTH), out.reshape(-1, WIDTH))
    return out


def packed(table: FloatArray | BoolArray, arms: int) -> FloatArray:
    """Return a table (N,...), or one of cells (N*K,...), in groups of arms: (G,...,W)."""
    own = np.ascontiguousarray(table, dtype=np.float64)
    flat, groups = own.reshape(arms, -1), -(-arms // WIDTH)
    out = np.empty((groups, flat.shape[1], WIDTH))
    pack(flat, groups, out)
    return out.reshape(groups * (len(own) // arms), *own.shape[1:], WIDTH)


def unpacked(table: FloatArray, arms: int) -> FloatArray:
    """Return a table (G,...,W) by arms (N,...)."""
    out = np.empty((arms, *table.shape[1:-1]))
    unpack(table.reshape(len(table), -1, WIDTH), out.reshape(arms, -1))
    return out
