"""From reports to statistics: observed transitions, how often decisions are carried out, and current states.

Kernels are learned from what was executed. An arm on the list counts as executed, or not, only if a report says
so; an arm that is not on the list of a decided period counts as not executed, unless a report says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray, sum_by_group
from rmab.estimation.statistics import Statistics
from rmab.live.cells import FIELDS, is_known
from rmab.live.ledger import Ledger
from rmab.live.stays import ALWAYS

LONGEST = 60  # most periods over which the last state is carried forward
SURE = 10.0  # prior weight of the pooled reach rate, in reports


@dataclass(frozen=True, eq=False)
class Transitions:
    """What happened in one period to N arms: state before, executed (1, 0, -1 unknown), state after, -1 unknown.

    listed (N,): who was on the list. reward (N,): NaN if unknown.
    """

    before: IntArray
    executed: IntArray
    after: IntArray
    listed: IntArray
    reward: FloatArray


def transitions(ledger: Ledger, period: int) -> Transitions:
    """Return what happened in a period."""
    count = len(ledger.ids)
    cells, entry = ledger.cell(period), ledger.entries(period)
    before = np.where(entry >= 0, entry, ledger.cell(period - 1).states(count))
    listed, executed = np.zeros(count, dtype=np.int64), cells.executed(count)
    record = ledger.decisions.get(period)
    if record is not None:
        listed[list(record.rules)] = 1
        executed = np.where((executed < 0) & (listed == 0), 0, executed)
    return Transitions(before, executed, cells.states(count), listed, cells.rewards(count))


def count_uncounted(ledger: Ledger, period: int, ids: Iterable[str]) -> dict[str, int]:
    """Return how many of these arms are reported in a period without being counted as a transition yet, by what is unknown.

    'start': the state at the start of the period; 'executed'; 'state': the state at its end.
    """
    seen, cells, count = transitions(ledger, period), ledger.cell(period), len(ledger.ids)
    arms = np.array(sorted({ledger.place[one] for one in ids if one in ledger.place}), dtype=np.int64)
    has_report = np.zeros(count, dtype=bool)
    for name in FIELDS:
        has_report |= is_known(name, cells.read(name, count))
    found, left = {}, arms[has_report[arms]]
    for what, values in (("start", seen.before), ("executed", seen.executed), ("state", seen.after)):
        unknown = values[left] < 0
        if unknown.any():
            found[what] = int(unknown.sum())
        left = left[~unknown]
    return found


class Observer:
    """The statistics of a ledger; those of a period are cached until it changes."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[object, IntArray, IntArray, tuple[IntArray, FloatArray]]] = {}
        self.states: dict[object, Any] = {}  # states of learners in episodes, by their lessons

    def statistics(self, ledger: Ledger) -> Statistics:
        """Return the order-free statistics of all reports. Periods of rewards are counted from the first one."""
        shape = (len(ledger.groups) or 1, len(ledger.declared.states))
        counts = np.zeros((*shape, 2, shape[1]), dtype=np.int64)
        places, values = [], []
        first = ledger.first_period or 0
        for period in sorted({*ledger.cells, *ledger.decisions}):
            _, own, _, (place, value) = self._period(ledger, period)
            counts[: len(own)] += own
            if value.size:
                places.append(np.vstack([np.full(value.size, period - first), place]))
                values.append(value)
        if not values:
            return Statistics.from_counts(counts)
        none = np.zeros(0, dtype=np.int64)
        where = tuple(np.concatenate(places, axis=1))
        rewards = Statistics.from_records(shape, (none,) * 4, where, np.concatenate(values))
        return Statistics(counts, rewards.numbers, rewards.moments)

    def recent(self, ledger: Ledger, count: int) -> list[IntArray]:
        """Return the transitions (G, S, 2, S) of each of the last periods, in order."""
        return [self._period(ledger, one)[1] for one in sorted({*ledger.cells, *ledger.decisions})[-count:]]

    def by_place(self, ledger: Ledger) -> IntArray:
        """(G, S, 2, S) transitions by who was on the list; by execution in periods that were not decided."""
        shape = (len(ledger.groups) or 1, len(ledger.declared.states), 2, len(ledger.declared.states))
        counts = np.zeros(shape, dtype=np.int64)
        for period in sorted({*ledger.cells, *ledger.decisions}):
            seen = transitions(ledger, period)
            action = seen.listed if period in ledger.decisions else seen.executed
            known = (seen.before >= 0) & (action >= 0) & (seen.after >= 0)
            np.add.at(counts, (ledger.group_of[known], seen.before[known], action[known], seen.after[known]), 1)
        return counts

    def reach(self, ledger: Ledger) -> FloatArray:
        """(G,) the fraction of decisions that are carried out; groups with few reports are shrunk towards all."""
        whole = np.zeros((len(ledger.groups) or 1, 2))
        for period in ledger.decisions:
            own = self._period(ledger, period)[2]
            whole[: len(own)] += own
        pooled = (whole[:, 1].sum() + 1.0) / (whole.sum() + 1.0)
        return np.asarray((whole[:, 1] + SURE * pooled) / (whole.sum(axis=1) + SURE))

    def _period(self, ledger: Ledger, period: int) -> tuple[object, IntArray, IntArray, tuple[IntArray, FloatArray]]:
        """Return the statistics of a period; arms and groups that join later do not change it."""
        record = ledger.decisions.get(period)
        versions = tuple(ledger.cell(one).version for one in (period, period - 1))
        decided = None if record is None else (record.sequence, record.version)
        always = ledger.stays.entering[ALWAYS] if period == ledger.first_period else 0
        key = (versions, decided, ledger.stays.entering[period] + always)
        found = self._counts.get(period)
        if found is None or found[0] != key:
            found = self._counts[period] = (key, *_count(ledger, transitions(ledger, period)))
        return found


def _count(ledger: Ledger, seen: Transitions) -> tuple[IntArray, IntArray, tuple[IntArray, FloatArray]]:
    """Return transitions (G, S, 2, S), whether decisions were carried out (G, 2), and rewards with their places (3, R)."""
    groups, states = len(ledger.groups) or 1, len(ledger.declared.states)
    group, known = ledger.group_of, (seen.before >= 0) & (seen.executed >= 0)
    moved = known & (seen.after >= 0)
    place = (group[moved], seen.before[moved], seen.executed[moved], seen.after[moved])
    shape = (groups, states, 2, states)
    counts = np.bincount(np.ravel_multi_index(place, shape), minlength=int(np.prod(shape))).reshape(shape)
    called = (seen.listed == 1) & (seen.executed >= 0)
    reached = np.bincount(2 * group[called] + seen.executed[called], minlength=2 * groups).reshape(groups, 2)
    paid = known & ~np.isnan(seen.reward)
    return counts, reached, (np.vstack([group[paid], seen.before[paid], seen.executed[paid]]), seen.reward[paid])


def believe(ledger: Ledger, period: int, arms: IntArray, kernels: FloatArray, reach: FloatArray) -> FloatArray:
    """(M, S) the probability of every state of arms (M,) when a period begins: the last known state, carried forward.

    kernels (G, S, 2, S), reach (G,): b <- b P under the executed action, or its probability.
    """
    states, count = kernels.shape[1], len(ledger.ids)
    usual = np.ones(states)
    for one in [p for p in ledger.cells if period - LONGEST <= p < period]:
        seen = ledger.cells[one].states(count)
        usual += np.bincount(seen[seen >= 0], minlength=states)
    belief = np.broadcast_to(usual / usual.sum(), (arms.size, states)).copy()
    lag = np.full(arms.size, -1, dtype=np.int64)
    first = ledger.first_period if ledger.first_period is not None else period
    for k in range(min(LONGEST, max(period - first, 0)) + 1):
        entry = ledger.entries(period - k)
        start = np.where(entry >= 0, entry, ledger.cell(period - k - 1).states(count))[arms]
        found = (lag < 0) & (start >= 0)
        belief[found] = np.eye(states)[start[found]]
        lag[found] = k
        if (lag >= 0).all():
            break
    group = ledger.group_of[arms]
    for k in range(int(lag.max(initial=0)), 0, -1):
        then = transitions(ledger, period - k)
        old = np.flatnonzero(lag >= k)
        executed, listed = then.executed[arms[old]], then.listed[arms[old]]
        chance = np.where(executed >= 0, executed, listed * reach[group[old]])[:, np.newaxis]
        passive, active = (sum_by_group("ns,nsy->ny", belief[old], kernels[:, :, a], group[old]) for a in (0, 1))
        belief[old] = (1.0 - chance) * passive + chance * active
    return belief
