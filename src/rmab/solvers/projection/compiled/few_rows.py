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
) -> tuple[Lanes, Mask, Mask]:  # fmt: skip
    """Fill q (S,W) with q of some rows, and return the scale c if they are pinned as the kernel is at the rows `guess`.

    entry, cell, guess: where the entries of the rows begin, those of their bounds, and those of the other rows. Returns also
    which live rows leave a choice, and which of these are too small for it.
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
    free = free & live  # other rows are known, or carry no mass: the lower bounds will do
    return select(loose > 0.0, (1.0 - pinned) / loose, 1.0 / total), free, free & (tiny | ~(total > SMALL))


@inline
def clip_lanes(
    low: FloatArray, high: FloatArray, q: FloatArray, entry: int, cell: int, free: Mask, c: Lanes, kernel: FloatArray
) -> tuple[Lanes, Lanes, Lanes, Mask]:
    """Write the rows clip(c q, low, high), and low where not free. Return the sum of the pinned entries, that of q over the
    others, the c that makes them distributions if no other entry is pinned then, and where that is another c.
    """
    states, zero = q.shape[0], spread(0.0)
    pinned, loose = zero, zero
    for y in range(states):
        one, bottom, top = load(q, y), load(low, cell + y), load(high, cell + y)
        x = c * one
        below, above = (x <= bottom) | ~free, x >= top
        held, p = below | above, select(below, bottom, select(above, top, x))
        store(kernel, p, entry + y)
        pinned = pinned + select(held, p, zero)
        loose = loose + select(held, zero, one)
    new = select(loose > 0.0, (1.0 - pinned) / loose, c)
    stuck = ~(loose > 0.0) & (size(pinned - 1.0) > SETTLED * states)
    return pinned, loose, new, free & (stuck | ~(size(new - c) <= SETTLED * c))


@inline
def search_lanes(
    low: FloatArray, high: FloatArray, q: FloatArray, entry: int, cell: int, free: Mask, c: Lanes, kernel: FloatArray
) -> tuple[Lanes, Lanes, Lanes, Mask]:
    """Find the scale of the rows from c on, by Newton on a piecewise linear function; return as `clip_lanes` does."""
    pinned, loose, new, moved = clip_lanes(low, high, q, entry, cell, free, c, kernel)
    for _ in range(TRIALS):
        if not some(moved):
            break
        stuck = moved & ~(loose > 0.0)  # all entries are pinned: go just past the nearest c at which one comes loose
        if some(stuck):
            lower, higher = spread(0.0), spread(np.inf)
            for y in range(q.shape[0]):
                one, bottom, top = load(q, y), load(low, cell + y), load(high, cell + y)
                x, choice = c * one, bottom < top
                higher = select(choice & (x <= bottom) & (one > 0.0), least(bottom / one, higher), higher)
                lower = select(choice & (x >= top), most(top / one, lower), lower)
            new = select(stuck, select(pinned < 1.0, higher * (1.0 + 2e-15), lower * (1.0 - 2e-15)), new)
        c = new
        pinned, loose, new, moved = clip_lanes(low, high, q, entry, cell, free, c, kernel)
    return pinned, loose, new, moved


@inline
def finish_lanes(
    logs: FloatArray, low: FloatArray, high: FloatArray, low_logs: FloatArray, high_logs: FloatArray, v: FloatArray,
    shift: Lanes, states: int, row: int, cell: int, after: int, pinned: Lanes, loose: Lanes, c: Lanes, failed: Mask,
    rows: FewRows,
) -> Mask:  # fmt: skip
    """Write phi and sigma (-1 where failed) of the rows at `row`; return where there is no answer."""
    kernel, _, phis, sigmas = rows
    entry = row * states
    cost, zero, open_, rest = spread(0.0), spread(0.0), loose > 0.0, 1.0 - pinned
    for y in range(states):
        p, bottom, top = load(kernel, entry + y), load(low, cell + y), load(high, cell + y)
        below = p <= bottom
        held = (p > 0.0) & (below | (p >= top))
        ln_p = select(below, load(low_logs, cell + y), load(high_logs, cell + y))
        cost = cost + select(held, p * (ln_p - load(logs, entry + y) - load(v, after + y)), zero)
    sigma, lost = select(open_, rest, zero), failed | (open_ & ~(rest > 0.0))
    store(phis, cost + sigma * (log(select(open_, c, 1.0)) - shift), row)
    store(sigmas, select(lost, -1.0, sigma), row)
    return lost


@inline
def same_rows_of(program: FewProgram, v: FloatArray, g: int, h: int, rows: FewRows, expv: FloatArray, q: FloatArray) -> bool:
    """Solve the rows of step h of group g that are pinned as before: write kernel, phi and sigma, -1 for all others.

    Returns whether there are others. Scratch: expv, q (S,W).
    """
    reference, logs, low, high, low_logs, high_logs, _, reach, _, _, _, phase, phases, budget, idle, _ = program
    horizon, states = budget.size, expv.shape[0]
    node, after, bound = (
        (g * horizon + h) * states,
        (g * (horizon + 1) + h + 1) * states,
        (g * phases + phase[h]) * states * 2,
    )
    shift, failures = ahead_lanes(v, reach, node + states, after, h + 1 == horizon, expv), spread(0.0) > 1.0
    for s in range(states):
        live = load(reach, node + s) > 0.0
        for a in range(1 if idle[h] else 2):
            row = 2 * (node + s) + a
            entry, cell = row * states, (bound + 2 * s + a) * states
            c, free, under = guess_lanes(reference, low, high, expv, rows.kernel, entry, cell, entry, live, q)
            pinned, loose, c, moved = clip_lanes(low, high, q, entry, cell, free, c, rows.kernel)
            lost = finish_lanes(
                logs,
                low,
                high,
                low_logs,
                high_logs,
                v,
                shift,
                states,
                row,
                cell,
                after,
                pinned,
                loose,
                c,
                moved | under,
                rows,
            )
            failures = failures | (lost & live)
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
                lost = live & (load(rows.sigma, row) < 0.0)
                if not some(lost):
                    continue
                entry, cell, other = row * states, (bound + 2 * s + a) * states, (row + (guess - h) * 2 * states) * states
                c, free, under = guess_lanes(reference, low, high, expv, rows.kernel, entry, cell, other, live, q)
                pinned, loose, c, moved = search_lanes(low, high, q, entry, cell, free, c, rows.kernel)
                lost = live & finish_lanes(
                    logs,
                    low,
                    high,
                    low_logs,
                    high_logs,
                    v,
                    shift,
                    states,
                    row,
                    cell,
                    after,
                    pinned,
                    loose,
                    c,
                    moved | under,
                    rows,
                )
            if some(lost):
                store(single, select(lost, 1.0, 0.0), 0)
                single_rows(reference, low, high, radius, v, expv, row, bound + 2 * s + a, after, single, rows)
