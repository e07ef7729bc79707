"""Adversaries: what each episode pays (Xiong & Li 2024, Section 3: rewards may change arbitrarily between episodes).

A task says what is at stake, as a RewardModel: a sum of parts, each with a factor. A built-in adversary chooses the factors,
episode by episode. All randomness is drawn when an adversary is made, so `reward(t, visits)` is a plain function: nothing to
save, nothing to restore, and causal by its arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, check_rng, expect
from rmab.common.memory import check_memory
from rmab.common.own import is_own, made_by
from rmab.errors import ModelError
from rmab.model.factors import FACTOR_HIGH, FACTOR_LOW, SCRIPTS
from rmab.model.rewards import RewardModel
from rmab.model.time import place, words_of


@dataclass(frozen=True, eq=False)
class Adversary(ReadOnly, ABC):
    """Chooses the reward function of every episode. It may look at past episodes, never at the coming one.

    An adversary of your own is a frozen dataclass with `base` and `choose`; `rmab.testing.check_adversary` checks it. Set
    `adaptive = True` in the class if the rewards depend on what was played. Write `treats_alike` if arms of a group are
    paid alike, so that learners may pool them, and `repeated` if it should work with copies of the arms.

    Parameters
    ----------
    episodes : int
        T, the number of episodes it is made for.
    low, high : float
        Declared range of every reward.
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

    @property
    @abstractmethod
    def base(self) -> FloatArray:
        """(N, S, 2), or (N, K, S, 2) with phases: a typical reward, for planning without an adversary."""

    @abstractmethod
    def choose(self, t: int, visits: IntArray | None) -> FloatArray:
        """Return the rewards of episode t: the method to write in an adversary of your own.

        Parameters
        ----------
        t : int
            The episode, 0..T-1.
        visits : ndarray of int, shape of `base`, or None
            How often each pair was visited before episode t; None unless the adversary is adaptive.

        Returns
        -------
        ndarray, shape of `base`: (N, S, 2), or (N, K, S, 2) with phases
            The same for the same arguments, within [low, high]. The caller may make it read-only.
        """

    def treats_alike(self, groups: IntArray) -> bool:  # noqa: ARG002
        """Return whether arms of one group, of labels (N,), are paid alike in every episode; False unless overridden."""
        return False

    def repeated(self, times: int) -> Adversary:
        """Return the adversary of the same arms `times` times over: copies follow each other, and are paid alike.

        It raises ModelError unless overridden.
        """
        kind = type(self).__name__
        raise ModelError(f"{kind} has no rewards for {times} copies of every arm: write {kind}.repeated(times)")

    def reward(self, t: int, visits: ArrayLike | None = None) -> FloatArray:
        """Return the rewards of episode t.

        Parameters
        ----------
        t : int
            The episode, 0..T-1.
        visits : array_like, shape of `base`, optional
            How often each pair was visited before episode t. Only an adaptive adversary needs it, from t = 1 on.

        Returns
        -------
        ndarray, shape of `base`
            Read-only.

        Raises
        ------
        ModelError
            If there is no such episode, or the visits are wrong or missing.
        """
        if not 0 <= as_integer(t, "episode") < self.episodes:
            raise ModelError(f"episode must be in 0..{self.episodes - 1}, got {t}")
        counts = None if visits is None else self._counts(visits)
        if not self.adaptive:
            return self._checked(t, self.choose(int(t), None))
        if counts is None:
            if t > 0:
                raise ModelError(f"an adaptive adversary needs the visits before episode {t}")
            counts = np.zeros(self.base.shape, dtype=np.int64)
        return self._checked(t, self.choose(int(t), counts))

    def _checked(self, t: int, chosen: ArrayLike) -> FloatArray:
        """Return the rewards of an episode, read-only, or raise ModelError unless they are such."""
        what = f"{type(self).__name__}: the rewards of episode {t}"
        table, shape = as_floats(chosen, what), self.base.shape
        if table.shape != shape:
            raise ModelError(f"{what} must have shape {_words(shape)} = {shape}, got {table.shape}")
        slack = 1e-9 * (self.high - self.low)
        for at in np.argwhere(~((table >= self.low - slack) & (table <= self.high + slack)))[:1]:
            where, value = place(at, table.ndim - 2), table[tuple(at)]
            raise ModelError(f"{what}: {where} is {value}, outside [{self.low:g}, {self.high:g}]")
        return frozen(table)

    def _counts(self, visits: ArrayLike) -> IntArray:
        counts = as_floats(visits, "visits")
        if counts.shape != self.base.shape:
            raise ModelError(f"visits must have shape {_words(self.base.shape)} = {self.base.shape}, got {counts.shape}")
        if not ((counts >= 0) & (counts < 2**53) & (counts == np.floor(counts))).all():
            raise ModelError("visits must be whole numbers, 0 or more")
        return counts.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scripted(Adversary):
    """Plays factors (T, J, U) that were fixed beforehand."""

    model: RewardModel
    factors: FloatArray

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare the parts and the whole script of every arm with those of the first of its group."""
        first = first_of(groups)
        script = self.factors[:, :, self.model.unit_of]
        return np.array_equal(script, script[:, :, first]) and np.array_equal(self.model.parts, self.model.parts[:, first])

    def repeated(self, times: int) -> Scripted:
        """Return the same script for every copy of an arm."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the parts under the factors of the script."""
        return self.model.combined(self.model.by_unit(self.factors[t]))


@dataclass(frozen=True, eq=False)
class Adaptive(Adversary):
    """Lowers what was used most so far: from 1.5 times the part where it was never used to 0.5 times where always.

    How much a pair was used is the share of the visits of its state in which its action was taken. Under a tariff
    (units) there is one share per unit and part: the visits of the pairs where the part is not zero, among those of the
    states where it can be. Costs (negative parts) grow instead.
    """

    model: RewardModel

    adaptive = True

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Return whether units and parts are the same within each group: then tariffs are, otherwise each arm differs."""
        first = first_of(groups)
        if self.model.units is None:
            return np.array_equal(first, np.arange(groups.size))
        parts = self.model.parts
        return np.array_equal(self.model.units, self.model.units[first]) and np.array_equal(parts, parts[:, first])

    def repeated(self, times: int) -> Adaptive:
        """Return the adversary that answers to all copies of an arm together."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the parts, each lowered by the share of its visits."""
        parts = self.model.parts
        pays, seen = parts != 0, np.zeros(parts.shape[1:], dtype=np.int64) if visits is None else visits
        used, could = seen * pays, seen.sum(axis=-1, keepdims=True) * pays.any(axis=-1, keepdims=True)
        if self.model.units is None:
            share = used / np.maximum(could, 1)
        else:
            member, rest = np.eye(self.model.shape[1])[self.model.unit_of], tuple(range(2, parts.ndim))  # (N, U)
            shares = (used.sum(axis=rest) @ member) / np.maximum(could.sum(axis=rest) @ member, 1)
            share = self.model.by_unit(shares)
        lowered = np.where(parts >= 0, FACTOR_HIGH - share, FACTOR_LOW + share)
        return self.model.combined(lowered)


def _words(shape: tuple[int, ...]) -> str:
    return words_of(len(shape) - 2, "N", "S", "2")


def first_of(groups: IntArray) -> IntArray:
    """(N,) the first arm of the group of each arm."""
    return np.asarray(np.unique(groups, return_index=True)[1][groups])


ADVERSARIES = (*SCRIPTS, "adaptive")


def adversary(name: str, model: RewardModel, episodes: int, rng: np.random.Generator) -> Adversary:
    """Make an adversary by name.

    Parameters
    ----------
    name : str
        `ramp`, `noisy`, `iid`, `switching`, `drifting` or `adaptive`; or `module:maker` of your own, which is called
        with (model, episodes, rng) and returns an Adversary.
    model : RewardModel
        What is at stake.
    episodes : int
        T, at least 1.
    rng : numpy.random.Generator
        Where all its randomness comes from.

    Returns
    -------
    Adversary

    Raises
    ------
    ModelError
        If there is no such adversary, or your own cannot be made.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> model = rmab.RewardModel(np.ones((1, 2, 2, 2)), low=0, high=2)
    >>> ramp = rmab.adversary("ramp", model, episodes=5, rng=np.random.default_rng(0))
    >>> [float(ramp.reward(t)[0, 0, 1]) for t in range(5)]
    [0.5, 0.75, 1.0, 1.25, 1.5]
    """
    number = as_integer(episodes, "episodes")
    if number < 1:
        raise ModelError(f"episodes must be at least 1, got {number}")
    expect(name, str, "the name of an adversary")
    expect(model, RewardModel, "model")
    check_rng(rng)
    declared = (number, model.low, model.high, model.passive_zero)
    if is_own(name):
        made: Adversary = made_by("adversary", name, Adversary, model, number, rng)
        if made.episodes != number:
            raise ModelError(f"adversary {name}: is made for {made.episodes} episodes, the task has {number}")
        return made
    if name == "adaptive":
        return Adaptive(*declared, model)
    if name not in SCRIPTS:
        known = ", ".join(ADVERSARIES)
        raise ModelError(
            f"unknown adversary {name!r}; there are {known}, and module:maker or Task.from_rewards for your own"
        )
    check_memory(f"adversary {name} of {number} episodes", 16.0 * number * model.shape[0] * model.shape[1])
    return Scripted(*declared, model, frozen(SCRIPTS[name](number, model.shape, rng)))
