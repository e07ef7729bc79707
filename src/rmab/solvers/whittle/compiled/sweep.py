"""The sweep of an arm's Whittle indices: states become passive one after the other as the price of activation rises."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled


@compiled
def sweep(
    response: FloatArray,
    gain: FloatArray,
    slope: FloatArray,
    active: BoolArray,
    price: float,
    flat: float,
    tolerance: float,
    columns: FloatArray,
    rows: FloatArray,
    index: FloatArray,
) -> tuple[float, bool, float]:
    """Make len(columns) more states passive, or all that remain; write their index. Return price, verdict, least pivot.

    At a price of activation, the gain of being active in state j is gain[j] - price * slope[j]. response (S,S)
    is U M^-1: U the difference of the two kernels, M the system of the policy at the start of the call. Making i passive
    changes row i of M by row i of U, so that gain and slope move along column i of U M^-1, and U M^-1 by the product of its
    column and row i (Sherman and Morrison). These are left in columns, rows (B,S); the caller subtracts columns' rows from
    response. The verdict is False if a passive state gains from being active again, by more than the
    tolerance, or none would become passive. Slopes up to `flat`, which has no unit, do not count as rising.
    """
    states, whole, least = gain.size, True, np.inf
    for k in range(columns.shape[0]):
        i, step, any_left = -1, np.inf, False
        for j in range(states):
            if active[j]:
                any_left = True
                room = max(gain[j] - price * slope[j], 0.0)
                if slope[j] > flat and room / slope[j] < step:
                    i, step = j, room / slope[j]
        if not any_left:
            columns[k:] = 0.0
            rows[k:] = 0.0
            return price, whole, least
        if i < 0:
            i, step, whole = int(np.argmax(active)), 0.0, False
        price += step
        for j in range(states):
            if not active[j] and gain[j] - price * slope[j] > tolerance:
                whole = False
        index[i] = price
        active[i] = False
        for j in range(states):
            columns[k, j] = response[j, i]
            rows[k, j] = response[i, j]
        for m in range(k):
            across, down = rows[m, i], columns[m, i]
            for j in range(states):
                columns[k, j] -= columns[m, j] * across
                rows[k, j] -= down * rows[m, j]
        pivot = 1.0 + columns[k, i]
        least = min(least, pivot)
        earned, spent = gain[i] / pivot, slope[i] / pivot
        for j in range(states):
            gain[j] -= earned * columns[k, j]
            slope[j] -= spent * columns[k, j]
            columns[k, j] /= pivot
    return price, whole, least
