"""The rows of the projection (see `rows.py`) with few states: those of eight arms at a time.

A box's row is p = clip(c q, low, high): the entries that the bounds pin are guessed, c follows from the others, and tells
which are pinned indeed. The first guess is that of the last evaluation, mostly right. Rows that underflow, rows for which
this does not end, and rows over balls are handed to `box_rows.py` and `ball_rows.py` one by one.
"""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled, compiled_contracting_inline as inline
from rmab.solvers.compiled.lane_series import WIDTH
from rmab.solvers.compiled.lanes import Lanes, Mask, exp, least, load, log, most, select, size, some, spread, store
from rmab.solvers.projection.compiled.ball_rows import ball_row
from rmab.solvers.projection.compiled.box_rows import SMALL, TINY, box_row
from rmab.solvers.projection.compiled.few import FewProgram, FewRows
from rmab.solvers.projection.compiled.program import HIGH, LOW, P, Q, V, W

TRIALS = 12  # guesses of what is pinned; more than five are rare
SETTLED = 1e-15  # relative change of c that is rounding


@inline
def ahead_lanes(v: FloatArray, reach: FloatArray, g: int, h: int, expv: FloatArray) -> Lanes:
    """Fill expv (S,W) = exp(v[g,h+1] - shift), and return the shift, as `box_rows.ahead` does."""
    states = expv.shape[0]
    if h + 1 == reach.shape[1]:
        for y in range(states):
            store(expv, 1.0, y)
        return spread(0.0)
    shift = spread(-np.inf)
    for y in range(states):
        shift = select(load(reach, g, h + 1, y) > 0.0, most(shift, load(v, g, h + 1, y)), shift)
    for y in range(states):
        store(expv, exp(least(load(v, g, h + 1, y) - shift, 0.0)), y)
    return shift


@compiled
def single_rows(
    program: FewProgram, v: FloatArray, expv: FloatArray, g: int, h: int, cell: int, s: int, a: int, single: FloatArray,
    rows: FewRows,
) -> None:  # fmt: skip
    """Solve the rows (g,h,s,a) of the lanes where single[0] is not 0; single[1]: the shift of expv (`ahead_lanes`)."""
    reference, _, low, high, _, _, radius, _, _, _, _, _, _, _, _, _ = program
    kernel, _, phi, sigma = rows
    states = expv.shape[0]
    row, place = np.empty((6, states)), np.empty(states, dtype=np.int64)
    for i in range(WIDTH):
        if single[0, i] == 0.0:
            continue
        count = 0
        for y in range(states):
            kernel[g, h, s, a, y, i] = 0.0
            if high[cell, s, a, y, i] > 0.0:
                row[W, count], row[V, count] = reference[g, h, s, a, y, i], v[g, h + 1, y, i]
                row[Q, count] = row[W, count] * expv[y, i]
                row[LOW, count], row[HIGH, count] = low[cell, s, a, y, i], high[cell, s, a, y, i]
                place[count] = y
                count += 1
        if radius.size == 0:
            phi[g, h, s, a, i], sigma[g, h, s, a, i], _ = box_row(row, count, single[1, i])
        else:
            phi[g, h, s, a, i], sigma[g, h, s, a, i] = ball_row(row, count, radius[cell, s, a, i], single[1, i])
        for k in range(count):
            kernel[g, h, s, a, place[k], i] = row[P, k]


@inline
def guess_lanes(
    reference: FloatArray, low: FloatArray, high: FloatArray, expv: FloatArray, kernel: FloatArray,
    g: int, h: int, cell: int, s: int, a: int, guess: int, live: Mask, q: FloatArray,
) -> tuple[Lanes, Mask, Mask]:  # fmt: skip
    """Fill q (S,W) with q of the rows (g,h,s,a), and return the scale c if they are pinned as the kernel is at step `guess`.

    Returns also which live rows leave a choice, and which of these are too small for it.
    """
    total, pinned, loose, zero = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    free = tiny = zero < -1.0
    for y in range(q.shape[0]):
        old, bottom, top = load(kernel, g, guess, s, a, y), load(low, cell, s, a, y), load(high, cell, s, a, y)
        x = load(reference, g, h, s, a, y) * load(expv, y)
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
    low: FloatArray, high: FloatArray, q: FloatArray, g: int, h: int, cell: int, s: int, a: int, free: Mask, c: Lanes,
    kernel: FloatArray,
) -> tuple[Lanes, Lanes, Lanes, Mask]:  # fmt: skip
    """Write the rows clip(c q, low, high), and low where not free. Return the sum of the pinned entries, that of q over the
    others, the c that makes them distributions if no other entry is pinned then, and where that is another c.
    """
    states, zero = q.shape[0], spread(0.0)
    pinned, loose = zero, zero
    for y in range(states):
        one, bottom, top = load(q, y), load(low, cell, s, a, y), load(high, cell, s, a, y)
        x = c * one
        below, above = (x <= bottom) | ~free, x >= top
        held, p = below | above, select(below, bottom, select(above, top, x))
        store(kernel, p, g, h, s, a, y)
        pinned = pinned + select(held, p, zero)
        loose = loose + select(held, zero, one)
    new = select(loose > 0.0, (1.0 - pinned) / loose, c)
    stuck = ~(loose > 0.0) & (size(pinned - 1.0) > SETTLED * states)
    return pinned, loose, new, free & (stuck | ~(size(new - c) <= SETTLED * c))


@inline
def search_lanes(
    low: FloatArray, high: FloatArray, q: FloatArray, g: int, h: int, cell: int, s: int, a: int, free: Mask, c: Lanes,
    kernel: FloatArray,
) -> tuple[Lanes, Lanes, Lanes, Mask]:  # fmt: skip
    """Find the scale of the rows from c on, by Newton on a piecewise linear function; return as `clip_lanes` does."""
    pinned, loose, new, moved = clip_lanes(low, high, q, g, h, cell, s, a, free, c, kernel)
    for _ in range(TRIALS):
        if not some(moved):
            break
        stuck = moved & ~(loose > 0.0)  # all entries are pinned: go just past the nearest c at which one comes loose
        if some(stuck):
            lower, higher = spread(0.0), spread(np.inf)
            for y in range(q.shape[0]):
                one, bottom, top = load(q, y), load(low, cell, s, a, y), load(high, cell, s, a, y)
                x, choice = c * one, bottom < top
                higher = select(choice & (x <= bottom) & (one > 0.0), least(bottom / one, higher), higher)
                lower = select(choice & (x >= top), most(top / one, lower), lower)
            new = select(stuck, select(pinned < 1.0, higher * (1.0 + 2e-15), lower * (1.0 - 2e-15)), new)
        c = new
        pinned, loose, new, moved = clip_lanes(low, high, q, g, h, cell, s, a, free, c, kernel)
    return pinned, loose, new, moved


@inline
def finish_lanes(
    program: FewProgram, v: FloatArray, shift: Lanes, g: int, h: int, cell: int, s: int, a: int, pinned: Lanes, loose: Lanes,
    c: Lanes, failed: Mask, rows: FewRows,
) -> Mask:  # fmt: skip
    """Write phi and sigma (-1 where failed) of the rows (g,h,s,a); return where there is no answer."""
    _, logs, low, high, low_logs, high_logs, _, _, _, _, _, _, _, _, _, _ = program
    kernel, _, phis, sigmas = rows
    cost, zero, open_, rest = spread(0.0), spread(0.0), loose > 0.0, 1.0 - pinned
    for y in range(kernel.shape[4]):
        p, bottom, top = load(kernel, g, h, s, a, y), load(low, cell, s, a, y), load(high, cell, s, a, y)
        below = p <= bottom
        held = (p > 0.0) & (below | (p >= top))
        ln_p = select(below, load(low_logs, cell, s, a, y), load(high_logs, cell, s, a, y))
        cost = cost + select(held, p * (ln_p - load(logs, g, h, s, a, y) - load(v, g, h + 1, y)), zero)
    sigma, lost = select(open_, rest, zero), failed | (open_ & ~(rest > 0.0))
    store(phis, cost + sigma * (log(select(open_, c, 1.0)) - shift), g, h, s, a)
    store(sigmas, select(lost, -1.0, sigma), g, h, s, a)
    return lost


@inline
def same_rows_of(
    program: FewProgram, v: FloatArray, g: int, h: int, rows: FewRows, expv: FloatArray, q: FloatArray
) -> Lanes:
    """Solve the rows of step h of group g that are pinned as before: write kernel, phi and sigma, -1 for all others.

    Returns 0 where there are no others. Scratch: expv, q (S,W).
    """
    reference, _, low, high, _, _, _, reach, _, _, _, phase, phases, _, idle, _ = program
    cell, shift, failures = g * phases + phase[h], ahead_lanes(v, reach, g, h, expv), spread(0.0)
    for s in range(expv.shape[0]):
        live = load(reach, g, h, s) > 0.0
        for a in range(1 if idle[h] else 2):
            c, free, under = guess_lanes(reference, low, high, expv, rows.kernel, g, h, cell, s, a, h, live, q)
            pinned, loose, c, moved = clip_lanes(low, high, q, g, h, cell, s, a, free, c, rows.kernel)
            lost = finish_lanes(program, v, shift, g, h, cell, s, a, pinned, loose, c, moved | under, rows)
            failures = failures + select(lost & live, 1.0, 0.0)
    return failures


@compiled
def other_rows(
    program: FewProgram, v: FloatArray, g: int, h: int, guess: int, rows: FewRows, expv: FloatArray, q: FloatArray,
    single: FloatArray,
) -> None:  # fmt: skip
    """Solve the rows of step h of group g whose sigma is -1 in some lane; over balls, all of them.

    guess: a step whose kernel is pinned in much the same way. Scratch: expv, q (S,W), single (2,W).
    """
    reference, _, low, high, _, _, radius, reach, _, _, _, phase, phases, _, idle, _ = program
    cell, shift = g * phases + phase[h], ahead_lanes(v, reach, g, h, expv)
    store(single, shift, 1)
    for s in range(expv.shape[0]):
        live = load(reach, g, h, s) > 0.0
        for a in range(1 if idle[h] else 2):
            lost = live
            if radius.size == 0:
                lost = live & (load(rows.sigma, g, h, s, a) < 0.0)
                if not some(lost):
                    continue
                c, free, under = guess_lanes(reference, low, high, expv, rows.kernel, g, h, cell, s, a, guess, live, q)
                pinned, loose, c, moved = search_lanes(low, high, q, g, h, cell, s, a, free, c, rows.kernel)
                lost = live & finish_lanes(program, v, shift, g, h, cell, s, a, pinned, loose, c, moved | under, rows)
            if some(lost):
                store(single, select(lost, 1.0, 0.0), 0)
                single_rows(program, v, expv, g, h, cell, s, a, single, rows)
