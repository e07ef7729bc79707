"""Turning what a caller passes into numbers and arrays of numbers, or into an error that says what was wrong."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.arrays import FloatArray
from rmab.errors import ModelError

__all__ = ["as_floats", "as_integer"]


def as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Copy `values` into a C-ordered float64 array; anything else than numbers is a ModelError."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf" and not (given.dtype.kind == "O" and given.size):
            raise TypeError(f"found {given.dtype}")
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{name}: not an array of numbers ({error})") from error


def as_integer(value: object, name: str) -> int:
    """Return `value` as an int if it is one below 2^53 (2.0 is, 2.5, True and '2' are not)."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not -(2**53) < value < 2**53 or value != int(value):  # type: ignore[operator,call-overload]
        raise ModelError(f"{name} must be a whole number, got {value!r:.40}")
    return int(value)  # type: ignore[call-overload,no-any-return]
