"""Statistics of records, in tables that do not depend on their order: counts of transitions, and sums of rewards.

Reports of a live programme come late, twice, and in any order. So everything is whole numbers: a report that is added and
subtracted again leaves no trace, not even in the last bit, and the tables of parts add up to the table of the whole. Rewards
have an axis of periods, because a forecast needs to know when something was paid; counts have none, because kernels do not
change with time in our models.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_indices,
    as_integer,
    as_table,
    check_memory,
    expect,
    frozen,
    is_several,
)
from rmab.errors import ModelError, many
from rmab.estimation.exact import DIGITS, LARGEST, join_digits, split_digits
from rmab.logs.log import Log
from rmab.play import Feedback, Trajectory

MOST = 2**53  # of a count
NEARLY = 1e-9  # of rounding, in sums of squares


@dataclass(frozen=True, eq=False)
class Statistics(ReadOnly):
    """Order-free statistics of G groups of arms with S states; checked on construction.

    `a + b` adds the records of both, `a - b` subtracts records, `sum` and `merge` add several; two are equal if all their
    numbers are. Periods are counted from 0; those after the last reward are left out, so that one that is added and
    subtracted leaves no trace.

    Parameters
    ----------
    counts : array_like of int, shape (G, S, 2, S)
        How often an arm of a group in a state went to the next state, by action.
    numbers : array_like of int, shape (P, G, S, 2), optional
        How many rewards are known, by period, group, state and action.
    moments : array_like of int, shape (P, G, S, 2, 2, 5), optional
        Their sum, and the sum of their squares, in exact digits (`rmab.estimation.exact`); `reward_sums` has plain numbers.

    Raises
    ------
    ModelError
        If a shape is wrong, a count is negative, or there is a sum without rewards.

    Examples
    --------
    >>> import numpy as np
    >>> one = Statistics.from_counts(np.ones((1, 2, 2, 2), dtype=int))
    >>> one + one - one == one
    True
    >>> one + one
    Statistics(1 group, 2 states, 16 transitions, 0 rewards)
    """

    counts: IntArray
    numbers: IntArray
    moments: IntArray

    def __init__(self, counts: ArrayLike, numbers: ArrayLike = (), moments: ArrayLike = ()) -> None:
        size = as_floats(counts, "counts").shape
        if len(size) != 4 or size[1:] != (size[3], 2, size[3]) or 0 in size:
            raise ModelError(f"counts must have shape (G, S, 2, S), with G, S >= 1, got {size}")
        known = as_indices(numbers, "numbers", (len(np.atleast_1d(as_floats(numbers, "numbers"))), *size[:3]), MOST)
        shape = (*known.shape, 2, DIGITS)
        as_floats(moments, "moments")  # numbers, and not ragged
        digits = np.asarray(moments) if known.size else np.zeros(shape, dtype=np.int64)
        if digits.shape != shape or digits.dtype.kind != "i":
            raise ModelError(f"moments must be whole numbers of shape {shape}, got {digits.dtype} {digits.shape}")
        if digits[known == 0].any():
            raise ModelError("moments must be 0 where numbers is 0")
        _check_moments(known, digits)
        last = int(np.flatnonzero(known.any(axis=(1, 2, 3))).max(initial=-1)) + 1
        object.__setattr__(self, "counts", as_indices(counts, "counts", size, MOST))
        object.__setattr__(self, "numbers", known[:last])
        object.__setattr__(self, "moments", frozen(np.array(digits[:last], dtype=np.int64)))

    @classmethod
    def zero(cls, groups: int, states: int) -> Statistics:
        """Return the statistics of no records."""
        return cls.from_records((groups, states), (np.empty(0, dtype=np.int64),) * 4)

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> Statistics:
        """Return the statistics of counts (G, S, 2, S), with no known rewards."""
        return cls(counts)

    @classmethod
    def from_records(
        cls, shape: tuple[int, int], moves: tuple[IntArray, ...], paid: tuple[IntArray, ...] = (), value: ArrayLike = ()
    ) -> Statistics:
        """Return the statistics of single records, in any order.

        Parameters
        ----------
        shape : (G, S)
            Numbers of groups and states.
        moves : four (M,) int arrays
            Group, state, action and next state of every transition.
        paid : four (R,) int arrays, optional
            Period, group, state and action of every reward.
        value : (R,) array_like, optional
            The rewards.
        """
        if not isinstance(shape, tuple | list) or len(shape) != 2 or not isinstance(moves, tuple | list) or len(moves) != 4:
            raise ModelError("shape must be (groups, states), and moves four arrays: group, state, action, next state")
        groups, states = (as_integer(one, name) for one, name in zip(shape, ("groups", "states"), strict=True))
        if groups < 1 or states < 1:
            raise ModelError(f"groups and states must be at least 1, got {groups} and {states}")
        ends = (groups, states, 2, states)
        check_memory(f"statistics of {groups} groups", 8.0 * groups * states * states * 2)
        count = as_floats(moves[0], "moves").size
        place = [as_indices(one, "moves", (count,), end) for one, end in zip(moves, ends, strict=True)]
        counts = np.bincount(np.ravel_multi_index(place, ends), minlength=int(np.prod(ends))).reshape(ends)
        size = as_floats(value, "rewards").size
        if size == 0:
            return cls(counts)
        if not isinstance(paid, tuple | list) or len(paid) != 4:
            raise ModelError("paid must be four arrays: period, group, state and action of every reward")
        earned = as_table(value, "rewards", (size,), -np.sqrt(LARGEST), np.sqrt(LARGEST))
        length = int(as_indices(paid[0], "paid", (size,), MOST).max()) + 1
        check_memory(f"statistics of {length} periods", 88.0 * length * groups * states * 2)
        where = tuple(as_indices(one, "paid", earned.shape, end) for one, end in zip(paid, (length, *ends[:3]), strict=True))
        numbers = np.zeros((length, *ends[:3]), dtype=np.int64)
        moments = np.zeros((*numbers.shape, 2, DIGITS), dtype=np.int64)
        np.add.at(numbers, where, 1)
        np.add.at(moments, where, split_digits(np.stack([earned, earned**2], axis=1)))
        return cls(counts, numbers, moments)

    @classmethod
    def from_log(cls, log: Log, group_of: ArrayLike | None = None, groups: int | None = None) -> Statistics:
        """Return the statistics of a log.

        Parameters
        ----------
        log : Log
            From `rmab.data.read_log`.
        group_of : array_like of int, shape (N,), optional
            The group of every arm; by default all are in one.
        groups : int, optional
            The number of groups; by default as many as appear.
        """
        expect(log, Log, "log", "; read one with rmab.data.read_log")
        group, count = _groups(group_of, groups, len(log.arms))
        moves = log.transitions
        known = (log.state >= 0) & (log.action >= 0)
        known &= False if log.reward is None else ~np.isnan(log.reward)
        paid = (log.period[known], group[log.arm_of[known]], log.state[known], log.action[known])
        value = () if log.reward is None else log.reward[known]
        steps = (group[moves.arm], moves.state, moves.action, moves.after)
        return cls.from_records((count, len(log.state_names)), steps, paid, value)

    @classmethod
    def from_feedback(
        cls,
        feedback: Feedback | Trajectory,
        group_of: ArrayLike | None = None,
        groups: int | None = None,
        *,
        states: int | None = None,
        period: int = 0,
    ) -> Statistics:
        """Return the statistics of an episode: what all arms did, and the rewards that were revealed at their steps.

        Parameters
        ----------
        feedback : Feedback or Trajectory
            An episode; a trajectory has no rewards of single steps.
        group_of, groups
            As in `from_log`.
        states : int, optional
            The number of states; of feedback it is known.
        period : int
            The period of the first step.
        """
        rewards = feedback.rewards if isinstance(feedback, Feedback) else None
        if rewards is None:
            expect(feedback, Trajectory, "feedback")
        elif rewards.ndim != 3:
            raise ModelError(
                "feedback: rewards that change with the phase cannot be counted by group; count every phase separately"
            )
        size = as_integer(states if rewards is None else rewards.shape[1], "states")
        steps, arms = feedback.actions.shape
        group, count = _groups(group_of, groups, arms)
        where = as_indices(feedback.states, "states", (steps + 1, arms), size)
        action = feedback.actions.astype(np.int64)
        every = tuple(one.ravel() for one in np.broadcast_arrays(group, where[:-1], action, where[1:]))
        if rewards is None:
            return cls.from_records((count, size), every)
        value = rewards[np.arange(arms), where[:-1], action].ravel()
        known = ~np.isnan(value)
        when = np.repeat(as_integer(period, "period") + np.arange(steps), arms)
        return cls.from_records((count, size), every, tuple(one[known] for one in (when, *every[:3])), value[known])

    @classmethod
    def merge(cls, several: Iterable[Statistics]) -> Statistics:
        """Return the sum of several; ModelError if there is none, or they have other groups or states."""
        found = list(several) if is_several(several) else []
        if not is_several(several) or not all(isinstance(one, Statistics) for one in found):
            raise ModelError(f"merge needs a list of Statistics, got {several!r:.60}")
        if not found:
            raise ModelError("merge: the list is empty; begin with Statistics.zero(groups, states)")
        return reduce(add, found)

    @property
    def reward_sums(self) -> FloatArray:
        """(P, G, S, 2) sums of the rewards."""
        return join_digits(self.moments[..., 0, :])

    @property
    def pooled_rewards(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Three (G, S, 2): numbers, sums and sums of squares of the rewards of all periods."""
        digits = self.moments.sum(axis=0)
        return self.numbers.sum(axis=0).astype(np.float64), join_digits(digits[..., 0, :]), join_digits(digits[..., 1, :])

    def __add__(self, other: Statistics) -> Statistics:
        return self._combine(other, 1) if isinstance(other, Statistics) else NotImplemented

    def __radd__(self, other: object) -> Statistics:
        return self if other == 0 else NotImplemented  # `sum` begins with 0

    def __sub__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        try:
            return self._combine(other, -1)
        except ModelError as error:
            raise ModelError(f"cannot subtract records that were not added: {error}") from error

    def _combine(self, other: Statistics, sign: int) -> Statistics:
        if self.counts.shape != other.counts.shape:
            sizes = [f"{len(one.counts)} groups and {one.counts.shape[1]} states" for one in (self, other)]
            raise ModelError(f"statistics of {sizes[0]} cannot be combined with those of {sizes[1]}")
        numbers, moments = (_add(getattr(self, name), sign * getattr(other, name)) for name in ("numbers", "moments"))
        return Statistics(self.counts + sign * other.counts, numbers, moments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statistics) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("counts", "numbers", "moments")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        groups, states = many(len(self.counts), "group"), many(self.counts.shape[1], "state")
        return f"Statistics({groups}, {states}, {self.counts.sum():,} transitions, {self.numbers.sum():,} rewards)"


def _add(one: IntArray, other: IntArray) -> IntArray:
    """Return the sum of two tables with periods first, of which one may be longer."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    return np.concatenate([long[: len(short)] + short, long[len(short) :]])


def _check_moments(numbers: IntArray, digits: IntArray) -> None:
    """Raise ModelError where sums and sums of squares (..., 2, 5) cannot be those of so many rewards (...).

    They cannot where a digit is too large, a sum of squares is negative, or the square of the sum is above its bound
    (Cauchy-Schwarz), which for one reward is an equality.
    """
    most = np.maximum(numbers, 1)[..., np.newaxis, np.newaxis] * 2.0**31
    total, squares = (join_digits(digits[..., k, :]) for k in (0, 1))
    lowest, highest = total**2 / np.maximum(numbers, 1), np.where(numbers == 1, total**2, np.inf)
    slack = NEARLY * (np.abs(squares) + lowest) + 2.0**-50
    wrong = (np.abs(digits) > most).any(axis=(-1, -2)) | (squares < lowest - slack) | (squares > highest + slack)
    for at in np.argwhere(wrong)[:1]:
        place = ", ".join(map(str, at))
        raise ModelError(f"moments[{place}] are not those of {many(int(numbers[tuple(at)]), 'reward')}", field="moments")


def _groups(group_of: ArrayLike | None, groups: int | None, arms: int) -> tuple[IntArray, int]:
    """Return the group (N,) of every arm, and the number of groups."""
    given = np.zeros(arms) if group_of is None else as_floats(group_of, "group_of")
    count = (
        int(np.clip(np.nan_to_num(given).max(initial=0), 0, MOST)) + 1 if groups is None else as_integer(groups, "groups")
    )
    if count < 1:
        raise ModelError(f"groups must be at least 1, got {count}", field="groups")
    return as_indices(given, "group_of", (arms,), count), count
