"""A programme from a log: its arms join, its records become reports, and the next period can be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from rmab.errors import ModelError
from rmab.live.programme import Programme
from rmab.live.store import Store
from rmab.logs.log import Log

EVERY = {"week": "weeks", "date": "days", "month": "months", "number": "numbers", "time": "seconds"}


def create_from_log(store: Store, name: str, log: Log, *, budget: int, **options: Any) -> Programme:
    """Create a programme from a log; an interrupted call is resumed by the next one.

    Parameters
    ----------
    store : Store
        The store.
    name : str
        Name of the programme.
    log : Log
        From `rmab.data.read_log`. The state of a record is that in which its period began.
    budget : int
        Number of places per period.
    **options
        As in `Store.create`; without `reward` the log must have rewards.

    Returns
    -------
    Programme
        Its statistics are those of the log.
    """
    periods = log.periods
    rewards = np.full(log.state.size, np.nan) if log.reward is None else log.reward
    if options.get("reward") is None and log.reward is None:
        raise ModelError("reward is missing; give the reward of the good state: reward={'STATE': 1} (--reward STATE=1)")
    every = f"{periods.step} {EVERY[periods.kind]}"
    p = store.create(name, states=log.state_names, budget=budget, every=every, start=periods.label(0), **options)
    labels = log.roster.labels
    first_row = np.searchsorted(log.arm_of, np.arange(len(log.arms)))
    first = log.period[first_row]
    for t in np.unique(first).tolist():
        arms = np.flatnonzero(first == t)
        begin = [int(log.state[first_row[n]]) for n in arms]
        states = [None if s < 0 else log.state_names[s] for s in begin]
        ids, groups = [log.arms[n] for n in arms], [labels[n] for n in arms]
        p.join(ids, group=groups, state=states, period=periods.label(t), key=f"log join {t}")
    later = np.flatnonzero((np.arange(log.state.size) != first_row[log.arm_of]) & (log.state >= 0))
    for t in range(-1, periods.count):
        rows, ends = np.flatnonzero(log.period == t), later[log.period[later] == t + 1]
        reports: dict[int, dict[str, Any]] = {int(log.arm_of[k]): {"state": log.state_names[log.state[k]]} for k in ends}
        for k in rows[log.action[rows] >= 0]:
            reports.setdefault(int(log.arm_of[k]), {})["executed"] = int(log.action[k])
        for k in rows[~np.isnan(rewards[rows])]:
            reports.setdefault(int(log.arm_of[k]), {})["reward"] = float(rewards[k])
        if reports:
            p.tell(periods.label(t), [{"arm": log.arms[n], **one} for n, one in reports.items()], key=f"log {t}")
    return p
