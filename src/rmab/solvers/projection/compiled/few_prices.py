"""The Schur complement of the prices with few states (see `prices.py`): eight arms at a time."""

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled_on_loan as on_loan, compiled_on_loan_inline as inline
from rmab.solvers.compiled.lanes import Lanes, load, spread, store, summed


@inline
def invert_lanes(
    upper: FloatArray, link: FloatArray, states: int, block: int, at: int, final: bool, solved: FloatArray,
    onward: FloatArray, inverse: FloatArray,
) -> None:  # fmt: skip
    """Write the blocks of onward and inverse (H*S*S,W) that begin at `at`, as `prices.invert_blocks` does.

    block: where those of upper and link begin. Scratch: solved (S*S,W).
    """
    zero = spread(0.0)
    after = at + states * states
    for j in range(states):  # solved = U^-1
        for i in range(states - 1, -1, -1):
            if i > j:
                store(solved, 0.0, i * states + j)
                continue
            x = spread(1.0) if i == j else zero
            for k in range(i + 1, j + 1):
                x = x - load(upper, block + i * states + k) * load(solved, k * states + j)
            store(solved, x * load(upper, block + i * states + i), i * states + j)
    for i in range(states):
        for j in range(states):
            x, product = zero, zero
            for k in range(max(i, j), states):
                x = x + load(solved, i * states + k) * load(solved, j * states + k)
            for k in range(i, states):
                product = product + load(solved, i * states + k) * load(link, block + k * states + j)
            store(inverse, x, at + i * states + j)
            store(onward, -product, at + i * states + j)
    if final:
        return
    for i in range(states):
        for j in range(states):
            x = zero
            for k in range(states):
                x = x + load(onward, at + i * states + k) * load(inverse, after + k * states + j)
            store(solved, x, i * states + j)
    for i in range(states):
        for j in range(states):
            x = load(inverse, at + i * states + j)
            for k in range(states):
                x = x + load(solved, i * states + k) * load(onward, at + j * states + k)
            store(inverse, x, at + i * states + j)


@on_loan
def couple_lanes(
    weight: Lanes, node: int, column: IntArray, leave: FloatArray, enter: FloatArray, onward: FloatArray,
    inverse: FloatArray, answer: FloatArray, carried: FloatArray, near: FloatArray, schur: FloatArray,
) -> None:  # fmt: skip
    """Add the arms of a group to schur as `prices.couple_prices` does: their nodes begin at `node`, answer (G*H*S,W).

    Scratch: carried (columns*S,W), near (3*S,W).
    """
    horizon, states, zero = column.size, near.shape[0] // 3, spread(0.0)
    here, spare, earlier = states, 2 * states, 0  # places in `near`, and how many prices came before
    for i in range(horizon):
        final, block, nodes = i + 1 == horizon, i * states * states, node + i * states
        after = block + states * states
        if column[i] >= 0:
            place = 1 + column[i]
            own, slope = zero, zero
            for k in range(states):
                x = zero
                slope = slope + load(leave, nodes + k) * load(answer, nodes + k)
                if not final:
                    slope = slope + load(enter, nodes + k) * load(answer, nodes + states + k)
                    for y in range(states):
                        x = x + load(inverse, after + k * states + y) * load(enter, nodes + y)
                    own = own + load(enter, nodes + k) * x
                store(near, x, k)
            for k in range(states):
                direct, through = zero, zero
                for y in range(states):
                    direct = direct + load(inverse, block + k * states + y) * load(leave, nodes + y)
                    through = through + load(onward, block + k * states + y) * load(near, y)
                store(near, weight * (direct + through), here + k)
                own = own + load(leave, nodes + k) * (direct + 2.0 * through)
            schur[0, place] += summed(weight * slope)
            schur[place, place] += summed(weight * own)
            for j in range(earlier):
                x = zero
                for k in range(states):
                    x = x + load(carried, j * states + k) * load(near, here + k)
                schur[1 + j, place] += summed(x)
        if final:
            continue
        for j in range(earlier):
            for y in range(states):
                x = zero
                for k in range(states):
                    x = x + load(carried, j * states + k) * load(onward, block + k * states + y)
                store(near, x, spare + y)
            for y in range(states):
                store(carried, load(near, spare + y), j * states + y)
        if column[i] >= 0:
            for y in range(states):
                x = load(enter, nodes + y)
                for k in range(states):
                    x = x + load(leave, nodes + k) * load(onward, block + k * states + y)
                store(carried, x, earlier * states + y)
            earlier += 1
