"""The array types of the library, by name."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "FloatArray", "IntArray", "frozen"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Element = TypeVar("Element", bound=np.generic)


def frozen(array: NDArray[Element]) -> NDArray[Element]:
    """Return the same array, marked read-only."""
    array.setflags(write=False)
    return array
