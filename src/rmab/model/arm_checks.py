"""Checks of what arms are made of: each error names the first entry that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.common.checks import as_floats, as_integer, checked_text
from rmab.common.words import escaped
from rmab.errors import ModelError
from rmab.model.time import bare, place

ROW_SUM_TOLERANCE = 1e-9


def check_rows(kernels: FloatArray) -> None:
    """Raise ModelError unless every row of kernels (N, [K,] S, 2, S) is a probability distribution."""
    phases = _phases(kernels)
    bad = ~(np.isfinite(kernels) & (kernels >= 0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise ModelError(f"kernels: {place(at, phases)} has probability {kernels[at]}")
    sums = kernels.sum(axis=-1)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        at = tuple(np.argwhere(off)[0])
        raise ModelError(f"kernels: {place(at, phases)} has row sum {sums[at]:.12g}, not 1")


def _phases(kernels: FloatArray) -> int:
    return int(kernels.shape[1]) if kernels.ndim == 5 else 1


def checked_names(names: Sequence[str] | None, states: int) -> tuple[str, ...] | None:
    """Return S different names as a tuple, or raise ModelError."""
    if names is None:
        return None
    if not isinstance(names, Sequence | np.ndarray) or (isinstance(names, np.ndarray) and names.ndim == 0):
        raise ModelError(f"state_names must be a list of names, got {names!r:.40}")
    result = tuple(checked_text(str(name), f"state_names: the name of state {s}") for s, name in enumerate(names))
    if len(result) != states or len(set(result)) != states:
        listed = escaped(", ".join(result))
        raise ModelError(f"state_names: {states} different names are needed, got {len(result)}: {listed:.200}")
    return result


def checked_groups(groups: Sequence[object] | NDArray[Any] | None, kernels: FloatArray) -> IntArray | None:
    """Return labels (N,) as integers 0, 1, ... in order of first appearance, or raise ModelError."""
    if groups is None:
        return None
    if not isinstance(groups, Sequence | np.ndarray) or (isinstance(groups, np.ndarray) and groups.ndim == 0):
        raise ModelError(f"groups must be a list of labels, one per arm, got {groups!r:.40}")
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    if len(labels) != len(kernels):
        raise ModelError(f"groups: {len(kernels)} labels are needed, one per arm, got {len(labels)}")
    for n, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, int | str | np.integer):
            raise ModelError(f"groups: arm {n} has label {label!r}; labels are integers or strings")
    order = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return frozen(np.array([order[label] for label in labels], dtype=np.int64))


def checked_support(support: ArrayLike | None, kernels: FloatArray) -> BoolArray | None:
    """Return the support, of the kernels' shape, as bools; ModelError where a kernel is positive outside it."""
    if support is None:
        return None
    given = bare(as_floats(support, "support"), 5)
    if given.shape != kernels.shape:
        raise ModelError(f"support must have the shape of kernels, {kernels.shape}, got {given.shape}")
    if not np.isin(given, (0, 1)).all():
        raise ModelError("support must hold only True and False")
    allowed = given.astype(bool)
    clash = ~allowed & (kernels > 0)
    if clash.any():
        at = tuple(np.argwhere(clash)[0])
        where = place(at, _phases(kernels))
        raise ModelError(f"support: {where} is declared impossible but has probability {kernels[at]:.12g}")
    return frozen(allowed)


def checked_sizes(sizes: ArrayLike | None, kernels: FloatArray) -> IntArray | None:
    """Return the sizes (N,) as integers; ModelError where a kernel leaves the states of its arm."""
    if sizes is None:
        return None
    given = as_floats(sizes, "sizes")
    if given.shape != kernels.shape[:1]:
        raise ModelError(f"sizes must have shape ({len(kernels)},), got {given.shape}")
    for n, value in enumerate(given):
        size = as_integer(value, f"sizes[{n}]")
        if not 1 <= size <= kernels.shape[-1]:
            raise ModelError(f"sizes[{n}] must be in 1..{kernels.shape[-1]}, got {size}")
        entered = kernels[n, ..., :size, :, size:]
        if entered.any():
            s, a, y = np.argwhere(entered > 0)[0][-3:]
            raise ModelError(f"sizes: arm {n} has {size} states but moves from {s} to {y + size} under action {a}")
    return frozen(given.astype(np.int64))
