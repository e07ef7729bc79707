"""Reward models: what is at stake in a task, as a sum of parts whose factors an adversary chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, check_magnitude
from rmab.common.forks import cached_property
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.model.time import bare, place


def checked_range(low: float, high: float) -> tuple[float, float]:
    """Return the declared range as floats, or raise ModelError unless low < high and both are finite."""
    ends = as_floats([low, high], "range")
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ModelError(f"the range needs low < high, both finite, got [{low}, {high}]; declare it with low= and high=")
    check_magnitude(ends, "range")
    return float(ends[0]), float(ends[1])


def checked_tables(values: ArrayLike, name: str, letter: str, first: str) -> FloatArray:
    """Return finite rewards (J, N, S, 2) or (J, N, K, S, 2); ModelError, which names the first axis, otherwise."""
    tables = bare(as_floats(values, name), 5, axis=2)
    if tables.ndim not in (4, 5) or tables.shape[-1] != 2 or 0 in tables.shape:
        wanted = f"({letter}, N, S, 2), or ({letter}, N, K, S, 2) for K phases"
        raise ModelError(f"{name} must have shape {wanted}, got {tables.shape}")
    for at in np.argwhere(~np.isfinite(tables))[:1]:
        raise ModelError(f"{name}: {place(at, tables.ndim - 3, (first,))} is {tables[tuple(at)]}, not a finite number")
    return tables


@dataclass(frozen=True, eq=False)
class RewardModel(ReadOnly):
    """What is at stake: r[n, s, a] = sum over j of factor[j, n] * parts[j, n, s, a], clipped to [low, high].

    Parameters
    ----------
    parts : array_like, shape (J, N, S, 2) or (J, N, K, S, 2)
        What each of J parts pays when its factor is 1, for instance the pay for charging and the penalty for leaving short;
        in each of K phases, where it depends on the time.
    low, high : float
        Declared range of every reward.
    units : array_like, shape (N,), optional
        Labels of the arms. Arms of one unit always get the same factors, as under a tariff. By default every arm is a
        unit of its own.

    Raises
    ------
    ModelError
        If a shape is wrong, a number is not finite, or the parts sum to a reward outside the range.

    Examples
    --------
    Two arms of two states, of which only active pairs in state 1 pay:

    >>> import numpy as np, rmab
    >>> pays = np.zeros((1, 2, 2, 2))
    >>> pays[0, :, 1, 1] = 1.0
    >>> model = rmab.RewardModel(pays, low=0.0, high=2.0)
    >>> model.shape, model.passive_zero
    ((1, 2), True)
    >>> model.combined(np.full(pays.shape, 1.5))[0]
    array([[0. , 0. ],
           [0. , 1.5]])
    """

    parts: FloatArray
    low: float
    high: float
    units: IntArray | None = None

    def __init__(self, parts: ArrayLike, low: float, high: float, units: ArrayLike | None = None) -> None:
        table = checked_tables(parts, "parts", "J", "part")
        check_memory(f"rewards of parts {table.shape}", 24.0 * table.size)  # factors, products and sums of all
        least, most = checked_range(low, high)
        labels = None
        if units is not None:
            labels = np.unique(as_floats(units, "units"), return_inverse=True)[1].astype(np.int64)
            if labels.shape != (table.shape[1],):
                raise ModelError(f"units: {table.shape[1]} labels are needed, one per arm, got shape {labels.shape}")
            frozen(labels)
        self._set(parts=frozen(table), low=least, high=most, units=labels)
        whole = table.sum(axis=0)
        for at in np.argwhere(~((whole >= least) & (whole <= most)))[:1]:
            where = place(at, whole.ndim - 2)
            raise ModelError(f"parts: {where} sum to {whole[tuple(at)]}, outside [{least}, {most}]")

    @cached_property
    def unit_of(self) -> IntArray:
        """(N,) the unit of each arm."""
        return np.arange(self.parts.shape[1]) if self.units is None else self.units

    @property
    def shape(self) -> tuple[int, int]:
        """(J, U): factors that an adversary chooses in each episode."""
        return len(self.parts), int(self.unit_of.max()) + 1

    @property
    def passive_zero(self) -> bool:
        """Whether no passive pair ever pays."""
        return not self.parts[..., 0].any()

    @property
    def base(self) -> FloatArray:
        """(N, S, 2) or (N, K, S, 2) the reward when every factor is 1."""
        return self.combined(np.ones(self.parts.shape))

    def repeated(self, times: int) -> RewardModel:
        """Return the stakes of the same arms `times` times over: copies of an arm follow each other, and are one unit."""
        parts = np.repeat(self.parts, times, axis=1)
        return RewardModel(parts, self.low, self.high, units=np.repeat(self.unit_of, times))

    def by_unit(self, factors: FloatArray) -> FloatArray:
        """Return the factors (J, U) of every unit as factors of its arms, to broadcast against the parts."""
        of_arms = factors[:, self.unit_of]
        return of_arms.reshape(*of_arms.shape, *(1,) * (self.parts.ndim - 2))

    def combined(self, factors: FloatArray) -> FloatArray:
        """(N, S, 2) or (N, K, S, 2) the reward under these factors, which broadcast against the parts."""
        return np.asarray(np.clip((factors * self.parts).sum(axis=0), self.low, self.high))
