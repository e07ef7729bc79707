"""Arms whose rows have few successors: elimination with explicit inverses, so that the blocks between steps stay sparse.

An arm's Hessian is block tridiagonal in h. With A[h] its diagonal blocks D[h] once earlier steps are eliminated, E[h] the
blocks between steps and G[h] = A[h]^-1, A[h+1] = D[h+1] - E[h]' G[h] E[h]. Each A[h] is at least the diagonal matrix of its
nodes' masses, and near a feasible point at most twice that: its inverse loses no digits.

With a single arm, the price of step h joins the nodes of step h as one more of them, and no Schur complement is left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.linear import GROUP, invert, subtract_eight, subtract_products
from rmab.solvers.projection.compiled.assembly import BUFFER, LEAST, ROUNDING, assemble_step
from rmab.solvers.projection.compiled.program import FEW_STATES, Factors, Primal, Program

FEW = 4  # an arm is sparse where one pair of states in so many, or fewer, can follow one another
LONG = 3  # a row of E with one state in so many, or more, is as good as dense


class Sparse(NamedTuple):
    """What follows what, and how strongly.

    ends[begin[n,s]] up to ends[begin[n,s+1] - 1] are the states that can follow s at some step, begin (N,S+1); arms that
    are not sparse have none. values (H, ends.size): the entries of E there. joint: prices are among the nodes (only with one
    arm).
    """

    begin: IntArray
    ends: NDArray[np.uint32]
    values: FloatArray
    joint: bool


def sparse_arms(program: Program) -> Sparse:
    """Find the arms that are sparse, in all phases taken together; the values are yet to be written."""
    arms, horizon, states = program.reach.shape
    begin = np.zeros((arms, states + 1), dtype=np.int64)
    if states <= FEW_STATES:
        return Sparse(begin, np.empty(0, dtype=np.uint32), np.empty((horizon, 0)), False)
    allowed = np.empty(program.successors.shape, dtype=np.bool_)
    np.put_along_axis(
        allowed, program.successors.astype(np.int64), np.arange(states) < program.counts[..., np.newaxis], axis=3
    )
    either = np.logical_or(allowed[:, :, 0], allowed[:, :, 1]).reshape(arms, program.phases, states, states)
    follows: BoolArray = np.logical_or.reduce(either[:, np.unique(program.phase)], axis=1)
    follows[follows.sum(axis=(1, 2)) * FEW > states * states] = False
    if arms > 1 and horizon > 3 * states:  # better served by `couple_prices`
        follows[:] = False
    before = np.concatenate([[0], np.cumsum(follows.sum(axis=2))])
    begin[:, :-1], begin[:, 1:] = before[:-1].reshape(arms, states), before[1:].reshape(arms, states)
    ends = np.nonzero(follows)[2].astype(np.uint32)
    return Sparse(begin, ends, np.empty((horizon, ends.size)), bool(arms == 1 and ends.size > 0))


@compiled
def write_values(program: Program, sparse: Sparse, n: int, h: int, primal: Primal, line: FloatArray) -> None:
    """Write the entries of E[h]: -sum over a of mass times kernel. line (S,) is zero, and left so."""
    begin, ends, values, _ = sparse
    kernel, mass, cell = primal.kernel, primal.mass, n * program.phases + program.phase[h]
    for s in range(line.size):
        for a in range(1 if program.idle[h] else 2):
            for k in range(program.counts[cell, s, a] if program.reach[n, h, s] else 0):
                y = program.successors[cell, s, a, k]
                line[y] -= mass[n, h, s, a] * kernel[n, h, s, a, y]
        for e in range(begin[n, s], begin[n, s + 1]):
            values[h, e] = line[ends[e]]
            line[ends[e]] = 0.0


@compiled
def find_long(sparse: Sparse, n: int, h: int, priced: bool, enter: FloatArray, bars: FloatArray, sources: IntArray) -> int:
    """Copy the rows of E[h] that are as good as dense into bars (., S); return their number, filled up to whole groups.

    sources says whose rows they are: a state, S for the price of step h, or -1 for a row of zeros.
    """
    begin, ends, values, _ = sparse
    states, found = bars.shape[1], 0
    for s in range(states):
        if LONG * (begin[n, s + 1] - begin[n, s]) >= states:
            for y in range(states):
                bars[found, y] = 0.0
            for e in range(begin[n, s], begin[n, s + 1]):
                bars[found, ends[e]] = values[h, e]
            sources[found] = s
            found += 1
    if priced:
        for y in range(states):
            bars[found, y] = enter[n, h, y]
        sources[found] = states
        found += 1
    while found % GROUP != 0:
        for y in range(states):
            bars[found, y] = 0.0
        sources[found] = -1
        found += 1
    return found


@compiled
def add_followers(
    sparse: Sparse, n: int, h: int, bars: FloatArray, sources: IntArray, found: int,
    right: FloatArray, width: int, upper: bool, target: FloatArray, held: FloatArray,
) -> None:  # fmt: skip
    """target[y, j] += sum over s of E[h][s, y] right[s, j], for j < width; with upper, only where j >= y.

    bars, sources, found: from `find_long`. Scratch: held, as long as bars and as wide as right.
    """
    begin, ends, values, _ = sparse
    states = bars.shape[1]
    for r in range(found):
        for j in range(width):
            held[r, j] = -right[sources[r], j] if sources[r] >= 0 else 0.0
    for r in range(0, found, GROUP):
        for y in range(states):
            subtract_eight(target, y, bars, held, r, y, y if upper else 0, width)
    for s in range(states):
        if LONG * (begin[n, s + 1] - begin[n, s]) < states:
            for e in range(begin[n, s], begin[n, s + 1]):
                y, value = ends[e], values[h, e]
                for j in range(np.uint64(y if upper else 0), np.uint64(width)):
                    target[y, j] += value * right[s, j]


@compiled
def transpose(source: FloatArray, target: FloatArray) -> None:
    """Write the transposed source into target; in strips, which keeps both within the nearest cache."""
    height, width = source.shape
    for first in range(0, height, GROUP):
        for j in range(width):
            for i in range(np.uint64(first), np.uint64(min(first + GROUP, height))):
                target[j, i] = source[i, j]


@compiled
def eliminate_sparse(
    program: Program, sparse: Sparse, n: int, primal: Primal, column: IntArray, factors: Factors, schur: FloatArray
) -> float:
    """Write G[h] into upper[n,h], and the entries of E; add what arm n leaves for the prices to schur, as `curvature` does.

    Where prices are among the nodes, upper is (1,H,S+1,S+1), and schur stays as it is. Returns the least part of a price's
    diagonal entry left when its turn comes: next to nothing where nearly all mass is active; later steps decide then,
    and the price had better wait for them.
    """
    upper, leave, enter = factors
    joint, weight, gradient, columns = sparse.joint, program.weights[n], primal.gradient, schur.shape[0] - 1
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    size, weakest = states + (1 if joint else 0), 1.0
    rows, scale, line = np.empty((BUFFER + 1, states)), np.empty(BUFFER), np.zeros(states)
    strip, taken, core, least = np.empty((GROUP, size)), np.empty((GROUP, size)), np.empty((GROUP, GROUP)), np.empty(size)
    bars, sources = np.empty((states + GROUP, states)), np.empty(states + GROUP, dtype=np.int64)
    product, turned = np.empty((states, size)), np.empty((size, states))
    held = np.empty((states + GROUP, max(size, 1 + columns)))
    width = 0 if joint else 1
    now, answer = np.empty((states, 1 + columns)), np.empty((states, 1 + columns))
    found = 0
    upper[n, 0] = 0.0
    for h in range(horizon):
        block = upper[n, h]
        assemble_step(program, n, h, primal, factors, rows, scale)
        if joint:
            for s in range(states if column[h] >= 0 else 0):
                block[s, states] = leave[n, h, s]
                block[states, states] += leave[n, h, s]
            if column[h] < 0:
                block[states, states] = 1.0
        for s in range(size):
            least[s] = ROUNDING * block[s, s] + LEAST
        if h > 0:
            product[:] = 0.0
            add_followers(sparse, n, h - 1, bars, sources, found, upper[n, h - 1], size, False, product, held)
            transpose(product, turned)
            for s in range(size):
                for y in range(states):
                    turned[s, y] = -turned[s, y]
            add_followers(sparse, n, h - 1, bars, sources, found, turned, states, True, block, held)
        whole = block[size - 1, size - 1]
        invert(block, size, least, strip, taken, core)
        if joint and column[h] >= 0:
            weakest = min(weakest, 1.0 / (whole * block[states, states]))
        if not joint:
            width = border_sparse(
                sparse, n, h, weight, gradient, column, factors, block, bars, sources, found, width, now, answer, held, schur
            )
        if h + 1 < horizon:
            write_values(program, sparse, n, h, primal, line)
            found = find_long(sparse, n, h, joint and column[h] >= 0, enter, bars, sources)
    return weakest


@compiled
def border_sparse(
    sparse: Sparse,
    n: int,
    h: int,
    weight: float,
    gradient: FloatArray,
    column: IntArray,
    factors: Factors,
    block: FloatArray,
    bars: FloatArray,
    sources: IntArray,
    found: int,
    width: int,
    now: FloatArray,
    answer: FloatArray,
    held: FloatArray,
    schur: FloatArray,
) -> int:
    """Take the gradient and the coupling to the prices through step h; return how many columns there are by now.

    With C[h] (S, columns) these columns: now[h] = C[h] - E[h-1]' G[h-1] now[h-1], schur += weight now[h]' G[h] now[h]. On
    entry, answer holds -G[h-1] now[h-1], in the first width columns; block is G[h].
    """
    leave, enter, states = factors.leave, factors.enter, now.shape[0]
    before = width
    width += column[h] >= 0
    for s in range(states):
        for j in range(width):
            now[s, j] = 0.0
        now[s, 0] = gradient[n, h, s]
        if column[h] >= 0:
            now[s, 1 + column[h]] = leave[n, h, s]
        if h > 0 and column[h - 1] >= 0:
            now[s, 1 + column[h - 1]] += enter[n, h - 1, s]
    if h > 0:
        add_followers(sparse, n, h - 1, bars, sources, found, answer, before, False, now, held)
    for s in range(states):
        for j in range(width):
            answer[s, j] = 0.0
    subtract_products(answer, block, now, states, states, width)
    for s in range(states):
        for j in range(width):
            now[s, j] *= weight
    for first in range(0, states - states % GROUP, GROUP):
        for i in range(width):
            subtract_eight(schur, i, now, answer, first, i, i, width)
    for s in range(states - states % GROUP, states):
        for i in range(width):
            for j in range(i, width):
                schur[i, j] -= now[s, i] * answer[s, j]
    return width


@compiled
def solve_sparse(sparse: Sparse, n: int, column: IntArray, factors: Factors, target: FloatArray) -> None:
    """Overwrite target (H,S), or (H,S+1) with prices among the nodes, with the solution of Hessian x = target for arm n."""
    begin, ends, values, joint = sparse
    upper, enter = factors.upper, factors.enter
    horizon, size = target.shape
    states = enter.shape[2]
    part = np.empty(size)
    for h in range(horizon - 1):
        part[:] = 0.0
        for y in range(size):  # G is symmetric: by rows, all entries of the product at once
            for s in range(size):
                part[s] += upper[n, h, y, s] * target[h, y]
        for s in range(states):
            for e in range(begin[n, s], begin[n, s + 1]):
                target[h + 1, ends[e]] -= values[h, e] * part[s]
            if joint and column[h] >= 0:
                target[h + 1, s] -= enter[n, h, s] * part[states]
    for h in range(horizon - 1, -1, -1):
        for s in range(size):
            part[s] = target[h, s]
        for s in range(states if h + 1 < horizon else 0):
            for e in range(begin[n, s], begin[n, s + 1]):
                part[s] -= values[h, e] * target[h + 1, ends[e]]
            if joint and column[h] >= 0:
                part[states] -= enter[n, h, s] * target[h + 1, s]
        for s in range(size):
            target[h, s] = 0.0
        for y in range(size):
            for s in range(size):
                target[h, s] += upper[n, h, y, s] * part[y]
