"""One step of the search for prices: the gap at a point, the step to try, and whether to accept it."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled, compiled_contracting
from rmab.solvers.priced.compiled.quadratic import bounded_step

FARTHEST = 700.0  # larger exponents are cut: their exponentials are still normal numbers
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding a number rounds it into the last bits
HALF_LN2, ROOT2_LESS_1 = 0.34657359027997264, 0.4142135623730951
FLAT = 1e-3  # for smaller advantages four terms of the series are exact


@compiled_contracting
def soften(x: FloatArray, uniform: float, scratch: FloatArray, share: FloatArray, soft: FloatArray) -> None:
    """Soften advantages x at a uniform rate: soft = ln(1 - uniform + uniform exp(x)), and share, its derivative.

    Exponentials are 2^k exp(r), |r| <= ln(2) / 2, by Taylor's series; bits is scale, seen as integers, in which 2^k is put
    together. Logarithms are those of (1 + t) / (1 - t) in powers of t, |t| < 0.18. Scratch (2,S*L).
    """
    whole, scale = scratch[0], scratch[1]
    bits = scale.view(np.int64)
    rest, odds = np.log1p(-uniform), np.log(uniform / (1.0 - uniform))
    second = uniform * (1.0 - uniform)
    third, fourth = second * (1.0 - 2.0 * uniform), second * (1.0 - 6.0 * second)
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
        flat = x[i] * (uniform + x[i] * (second / 2.0 + x[i] * (third / 6.0 + x[i] * (fourth / 24.0))))
        soft[i] = flat if abs(x[i]) < FLAT else steep


GENTLE = 4.0  # largest step, in radii, where phi is flat, before the ridge limits it
TINY = 1e-300


@compiled
def standing(
    budget: FloatArray,
    exact: bool,
    uniform: FloatArray,
    total: float,
    eta: float,
    prices: FloatArray,
    value: float,
    use: FloatArray,
) -> tuple[float, float, float]:
    """Return phi, the largest relative excess over a budget, and an upper bound on the loss of a plan within it.

    The loss of the plans is the value of the unused budget at its prices. If they exceed it by a fraction, they are
    mixed with that fraction of the passive plan, which loses at most that fraction of the difference between the two.

    An exact budget that is missed is met by changing the action of some mass. It can then be active as often as before,
    so that other budgets stay met, and loses no more than the range of the rewards, eta, and the entropy, at every step.
    """
    phi, left, excess, passive, missed, sharpest = value, 0.0, 0.0, 0.0, 0.0, 0.0
    for h in range(budget.size):
        phi += prices[h] * budget[h]
        left += prices[h] * (budget[h] - use[h])
        passive -= total * np.log1p(-uniform[h])
        if budget[h] > 0.0:
            excess = max(excess, use[h] / budget[h] - 1.0)
            missed += abs(budget[h] - use[h])
            sharpest = max(sharpest, -np.log(min(uniform[h], 1.0 - uniform[h])))
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
    """Write the target use and the best step (H,) within a radius; return the expected decrease of phi, and its length.

    The target is slightly below the budget: it may cost half of `worth` at these prices, and be the fraction `spare`
    of it. If prices are 0 and the plans are within the budget, prices stay 0. An exact
    budget is its own target, with prices of either sign. Steps that are not free (H,) have no price.
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
    """Return whether to accept a step with this expected decrease of phi, and the radius of the next one.

    If phi has no digits left, the slopes at both ends decide.
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
