"""Logarithms of union bounds."""

from typing import Any

import numpy as np

from rmab.common.arrays import FloatArray


def log_over(times: Any, epsilon: float) -> FloatArray:
    """Return ln(times / epsilon), also where the quotient is too large for a float."""
    with np.errstate(over="ignore"):
        ratio = np.asarray(times, dtype=np.float64) / epsilon
    fits = np.isfinite(ratio)
    return np.where(fits, np.log(np.where(fits, ratio, 1.0)), np.log(times) - np.log(epsilon))
