"""Rewards of a period in a state: declared, learned from records, or assumed, with a note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, ReadOnly, as_indices, as_table
from rmab.errors import ModelError
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import list_some, quote
from rmab.logs.words import Words

KINDS = ("declared", "learned", "assumed")


@dataclass(frozen=True, eq=False)
class Pay(ReadOnly):
    """Rewards.

    Attributes
    ----------
    table : (G, S, 2) float array
        Of every group, state and action.
    unit : str
        The unit of reward, in the plural: 'weeks engaged', or 'reward'.
    goal : int
        The state with the largest reward without an action.
    kind : str
        'declared', 'learned' or 'assumed'.
    counts_periods : bool
        Whether a period in the goal has reward 1, and any other 0: then rewards are probabilities of the goal.
    notes : tuple of str
        Assumptions.
    """

    table: FloatArray
    unit: str
    goal: int
    kind: str
    counts_periods: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = np.shape(self.table)
        if len(shape) != 3 or shape[2] != 2:
            raise ModelError(f"rewards must have shape (G, S, 2), got {shape}")
        object.__setattr__(self, "table", as_table(self.table, "rewards", shape))
        as_indices(self.goal, "goal", (), shape[1])
        if self.kind not in KINDS:
            raise ModelError(f"the kind of rewards must be one of {', '.join(KINDS)}, got {quote(self.kind)}")


def make_pay(
    statistics: Statistics, names: tuple[str, ...], words: Words, reward: Mapping[str, float] | None, *, ordered: bool
) -> Pay:
    """Return the rewards of groups, by the first of: declared, learned, assumed. ordered: the last state is the best."""
    if reward is not None:
        return _declare(names, words, reward, len(statistics.counts))
    if len(statistics.numbers):
        return _learn(statistics, names)
    return _assume(statistics, names, words, ordered=ordered)


def _declare(names: tuple[str, ...], words: Words, reward: Mapping[str, float], groups: int) -> Pay:
    if not isinstance(reward, Mapping) or not reward:
        raise ModelError(f"reward must name states and their rewards, for example {{'engaged': 1}}, got {reward!r:.60}")
    worth = np.zeros(len(names))
    for name, value in reward.items():
        if name not in names:
            raise ModelError(f"reward: unknown state {quote(name)}; available: {list_some(names, 20)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not abs(value) <= 1e12:
            raise ModelError(f"reward: {quote(name)} must be a number, got {value!r:.40}")
        worth[names.index(name)] = value
    if np.ptp(worth) == 0:
        raise ModelError("reward: all states have the same reward, so lists cannot help; give different rewards")
    counts_periods = np.count_nonzero(worth) == 1 and worth.max() == 1
    unit = f"{words.period}s {names[int(worth.argmax())]}" if counts_periods else "points"
    return Pay(_spread(worth, groups), unit, int(worth.argmax()), "declared", bool(counts_periods))


def _spread(worth: FloatArray, groups: int) -> FloatArray:
    return np.broadcast_to(worth[np.newaxis, :, np.newaxis], (groups, worth.size, 2))


def _assume(statistics: Statistics, names: tuple[str, ...], words: Words, *, ordered: bool) -> Pay:
    """Let the best state be worth 1: the last of an order, or the one that actions make more likely."""
    if ordered:
        goal, why = len(names) - 1, "it is the last of the states"
    else:
        pooled = statistics.counts.sum(axis=0)
        visits = pooled.sum(axis=2)
        both = (visits > 0).all(axis=1)
        if not both.any():
            raise ModelError(
                f"reward is missing; name the good state, for example reward={{'{names[-1]}': 1}}; the log does not show "
                f"it, as no state was seen both with and without {words.an_action}"
            )
        rows = pooled[both] / visits[both][..., np.newaxis]
        rise = (visits[both].sum(axis=1) @ (rows[:, 1] - rows[:, 0])) / visits[both].sum()
        goal, why = int(rise.argmax()), f"{words.an_action} makes it more likely"
    note = f"no reward was given: a {words.period} in '{names[goal]}' has reward 1, because {why}; other states 0"
    worth = _spread(np.eye(len(names))[goal], len(statistics.counts))
    return Pay(worth, f"{words.period}s {names[goal]}", goal, "assumed", True, (note,))


def _learn(statistics: Statistics, names: tuple[str, ...]) -> Pay:
    number = statistics.pooled_rewards[0].sum(axis=0)
    table = average_rewards(*statistics.pooled_rewards)
    lacking = sorted({names[s] for s, _ in np.argwhere(number == 0)})
    notes = (f"rewards in {list_some(lacking)} were not seen with both actions; they are taken to be equal",)
    return Pay(table, "reward", int(table[:, :, 0].mean(axis=0).argmax()), "learned", notes=notes if lacking else ())


def average_rewards(number: FloatArray, total: FloatArray, squares: FloatArray) -> FloatArray:
    """(G, S, 2) average rewards by numbers, sums and sums of squares of that shape, shrunk towards those of all.

    The mean of a group without an action has the weight n / (n + v / t), where v is the variance of one reward within groups
    and t that of the groups' means beyond chance (moments; Morris 1983). What an action adds is common to all groups, and
    shrunk in the same way towards nothing, as far as the states agree that it is nothing.
    """
    own = _divide(total, number)
    excess = np.maximum(squares - number * own**2, 0.0).sum()
    within = float(excess / max(number.sum() - (number > 0).sum(), 1))
    n0, n1 = number[..., 0], number[..., 1]
    both = _divide(n0 * n1, n0 + n1)  # (G, S) what a difference within a group is worth
    size = both.sum(axis=0)
    gain = _divide((both * (own[..., 1] - own[..., 0])).sum(axis=0), size)
    noise = np.divide(within, size, out=np.zeros_like(size), where=size > 0)
    seen = size > 0
    real = max(float((gain[seen] ** 2 - noise[seen]).mean()), 0.0) if seen.any() else 0.0
    gain = gain * np.divide(real, real + noise, out=np.zeros_like(noise), where=seen & (real + noise > 0))
    every, sums = number.sum(axis=2), total.sum(axis=2) - n1 * gain  # as they would be without actions
    mean, whole = _divide(sums, every), every.sum(axis=0)
    pooled = np.where(whole > 0, _divide(sums.sum(axis=0), whole), sums.sum() / max(float(every.sum()), 1e-300))
    gaps = (every * (mean - pooled) ** 2).sum(axis=0)
    freedom = np.maximum((every > 0).sum(axis=0) - 1, 0)
    between = np.maximum(gaps - within * freedom, 0.0)
    between = between / np.maximum(whole - (every**2).sum(axis=0) / np.maximum(whole, 1), 1e-12)
    weight = np.divide(every * between, every * between + within, out=np.zeros_like(mean), where=every * between > 0)
    level = pooled + weight * (np.where(every > 0, mean, pooled) - pooled)
    return np.stack([level, level + gain], axis=2)


def _divide(total: FloatArray, number: FloatArray) -> FloatArray:
    return np.divide(total, number, out=np.zeros_like(total), where=number > 0)
