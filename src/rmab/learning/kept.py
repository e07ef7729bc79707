"""What a learner keeps, declared: shapes and ranges of its arrays, so that a state from a file can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.errors import ModelError

MOST = float(2**53)  # whole numbers beyond are no longer exact
ABOUT = 1e-6  # by which masses may miss [0, 1]
WORDS = {"f": "real numbers", "i": "whole numbers", "b": "True or False"}


class Kept(NamedTuple):
    """One array that a learner or a part keeps.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    kind : {'f', 'i', 'b'}
        Real numbers, whole numbers, or True and False.
    low, high : float
        The range of its values, which are finite.
    optional : bool
        Whether it may be missing.
    other : tuple of int, optional
        Another shape that it may have.
    """

    shape: tuple[int, ...]
    kind: str = "f"
    low: float = -1e300
    high: float = 1e300
    optional: bool = False
    other: tuple[int, ...] | None = None


Declared = Mapping[str, Kept]


def whole(*shape: int) -> Kept:
    """Declare whole numbers, 0 or more."""
    return Kept(shape, "i", 0, MOST)


def masses(*shape: int, optional: bool = False) -> Kept:
    """Declare masses or shares, from 0 to 1."""
    return Kept(shape, "f", -ABOUT, 1 + ABOUT, optional)


def check_arrays(arrays: Mapping[str, NDArray[Any]], declared: Declared) -> None:
    """Raise ModelError, naming array and place, unless all that was declared is there and as it was declared."""
    for name, wanted in declared.items():
        if name not in arrays:
            if not wanted.optional:
                raise ModelError(f"state: {name} is missing")
            continue
        given = np.asarray(arrays[name])
        if given.shape not in (wanted.shape, wanted.other):
            either = wanted.shape if wanted.other is None else f"{wanted.shape} or {wanted.other}"
            raise ModelError(f"state: {name} must have shape {either}, got {given.shape}")
        if given.dtype.kind != wanted.kind or not given.dtype.isnative:
            raise ModelError(f"state: {name} must hold {WORDS[wanted.kind]}, got {given.dtype}")
        values = given.astype(np.float64) if wanted.kind == "f" else given  # fewer bits do not hold the limits
        fine = np.ones(given.shape, bool) if wanted.kind == "b" else (values >= wanted.low) & (values <= wanted.high)
        for place in np.argwhere(~fine)[:1]:
            where = f"[{', '.join(map(str, place))}]" if place.size else ""
            value = given[tuple(place)]
            raise ModelError(f"state: {name}{where} is {value}, outside [{wanted.low:g}, {wanted.high:g}]")
