"""One step of the search for prices: where a point stands, the step to try, and whether to take it."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled, compiled_contracting
from rmab.solvers.priced.compiled.quadratic import bounded_step

FARTHEST = 700.0  # exponents beyond are cut: their exponentials are still normal numbers
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
MAGIC = 6755399441055744.0  # 1.5 * 2^52: a number that is added to it is rounded, and stands in the last bits
HALF_LN2, ROOT2_LESS_1 = 0.34657359027997264, 0.4142135623730951
FLAT = 1e-3  # advantages below are worth their first four moments, to all digits


@compiled_contracting
def soften(x: FloatArray, blind: float, scratch: FloatArray, share: FloatArray, soft: FloatArray) -> None:
    """Write what advantages x make of a blind rate: soft = ln(1 - blind + blind exp(x)), and share, its derivative.

    Exponentials are 2^k exp(r), |r| <= ln(2) / 2, by Taylor's series; bits is scale, seen as integers, in which 2^k is put
    together. Logarithms are those of (1 + t) / (1 - t) in powers of t, |t| < 0.18. Scratch (2,S*L).
    """
    whole, scale = scratch[0], scratch[1]
    bits = scale.view(np.int64)
    rest, odds = np.log1p(-blind), np.log(blind / (1.0 - blind))
    second = blind * (1.0 - blind)
    third, fourth = second * (1.0 - 2.0 * blind), second * (1.0 - 6.0 * second)
    for i in range(x.size):
        shifted = max(-abs(x[i] + odds), -FARTHEST) * LOG2E + MAGIC
        scale[i] = shifted
        whole[i] = shifted - MAGIC
    for i in range(x.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(x.size):
        z, k = x[i] + odds, whole[i]
        r = (max(-abs(z), -FARTHEST) - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        e = (p * r + 1.0) * scale[i]
        less = 1.0 / (1.0 + e)
        share[i] = less if z >= 0.0 else e * less
        far = e > ROOT2_LESS_1
        t = (e - (ROOT2_LESS_1 if far else 0.0)) / (e + (2.0 + ROOT2_LESS_1 if far else 2.0))
        u = t * t
        p = 1.0 / 21.0
        p = p * u + 1.0 / 19.0
        p = p * u + 1.0 / 17.0
        p = p * u + 1.0 / 15.0
        p = p * u + 1.0 / 13.0
        p = p * u + 1.0 / 11.0
        p = p * u + 1.0 / 9.0
        p = p * u + 1.0 / 7.0
        p = p * u + 1.0 / 5.0
        p = p * u + 1.0 / 3.0
        steep = rest + max(z, 0.0) + (2.0 * t * (p * u + 1.0) + (HALF_LN2 if far else 0.0))
        flat = x[i] * (blind + x[i] * (second / 2.0 + x[i] * (third / 6.0 + x[i] * (fourth / 24.0))))
        soft[i] = flat if abs(x[i]) < FLAT else steep


GENTLE = 4.0  # how many radii a step may go where phi is flat, before what is added to the matrix bends it
TINY = 1e-300


@compiled
def standing(
    budget: FloatArray,
    exact: bool,
    blind: FloatArray,
    total: float,
    eta: float,
    prices: FloatArray,
    value: float,
    use: FloatArray,
) -> tuple[float, float, float]:
    """Return phi, the largest part by which a budget is exceeded, and how far a plan within it is from the best, at most.

    What the plans leave of the budget, at its prices, is what they miss themselves. Where they exceed it by a part, they are
    mixed with as much of the passive plan, which loses at most that part of what there is between the two.

    A budget that is exact and missed is met by mass that acts otherwise. From then on it can be active as often as before,
    so that other budgets stay met, and loses no more than the range of the rewards, eta, and the entropy, at every step.
    """
    phi, left, excess, passive, missed, sharpest = value, 0.0, 0.0, 0.0, 0.0, 0.0
    for h in range(budget.size):
        phi += prices[h] * budget[h]
        left += prices[h] * (budget[h] - use[h])
        passive -= total * np.log1p(-blind[h])
        if budget[h] > 0.0:
            excess = max(excess, use[h] / budget[h] - 1.0)
            missed += abs(budget[h] - use[h])
            sharpest = max(sharpest, -np.log(min(blind[h], 1.0 - blind[h])))
    if exact:
        return phi, 0.0, abs(left) + missed * budget.size * (eta + sharpest)
    return phi, excess, max(left, 0.0) + excess * (phi + passive)


@compiled
def propose(
    matrix: FloatArray,
    budget: FloatArray,
    exact: bool,
    free: BoolArray,
    least: FloatArray,
    prices: FloatArray,
    use: FloatArray,
    worth: float,
    spare: float,
    radius: float,
    aim: FloatArray,
    step: FloatArray,
) -> tuple[float, float]:
    """Write what use to aim at and the best step (H,) within a radius; return by how much phi should fall, and its length.

    The aim is a little less than the budget: at these prices it may be worth half of `worth`, and it may be the part `spare`
    of it. Where nothing is paid and the plans are within the budget there is nothing to gain, and prices stay 0. An exact
    budget is aimed at as it is, by prices of either sign. Steps that are not free (H,) have no price.
    """
    gradient, low, high, extra = np.empty(aim.size), np.zeros(aim.size), np.zeros(aim.size), np.empty(aim.size)
    cost = 0.0
    for h in range(aim.size):
        cost += prices[h] * budget[h]
    part = 0.0 if exact else min(0.5 * worth / max(cost, TINY), spare)
    for h in range(aim.size):
        aim[h] = (1.0 - part) * budget[h]
        if not exact and prices[h] == 0.0 and use[h] <= budget[h]:
            aim[h] = max(aim[h], use[h])
        gradient[h] = aim[h] - use[h]
        extra[h] = least[h] + abs(gradient[h]) / (GENTLE * radius)
        if free[h]:
            low[h], high[h] = -radius if exact else max(-radius, -prices[h]), radius
    fall, length = bounded_step(matrix, gradient, low, high, extra, step), 0.0
    for h in range(aim.size):
        length = max(length, abs(step[h]))
    return fall, length


@compiled
def judge(
    aim: FloatArray,
    step: FloatArray,
    fall: float,
    radius: float,
    prices: FloatArray,
    value: float,
    use: FloatArray,
    new_value: float,
    new_use: FloatArray,
) -> tuple[bool, float]:
    """Return whether a step that should have made phi fall by so much is taken, and how long the next one may be.

    Where phi has no digits left, the slopes at both ends decide.
    """
    begin, end, phi, change, length = 0.0, 0.0, value, new_value - value, 0.0
    for h in range(aim.size):
        begin += (aim[h] - use[h]) * step[h]
        end += (aim[h] - new_use[h]) * step[h]
        phi += aim[h] * prices[h]
        change += aim[h] * step[h]
        length = max(length, abs(step[h]))
    if -change >= 1e-4 * fall or (end <= 0.9 * abs(begin) and change <= 1e-13 * abs(phi)):
        if -change >= 0.5 * fall:
            return True, max(radius, 3.0 * length)
        return True, radius if -change >= 0.1 * fall else max(0.5 * length, 1e-3)
    return False, length * (min(max(begin / (begin - end), 0.1), 0.5) if end > begin else 0.5)
