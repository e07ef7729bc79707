"""Sets of transitions: the possible kernels, row by row. Projection, planning and occupancy bounds use this one type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, as_floats, cached_property
from rmab.errors import ModelError
from rmab.model import bare, cells, place, words_of
from rmab.solvers.compiled.optimism import Rows, intervals_fit

ROUNDING = 1e-9
CERTAIN = 1e-12  # lower bounds that sum to 1 up to this leave no choice


@dataclass(frozen=True, eq=False)
class TransitionSets(ReadOnly):
    """One set of distributions over next states for every row (block, state, action), in every phase.

    Build them with `boxes`, `balls` or `known`, which check their arguments. With K phases they take tables
    (C, K, S, 2, S); cells (C * K, S, 2, S) are stored (`rmab.model.time`). Here, C counts cells.

    Parameters
    ----------
    low, high : (C, S, 2, S) float arrays
        The least and greatest probability of every transition: of balls, the smallest box around them.
    centre : (C, S, 2, S) float array, optional
        The middle of balls; None for boxes.
    radius : (C, S, 2) float array, optional
        The L1 distance to the centre within which a row may be; None for boxes.
    possible : (C, S, 2, S) bool array, optional
        Possible transitions of balls; for boxes see `high`.

    Examples
    --------
    >>> sets = TransitionSets.known([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]])
    >>> sets.rows.spare.max()  # nothing is left to choose
    np.float64(0.0)
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray | None = None
    radius: FloatArray | None = None
    possible: BoolArray | None = None

    @classmethod
    def boxes(cls, low: ArrayLike, high: ArrayLike) -> TransitionSets:
        """Return boxes low..high, or raise ModelError naming the row without a distribution."""
        least, most = bare(as_floats(low, "lower"), 5), bare(as_floats(high, "upper"), 5)
        if not _is_table(least) or most.shape != least.shape:
            wanted = "(N, S, 2, S), or (N, K, S, 2, S)"
            raise ModelError(f"lower and upper must both have shape {wanted}, got {least.shape} and {most.shape}")
        phases, states = _phases(least), least.shape[-1]
        if not intervals_fit(least.reshape(-1, states), most.reshape(-1, states), ROUNDING):
            _check_intervals(least, most, phases)
        return cls(cells(least, phases), cells(most, phases))

    @classmethod
    def balls(cls, centre: ArrayLike, radius: ArrayLike, possible: BoolArray | None = None) -> TransitionSets:
        """Return L1 balls of radius (C, S, 2) around centre (C, S, 2, S), within the possible transitions (C, S, 2, S).

        Without `possible`, a transition is impossible if the reference of a projection is 0 at every step.
        """
        middle, size = bare(as_floats(centre, "centre"), 5), bare(as_floats(radius, "radius"), 4)
        if not _is_table(middle):
            raise ModelError(f"centre must have shape (N, S, 2, S), or (N, K, S, 2, S), got {middle.shape}")
        phases = _phases(middle)
        if size.shape != middle.shape[:-1]:
            shapes = f"got radius {size.shape} and centre {middle.shape}"
            wanted = f"{words_of(phases, 'N', 'S', '2')} where centre has {words_of(phases, 'N', 'S', '2', 'S')}"
            raise ModelError(f"radius must have shape {wanted}, {shapes}")
        off = ~((middle >= 0).all(axis=-1) & (np.abs(middle.sum(axis=-1) - 1) <= ROUNDING) & (size >= 0))
        if off.any():
            where = place(np.argwhere(off)[0], phases)
            raise ModelError(f"{where}: centre must be a distribution and radius at least 0")
        if possible is not None and (np.shape(possible) != middle.shape or np.asarray(possible).dtype != np.bool_):
            wanted = words_of(phases, "N", "S", "2", "S")
            raise ModelError(f"possible must be True or False, of shape {wanted} = {middle.shape}")
        middle, size = cells(middle, phases), cells(size, phases)
        allowed = None if possible is None else cells(np.asarray(possible), phases)
        half, room = size[..., np.newaxis] / 2, 1.0 if allowed is None else allowed
        low, high = np.maximum(middle - half, 0.0) * room, np.minimum(middle + half, 1.0) * room
        return cls(low, high, middle, size, allowed)

    @classmethod
    def known(cls, kernels: ArrayLike) -> TransitionSets:
        """Return sets that only contain the kernels (C, S, 2, S), or (C, K, S, 2, S)."""
        return cls.boxes(kernels, kernels)

    def take(self, index: IntArray) -> TransitionSets:
        """Return the sets of these cells, in this order; cells may repeat."""
        balls: tuple[Any, ...] = (self.centre, self.radius, self.possible)
        low = self.low[index]
        high = low if self.high is self.low else self.high[index]
        return TransitionSets(low, high, *(None if one is None else one[index] for one in balls))

    @property
    def single(self) -> bool:
        """Whether every set contains a single distribution."""
        return self.low is self.high or bool(np.array_equal(self.low, self.high))

    @cached_property
    def rows(self) -> Rows:
        """Boxes as compiled code reads them: the spare mass, and the possible next states in order.

        Of balls, the boxes around them: their bounds hold for the balls, too.
        """
        allowed = self.high > 0
        order = np.argsort(~allowed, axis=3, kind="stable").astype(np.uint32)
        spare = np.maximum(1.0 - self.low.sum(axis=3), 0.0)
        spare[spare < CERTAIN] = 0.0  # a known kernel, up to rounding
        spare[(self.low == self.high).all(axis=3)] = 0.0  # or a discounted one, which sums to less
        return Rows(self.low, self.high, spare, order, allowed.sum(axis=3).astype(np.uint32))


def _check_intervals(least: FloatArray, most: FloatArray, phases: int) -> None:
    """Raise ModelError naming the first interval, or the first row without a distribution."""
    bad = ~((least >= 0) & (least <= most) & (most <= 1))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise ModelError(f"{place(at, phases)}: [{least[at]}, {most[at]}] is not an interval within [0, 1]")
    low_sum, high_sum = least.sum(axis=-1), most.sum(axis=-1)
    empty = (low_sum > 1 + ROUNDING) | (high_sum < 1 - ROUNDING)
    if empty.any():
        at = tuple(np.argwhere(empty)[0])
        sums = f"lower sums to {low_sum[at]:.12g}, upper to {high_sum[at]:.12g}"
        raise ModelError(f"{place(at, phases)}: no distribution lies between lower and upper ({sums})")


def _is_table(table: FloatArray) -> bool:
    """Return whether the shape is (N, S, 2, S) or (N, K, S, 2, S), with no size of 0."""
    fits = table.ndim in (4, 5) and table.shape[-3] == table.shape[-1] and table.shape[-2] == 2
    return fits and 0 not in table.shape


def _phases(table: FloatArray) -> int:
    return int(table.shape[1]) if table.ndim == 5 else 1
