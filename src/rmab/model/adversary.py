"""The interface of an adversary, which sets the rewards of each episode (Xiong & Li 2024, Section 3).

Rewards may change arbitrarily between episodes. All random numbers are drawn when an adversary is built, so
`reward(t, visits)` is a plain function: it has no state to save, and is causal by its arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import (
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_integer,
    cached_property,
    check_magnitude,
    check_memory,
    frozen,
    is_builtin,
)
from rmab.errors import ModelError, wrong_shape
from rmab.model.time import bare, location, place, words_of


def checked_range(low: float, high: float) -> tuple[float, float]:
    """Return the declared range as floats, or raise ModelError unless low < high and both are finite."""
    ends = as_floats([low, high], "range")
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ModelError(f"the range needs low < high, both finite, got [{low}, {high}]; declare it with low= and high=")
    check_magnitude(ends, "range")
    return float(ends[0]), float(ends[1])


def checked_tables(values: ArrayLike, name: str, letter: str, first: str) -> FloatArray:
    """Return finite rewards (J, N, S, 2) or (J, N, K, S, 2), or raise ModelError; first: name of the first axis."""
    tables = bare(as_floats(values, name), 5, axis=2)
    if tables.ndim not in (4, 5) or tables.shape[-1] != 2 or 0 in tables.shape:
        wanted = f"({letter}, N, S, 2), or ({letter}, N, K, S, 2) for K phases"
        raise ModelError(f"{name} must have shape {wanted}, got {tables.shape}")
    for at in np.argwhere(~np.isfinite(tables))[:1]:
        raise ModelError(f"{name}: {place(at, tables.ndim - 3, (first,))} is {tables[tuple(at)]}, not a finite number")
    return tables


@dataclass(frozen=True, eq=False)
class RewardModel(ReadOnly):
    """Rewards as a sum of parts: r[n, s, a] = sum over j of factor[j, n] * parts[j, n, s, a], clipped to [low, high].

    Parameters
    ----------
    parts : array_like, shape (J, N, S, 2) or (J, N, K, S, 2)
        Reward of each of J parts if its factor is 1, for example the pay for charging and the penalty for leaving short; in
        each of K phases, if it depends on the time.
    low, high : float
        Declared range of the rewards.
    units : array_like, shape (N,), optional
        Labels of the arms. Arms of one unit always have the same factors, as under a tariff. By default each arm is a
        separate unit.

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
                raise ModelError(f"units must be {table.shape[1]} labels, one per arm, got shape {labels.shape}")
            frozen(labels)
        self._set(parts=frozen(table), low=least, high=most, units=labels)
        whole = table.sum(axis=0)
        for at in np.argwhere(~((whole >= least) & (whole <= most)))[:1]:
            where = place(at, whole.ndim - 2)
            raise ModelError(f"parts: {where} sum to {whole[tuple(at)]}, outside [{least}, {most}]")

    @cached_property
    def unit_of(self) -> IntArray:
        """(N,) unit of each arm."""
        return np.arange(self.parts.shape[1]) if self.units is None else self.units

    @property
    def shape(self) -> tuple[int, int]:
        """(J, U): numbers of parts and units, the shape of an episode's factors."""
        return len(self.parts), int(self.unit_of.max()) + 1

    @property
    def passive_zero(self) -> bool:
        """Whether all passive rewards are 0."""
        return not self.parts[..., 0].any()

    @property
    def base(self) -> FloatArray:
        """(N, S, 2) or (N, K, S, 2) reward if every factor is 1."""
        return self.combined(np.ones(self.parts.shape))

    def repeated(self, times: int) -> RewardModel:
        """Return the model for `times` copies of each arm; copies are consecutive and share a unit."""
        parts = np.repeat(self.parts, times, axis=1)
        return RewardModel(parts, self.low, self.high, units=np.repeat(self.unit_of, times))

    def by_unit(self, factors: FloatArray) -> FloatArray:
        """Return the factors (J, U) of the units as factors of their arms, to broadcast against the parts."""
        of_arms = factors[:, self.unit_of]
        return of_arms.reshape(*of_arms.shape, *(1,) * (self.parts.ndim - 2))

    def combined(self, factors: FloatArray) -> FloatArray:
        """(N, S, 2) or (N, K, S, 2) reward under these factors, which broadcast against the parts."""
        return np.asarray(np.clip((factors * self.parts).sum(axis=0), self.low, self.high))


@dataclass(frozen=True, eq=False)
class Adversary(ReadOnly, ABC):
    """Sets the rewards of each episode. It may use past episodes, but not the next one.

    A custom adversary is a frozen dataclass with `base` and `choose`; `rmab.testing.check_adversary` checks it. Set
    `adaptive = True` in the class if the rewards depend on past visits. Override `treats_alike` if arms of a group have
    equal rewards, so that learners may pool them, and `repeated` to support copies of arms.

    With `foresees = True` as well, it gets the visits of rehearsals instead: 32 simulations of the next episode with its
    policy. Such an adversary is stronger than the paper's, and reports state that.

    Parameters
    ----------
    episodes : int
        T, the number of episodes.
    low, high : float
        Declared range of the rewards.
    passive_zero : bool
        Whether passive rewards are always zero.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, rmab
    >>> @dataclass(frozen=True, eq=False)
    ... class Alternating(rmab.Adversary):
    ...     model: rmab.RewardModel
    ...
    ...     @property
    ...     def base(self):
    ...         return self.model.base
    ...
    ...     def choose(self, t, visits):
    ...         return self.model.combined(np.full(self.model.parts.shape, 0.5 if t % 2 else 1.5))
    >>> model = rmab.RewardModel(np.ones((1, 2, 2, 2)), low=0, high=2)
    >>> mine = Alternating(10, model.low, model.high, model.passive_zero, model)
    >>> mine.reward(0)[0, 0], mine.reward(1)[0, 0]
    (array([1.5, 1.5]), array([0.5, 0.5]))
    """

    episodes: int
    low: float
    high: float
    passive_zero: bool

    adaptive: ClassVar[bool] = False  # whether rewards depend on the visits of earlier episodes
    foresees: ClassVar[bool] = False  # whether it gets visits of rehearsals of the next episode; it must then be adaptive

    @property
    @abstractmethod
    def base(self) -> FloatArray:
        """(N, S, 2), or (N, K, S, 2) with phases: a typical reward, for planning without an adversary."""

    @abstractmethod
    def choose(self, t: int, visits: IntArray | None) -> FloatArray:
        """Return the rewards of episode t; every custom adversary implements this method.

        Parameters
        ----------
        t : int
            The episode, 0..T-1.
        visits : ndarray of int, shape of `base`, or None
            Visits of each pair before episode t, or in its rehearsals if the adversary foresees; None unless it is adaptive.

        Returns
        -------
        ndarray, shape of `base`: (N, S, 2), or (N, K, S, 2) with phases
            A deterministic function of the arguments, within [low, high]. The caller may make it read-only.
        """

    def treats_alike(self, groups: IntArray) -> bool:  # noqa: ARG002
        """Return whether arms of one group, with labels (N,), have equal rewards in every episode; False by default."""
        return False

    def repeated(self, times: int) -> Adversary:
        """Return the adversary for `times` copies of each arm; copies are consecutive and have equal rewards.

        Raise ModelError unless overridden.
        """
        kind = type(self).__name__
        raise ModelError(
            f"{kind} does not support copies of arms ({times} copies of each); implement {kind}.repeated(times)"
        )

    def reward(self, t: int, visits: ArrayLike | None = None) -> FloatArray:
        """Return the rewards of episode t.

        Parameters
        ----------
        t : int
            The episode, 0..T-1.
        visits : array_like, shape of `base`, optional
            Visits of each pair before episode t. Only an adaptive adversary needs it, from t = 1 on. One that foresees needs
            visits of rehearsals of episode t, from t = 0 on (`rmab.runs.running.rehearse_visits`).

        Returns
        -------
        ndarray, shape of `base`
            Read-only.

        Raises
        ------
        ModelError
            If there is no such episode, or the visits are wrong or missing.
        """
        number = as_integer(t, "episode")
        if not 0 <= number < self.episodes:
            raise ModelError(f"episode must be in 0..{self.episodes - 1}, got {t}", episode=number)
        counts = None if visits is None else self._counts(visits)
        if self.foresees and not self.adaptive:
            raise ModelError(f"{type(self).__name__}: an adversary that foresees must be adaptive = True")
        if self.adaptive and counts is None:
            if self.foresees:
                raise ModelError(f"an adversary that foresees needs the visits of rehearsals of episode {t}", episode=number)
            if t > 0:
                raise ModelError(f"an adaptive adversary needs the visits before episode {t}", episode=number)
            counts = np.zeros(self.base.shape, dtype=np.int64)
        rewards = self.choose(number, counts if self.adaptive else None)
        return frozen(rewards) if is_builtin(self) else self._checked_reward(number, rewards)

    def _checked_reward(self, t: int, rewards: ArrayLike) -> FloatArray:
        """Validate the rewards of a custom adversary and return them as read-only, or raise ModelError."""
        what = f"{type(self).__name__}: the rewards of episode {t}"
        table = as_floats(rewards, what)
        self._check_shape(table, what)
        slack = 1e-9 * (self.high - self.low)
        for at in np.argwhere(~((table >= self.low - slack) & (table <= self.high + slack)))[:1]:
            wrong = f"{place(at, table.ndim - 2)} is {table[tuple(at)]}, outside [{self.low:g}, {self.high:g}]"
            raise ModelError(f"{what}: {wrong}", episode=t, **location(at, table.ndim - 2))
        return frozen(table)

    def _counts(self, visits: ArrayLike) -> IntArray:
        """Return a validated copy of the visits, which an adversary may change."""
        whole = isinstance(visits, np.ndarray) and visits.dtype == np.int64
        counts = visits.copy() if whole else as_floats(visits, "visits")  # type: ignore[union-attr]
        self._check_shape(counts, "visits")
        if not ((counts >= 0) & (counts < 2**53) & (counts == np.floor(counts))).all():
            raise ModelError("visits must be whole numbers, 0 or more", field="visits")
        return np.asarray(counts, dtype=np.int64)

    def _check_shape(self, table: NDArray[Any], what: str) -> None:
        shape = self.base.shape
        if table.shape != shape:
            raise wrong_shape(ModelError, what, f"{words_of(len(shape) - 2, 'N', 'S', '2')} = {shape}", table.shape)


def first_of(groups: IntArray) -> IntArray:
    """(N,) first arm of the group of each arm."""
    return np.asarray(np.unique(groups, return_index=True)[1][groups])
