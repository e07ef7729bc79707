"""Names of the array types of the library, and read-only arrays."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
PIECE = 2**22  # numbers of kernels that are looked up at a time
Element = TypeVar("Element", bound=np.generic)


def frozen(array: NDArray[Element]) -> NDArray[Element]:
    """Return the same array, marked read-only."""
    array.setflags(write=False)
    return array


def sealed(array: NDArray[Element]) -> NDArray[Element]:
    """Return a read-only view, the only kind of input array that compiled code is built for."""
    return frozen(array.view())


class ReadOnly:
    """Base of frozen dataclasses; makes arrays read-only again after unpickling, as NumPy does not."""

    def _set(self, **fields: object) -> None:
        """Set fields while the object is built."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


def sum_by_group(formula: str, values: FloatArray, kernels: FloatArray, group: IntArray) -> FloatArray:
    """Return np.einsum(formula, values, kernels[group]), of values (M, S), kernels (G, S, S) and groups (M,).

    It works in pieces, so that the kernels of all M are never in memory together.
    """
    size = max(1, PIECE // kernels[0].size)
    pieces = [slice(first, first + size) for first in range(0, len(values), size)]
    found = [np.einsum(formula, values[one], kernels[group[one]]) for one in pieces]
    return np.concatenate(found) if found else np.zeros(values.shape)


def log_over(times: Any, epsilon: float) -> FloatArray:
    """Return ln(times / epsilon), even if the quotient is too large for a float."""
    with np.errstate(over="ignore"):
        ratio = np.asarray(times, dtype=np.float64) / epsilon
    fits = np.isfinite(ratio)
    return np.where(fits, np.log(np.where(fits, ratio, 1.0)), np.log(times) - np.log(epsilon))
