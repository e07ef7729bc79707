"""Validation of arms: each error names the first wrong entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, FloatArray, IntArray, as_floats, as_indices, checked_text, expect, frozen
from rmab.errors import ModelError, escape, many, notify, notify_once
from rmab.model.time import RESCALED, UNCHANGED, bare, place


def checked_rows(kernels: FloatArray, normalise: bool) -> FloatArray:
    """Return kernels (N, [K,] S, 2, S) whose rows are all distributions, or raise ModelError.

    Rows that sum to 1 within `UNCHANGED` are not changed. Rows within `RESCALED` are divided by their sum, which is logged
    once per process. With `normalise`, all rows with a positive and finite sum are, which is logged each time.
    """
    expect(normalise, bool, "normalise")
    phases = _phases(kernels)
    for at in np.argwhere(~(np.isfinite(kernels) & (kernels >= 0)))[:1]:
        raise ModelError(f"kernels: {place(at, phases)} has probability {kernels[tuple(at)]}")
    with np.errstate(over="ignore"):
        sums = kernels.sum(axis=-1)
    miss = np.abs(sums - 1)
    off = miss > UNCHANGED
    if not off.any():
        return kernels
    divisible = (sums > 0) & np.isfinite(sums)
    wrong = ~divisible if normalise else miss > RESCALED
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        hint = "; normalise=True divides rows by their sums" if divisible[at] else ""
        raise ModelError(f"kernels: {place(at, phases)} has row sum {sums[at]:.12g}, not 1{hint}")
    _log_rescaled(miss, off, sums, phases, normalise)
    return np.where(off[..., np.newaxis], kernels / sums[..., np.newaxis], kernels)


def _log_rescaled(miss: FloatArray, off: BoolArray, sums: FloatArray, phases: int, requested: bool) -> None:
    """Log how many rows are divided by their sums, and the largest deviation; every time if it was requested."""
    worst = tuple(int(i) for i in np.unravel_index(miss.argmax(), miss.shape))
    rows = f"{off.sum()} of {off.size} rows divided by their sums"
    message = (
        f"kernels: {rows}; the largest deviation from 1 is {miss[worst]:.3g} ({place(worst, phases)}: {sums[worst]:.12g})"
    )
    if requested:
        notify(message)
    else:
        notify_once("rows that miss 1", f"{message}; shown once")


def _phases(kernels: FloatArray) -> int:
    return int(kernels.shape[1]) if kernels.ndim == 5 else 1


def checked_names(names: Sequence[str] | None, states: int) -> tuple[str, ...] | None:
    """Return S different names as a tuple, or raise ModelError."""
    if names is None:
        return None
    if not isinstance(names, Sequence | np.ndarray) or not getattr(names, "ndim", 1):
        raise ModelError(f"state_names must be a list of names, got {names!r:.40}")
    for s, name in enumerate(names):
        if not isinstance(name, str):
            raise ModelError(f"state_names: the name of state {s} must be text, got {name!r:.40}")
    result = tuple(checked_text(str(name), f"state_names: the name of state {s}") for s, name in enumerate(names))
    if len(result) != states or len(set(result)) != states:
        listed = escape(", ".join(result))
        raise ModelError(f"state_names must be {states} different names, got {len(result)}: {listed:.200}")
    return result


def checked_groups(groups: Sequence[object] | NDArray[Any] | None, rows: int) -> IntArray | None:
    """Return labels (N,) as integers 0, 1, ... in order of first appearance, or raise ModelError.

    rows: number of kernels, one per arm or one per group. In the latter case labels 0, 1, ... are not changed.
    """
    if groups is None:
        return None
    if not isinstance(groups, Sequence | np.ndarray) or (isinstance(groups, np.ndarray) and groups.ndim == 0):
        raise ModelError(f"groups must be a list of labels, one per arm, got {groups!r:.40}")
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    for n, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, int | str | np.integer):
            raise ModelError(f"groups: arm {n} has label {label!r}; labels are integers or strings")
    order = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    if rows not in (len(labels), len(order)):
        found = f"got {len(labels)} labels of {many(len(order), 'group')} for {many(rows, 'kernel')}"
        raise ModelError(f"groups must have one label per arm, with one kernel per arm or per group; {found}")
    numbered = rows < len(labels) and set(order) == set(range(rows))
    return np.array(labels if numbered else [order[label] for label in labels], dtype=np.int64)


def checked_support(support: ArrayLike | None, kernels: FloatArray) -> BoolArray | None:
    """Return the support, of the kernels' shape, as bools; raise ModelError if a kernel is positive outside it."""
    if support is None:
        return None
    given = bare(as_floats(support, "support"), 5)
    if given.shape != kernels.shape:
        raise ModelError(f"support must have the shape of kernels, {kernels.shape}, got {given.shape}")
    if not np.isin(given, (0, 1)).all():
        raise ModelError("support must contain only True and False")
    allowed = given.astype(bool)
    for at in np.argwhere(~allowed & (kernels > 0))[:1]:
        where = place(at, _phases(kernels))
        raise ModelError(f"support: {where} is declared impossible but has probability {kernels[tuple(at)]:.12g}")
    return frozen(allowed)


def checked_sizes(sizes: ArrayLike | None, kernels: FloatArray) -> IntArray | None:
    """Return the sizes (N,) as integers; raise ModelError if a kernel leaves the states of its arm."""
    if sizes is None:
        return None
    given = as_indices(sizes, "sizes", kernels.shape[:1], kernels.shape[-1] + 1, 1)
    for n, size in enumerate(given):
        entered = kernels[n, ..., :size, :, size:]
        if entered.any():
            s, a, y = np.argwhere(entered > 0)[0][-3:]
            raise ModelError(f"sizes: arm {n} has {size} states but moves from {s} to {y + size} under action {a}")
    return given


def check_groups_agree(
    kernels: FloatArray, support: BoolArray | None, sizes: IntArray | None, groups: IntArray, first: IntArray
) -> None:
    """Raise ModelError if an arm differs from the first of its group (G,)."""
    for n in np.flatnonzero(first[groups] != np.arange(len(kernels))):
        m = first[groups[n]]
        pair = f"group {groups[n]}: arms {m} and {n} differ"
        if not np.array_equal(kernels[n], kernels[m]):
            at = tuple(np.argwhere(kernels[n] != kernels[m])[0])
            where = place((n, *at), _phases(kernels)).partition(", ")[2]
            raise ModelError(f"{pair} at {where}: {kernels[m][at]:.12g} and {kernels[n][at]:.12g}")
        if support is not None and not np.array_equal(support[n], support[m]):
            raise ModelError(f"{pair} in their support")
        if sizes is not None and sizes[n] != sizes[m]:
            raise ModelError(f"{pair} in size: {sizes[m]} and {sizes[n]}")
