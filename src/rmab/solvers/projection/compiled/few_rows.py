"""The rows of the projection (see `rows.py`) with few states: those of eight arms at a time.

A box's row is p = clip(c q, low, high): the entries that the bounds pin are guessed, c follows from the others, and tells
which are pinned indeed. The first guess is that of the last evaluation, mostly right. Rows that underflow, rows for which
this does not end, and rows over balls are handed to `box_rows.py` and `ball_rows.py` one by one.
"""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled, compiled_on_loan as on_loan, compiled_on_loan_inline as inline
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import Lanes, Mask, exp, least, load, log, most, select, size, some, spread, store
from rmab.solvers.projection.compiled.ball_rows import ball_row
from rmab.solvers.projection.compiled.box_rows import SMALL, TINY, box_row
from rmab.solvers.projection.compiled.few import FewProgram, FewRows
from rmab.solvers.projection.compiled.program import HIGH, LOW, P, Q, V, W

TRIALS = 12  # guesses of what is pinned; more than five are rare
SETTLED = 1e-15  # relative change of c that is rounding


@inline
def ahead_lanes(v: FloatArray, reach: FloatArray, node: int, after: int, final: bool, expv: FloatArray) -> Lanes:
    """Fill expv (S,W) = exp(v - shift) of the next step, and return the shift, as `box_rows.ahead` does.

    node, after: where the nodes of the next step begin in reach and in v; final: there is none.
    """
    states = expv.shape[0]
    if final:
        for y in range(states):
            store(expv, 1.0, y)
        return spread(0.0)
    shift = spread(-np.inf)
    for y in range(states):
        shift = select(load(reach, node + y) > 0.0, most(shift, load(v, after + y)), shift)
    for y in range(states):
        store(expv, exp(least(load(v, after + y) - shift, 0.0)), y)
    return shift


@compiled
def single_rows(
    reference: FloatArray, low: FloatArray, high: FloatArray, radius: FloatArray, v: FloatArray, expv: FloatArray, row: int,
    bound: int, after: int, single: FloatArray, rows: FewRows,
) -> None:  # fmt: skip
    """Solve the rows of the lanes where single[0] is not 0; single[1]: the shift of expv (`ahead_lanes`).

    row, bound, after: the place of the rows, that of their sets, and where v of the next step begins.
    """
    kernel, _, phi, sigma = rows
    states = expv.shape[0]
    table, place = np.empty((6, states)), np.empty(states, dtype=np.int64)
    for i in range(WIDTH):
        if single[0, i] == 0.0:
            continue
        count = 0
        for y in range(states):
            kernel[row * states + y, i] = 0.0
            top = high[bound * states + y, i]
            if top > 0.0:
                table[W, count], table[V, count] = reference[row * states + y, i], v[after + y, i]
                table[Q, count] = table[W, count] * expv[y, i]
                table[LOW, count], table[HIGH, count] = low[bound * states + y, i], top
                place[count] = y
                count += 1
        if radius.size == 0:
            phi[row, i], sigma[row, i], _ = box_row(table, count, single[1, i])
        else:
            phi[row, i], sigma[row, i] = ball_row(table, count, radius[bound, i], single[1, i])
        for k in range(count):
            kernel[row * states + place[k], i] = table[P, k]


@inline
def guess_lanes(
    reference: FloatArray, low: FloatArray, high: FloatArray, expv: FloatArray, kernel: FloatArray, entry: int, cell: int,
    guess: int, live: Mask, q: FloatArray,
) -> tuple[Lanes, Lanes, Lanes, Mask, Mask]:  # fmt: skip
    """Fill q (S,W) with q of some rows. Return the sum of their pinned entries, that of q over the others, and their scale c
    if they are pinned as the kernel is at the rows `guess`; which live rows leave a choice, and which of these are too small
    for it.

    entry, cell, guess: where the entries of the rows begin, those of their bounds, and those of the other rows.
    """
    total, pinned, loose, zero = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    free = tiny = zero < -1.0
    for y in range(q.shape[0]):
        old, bottom, top = load(kernel, guess + y), load(low, cell + y), load(high, cell + y)
        x = load(reference, entry + y) * load(expv, y)
        store(q, x, y)
        inside, choice = (old > bottom) & (old < top), bottom < top
        total = total + x
        loose = loose + select(inside, x, zero)
        pinned = pinned + select(inside, zero, old)
        free, tiny = free | choice, tiny | (choice & (x <= TINY))
    free, some_loose = free & live, loose > 0.0  # other rows are known, or carry no mass: the lower bounds will do
    c = select(some_loose, 1.0 - pinned, 1.0) / select(some_loose, loose, total)
    return pinned, loose, c, free, free & (tiny | ~(total > SMALL))


@inline
def clip_lanes(
    low: FloatArray, high: FloatArray, q: FloatArray, entry: int, cell: int, free: Mask, c: Lanes, kernel: FloatArray
) -> tuple[Lanes, Lanes]:
    """Write the rows clip(c q, low, high), and low where not free; return the sum of the pinned entries, and that of q over
    the others.
    """
    pinned, loose, zero = spread(0.0), spread(0.0), spread(0.0)
    for y in range(q.shape[0]):
        one, bottom, top = load(q, y), load(low, cell + y), load(high, cell + y)
        x = c * one
        below, above = (x <= bottom) | ~free, x >= top
        held, p = below | above, select(below, bottom, select(above, top, x))
        store(kernel, p, entry + y)
        pinned = pinned + select(held, p, zero)
        loose = loose + select(held, zero, one)
    return pinned, loose


@inline
def scale_lanes(pinned: Lanes, loose: Lanes, c: Lanes) -> Lanes:
    """Return the scale that makes the rows distributions if what was clipped stays pinned."""
    return select(loose > 0.0, (1.0 - pinned) / loose, c)


@inline
def moved_lanes(states: int, pinned: Lanes, loose: Lanes, c: Lanes, new: Lanes, free: Mask) -> Mask:
    """Return where the rows clipped at scale c are no distributions: the new scale is another one, or nothing is loose."""
    stuck = ~(loose > 0.0) & (size(pinned - 1.0) > SETTLED * states)
    return free & (stuck | ~(size(new - c) <= SETTLED * c))


@inline
def search_lanes(
    low: FloatArray, high: FloatArray, q: FloatArray, entry: int, cell: int, free: Mask, c: Lanes, kernel: FloatArray
) -> tuple[Lanes, Lanes, Lanes, Mask]:
    """Find the scale of the rows from c on, by Newton on a piecewise linear function.

    Returns what `clip_lanes` does at last, the scale, and where it is not found.
    """
    states = q.shape[0]
    pinned, loose = clip_lanes(low, high, q, entry, cell, free, c, kernel)
    new = scale_lanes(pinned, loose, c)
    moved = moved_lanes(states, pinned, loose, c, new, free)
    for _ in range(TRIALS):
        if not some(moved):
            break
        stuck = moved & ~(loose > 0.0)  # all entries are pinned: go just past the nearest c at which one comes loose
        if some(stuck):
            lower, higher = spread(0.0), spread(np.inf)
            for y in range(states):
                one, bottom, top = load(q, y), load(low, cell + y), load(high, cell + y)
                x, choice = c * one, bottom < top
                higher = select(choice & (x <= bottom) & (one > 0.0), least(bottom / one, higher), higher)
                lower = select(choice & (x >= top), most(top / one, lower), lower)
            new = select(stuck, select(pinned < 1.0, higher * (1.0 + 2e-15), lower * (1.0 - 2e-15)), new)
        c = new
        pinned, loose = clip_lanes(low, high, q, entry, cell, free, c, kernel)
        new = scale_lanes(pinned, loose, c)
        moved = moved_lanes(states, pinned, loose, c, new, free)
    return pinned, loose, new, moved


@inline
def held_lanes(
    logs: FloatArray, low: FloatArray, high: FloatArray, low_logs: FloatArray, high_logs: FloatArray, v: FloatArray,
    states: int, entry: int, cell: int, after: int, kernel: FloatArray,
) -> Lanes:  # fmt: skip
    """Return what the pinned entries of the rows add to phi."""
    cost, zero = spread(0.0), spread(0.0)
    for y in range(states):
        p, bottom, top = load(kernel, entry + y), load(low, cell + y), load(high, cell + y)
        below = p <= bottom
        held = (p > 0.0) & (below | (p >= top))
        ln_p = select(below, load(low_logs, cell + y), load(high_logs, cell + y))
        cost = cost + select(held, p * (ln_p - load(logs, entry + y) - load(v, after + y)), zero)
    return cost


@inline
def same_rows_of(
    program: FewProgram, v: FloatArray, g: int, h: int, rows: FewRows, expv: FloatArray, q: FloatArray, scales: FloatArray
) -> bool:
    """Solve the rows of step h of group g that are pinned as before: write kernel, phi and sigma, -1 for all others.

    Returns whether there are others. Scratch: expv, q (S,W), scales (2*S,W). The logarithms have a loop of their own: there
    the processor works on several of them at a time.
    """
    reference, logs, low, high, low_logs, high_logs, _, reach, _, _, _, phase, phases, budget, idle, _ = program
    kernel, _, phis, sigmas = rows
    horizon, states, actions = budget.size, expv.shape[0], 1 if idle[h] else 2
    node, after, bound = (
        (g * horizon + h) * states,
        (g * (horizon + 1) + h + 1) * states,
        (g * phases + phase[h]) * states * 2,
    )
    shift, failures = ahead_lanes(v, reach, node + states, after, h + 1 == horizon, expv), spread(0.0) > 1.0
    for s in range(states):
        live = load(reach, node + s) > 0.0
        for a in range(actions):
            row = 2 * (node + s) + a
            entry, cell = row * states, (bound + 2 * s + a) * states
            before, loose_before, c, free, under = guess_lanes(
                reference, low, high, expv, kernel, entry, cell, entry, live, q
            )
            pinned, loose = clip_lanes(low, high, q, entry, cell, free, c, kernel)
            new = c
            if some(~((pinned == before) & (loose == loose_before))):  # otherwise it would be c again
                new = scale_lanes(pinned, loose, c)
            open_, rest = loose > 0.0, 1.0 - pinned
            lost = moved_lanes(states, pinned, loose, c, new, free) | under | (open_ & ~(rest > 0.0))
            store(phis, held_lanes(logs, low, high, low_logs, high_logs, v, states, entry, cell, after, kernel), row)
            store(sigmas, select(lost, -1.0, select(open_, rest, 0.0)), row)
            store(scales, select(open_, new, 1.0), 2 * s + a)
            failures = failures | (lost & live)
    for s in range(states):
        for a in range(actions):
            row = 2 * (node + s) + a
            store(phis, load(phis, row) + load(sigmas, row) * (log(load(scales, 2 * s + a)) - shift), row)
    return some(failures)


@on_loan
def other_rows(
    program: FewProgram, v: FloatArray, g: int, h: int, guess: int, rows: FewRows, expv: FloatArray, q: FloatArray,
    single: FloatArray,
) -> None:  # fmt: skip
    """Solve the rows of step h of group g whose sigma is -1 in some lane; over balls, all of them.

    guess: a step whose kernel is pinned in much the same way. Scratch: expv, q (S,W), single (2,W).
    """
    reference, logs, low, high, low_logs, high_logs, radius, reach, _, _, _, phase, phases, budget, idle, _ = program
    kernel, _, phis, sigmas = rows
    horizon, states = budget.size, expv.shape[0]
    node, after, bound = (
        (g * horizon + h) * states,
        (g * (horizon + 1) + h + 1) * states,
        (g * phases + phase[h]) * states * 2,
    )
    shift = ahead_lanes(v, reach, node + states, after, h + 1 == horizon, expv)
    store(single, shift, 1)
    for s in range(states):
        live = load(reach, node + s) > 0.0
        for a in range(1 if idle[h] else 2):
            row, lost = 2 * (node + s) + a, live
            if radius.size == 0:
                lost = live & (load(sigmas, row) < 0.0)
                if not some(lost):
                    continue
                entry, cell, other = row * states, (bound + 2 * s + a) * states, (row + (guess - h) * 2 * states) * states
                _, _, c, free, under = guess_lanes(reference, low, high, expv, kernel, entry, cell, other, live, q)
                pinned, loose, c, moved = search_lanes(low, high, q, entry, cell, free, c, kernel)
                open_, rest = loose > 0.0, 1.0 - pinned
                sigma = select(open_, rest, 0.0)
                cost = held_lanes(logs, low, high, low_logs, high_logs, v, states, entry, cell, after, kernel)
                lost = moved | under | (open_ & ~(rest > 0.0))
                store(phis, cost + sigma * (log(select(open_, c, 1.0)) - shift), row)
                store(sigmas, select(lost, -1.0, sigma), row)
                lost = live & lost
            if some(lost):
                store(single, select(lost, 1.0, 0.0), 0)
                single_rows(reference, low, high, radius, v, expv, row, bound + 2 * s + a, after, single, rows)
