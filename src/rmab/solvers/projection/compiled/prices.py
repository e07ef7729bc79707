"""The Schur complement of the prices where the horizon is long: through the semiseparable inverse of an arm's Hessian."""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled


@compiled
def invert_blocks(upper: FloatArray, link: FloatArray, n: int, own: int, onward: FloatArray, inverse: FloatArray) -> None:
    """Write onward (H,S,S) = -U^-1 link, which carries the solution at h+1 back to h, and the diagonal blocks of the inverse
    Hessian, inverse (H,S,S), from the last step to the first. The factors of arm n are upper[n] and link[own].
    """
    horizon, states = onward.shape[0], onward.shape[1]
    root, work = np.empty((states, states)), np.empty((states, states))
    for h in range(horizon - 1, -1, -1):
        for j in range(states):  # root = U^-1, upper triangular
            for i in range(states):
                root[i, j] = 0.0
            root[j, j] = 1.0 / upper[n, h, j, j]
            for i in range(j - 1, -1, -1):
                total = 0.0
                for k in range(i + 1, j + 1):
                    total += upper[n, h, i, k] * root[k, j]
                root[i, j] = -total / upper[n, h, i, i]
        for i in range(states):
            for j in range(states):
                total, product = 0.0, 0.0
                for k in range(max(i, j), states):
                    total += root[i, k] * root[j, k]
                for k in range(i, states):
                    product += root[i, k] * link[own, h, k, j]
                inverse[h, i, j] = total
                onward[h, i, j] = -product
        if h + 1 == horizon:
            continue
        for i in range(states):
            for j in range(states):
                total = 0.0
                for k in range(states):
                    total += onward[h, i, k] * inverse[h + 1, k, j]
                work[i, j] = total
        for i in range(states):
            for j in range(states):
                for k in range(states):
                    inverse[h, i, j] += work[i, k] * onward[h, j, k]


@compiled
def couple_prices(
    weight: float,
    n: int,
    column: IntArray,
    leave: FloatArray,
    enter: FloatArray,
    onward: FloatArray,
    inverse: FloatArray,
    answer: FloatArray,
    carried: FloatArray,
    spare: FloatArray,
    schur: FloatArray,
) -> None:
    """Add weight C'A^-1 [g, C] to schur, as Y'Y would: A is arm n's Hessian, C its coupling to the prices, A^-1 g in answer.

    The inverse of a block tridiagonal matrix is semiseparable: block (j, i), j < i, is onward[j] ... onward[i-1] inverse[i].
    So the rows of all earlier prices are carried forward together, carried (S, columns), and a step costs S^2 per price
    where squaring Y costs S per pair of prices.
    """
    horizon, states = onward.shape[0], onward.shape[1]
    after, here = np.empty(states), np.empty(states)
    earlier = 0
    for i in range(horizon):
        final = i + 1 == horizon
        if column[i] >= 0:
            place = 1 + column[i]
            own, slope = 0.0, 0.0
            for k in range(states):
                after[k] = 0.0
                slope += leave[n, i, k] * answer[i, k]
                if not final:
                    slope += enter[n, i, k] * answer[i + 1, k]
                    for y in range(states):
                        after[k] += inverse[i + 1, k, y] * enter[n, i, y]
                    own += enter[n, i, k] * after[k]
            for k in range(states):
                direct, through = 0.0, 0.0
                for y in range(states):
                    direct += inverse[i, k, y] * leave[n, i, y]
                    through += onward[i, k, y] * after[y]
                here[k] = direct + through
                own += leave[n, i, k] * (direct + 2.0 * through)
            schur[0, place] += weight * slope
            schur[place, place] += weight * own
            for j in range(earlier):
                total = 0.0
                for k in range(states):
                    total += carried[k, j] * here[k]
                schur[1 + j, place] += weight * total
        if final:
            continue
        for y in range(states):
            for j in range(earlier):
                spare[y, j] = carried[0, j] * onward[i, 0, y]
            for k in range(1, states):
                a = onward[i, k, y]
                for j in range(earlier):
                    spare[y, j] += carried[k, j] * a
        carried, spare = spare, carried
        if column[i] >= 0:
            for y in range(states):
                total = enter[n, i, y]
                for k in range(states):
                    total += leave[n, i, k] * onward[i, k, y]
                carried[y, earlier] = total
            earlier += 1
