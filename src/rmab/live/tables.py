"""Tables of a programme: the list of a period as a form to fill in, and one row per arm and period for other tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rmab.decisions.decision import Decision
from rmab.live.choosing import is_control
from rmab.live.ledger import Ledger
from rmab.live.observing import transitions


def list_table(decision: Decision, *, everybody: bool = False) -> pa.Table:
    """Return a list as a form: `executed` and `state` are empty, to be filled in and passed to `tell`.

    `period` prevents that it is reported for another one.
    """
    order = np.argsort(decision.rank)
    rows = [n for n in order if everybody or decision.rule[n]]
    empty = [""] * len(rows)
    return pa.table(
        {
            "arm": [decision.arms[n] for n in rows],
            "executed": empty,
            "state": empty,
            "period": [decision.period] * len(rows),
            "was": [decision.states[n] for n in rows],
            "action": ["yes" if decision.rule[n] else "no" for n in rows],
            "rank": [int(decision.rank[n]) + 1 for n in rows],
            "index": [float(decision.index[n]) for n in rows],
            "probability": [float(decision.probability[n]) for n in rows],
            "by": [decision.rule[n] for n in rows],
            "reason": [decision.reasons[n] for n in rows],
        }
    )


def export_table(ledger: Ledger) -> pa.Table:
    """Return one row per arm and decided period: everything that an analysis in other tools needs.

    Columns: period, event (number of the decision), policy ('plan' or 'fallback'), arm, group, control, index, probability,
    assigned (what was drawn: 'index', 'left-out', ...), decided (after overrides), executed, state, next_state, reward.
    Unknown values are null.
    """
    config = ledger.declared
    names, count = np.array([*config.states, None], dtype=object), len(ledger.ids)
    ids, groups = np.array(ledger.ids, dtype=object), np.array(ledger.groups, dtype=object)
    answers = np.array([False, True, None], dtype=object)
    control = is_control(tuple(ledger.ids), config.seed, config.control) if count else np.zeros(0, dtype=bool)
    parts: dict[str, list[object]] = {name: [] for name, _ in SCHEMA}
    for period, record in sorted(ledger.decisions.items()):
        seen, arms = transitions(ledger, period), record.arms
        out = set(record.left_out)
        reward = seen.reward[arms]
        columns: dict[str, Any] = {
            "period": [ledger.label(period)] * arms.size,
            "event": [record.sequence] * arms.size,
            "policy": [record.body.status] * arms.size,
            "arm": ids[arms],
            "group": groups[ledger.group_of[arms]],
            "control": control[arms],
            "index": record.index,
            "probability": record.probability,
            "assigned": ["left-out" if int(n) in out else record.planned.get(int(n), "") for n in arms],
            "decided": [int(n) in record.rules for n in arms],
            "executed": answers[seen.executed[arms]],
            "state": names[seen.before[arms]],
            "next_state": names[seen.after[arms]],
            "reward": [None if np.isnan(one) else one for one in reward.tolist()],
        }
        for name, values in columns.items():
            parts[name].extend(list(values))
    return pa.table(parts, schema=pa.schema(SCHEMA))


SCHEMA = [
    ("period", pa.string()),
    ("event", pa.int64()),
    ("policy", pa.string()),
    ("arm", pa.string()),
    ("group", pa.string()),
    ("control", pa.bool_()),
    ("index", pa.float64()),
    ("probability", pa.float64()),
    ("assigned", pa.string()),
    ("decided", pa.bool_()),
    ("executed", pa.bool_()),
    ("state", pa.string()),
    ("next_state", pa.string()),
    ("reward", pa.float64()),
]
