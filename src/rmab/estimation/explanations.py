"""What a model says of an arm, in words: its state, for how long, and what an action would change."""

from __future__ import annotations

from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.estimation.fit import Fit

FEW = 10  # actions seen in the arm's own group and state, below which what is known comes from other groups
LITTLE = 0.005  # a change that is rounded away


def explain_arms(fit: Fit) -> tuple[str, ...]:
    """(N',) a sentence on every arm that is still there: 'wavering since this week; a call raises the chance of ...'."""
    now, present = fit.situation, fit.present
    kernels = np.asarray(fit.kernels if fit.arm_rows is None else fit.arm_kernels(np.asarray(fit.kernels)))
    row_of = fit.group_of if fit.arm_rows is None else np.arange(len(kernels))
    columns = [one[present].tolist() for one in (row_of, now.state, now.streak, now.seen_before, now.moved)]
    found: dict[tuple[Any, ...], str] = {}  # arms alike have one sentence
    keys = list(zip(*columns, map(bytes, now.belief[present]), strict=True))
    for n, key in zip(present.tolist(), keys, strict=True):
        if key not in found:
            found[key] = f"{_state(fit, n)}; {_effect(fit, n, kernels[row_of[n]])}"
    return tuple(found[key] for key in keys)


def _state(fit: Fit, n: int) -> str:
    now, unit = fit.situation, fit.words.period
    if now.state[n] < 0:
        return "never seen in any state"
    name, streak, before = fit.state_names[now.state[n]], int(now.streak[n]), int(now.seen_before[n])
    if before > 1:
        return f"{name} when last seen {before} {unit}s ago"
    if before == 1:
        return f"{name} for {streak} {unit}s until last {unit}" if streak > 1 else f"{name} last {unit}"
    return f"{name} for {streak} {unit}s" if streak > 1 else f"{name} since this {unit}" if now.moved[n] else name


def _effect(fit: Fit, n: int, kernel: FloatArray) -> str:
    """Return what an action changes, by the kernel (S, 2, S) that the plan has for this arm."""
    group, belief, words = int(fit.group_of[n]), fit.situation.belief[n], fit.words
    likeliest = int(belief.argmax())
    if fit.rows.unseen[likeliest, 1]:
        return f"nothing is known of {words.an_action} in this state"
    ahead = (belief @ kernel.reshape(belief.size, -1)).reshape(2, -1)  # next period's states, by action
    own = fit.counts[group, likeliest, 1].sum()
    source = "" if own >= FEW or len(fit.groups) == 1 else " (known mostly from other groups)"
    if fit.pay.counts_periods:
        goal, (low, high) = fit.state_names[fit.pay.goal], (float(one) for one in ahead[:, fit.pay.goal])
        what = f"{words.an_action} {_changes(low, high)} {goal} next {words.period} {_percent(low, high)}{source}"
        return f"the model estimates that {what}"
    low, high = (float(one @ fit.pay.table[group, :, 0]) for one in ahead)
    verb = "raises" if high > low else "lowers"
    what = f"{words.an_action} {verb} what next {words.period} is expected to bring from {low:.3g} to {high:.3g}{source}"
    return f"the model estimates that {what}"


def _changes(low: float, high: float) -> str:
    if abs(high - low) < LITTLE:
        return "hardly changes the chance of being"
    return "raises the chance of being" if high > low else "lowers the chance of being"


def _percent(low: float, high: float) -> str:
    digits = 0 if abs(high - low) >= 0.02 else 1
    a, b = (f"{100 * one:.{digits}f}%" for one in (low, high))
    return f"from {a} to {b}" if abs(high - low) >= LITTLE else f"({a})"
