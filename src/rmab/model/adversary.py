"""The contract of an adversary: it chooses what each episode pays (Xiong & Li 2024, Section 3).

Rewards may change arbitrarily between episodes. All randomness is drawn when an adversary is made, so `reward(t, visits)` is
a plain function: nothing to save, nothing to restore, and causal by its arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, is_builtin
from rmab.errors import ModelError, wrong_shape
from rmab.model.time import location, place, words_of


@dataclass(frozen=True, eq=False)
class Adversary(ReadOnly, ABC):
    """Chooses the reward function of every episode. It may look at past episodes, never at the coming one.

    An adversary of your own is a frozen dataclass with `base` and `choose`; `rmab.testing.check_adversary` checks it. Set
    `adaptive = True` in the class if the rewards depend on what was played. Write `treats_alike` if arms of a group are
    paid alike, so that learners may pool them, and `repeated` if it should work with copies of the arms.

    With `foresees = True` as well, it is given the visits of rehearsals instead: the coming episode as its policy plays it
    beforehand, 32 times over. Such an adversary is stronger than the paper's, and results against it say so.

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
    foresees: ClassVar[bool] = False  # whether these are visits of rehearsals of the coming one; then it is adaptive, too

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
            How often each pair was visited before episode t, or in its rehearsals if the adversary foresees; None unless
            it is adaptive.

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
            How often each pair was visited before episode t. Only an adaptive adversary needs it, from t = 1 on. One that
            foresees needs visits of rehearsals of episode t, from t = 0 on (`rmab.runs.game.rehearse_visits`).

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
        chosen = self.choose(number, counts if self.adaptive else None)
        return frozen(chosen) if is_builtin(self) else self._checked(number, chosen)

    def _checked(self, t: int, chosen: ArrayLike) -> FloatArray:
        """Return the rewards of an episode that a custom adversary chose, read-only; ModelError unless they are such."""
        what = f"{type(self).__name__}: the rewards of episode {t}"
        table = as_floats(chosen, what)
        self._check_shape(table, what)
        slack = 1e-9 * (self.high - self.low)
        for at in np.argwhere(~((table >= self.low - slack) & (table <= self.high + slack)))[:1]:
            wrong = f"{place(at, table.ndim - 2)} is {table[tuple(at)]}, outside [{self.low:g}, {self.high:g}]"
            raise ModelError(f"{what}: {wrong}", episode=t, **location(at, table.ndim - 2))
        return frozen(table)

    def _counts(self, visits: ArrayLike) -> IntArray:
        """Return a copy of the visits: what an adversary does with them stays with it."""
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
    """(N,) the first arm of the group of each arm."""
    return np.asarray(np.unique(groups, return_index=True)[1][groups])
