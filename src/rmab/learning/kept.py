"""What a learner keeps, declared: names, shapes and ranges of its arrays, so that a state from a file can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.errors import ModelError

WHOLE = float(2**53)  # counts beyond are no longer exact


class Kept(NamedTuple):
    """One array: its shape (None: any length), kind of number, and range.

    Parameters
    ----------
    shape : tuple of int or None
        Its shape.
    kind : str
        'f' for real numbers, 'i' for whole ones, 'b' for bools.
    low, high : float
        The range of its values.
    optional : bool
        Whether it may be missing.
    nan : bool
        Whether values may be missing.
    """

    shape: tuple[int | None, ...]
    kind: str = "f"
    low: float = -np.inf
    high: float = np.inf
    optional: bool = False
    nan: bool = False


Declared = Mapping[str, Kept]


def counts(*shape: int | None, optional: bool = False) -> Kept:
    """Declare whole numbers, 0 or more."""
    return Kept(shape, "i", 0, WHOLE, optional)


def finite(*shape: int | None, low: float = -1e300, high: float = 1e300, optional: bool = False) -> Kept:
    """Declare finite numbers within a range."""
    return Kept(shape, "f", low, high, optional)


def check_arrays(arrays: Mapping[str, NDArray[Any]], declared: Declared) -> None:
    """Raise ModelError, naming the array, unless the arrays are those that were declared."""
    for name, wanted in declared.items():
        if name not in arrays and not wanted.optional:
            raise ModelError(f"state: {name} is missing")
    for name, array in arrays.items():
        if name not in declared:
            raise ModelError(f"state: {name} is unknown; there are {', '.join(declared)}")
        _check(name, array, declared[name])


def _check(name: str, array: NDArray[Any], wanted: Kept) -> None:
    given = np.asarray(array)
    fits = len(given.shape) == len(wanted.shape) and all(
        want is None or have == want for have, want in zip(given.shape, wanted.shape, strict=True)
    )
    if not fits:
        raise ModelError(f"state: {name} must have shape {_shown(wanted.shape)}, got {given.shape}")
    if given.dtype.kind != wanted.kind:
        words = {"f": "real numbers", "i": "whole numbers", "b": "True or False"}
        raise ModelError(f"state: {name} must hold {words[wanted.kind]}, got {given.dtype}")
    if given.dtype.kind == "b":
        return
    fine = (given >= wanted.low) & (given <= wanted.high)
    if wanted.nan:
        fine |= np.isnan(given)
    for place in np.argwhere(~fine)[:1]:
        where = f"[{', '.join(map(str, place))}]" if place.size else ""
        raise ModelError(f"state: {name}{where} is {given[tuple(place)]}, outside [{wanted.low:g}, {wanted.high:g}]")


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if one is None else str(one) for one in shape)})"
