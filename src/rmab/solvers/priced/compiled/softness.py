"""Shares and softened maxima of many nodes at once, in loops that a compiler turns into vector code."""

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting

FARTHEST = 700.0  # exponents beyond are cut: their exponentials are still normal numbers
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
MAGIC = 6755399441055744.0  # 1.5 * 2^52: a number that is added to it is rounded, and stands in the last bits
HALF_LN2, ROOT2_LESS_1 = 0.34657359027997264, 0.4142135623730951
FLAT = 1e-3  # advantages below are worth their first four moments, to all digits


@compiled_contracting
def soften(
    x: FloatArray,
    blind: float,
    whole: FloatArray,
    scale: FloatArray,
    bits: NDArray[np.int64],
    share: FloatArray,
    soft: FloatArray,
) -> None:
    """Write what advantages x make of a blind rate: soft = ln(1 - blind + blind exp(x)), and share, its derivative.

    Exponentials are 2^k exp(r), |r| <= ln(2) / 2, by Taylor's series; bits is scale, seen as integers, in which 2^k is put
    together. Logarithms are those of (1 + t) / (1 - t) in powers of t, |t| < 0.18. Scratch: whole, scale and bits.
    """
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
