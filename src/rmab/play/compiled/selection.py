"""Which arms to activate, given one index per arm: top-B (Xiong & Li 2024, Section 4.4) and dependent rounding."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled

Word = np.uint64
Stream = NDArray[np.uint64]

_17, _19, _23, _41, _45, _11 = (np.uint64(shift) for shift in (17, 19, 23, 41, 45, 11))
_TWO_TO_MINUS_53 = 2.0**-53
ROUNDING = 1e-9  # relative: what costs may miss a limit by


@compiled
def draw_uniform(s0: Word, s1: Word, s2: Word, s3: Word) -> tuple[float, Word, Word, Word, Word]:
    """Draw from [0, 1) and return the next state: for loops that keep the state in registers."""
    total = s0 + s3
    result = ((total << _23) | (total >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _45) | (s3 >> _19)
    return (result >> _11) * _TWO_TO_MINUS_53, s0, s1, s2, s3


@compiled
def uniform(stream: Stream) -> float:
    """Draw from [0, 1) and advance the stream (4,) in place."""
    value, stream[0], stream[1], stream[2], stream[3] = draw_uniform(stream[0], stream[1], stream[2], stream[3])
    return value


@compiled
def whole(stream: Stream, below: int) -> int:
    """Draw from 0..below-1 and advance the stream. (Its bias, below/2^53, is too small to notice.)"""
    return int(uniform(stream) * below)


@compiled
def kth_smallest(values: FloatArray, length: int, k: int) -> float:
    """Return the k-th smallest (from 0) of values[:length], which are reordered: quickselect, linear on average.

    The partition does not branch on the data, because a processor cannot predict such branches. If nothing is below the
    pivot, it is the smallest value, and its equals are split off at once: many ties (as in a random policy) cost no more.
    """
    low, high = 0, length
    while True:
        x, y, z = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        middle = low
        for j in range(low, high):
            value = values[j]
            values[j] = values[middle]
            values[middle] = value
            middle += value < pivot
        if k < middle:
            high = middle
        elif middle > low:
            low = middle
        else:
            for j in range(low, high):
                value = values[j]
                values[j] = values[middle]
                values[middle] = value
                middle += value == pivot
            if k < middle:
                return pivot
            low = middle


@compiled
def add_highest(index: FloatArray, wanted: int, stream: Stream, active: BoolArray, scratch: FloatArray) -> int:
    """Activate the `wanted` arms of highest index, ties at random; return how many. Arms of index -inf stay as they are."""
    eligible = 0
    for n in range(index.size):
        eligible += index[n] > -np.inf
    wanted = min(wanted, eligible)
    if wanted <= 0:
        return 0
    for n in range(index.size):
        scratch[n] = index[n]
    threshold = kth_smallest(scratch, index.size, index.size - wanted)
    count = 0
    for n in range(index.size):
        high = index[n] >= threshold
        active[n] |= high
        count += high
    if count == wanted:
        return wanted
    ties = 0
    for n in range(index.size):
        ties += index[n] == threshold
    open_slots = ties - (count - wanted)
    for n in range(index.size):
        if index[n] == threshold:
            # Selection sampling (Knuth, TAOCP 3.4.2, algorithm S): every subset of the tied arms is equally likely.
            active[n] = uniform(stream) * ties < open_slots
            open_slots -= active[n]
            ties -= 1
    return wanted


@compiled
def add_sampled(index: FloatArray, budget: int, stream: Stream, active: BoolArray, order: IntArray) -> int:
    """Activate arm n with probability index[n], scaled down if they sum to more than the budget; return how many.

    Systematic sampling in a random order: the number of active arms is the sum of the probabilities rounded up or down, so
    never above the budget, and each arm's own probability, so scaled, is kept exactly.
    """
    total = 0.0
    for n in range(index.size):
        total += index[n]
        order[n] = n
    scale = budget / total if total > budget else 1.0
    point, reached, count = uniform(stream), 0.0, 0
    for i in range(index.size):
        j = i + whole(stream, index.size - i)
        order[i], order[j] = order[j], order[i]
        reached += scale * index[order[i]]
        if reached > point and count < budget:
            active[order[i]] = True
            count += 1
            point += 1.0
    return count


@compiled
def shuffle(stream: Stream, order: IntArray) -> None:
    """Write 0..N-1 in random order into order (N,)."""
    for n in range(order.size):
        order[n] = n
    for i in range(order.size):
        j = i + whole(stream, order.size - i)
        order[i], order[j] = order[j], order[i]


@compiled
def sort_by_index(index: FloatArray, order: IntArray) -> IntArray:
    """Return the arms of order (N,), which is overwritten, by index from high to low; equals stay in their order.

    Runs of 1, 2, 4, ... arms are merged. (A sort of NumPy takes a second to compile.)
    """
    merged, width, size = np.empty_like(order), 1, order.size
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j == high or index[order[i]] >= index[order[j]]):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order, merged, width = merged, order, 2 * width
    return order


@compiled
def add_fitting(
    index: FloatArray, cost: FloatArray, limit: float, floor: float, stream: Stream, active: BoolArray, order: IntArray
) -> None:
    """Activate arms of index above the floor, the highest first, each whose cost (N,) still fits; ties in random order.

    Arms that are active already stay so, and have their part of the limit.
    """
    shuffle(stream, order)
    order = sort_by_index(index, order)
    left = limit * (1.0 + ROUNDING)
    for n in range(index.size):
        left -= cost[n] if active[n] else 0.0
    for i in range(order.size):
        n = order[i]
        if index[n] <= floor:
            return
        if not active[n] and cost[n] <= left:
            active[n] = True
            left -= cost[n]


@compiled
def add_drawn(
    share: FloatArray, cost: FloatArray, limit: float, stream: Stream, active: BoolArray, part: FloatArray, order: IntArray
) -> None:
    """Activate arm n with probability share[n], scaled down if the expected cost exceeds the limit, within the limit.

    Pairs of arms in random order are rounded together, so that their joint cost stays (Gandhi, Khuller, Parthasarathy &
    Srinivasan 2006), until one is left; that one is active with its probability if it fits, and passive if it does not.
    So every arm keeps its probability but one per step, which may lose some. part (N,) is work space.
    """
    total = 0.0
    for n in range(share.size):
        total += cost[n] * share[n]
    scale = limit / total if total > limit else 1.0
    for n in range(share.size):
        part[n] = scale * share[n]
    shuffle(stream, order)
    last, left = -1, limit * (1.0 + ROUNDING)
    for i in range(order.size):
        n = order[i]
        if last >= 0 and 0.0 < part[n] < 1.0:
            ratio = cost[n] / cost[last]
            up, down = min(1.0 - part[last], part[n] * ratio), min(part[last], (1.0 - part[n]) * ratio)
            if uniform(stream) * (up + down) < down:
                change, part[last] = -up, 1.0 if up == 1.0 - part[last] else part[last] + up
            else:
                change, part[last] = down, 0.0 if down == part[last] else part[last] - down
            if 0.0 < part[last] < 1.0:
                part[n] = 0.0 if change < 0.0 else 1.0
            else:
                part[n] = min(max(part[n] + change / ratio, 0.0), 1.0)
                left -= cost[last] * part[last]
                active[last] = part[last] == 1.0
                last = -1
        if part[n] == 1.0:
            active[n] = True
            left -= cost[n]
        elif part[n] > 0.0 and last < 0:
            last = n
    if last >= 0 and cost[last] <= left and uniform(stream) < part[last]:
        active[last] = True


@compiled
def gather(table: FloatArray, states: IntArray, cost: FloatArray) -> None:
    """Write into cost (N,) what the arms cost in states (N,): table (N,S), or (N,1) where the state does not matter."""
    by_state = table.shape[1] > 1
    for n in range(cost.size):
        cost[n] = table[n, states[n] if by_state else 0]


@compiled
def select_within(
    index: FloatArray,
    cost: FloatArray,
    limit: float,
    floor: float,
    dependent: bool,
    stream: Stream,
    active: BoolArray,
    scratch: FloatArray,
    order: IntArray,
) -> None:
    """Decide active (N,) as `select` does, where the costs (N,) of the active arms may sum to the limit at most."""
    active[:] = False
    if dependent:
        add_drawn(index, cost, limit, stream, active, scratch, order)
        if floor > -np.inf:
            return
    add_fitting(index, cost, limit, floor, stream, active, order)


@compiled
def select(
    index: FloatArray,
    budget: int,
    floor: float,
    dependent: bool,
    stream: Stream,
    active: BoolArray,
    scratch: FloatArray,
    order: IntArray,
) -> int:
    """Decide active (N,) from index (N,) under the budget, and return how many arms are active.

    Arms of index <= floor stay passive; with a floor of -inf it is always min(budget, N) arms. dependent: sample instead of
    ranking; then free slots are filled only with a floor of -inf.
    scratch (N,) floats and order (N,) ints are work space; so is index, afterwards.
    """
    active[:] = False
    count = 0
    if dependent:
        count = add_sampled(index, budget, stream, active, order)
        if floor > -np.inf:
            return count
        for n in range(index.size):
            if active[n]:
                index[n] = -np.inf
    elif floor > -np.inf:
        above = 0
        for n in range(index.size):
            above += index[n] > floor
        budget = min(budget, above)
    return count + add_highest(index, budget - count, stream, active, scratch)
