"""Does the model fit? Earlier predictions beside observed outcomes, for every group.

The last periods are predicted from the reports of all earlier ones, and only from those. For a group and whether the action
was executed, the prediction is the share of arms that end the period in the best state; its interval is that of a
correct prediction (normal approximation of a sum of independent outcomes).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.live.ledger import Ledger
from rmab.live.observing import transitions

WINDOW = 8  # periods that are predicted
PRIOR = 4.0  # prior weight of the pooled rate, in visits
FEWEST = 10  # least number of outcomes to compare
Z = 2.58  # standard errors in half a 99% interval, as there are many groups


def best_state(ledger: Ledger) -> int:
    """Return the state with the largest reward; the last one if no rewards are declared."""
    worth = ledger.declared.reward
    names = ledger.declared.states
    return max(range(len(names)), key=lambda s: (worth.get(names[s], 0.0), s)) if worth else len(names) - 1


def check_model(ledger: Ledger) -> list[dict[str, Any]]:
    """Return predicted and observed shares by group and action, the largest deviation first."""
    periods = sorted({*ledger.decisions, *ledger.cells})
    window = set(periods[-WINDOW:])
    good, groups, states = best_state(ledger), len(ledger.groups), len(ledger.declared.states)
    then, now = (np.zeros((groups, states, 2, 2)) for _ in range(2))  # the last axis: outcomes, and good ones
    for period in periods:
        seen = transitions(ledger, period)
        known = (seen.before >= 0) & (seen.executed >= 0) & (seen.after >= 0)
        place: tuple[Any, ...] = (ledger.group_of[known], seen.before[known], seen.executed[known])
        table = now if period in window else then
        np.add.at(table, (*place, 0), 1.0)
        np.add.at(table, (*place, 1), (seen.after[known] == good).astype(np.float64))
    rate = _rates(then)
    rows = []
    for g, name in enumerate(ledger.groups):
        for action in (1, 0):
            count = now[g, :, action, 0]
            total = float(count.sum())
            if total < FEWEST or then[g, :, action, 0].sum() < FEWEST:
                continue
            expected = float((count * rate[g, :, action]).sum()) / total
            spread = float((count * rate[g, :, action] * (1 - rate[g, :, action])).sum())
            visits = np.maximum(then[g, :, action, 0] + PRIOR, 1.0)
            doubt = float((count**2 * rate[g, :, action] * (1 - rate[g, :, action]) / visits).sum())
            width = Z * float(np.sqrt(spread + doubt)) / total
            observed = float(now[g, :, action, 1].sum()) / total
            rows.append(
                {
                    "group": name,
                    "action": action,
                    "count": int(total),
                    "predicted": expected,
                    "low": max(expected - width, 0.0),
                    "high": min(expected + width, 1.0),
                    "observed": observed,
                    "fits": expected - width <= observed <= expected + width,
                }
            )
    return sorted(rows, key=lambda one: (one["fits"], -abs(one["observed"] - one["predicted"])))


def _rates(table: FloatArray) -> FloatArray:
    """(G, S, 2) the share of good outcomes; groups with few are shrunk towards all."""
    pooled = (table[..., 1].sum(axis=0) + 0.5) / (table[..., 0].sum(axis=0) + 1.0)
    return np.asarray((table[..., 1] + PRIOR * pooled) / (table[..., 0] + PRIOR))
