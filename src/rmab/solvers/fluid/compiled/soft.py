"""Planning softened by entropy: backward induction with soft choices, and its derivatives in the prices.

Everything is measured in units of the temperature: rewards times eta, prices times eta, values times eta. A node activates
a share 1 / (1 + exp(-advantage)) of its mass. In a box, a row moves a share 1 / (1 + exp(theta - value)) of each entry's
room high - low, with theta such that the row sums to 1: as eta grows, both turn into the greedy choice, exponentially fast.
The priced value V0 is then a smooth, convex function of the prices, whose gradient is minus the use of the plan.

Kernels are (C*K,S,2,S), by cell, if they are known, and (C*H,S,2,S), rewritten at every evaluation, if they are
chosen.
"""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline
from rmab.solvers.compiled.optimism import Rows, rank


@compiled_inline
def tail(x: float) -> float:
    """Return exp(-|x|), or 0 if it is negligible against 1."""
    return np.exp(-abs(x)) if abs(x) < 40.0 else 0.0


@compiled_inline
def lift(values: FloatArray, n: int, h: int, order: IntArray, lifted: FloatArray) -> float:
    """Write exp(v - middle) and exp(middle - v) of the values v of (n, h) into lifted (2,S), and return middle: so a row
    needs one exponential, not one per entry. NaN, and nothing is written, if their range is too large for that.
    """
    most, least = values[n, h, order[0]], values[n, h, order[order.size - 1]]
    if not most - least < 200.0:
        return np.nan
    middle = 0.5 * (most + least)
    for y in range(order.size):
        lifted[0, y] = np.exp(values[n, h, y] - middle)
        lifted[1, y] = 1.0 / lifted[0, y]
    return middle


@compiled_inline
def tail_of(x: float, y: int, lifted: FloatArray, level: float) -> float:
    """Return `tail` of x = v(y) - theta, with level = exp(theta - middle); NaN if nothing was lifted."""
    if np.isnan(level):
        return tail(x)
    if abs(x) >= 40.0:
        return 0.0
    return lifted[1, y] * level if x >= 0.0 else lifted[0, y] / level


@compiled_inline
def greedy_level(
    rows: Rows, cell: int, s: int, a: int, values: FloatArray, n: int, h: int, order: IntArray
) -> tuple[float, float]:
    """Return the value of the entry that the greedy choice fills in part, and a first guess of theta relative to it.

    The guess is exact where that entry stands alone; it goes at most halfway to its neighbours.
    """
    low, high, spare, _, _ = rows
    rest, base, guess = spare[cell, s, a], values[n, h, order[0]], -40.0
    found, first = False, True
    for i in range(order.size):
        y = order[i]
        room, value = high[cell, s, a, y] - low[cell, s, a, y], values[n, h, y]
        if room <= 0.0:
            continue
        if found:
            return base, max(guess, 0.5 * (value - base))
        if rest <= room:
            found, part = True, min(max(rest / room, 1e-16), 1.0 - 1e-16)
            guess = np.log((1.0 - part) / part)
            if not first:
                guess = min(guess, 0.5 * (base - value))
        rest, base, first = rest - room, value, False
    return base, guess


@compiled_inline
def soft_row(
    rows: Rows,
    cell: int,
    n: int,
    h: int,
    s: int,
    a: int,
    values: FloatArray,
    order: IntArray,
    middle: float,
    lifted: FloatArray,
    chosen: FloatArray,
) -> float:
    """Write the softened choice of the row of a cell into chosen[n*H+h,s,a] and return its mean value plus entropy.

    theta solves sum (high - low) / (1 + exp(theta - value)) = spare: Newton on its logarithm, which is nearly a straight
    line where all shares are small, kept in a bracket. It is counted from the value of one of the entries, because values
    grow with eta and their differences are what matters.
    """
    low, high, spare, successors, counts = rows
    to = n * (values.shape[1] - 1) + h
    base, theta = greedy_level(rows, cell, s, a, values, n, h + 1, order)
    below, above = -np.inf, np.inf
    for _ in range(60):
        excess, slope, level = -spare[cell, s, a], 0.0, np.exp((base - middle) + theta)
        for k in range(counts[cell, s, a]):
            y = successors[cell, s, a, k]
            room, x = high[cell, s, a, y] - low[cell, s, a, y], values[n, h + 1, y] - base - theta
            e = tail_of(x, y, lifted, level)
            upper = 1.0 / (1.0 + e)
            excess += room * (upper if x >= 0.0 else e * upper)
            slope += room * e * upper * upper
        if abs(excess) <= 1e-14:
            break
        if excess > 0.0:
            below = theta
        else:
            above = theta
        reached = excess + spare[cell, s, a]
        new = theta + np.log(reached / spare[cell, s, a]) * reached / slope if slope > 0.0 else np.inf
        if not below < new < above:
            new = 0.5 * (below + above) if above - below < np.inf else theta + (4.0 if excess > 0.0 else -4.0)
        if new == theta:
            break
        theta = new
    total, summed, loosest, spread = spare[cell, s, a] * (base + theta), 0.0, 0, -1.0
    level = np.exp((base - middle) + theta)
    for k in range(counts[cell, s, a]):
        y = successors[cell, s, a, k]
        room, x = high[cell, s, a, y] - low[cell, s, a, y], values[n, h + 1, y] - base - theta
        e = tail_of(x, y, lifted, level)
        part = (1.0 if x >= 0.0 else e) / (1.0 + e)
        total += low[cell, s, a, y] * values[n, h + 1, y] + room * max(x, 0.0)
        if e > 0.0:
            total += room * np.log1p(e)
        p = low[cell, s, a, y] + room * part
        chosen[to, s, a, y] = p
        summed += p
        if room * part * (1.0 - part) > spread:
            loosest, spread = y, room * part * (1.0 - part)
    y = loosest  # the rounding error goes to the entry farthest from its bounds
    chosen[to, s, a, y] = min(max(chosen[to, s, a, y] + 1.0 - summed, low[cell, s, a, y]), high[cell, s, a, y])
    return total


@compiled_inline
def known_row(rows: Rows, cell: int, s: int, a: int, values: FloatArray, n: int, h: int, total: float) -> float:
    """Return the total plus the mean of values[n,h] after a row that leaves no choice."""
    for k in range(rows.counts[cell, s, a]):
        y = rows.successors[cell, s, a, k]
        total += rows.low[cell, s, a, y] * values[n, h, y]
    return total


@compiled
def soft_values(
    rows: Rows,
    reward: FloatArray,
    eta: float,
    phase_of: IntArray,
    prices: FloatArray,
    idle: BoolArray,
    free: FloatArray | None,
    kernels: FloatArray,
    values: FloatArray,
    share: FloatArray,
) -> None:
    """Softened backward induction of all blocks at scaled prices (H,); no arm is active at idle steps (H,).

    reward (C*K,S,2) by cell, phase_of (H,). Writes values (C,H+1,S) and the share (C,H,S) of each node's mass that is
    activated; and the kernels (C*H,S,2,S), if they are chosen: free (C*K,S,2) is the spare mass of each row. None
    if all are known: then the code for choices is not compiled.
    """
    blocks, horizon, states = share.shape
    order, middle, lifted = np.arange(states), np.nan, np.empty((2, states))
    phases = reward.shape[0] // blocks
    for n in range(blocks):
        for s in range(states):
            values[n, horizon, s] = 0.0
        for h in range(horizon - 1, -1, -1):
            cell = n * phases + phase_of[h]
            if free is not None:
                rank(values, n, h + 1, order)
                middle = lift(values, n, h + 1, order, lifted)
            for s in range(states):
                passive, busy = 0.0, 0.0
                for a in range(1 if idle[h] else 2):
                    total = eta * reward[cell, s, a]
                    if h + 1 == horizon:
                        pass
                    elif free is None:
                        total = known_row(rows, cell, s, a, values, n, h + 1, total)
                    elif free[cell, s, a] > 0.0:
                        total += soft_row(rows, cell, n, h, s, a, values, order, middle, lifted, kernels)
                    else:
                        total = known_row(rows, cell, s, a, values, n, h + 1, total)
                    if a == 0:
                        passive = total
                    else:
                        busy = total - prices[h]
                if idle[h]:
                    values[n, h, s] = passive
                    share[n, h, s] = 0.0
                else:
                    x = busy - passive
                    e = np.exp(-abs(x))  # in full: small shares matter where the budget is small
                    values[n, h, s] = max(passive, busy) + np.log1p(e)
                    share[n, h, s] = (1.0 if x >= 0.0 else e) / (1.0 + e)


@compiled
def follow(
    rows: Rows,
    phase_of: IntArray,
    start: FloatArray,
    free: bool,
    kernels: FloatArray,
    share: FloatArray,
    mass: FloatArray,
    used: FloatArray,
) -> None:
    """Follow the masses from start (C,S) under the shares (C,H,S): write mass (C,H,S) and used (H,), summed over blocks."""
    successors, counts = rows.successors, rows.counts
    blocks, horizon, states = share.shape
    phases = counts.shape[0] // blocks
    used[:] = 0.0
    for n in range(blocks):
        for s in range(states):
            mass[n, 0, s] = start[n, s]
        for h in range(horizon):
            cell = n * phases + phase_of[h]
            chosen = n * horizon + h if free else cell
            if h + 1 < horizon:
                for s in range(states):
                    mass[n, h + 1, s] = 0.0
            for s in range(states):
                if mass[n, h, s] == 0.0:
                    continue
                busy = mass[n, h, s] * share[n, h, s]
                used[h] += busy
                if h + 1 == horizon:
                    continue
                for a in range(2):
                    moved = busy if a == 1 else mass[n, h, s] - busy
                    if moved > 0.0:
                        for k in range(counts[cell, s, a]):
                            y = successors[cell, s, a, k]
                            mass[n, h + 1, y] += moved * kernels[chosen, s, a, y]
