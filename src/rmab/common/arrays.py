"""Names of the array types of the library, and read-only arrays."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Element = TypeVar("Element", bound=np.generic)


def frozen(array: NDArray[Element]) -> NDArray[Element]:
    """Return the same array, marked read-only."""
    array.setflags(write=False)
    return array


def sealed(array: NDArray[Element]) -> NDArray[Element]:
    """Return a read-only view: compiled code exists for one kind of array, and what it only reads is always given so."""
    return frozen(array.view())


class ReadOnly:
    """Base of frozen dataclasses: makes arrays read-only again after unpickling, because NumPy does not."""

    def _set(self, **fields: object) -> None:
        """Set fields while the object is built."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)
