"""Why an arm is on the list, in a sentence made of the numbers that put it there."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import IntArray
from rmab.decisions.selection import FLOOR, LOT, MUST
from rmab.estimation.fit import Fit

FEW = 10  # actions seen in the arm's own group and state, below which what is known comes from other groups
LITTLE = 0.005  # a change that is rounded away


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th ...

    Examples
    --------
    >>> [ordinal(k) for k in (1, 2, 3, 4, 11, 112, 1023)]
    ['1st', '2nd', '3rd', '4th', '11th', '112th', '1,023rd']
    """
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


class Reasons:
    """Sentences on the arms of a fit: `place` is a place in `fit.ids`."""

    def __init__(self, fitted: Fit, why: IntArray, rank: IntArray) -> None:
        self.fit, self.why, self.rank = fitted, why, rank
        self.visits = fitted.counts.sum(axis=3)  # (G, S, 2)

    def of(self, place: int) -> str:
        """Return the sentence on one arm."""
        n = int(self.fit.present[place])
        parts = [self._state(n), self._effect(n), f"{ordinal(int(self.rank[place]) + 1)} of {self.fit.present.size:,}"]
        head = self._head(n, int(self.why[place]))
        return "; ".join([head, *parts] if head else parts)

    def _head(self, n: int, why: int) -> str:
        now, word, unit = self.fit.situation, self.fit.log.word, self.fit.log.periods.unit
        if why == MUST:
            return "on the list by name"
        if why == FLOOR:
            waited = int(now.acted_before[n])
            never = f"no {word} yet" if now.never[n] else f"no {word} for {waited} {unit}{'' if waited == 1 else 's'}"
            return f"{never}: due by the floor"
        return "drawn at random" if why == LOT else ""

    def _state(self, n: int) -> str:
        now, log = self.fit.situation, self.fit.log
        unit = log.periods.unit
        if now.state[n] < 0:
            return "never seen in any state"
        name, streak, before = log.state_names[now.state[n]], int(now.streak[n]), int(now.seen_before[n])
        if before > 1:
            return f"{name} when last seen {before} {unit}s ago"
        if before == 1:
            return f"{name} for {streak} {unit}s until last {unit}" if streak > 1 else f"{name} last {unit}"
        return f"{name} for {streak} {unit}s" if streak > 1 else f"{name} since this {unit}" if self._new(n) else name

    def _new(self, n: int) -> bool:
        """Return whether the record before shows another state."""
        log = self.fit.log
        row = int(np.searchsorted(log.arm_of, n, side="right")) - 1
        return (
            row > 0 and log.arm_of[row - 1] == n and log.period[row] - log.period[row - 1] == 1 and log.state[row - 1] >= 0
        )

    def _effect(self, n: int) -> str:
        fitted, log = self.fit, self.fit.log
        group, belief, unit = int(fitted.group_of[n]), fitted.situation.belief[n], log.periods.unit
        likeliest = int(belief.argmax())
        if fitted.rows.unseen[likeliest, 1]:
            return f"nothing is known of {log.a_word} in this state"
        ahead = belief @ fitted.kernels[group].reshape(belief.size, -1)
        ahead = ahead.reshape(2, -1)  # the chance of every state in the next period, by action
        own = self.visits[group, likeliest, 1]
        source = "" if own >= FEW or len(fitted.groups) == 1 else " (known mostly from other groups)"
        if fitted.pay.unit.startswith(f"{unit}s "):
            goal = log.state_names[fitted.pay.goal]
            low, high = (float(one) for one in ahead[:, fitted.pay.goal])
            return f"{log.a_word} {_changes(low, high)} {goal} next {unit} {_percent(low, high)}{source}"
        worth = fitted.pay.table[group, :, 0]
        low, high = (float(one @ worth) for one in ahead)
        verb = "raises" if high > low else "lowers"
        return f"{log.a_word} {verb} what next {unit} is expected to bring from {low:.3g} to {high:.3g}{source}"


def _changes(low: float, high: float) -> str:
    if abs(high - low) < LITTLE:
        return "hardly changes the chance of being"
    return "raises the chance of being" if high > low else "lowers the chance of being"


def _percent(low: float, high: float) -> str:
    digits = 0 if abs(high - low) >= 0.02 else 1
    a, b = (f"{100 * one:.{digits}f}%" for one in (low, high))
    return f"from {a} to {b}" if abs(high - low) >= LITTLE else f"({a})"
