"""The dual of the projection on compact rows: what `rows.py` and `dual.py` do, at the cost of the own entries.

The part of a row that is a multiple of the pattern is one entry, which no bound pins: its q is scale times the sum of the
tilted pattern without the states of own entries.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled, compiled_in_any_order, compiled_inline
from rmab.solvers.projection.compiled.box_rows import SMALL, ahead, box_row
from rmab.solvers.projection.compiled.compact import Compact, make_room
from rmab.solvers.projection.compiled.dual import fit_step
from rmab.solvers.projection.compiled.program import HIGH, LOW, P, Primal, Program, Q, V, W
from rmab.solvers.projection.compiled.rows import some_row

FREE = 2.0  # an upper bound that no probability reaches
LARGEST = 1e3  # where the common part would be larger at an own entry, subtracting it there leaves too much rounding
CANCELS = 0.9  # where own entries make up more of the pattern, what is left is added up and not subtracted
LOST, FULL = -2, -1  # a row underflows or cancels; an arm has no place left for entries


@compiled_in_any_order
def tilt(pattern: FloatArray, expv: FloatArray, tilted: FloatArray) -> tuple[float, float]:
    """Write pattern times exp(v) into tilted (S,); return its sum and its largest entry."""
    total, peak = 0.0, 0.0
    for y in range(tilted.size):
        x = pattern[y] * expv[y]
        tilted[y] = x
        total += x
        peak = max(peak, x)
    return total, peak


@compiled_in_any_order
def count_above(alpha: float, tilted: FloatArray, high: FloatArray) -> int:
    """Return how many entries of alpha tilted (S,) that are not 0 reach their upper bounds."""
    found = 0
    for y in range(tilted.size):
        found += 1 if (tilted[y] > 0.0) & (alpha * tilted[y] >= high[y]) else 0
    return found


@compiled
def common_part(total: float, removed: float, tilted: FloatArray, state: NDArray[np.uint32]) -> float:
    """Return the sum of tilted (S,) without these states: total - removed, or more exactly where that cancels."""
    if removed <= CANCELS * total:
        return total - removed
    rest = 0.0
    for y in range(tilted.size):
        own = False
        for k in range(state.size):
            own |= state[k] == y
        rest += 0.0 if own else tilted[y]
    return rest


@compiled
def pin_more(program: Program, compact: Compact, n: int, h: int, s: int, a: int) -> int:
    """Make own entries of those that reach their upper bounds; return how many, or FULL where there is no more room."""
    states, cell = program.reach.shape[2], n * program.phases + program.phase[h]
    r = ((n * program.reach.shape[1] + h) * states + s) * 2 + a
    added = 0
    for y in range(states):
        x = compact.alpha[n, h, s, a] * compact.tilted[n, h, y]
        if x > 0.0 and x >= program.high[cell, s, a, y]:
            own = False
            for k in range(compact.begin[r], compact.begin[r] + compact.counts[r]):
                own |= compact.state[k] == y
            if own:
                continue
            if compact.counts[r] == compact.room[r] and not make_room(compact, n, r):
                return FULL
            k = compact.begin[r] + compact.counts[r]
            compact.state[k], compact.weight[k] = y, program.reference[n, h, s, a, y]
            compact.low[k], compact.high[k] = 0.0, program.high[cell, s, a, y]
            compact.counts[r] += 1
            added += 1
    return added


@compiled_inline
def solve_row(
    program: Program, compact: Compact, n: int, h: int, s: int, a: int, v: FloatArray, expv: FloatArray, shift: float,
    total: float, row: FloatArray, primal: Primal,
) -> int:  # fmt: skip
    """Solve one row, whatever is pinned; return 0, LOST or FULL. Scratch: row (6, S+1)."""
    states, cell = program.reach.shape[2], n * program.phases + program.phase[h]
    r = ((n * program.reach.shape[1] + h) * states + s) * 2 + a
    scale, tilted = compact.scale[n, h, s, a], compact.tilted[n, h]
    while True:
        begin, count, removed = compact.begin[r], compact.counts[r], 0.0
        for k in range(count):
            e = begin + k
            y = compact.state[e]
            row[W, k], row[V, k] = compact.weight[e], v[n, h + 1, y]
            row[Q, k] = row[W, k] * expv[y]
            row[LOW, k], row[HIGH, k] = compact.low[e], compact.high[e]
            removed += tilted[y]
        entries, common = count, 0.0
        if scale > 0.0:
            common = common_part(total, removed, tilted, compact.state[begin : begin + count])
            if not scale * common > 0.0:
                return LOST
            row[W, count], row[V, count], row[Q, count] = scale * common, shift, scale * common
            row[LOW, count], row[HIGH, count] = 0.0, FREE
            entries += 1
        primal.phi[n, h, s, a], primal.sigma[n, h, s, a], primal.constant[n, h, s, a] = box_row(row, entries, shift)
        for k in range(count):
            compact.p[begin + k] = row[P, k]
        compact.alpha[n, h, s, a] = row[P, count] / common if entries > count else 0.0
        above, usual = 0, 0.0
        for k in range(count):
            usual = max(usual, tilted[compact.state[begin + k]])
        if compact.alpha[n, h, s, a] * usual > LARGEST:
            return LOST
        if compact.alpha[n, h, s, a] > 0.0:
            above = count_above(compact.alpha[n, h, s, a], tilted, program.high[cell, s, a])
        added = pin_more(program, compact, n, h, s, a) if above > 0 else 0
        if added <= 0:
            return added


@compiled
def solve_compact(
    program: Program, compact: Compact, arms: tuple[int, int], steps: tuple[int, int], v: FloatArray, primal: Primal
) -> int:
    """Solve the rows whose sigma is -1, of arms and steps from the first to before the last, at potentials v (N,H+1,S).

    Returns 0, LOST or FULL; in the latter two cases at least one row is not solved.
    """
    states = program.reach.shape[2]
    row, expv, worst = np.empty((6, states + 1)), np.empty(states), 0
    for n in range(arms[0], arms[1]):
        for h in range(steps[0], steps[1]):
            shift, total = np.nan, 0.0
            for s in range(states):
                for a in range(2):
                    if program.reach[n, h, s] and not (a == 1 and program.idle[h]) and primal.sigma[n, h, s, a] < 0.0:
                        if np.isnan(shift):
                            shift = ahead(v, program.reach, n, h, expv)
                            total, _ = tilt(compact.pattern[n, h], expv, compact.tilted[n, h])
                        worst = min(worst, solve_row(program, compact, n, h, s, a, v, expv, shift, total, row, primal))
    return worst


@compiled
def same_compact(
    program: Program, compact: Compact, arms: tuple[int, int], steps: tuple[int, int], v: FloatArray, primal: Primal
) -> None:
    """Solve the rows whose pinned entries are those of the last time, as p tells; sigma is -1 where they are not."""
    _, _, _, _, _, _, reach, _, idle, _, _, _, phase, phases, _, _ = program
    pattern, tilted, scale, alpha, ceiling, begin, counts, _, _, state, weight, low, high, p = compact
    _, constant, _, phi, sigma, _ = primal
    horizon, states = reach.shape[1], reach.shape[2]
    q, expv = np.empty(states), np.empty(states)
    for n in range(arms[0], arms[1]):
        for h in range(steps[0], steps[1]):
            shift = ahead(v, reach, n, h, expv)
            whole, peak = tilt(pattern[n, h], expv, tilted[n, h])
            for s in range(states):
                for a in range(2):
                    if not reach[n, h, s] or (a == 1 and idle[h]):
                        continue
                    r = ((n * horizon + h) * states + s) * 2 + a
                    at, count, removed = begin[r], counts[r], 0.0
                    total, pinned, loose, lean, known, free = 0.0, 0.0, 0.0, 0.0, True, 0
                    for k in range(count):
                        y, old = state[at + k], p[at + k]
                        x = weight[at + k] * expv[y]
                        q[k] = x
                        total += x
                        removed += tilted[n, h, y]
                        if low[at + k] < old < high[at + k]:
                            loose += x
                            free += 1
                        else:
                            pinned += old
                            lean += old * v[n, h + 1, y]
                            known &= low[at + k] == high[at + k] == old
                    if scale[n, h, s, a] > 0.0:
                        if removed > CANCELS * whole:
                            sigma[n, h, s, a] = -1.0
                            continue
                        common = scale[n, h, s, a] * (whole - removed)
                        total += common
                        loose += common
                        free += 1
                    rest = 1.0 - pinned
                    c = rest / loose
                    same = (total > SMALL) & (loose > 0.0) & (rest > 0.0)
                    for k in range(count):
                        x, old, bottom, top = c * q[k], p[at + k], low[at + k], high[at + k]
                        if bottom < old < top:
                            same &= (bottom < x) & (x < top)
                            p[at + k] = x
                        else:
                            same &= (x <= bottom) if old <= bottom else (x >= top)
                    multiple = c * scale[n, h, s, a]
                    same &= multiple * removed <= LARGEST
                    if same and multiple * peak >= ceiling[n, h, s, a]:
                        own = 0
                        for k in range(count):
                            x = tilted[n, h, state[at + k]]
                            own += 1 if x > 0.0 and multiple * x >= high[at + k] else 0
                        same = own == count_above(multiple, tilted[n, h], program.high[n * phases + phase[h], s, a])
                    if same:
                        alpha[n, h, s, a] = multiple
                        phi[n, h, s, a] = constant[n, h, s, a] - lean + rest * (np.log(c) - shift)
                        sigma[n, h, s, a] = rest
                    elif known and free == 0:
                        phi[n, h, s, a] = constant[n, h, s, a] - lean
                        sigma[n, h, s, a] = 0.0
                    else:
                        sigma[n, h, s, a] = -1.0


@compiled
def dual_compact(
    program: Program, compact: Compact, first: int, last: int, v: FloatArray, prices: FloatArray, primal: Primal,
    used: FloatArray,
) -> tuple[float, float, int]:  # fmt: skip
    """Do as `dual` does, on compact rows; the third number is 0, LOST or FULL (`solve_row`)."""
    _, _, _, _, _, _, reach, _, idle, _, start, weights, _, _, cost, _ = program
    _, tilted, _, alpha, _, begin, counts, _, _, state, _, _, _, p = compact
    _, _, mass, phi, _, gradient = primal
    horizon, states = reach.shape[1], reach.shape[2]
    used[:] = 0.0
    value, worst = 0.0, 0.0
    same_compact(program, compact, (first, last), (0, horizon), v, primal)
    status = solve_compact(program, compact, (first, last), (0, horizon), v, primal)
    for n in range(first, last if status == 0 else first):
        gradient[n] = 0.0
        begun, total = 0.0, 0.0
        for s in range(states):
            if start[n, s] > 0.0:
                gradient[n, 0, s] = start[n, s]
                begun += start[n, s] * v[n, 0, s]
        for h in range(horizon):
            common = 0.0
            for s in range(states):
                for a in range(2):
                    if not reach[n, h, s] or (a == 1 and idle[h]):
                        continue
                    m = np.exp(-prices[h] * a * cost[n] - v[n, h, s] - phi[n, h, s, a])
                    mass[n, h, s, a] = m
                    total += m
                    gradient[n, h, s] -= m
                    used[h] += weights[n] * cost[n] * m * a
                    if h + 1 == horizon:
                        continue
                    multiple, r = alpha[n, h, s, a], ((n * horizon + h) * states + s) * 2 + a
                    common += m * multiple
                    for k in range(begin[r], begin[r] + counts[r]):
                        y = state[k]
                        gradient[n, h + 1, y] += m * (p[k] - multiple * tilted[n, h, y])
            for y in range(states if h + 1 < horizon else 0):
                gradient[n, h + 1, y] += common * tilted[n, h, y]
        value += weights[n] * (total + begun)
        for h in range(horizon):
            for s in range(states):
                if not abs(gradient[n, h, s]) <= worst:
                    worst = abs(gradient[n, h, s])
    return value, worst, status


@compiled
def open_compact(
    program: Program, compact: Compact, last: int, marginals: FloatArray, prices: FloatArray, v: FloatArray, primal: Primal
) -> tuple[int, int]:
    """Do as `opening` does, from step `last` back to 0; return 0, LOST or FULL, and the step where that was found."""
    for h in range(last, -1, -1):
        same_compact(program, compact, (0, program.reach.shape[0]), (h, h + 1), v, primal)
        status = solve_compact(program, compact, (0, program.reach.shape[0]), (h, h + 1), v, primal)
        if status < 0:
            return status, h
        fit_step(program, h, marginals, primal.phi, prices, v)
    return 0, 0


@compiled
def follow_compact(program: Program, compact: Compact, share: FloatArray, mass: FloatArray) -> None:
    """Do as `rmab.solvers.compiled.dynamics.forward` does: write the masses (N,H,S,2) that flow from the start, at shares
    (N,H,S) that are scaled down where they exceed the budget.
    """
    _, tilted, _, alpha, _, begin, counts, _, _, state, _, _, _, p = compact
    arms, horizon, states = share.shape
    for n in range(arms):
        mass[n] = 0.0
        mass[n, 0, :, 0] = program.start[n]
    for h in range(horizon):
        total = 0.0
        for n in range(arms):
            for s in range(states):
                total += program.weights[n] * program.cost[n] * share[n, h, s] * mass[n, h, s, 0]
        scale = program.budget[h] / total if total > program.budget[h] else 1.0
        for n in range(arms):
            common = 0.0
            for s in range(states):
                here = mass[n, h, s, 0]
                mass[n, h, s, 1] = here * share[n, h, s] * scale
                mass[n, h, s, 0] = here - mass[n, h, s, 1]
                for a in range(2 if h + 1 < horizon else 0):
                    m, multiple, r = mass[n, h, s, a], alpha[n, h, s, a], ((n * horizon + h) * states + s) * 2 + a
                    if m > 0.0:
                        common += m * multiple
                        for k in range(begin[r], begin[r] + counts[r]):
                            mass[n, h + 1, state[k], 0] += m * (p[k] - multiple * tilted[n, h, state[k]])
            for y in range(states if h + 1 < horizon else 0):
                mass[n, h + 1, y, 0] = max(mass[n, h + 1, y, 0] + common * tilted[n, h, y], 0.0)


@compiled_in_any_order
def sums(row: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Return the sum of a row (S,) and its product with v (S,)."""
    total, product = 0.0, 0.0
    for y in range(row.size):
        total += row[y]
        product += row[y] * v[y]
    return total, product


@compiled
def write_kernel(
    program: Program, compact: Compact, first: int, last: int, v: FloatArray, kernel: FloatArray, off: FloatArray,
    lean: FloatArray,
) -> None:  # fmt: skip
    """Write the rows of arms first..last-1 into kernel (N,H,S,2,S); those without mass get some kernel of their set.

    Of every row also: by how much its sum is off 1, and its product with the potentials v (N,H+1,S) of the next step; both
    (N,H,S,2), and taken while the row is in the cache.
    """
    _, tilted, _, alpha, _, begin, counts, _, _, state, _, _, _, p = compact
    horizon, states = program.reach.shape[1], program.reach.shape[2]
    row = np.empty((6, states))
    for n in range(first, last):
        for h in range(horizon):
            cell = n * program.phases + program.phase[h]
            for s in range(states):
                for a in range(2):
                    multiple, r = alpha[n, h, s, a], ((n * horizon + h) * states + s) * 2 + a
                    for y in range(states):
                        kernel[n, h, s, a, y] = multiple * tilted[n, h, y]
                    for k in range(begin[r], begin[r] + counts[r]):
                        kernel[n, h, s, a, state[k]] = p[k]
                    if not program.reach[n, h, s] or (a == 1 and program.idle[h]):
                        count = program.counts[cell, s, a]
                        for k in range(count):
                            y = program.successors[cell, s, a, k]
                            row[LOW, k], row[HIGH, k] = program.low[cell, s, a, y], program.high[cell, s, a, y]
                        some_row(row, count)
                        for k in range(count):
                            kernel[n, h, s, a, program.successors[cell, s, a, k]] = row[P, k]
                    total, lean[n, h, s, a] = sums(kernel[n, h, s, a], v[n, h + 1])
                    off[n, h, s, a] = abs(total - 1.0)
