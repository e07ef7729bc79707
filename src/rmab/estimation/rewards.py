"""What a period in a state is worth: declared, learned from the log, or assumed and said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.errors import ModelError
from rmab.logs.faults import listed, quoted
from rmab.logs.log import Log


@dataclass(frozen=True, eq=False)
class Pay(ReadOnly):
    """Rewards.

    Attributes
    ----------
    table : (G, S, 2) float array
        Of every group, state and action.
    unit : str
        What one unit of reward is, in the plural: 'weeks engaged', or 'reward'.
    goal : int
        The state that is worth most without an action.
    kind : str
        'declared', 'learned' or 'assumed'.
    notes : tuple of str
        What was assumed.
    """

    table: FloatArray
    unit: str
    goal: int
    kind: str
    notes: tuple[str, ...] = ()


def pay_of(log: Log, reward: Mapping[str, float] | None, cell_of: IntArray, counts: IntArray) -> Pay:
    """Return the rewards of a log, by the first of: declared, learned, assumed."""
    if reward is not None:
        return _declared(log, reward, len(counts))
    if log.reward is not None:
        return _learned(log, cell_of, len(counts))
    return _assumed(log, counts)


def _declared(log: Log, reward: Mapping[str, float], cells: int) -> Pay:
    if not isinstance(reward, Mapping) or not reward:
        raise ModelError(f"reward must name states and what they are worth, {{'engaged': 1}}, got {reward!r:.60}")
    worth = np.zeros(len(log.state_names))
    for name, value in reward.items():
        if name not in log.state_names:
            raise ModelError(f"reward: there is no state {quoted(name)}; the states are {listed(log.state_names, 20)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not abs(value) <= 1e12:
            raise ModelError(f"reward: {quoted(name)} must be worth a number, got {value!r:.40}")
        worth[log.state_names.index(name)] = value
    if np.ptp(worth) == 0:
        raise ModelError("reward: all states are worth the same, so nothing can be gained")
    ones = [name for name, value in zip(log.state_names, worth, strict=True) if value]
    counts_periods = len(ones) == 1 and worth.max() == 1
    unit = f"{log.periods.unit}s {ones[0]}" if counts_periods else "points"
    return Pay(_spread(worth, cells), unit, int(worth.argmax()), "declared")


def _spread(worth: FloatArray, cells: int) -> FloatArray:
    return frozen(np.broadcast_to(worth[np.newaxis, :, np.newaxis], (cells, worth.size, 2)).copy())


def _assumed(log: Log, counts: IntArray) -> Pay:
    """Let the best state be worth 1: the last of an order, or the one that actions make more likely."""
    if log.ordered:
        goal, why = len(log.state_names) - 1, "it is the last of the states"
    else:
        pooled = counts.sum(axis=0)
        visits = pooled.sum(axis=2)
        both = (visits > 0).all(axis=1)
        if not both.any():
            raise ModelError(
                f"which state is good? say it with reward={{'{log.state_names[-1]}': 1}}; the log does not show it: there "
                f"is no state that was seen both with and without {log.a_word}"
            )
        rows = pooled[both] / visits[both][..., np.newaxis]
        rise = (visits[both].sum(axis=1) @ (rows[:, 1] - rows[:, 0])) / visits[both].sum()
        goal, why = int(rise.argmax()), f"{log.a_word} makes it more likely"
    name = log.state_names[goal]
    worth = np.eye(len(log.state_names))[goal]
    told = f"no reward was given: a {log.periods.unit} in '{name}' is taken to be worth 1, because {why}; other states 0"
    return Pay(_spread(worth, len(counts)), f"{log.periods.unit}s {name}", goal, "assumed", (told,))


def _learned(log: Log, cell_of: IntArray, cells: int) -> Pay:
    """Average the log's rewards by state and action, those of a group shrunk towards those of all.

    The mean of a group has the weight n / (n + v / t), where v is the variance of one reward within groups and t that of
    the groups' means beyond chance (moments; Morris 1983).
    """
    assert log.reward is not None
    states = len(log.state_names)
    known = (log.state >= 0) & (log.action >= 0) & ~np.isnan(log.reward)
    if not known.any():
        raise ModelError("reward: no record has a reward, a state and an action")
    value, pair = log.reward[known], 2 * log.state[known] + log.action[known]
    n, mean = _means(value, pair, 2 * states)
    everywhere = float(value.mean())
    by_state = _means(value, pair // 2, states)
    fallback = np.repeat(np.where(by_state[0] > 0, by_state[1], everywhere), 2)
    pooled = np.where(n > 0, mean, fallback)
    place = cell_of[log.arm_of[known]] * 2 * states + pair
    number, own = _means(value, place, cells * 2 * states)
    within = float(((value - own[place]) ** 2).sum() / max(value.size - (number > 0).sum(), 1))
    number, own = number.reshape(cells, -1), own.reshape(cells, -1)
    gaps = np.where(number > 0, number * (own - pooled) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum((number > 0).sum(axis=0) - 1, 0)
    between = np.maximum(gaps - within * freedom, 0.0) / np.maximum(n - (number**2).sum(axis=0) / np.maximum(n, 1), 1e-12)
    weight = np.divide(number * between, number * between + within, out=np.zeros_like(own), where=number * between > 0)
    table = (pooled + weight * (np.where(number > 0, own, pooled) - pooled)).reshape(cells, states, 2)
    lacking = [log.state_names[k // 2] for k in np.flatnonzero(n == 0)]
    notes = (f"rewards in {listed(sorted(set(lacking)))} were not seen with both actions; they are taken to be equal",)
    return Pay(frozen(table), "reward", int(table[:, :, 0].mean(axis=0).argmax()), "learned", notes if lacking else ())


def _means(value: FloatArray, place: IntArray, size: int) -> tuple[FloatArray, FloatArray]:
    number = np.bincount(place, minlength=size).astype(np.float64)
    total = np.bincount(place, weights=value, minlength=size)
    return number, np.divide(total, number, out=np.zeros(size), where=number > 0)
