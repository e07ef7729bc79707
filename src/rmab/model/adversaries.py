"""Adversaries: what each episode pays (paper, Section 3: rewards may change arbitrarily between episodes).

A task says what is at stake, as a RewardModel: a sum of parts, each with a factor. An adversary chooses the factors, episode
by episode. All its randomness is drawn when it is made, so `reward(t, visits)` is a plain function: nothing to save, nothing
to restore, and causal by its arguments.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer
from rmab.errors import ModelError
from rmab.model.factors import FACTOR_HIGH, FACTOR_LOW, SCRIPTS

__all__ = ["ADVERSARIES", "Adaptive", "Adversary", "RewardModel", "Scripted", "Trace", "adversary"]


def checked_range(low: float, high: float) -> tuple[float, float]:
    """Return the declared range as floats, or raise ModelError unless low < high and both are finite."""
    ends = as_floats([low, high], "range")
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ModelError(f"the range needs low < high, both finite, got [{low}, {high}]; declare it with low= and high=")
    return float(ends[0]), float(ends[1])


@dataclass(frozen=True, eq=False)
class RewardModel(ReadOnly):
    """What is at stake: r[n,s,a] = sum over k of factor[k] * parts[k,n,s,a], clipped to [low, high].

    parts      (K, N, S, 2), for instance the pay for charging and the penalty for leaving short.
    low, high  declared range of every reward.
    units      (N,) labels; arms of one unit always get the same factors, as a tariff would. None: each arm has its own.
    """

    parts: FloatArray
    low: float
    high: float
    units: IntArray | None = None

    def __init__(self, parts: ArrayLike, low: float, high: float, units: ArrayLike | None = None) -> None:
        table = as_floats(parts, "parts")
        if table.ndim != 4 or table.shape[3] != 2 or 0 in table.shape:
            raise ModelError(f"parts must have shape (K, N, S, 2), got {table.shape}")
        if not np.isfinite(table).all():
            raise ModelError("parts must be finite")
        least, most = checked_range(low, high)
        labels = None
        if units is not None:
            labels = np.unique(as_floats(units, "units"), return_inverse=True)[1].astype(np.int64)
            if labels.shape != (table.shape[1],):
                raise ModelError(f"units: {table.shape[1]} labels are needed, one per arm, got shape {labels.shape}")
            frozen(labels)
        object.__setattr__(self, "parts", frozen(table))
        object.__setattr__(self, "low", least)
        object.__setattr__(self, "high", most)
        object.__setattr__(self, "units", labels)
        whole = table.sum(axis=0)
        outside = ~((whole >= least) & (whole <= most))
        if outside.any():
            n, s, a = np.argwhere(outside)[0]
            raise ModelError(f"parts: arm {n}, state {s}, action {a} sum to {whole[n, s, a]}, outside [{least}, {most}]")

    @cached_property
    def unit_of(self) -> IntArray:
        """(N,) the unit of each arm."""
        return np.arange(self.parts.shape[1]) if self.units is None else self.units

    @property
    def shape(self) -> tuple[int, int]:
        """(K, U): factors that an adversary chooses in each episode."""
        return len(self.parts), int(self.unit_of.max()) + 1

    @property
    def passive_zero(self) -> bool:
        """Whether no passive pair ever pays."""
        return not self.parts[..., 0].any()

    @property
    def base(self) -> FloatArray:
        """(N, S, 2) the reward when every factor is 1."""
        return self.combined(np.ones(self.parts.shape))

    def repeated(self, times: int) -> "RewardModel":
        """Return the stakes of the same arms `times` times over: copies of an arm follow each other, and are one unit."""
        parts = np.repeat(self.parts, times, axis=1)
        return RewardModel(parts, self.low, self.high, units=np.repeat(self.unit_of, times))

    def combined(self, factors: FloatArray) -> FloatArray:
        """(N, S, 2) the reward under these factors, which broadcast against parts (K, N, S, 2)."""
        return np.asarray(np.clip((factors * self.parts).sum(axis=0), self.low, self.high))


@dataclass(frozen=True, eq=False)
class Adversary(ReadOnly, ABC):
    """Chooses the reward function of every episode. It may look at past episodes, never at the coming one.

    episodes      T, how many episodes it is made for.
    low, high     declared range of every reward.
    passive_zero  whether passive rewards are always zero.
    """

    episodes: int
    low: float
    high: float
    passive_zero: bool

    @property
    @abstractmethod
    def base(self) -> FloatArray:
        """(N, S, 2) a typical reward, for planning without an adversary."""

    @abstractmethod
    def treats_alike(self, groups: IntArray) -> bool:
        """Return whether arms of one group (N,) are paid alike in every episode."""

    @abstractmethod
    def repeated(self, times: int) -> "Adversary":
        """Return the adversary of the same arms `times` times over: copies follow each other, and are paid alike."""

    @abstractmethod
    def _chosen(self, t: int, visits: IntArray | None) -> FloatArray: ...

    def reward(self, t: int, visits: ArrayLike | None = None) -> FloatArray:
        """(N, S, 2) rewards of episode t (from 0), given how often each pair was visited before it (N, S, 2).

        Only an adaptive adversary needs the visits, from its second episode on.
        """
        if not 0 <= as_integer(t, "episode") < self.episodes:
            raise ModelError(f"episode must be in 0..{self.episodes - 1}, got {t}")
        return frozen(self._chosen(int(t), None if visits is None else self._counts(visits)))

    def _counts(self, visits: ArrayLike) -> IntArray:
        counts = as_floats(visits, "visits")
        if counts.shape != self.base.shape:
            raise ModelError(f"visits must have shape (N, S, 2) = {self.base.shape}, got {counts.shape}")
        if not ((counts >= 0) & (counts < 2**53) & (counts == np.floor(counts))).all():
            raise ModelError("visits must be whole numbers, 0 or more")
        return counts.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scripted(Adversary):
    """Plays factors (T, K, U) that were fixed beforehand."""

    model: RewardModel
    factors: FloatArray

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare the parts and the whole script of every arm with those of the first of its group."""
        first = np.unique(groups, return_index=True)[1][groups]
        script = self.factors[:, :, self.model.unit_of]
        return np.array_equal(script, script[:, :, first]) and np.array_equal(self.model.parts, self.model.parts[:, first])

    def repeated(self, times: int) -> "Scripted":
        """Return the same script for every copy of an arm."""
        return replace(self, model=self.model.repeated(times))

    def _chosen(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        return self.model.combined(self.factors[t][:, self.model.unit_of, np.newaxis, np.newaxis])


@dataclass(frozen=True, eq=False)
class Adaptive(Adversary):
    """Lowers what was used most so far: from 1.5 times the part where it was never used to 0.5 times where always.

    How much a pair was used is the share of the visits of its state in which its action was taken. Under a tariff
    (units) there is one share per unit and part: the visits of the pairs where the part is not zero, among those of the
    states where it can be. Costs (negative parts) grow instead.
    """

    model: RewardModel

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Return whether units and parts are the same within each group: then tariffs are, otherwise each arm differs."""
        first = np.unique(groups, return_index=True)[1][groups]
        if self.model.units is None:
            return np.array_equal(first, np.arange(groups.size))
        parts = self.model.parts
        return np.array_equal(self.model.units, self.model.units[first]) and np.array_equal(parts, parts[:, first])

    def repeated(self, times: int) -> "Adaptive":
        """Return the adversary that answers to all copies of an arm together."""
        return replace(self, model=self.model.repeated(times))

    def _chosen(self, t: int, visits: IntArray | None) -> FloatArray:
        parts = self.model.parts
        if visits is None and t > 0:
            raise ModelError(f"an adaptive adversary needs the visits before episode {t}")
        seen = np.zeros(parts.shape[1:], dtype=np.int64) if visits is None else visits
        pays = parts != 0
        used, could = seen * pays, seen.sum(axis=2, keepdims=True) * pays.any(axis=3, keepdims=True)
        if self.model.units is None:
            share = used / np.maximum(could, 1)
        else:
            member = np.eye(self.model.shape[1])[self.model.unit_of]  # (N, U)
            shares = (used.sum(axis=(2, 3)) @ member) / np.maximum(could.sum(axis=(2, 3)) @ member, 1)
            share = shares[:, self.model.unit_of, np.newaxis, np.newaxis]
        lowered = np.where(parts >= 0, FACTOR_HIGH - share, FACTOR_LOW + share)
        return self.model.combined(lowered)


@dataclass(frozen=True, eq=False)
class Trace(Adversary):
    """Plays rewards (T, N, S, 2) that the user recorded or made up."""

    rewards: FloatArray

    @classmethod
    def of(
        cls,
        rewards: ArrayLike,
        *,
        low: float | None = None,
        high: float | None = None,
        passive_zero: bool = False,
    ) -> "Trace":
        """Check the rewards against the declared range (by default the range that they have) and declarations."""
        table = as_floats(rewards, "rewards")
        if table.ndim != 4 or table.shape[3] != 2 or 0 in table.shape:
            raise ModelError(f"rewards must have shape (T, N, S, 2), got {table.shape}")
        if not np.isfinite(table).all():
            t, n, s, a = np.argwhere(~np.isfinite(table))[0]
            raise ModelError(f"rewards: episode {t}, arm {n}, state {s}, action {a} is {table[t, n, s, a]}")
        least, most = checked_range(table.min() if low is None else low, table.max() if high is None else high)
        bad = ~((table >= least) & (table <= most))
        if bad.any():
            t, n, s, a = np.argwhere(bad)[0]
            value = table[t, n, s, a]
            raise ModelError(f"rewards: episode {t}, arm {n}, state {s}, action {a} is {value}, outside [{least}, {most}]")
        if not isinstance(passive_zero, bool):
            raise ModelError(f"passive_zero must be true or false, got {passive_zero!r}")
        if passive_zero and table[..., 0].any():
            t, n, s = np.argwhere(table[..., 0] != 0)[0]
            raise ModelError(f"rewards: passive rewards are declared zero, but episode {t}, arm {n}, state {s} pays")
        return cls(len(table), least, most, passive_zero, frozen(table))

    @property
    def base(self) -> FloatArray:
        """The mean over all episodes."""
        return np.asarray(self.rewards.mean(axis=0))

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare every arm with the first of its group."""
        first = np.unique(groups, return_index=True)[1][groups]
        return np.array_equal(self.rewards, self.rewards[:, first])

    def repeated(self, times: int) -> "Trace":
        """Return the same rewards for every copy of an arm."""
        return replace(self, rewards=frozen(np.repeat(self.rewards, times, axis=1)))

    def _chosen(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        return np.array(self.rewards[t])


ADVERSARIES = (*SCRIPTS, "adaptive")


def adversary(name: str, model: RewardModel, episodes: int, rng: np.random.Generator) -> Adversary:
    """Make the adversary of this name (one of ADVERSARIES) against this reward model, for T episodes."""
    number = as_integer(episodes, "episodes")
    if number < 1:
        raise ModelError(f"episodes must be at least 1, got {number}")
    declared = (number, model.low, model.high, model.passive_zero)
    if name == "adaptive":
        return Adaptive(*declared, model)
    if name not in SCRIPTS:
        raise ModelError(
            f"unknown adversary {name!r}; there are {', '.join(ADVERSARIES)}, and Task.from_rewards for your own"
        )
    return Scripted(*declared, model, frozen(SCRIPTS[name](number, model.shape, rng)))
