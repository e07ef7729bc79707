"""Sums of real numbers that do not depend on the order of the terms: each number is split into whole digits of base 2^32.

Digits are added and subtracted as integers, which is exact. A number keeps everything above 2^-65, about 3e-20.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, IntArray

SCALES = (2.0**64, 2.0**32, 1.0, 2.0**-32, 2.0**-64)
DIGITS = len(SCALES)
LARGEST = 2.0**90  # of a number: the first digit of 2^30 such numbers can be added up


def split_digits(values: FloatArray) -> IntArray:
    """Return the digits (..., 5) of numbers (...), the largest first; each but the first is at most 2^31 in size."""
    digits, rest = np.empty((*values.shape, DIGITS), dtype=np.int64), np.array(values)
    for k, scale in enumerate(SCALES):
        digits[..., k] = np.rint(rest / scale)
        rest -= digits[..., k] * scale  # exact: the remainder has no more bits than the number
    return digits


def join_digits(digits: IntArray) -> FloatArray:
    """Return the numbers (...) of digits (..., 5), rounded to float64."""
    total = np.zeros(digits.shape[:-1])
    for k in reversed(range(DIGITS)):
        total += digits[..., k] * SCALES[k]
    return total
