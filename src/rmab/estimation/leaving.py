"""Which arms have left, and at what rate arms leave, by state and action.

An arm without a record for longer than gaps in the log usually last has left, after its last record. How long that is, is
taken from the gaps themselves: arms that came back were silent for longer than k periods in at most 0.5% of the arm-periods.
The chance of leaving after a record in state s without an action is shrunk towards that of all states, and with an action
towards that of the same state without one, with strengths by marginal likelihood (`strength.py`): an action does not seem to
hold arms where nothing shows it. Records of the last k periods cannot tell who has left, and are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, IntArray, ReadOnly, as_integer, as_table
from rmab.errors import ModelError
from rmab.estimation.strength import strengths
from rmab.logs.log import Log

RARE = 0.005  # of arm-periods: silences that are longer are taken for leaving
ENTERED = 0.5  # of the usual number of records, below which a period is not entered yet
SHORTEST = 2  # periods of silence, after which an arm has left at the earliest
LEFT = "(left)"


@dataclass(frozen=True, eq=False)
class Leaving(ReadOnly):
    """Leaving: after `silence` periods without a record they have left; numbers (S, 2) of leaving and staying.

    rates (S, 2): the chance of leaving after a period in a state, with and without an action.
    """

    silence: int
    left: FloatArray
    stayed: FloatArray
    rates: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.rates), 2)
        for name, most in (("left", np.inf), ("stayed", np.inf), ("rates", 1.0)):
            object.__setattr__(self, name, as_table(getattr(self, name), name, shape, 0.0, most))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """(S, 2) what the rates may be."""
        visits = self.left + self.stayed + 1.0
        gone, there = (rng.gamma(np.maximum(visits * one, 1e-9)) for one in (self.rates, 1.0 - self.rates))
        return np.asarray(gone / (gone + there))


def add_leaving(kernels: FloatArray, rates: FloatArray) -> FloatArray:
    """(..., S + 1, 2, S + 1) kernels (..., S, 2, S) with one more state, from which nobody returns."""
    size = kernels.shape[-1]
    found = np.zeros((*kernels.shape[:-3], size + 1, 2, size + 1))
    found[..., :size, :, :size] = kernels * (1.0 - rates)[..., np.newaxis]
    found[..., :size, :, size] = rates
    found[..., size, :, size] = 1.0
    return found


def find_silence(log: Log, gone_after: int | None) -> int:
    """Return after how many periods without a record an arm has left; the number of periods if none has."""
    if gone_after is not None:
        limit = as_integer(gone_after, "gone_after")
        if limit < 1:
            raise ModelError(f"gone_after must be at least 1, got {limit}")
        return limit
    gaps = np.where(np.diff(log.arm_of) == 0, np.diff(log.period) - 1, 0)
    total = float(log.arm_of.size + gaps.sum())
    records = np.bincount(log.period, minlength=log.periods.count)
    entered = np.flatnonzero(records >= ENTERED * np.median(records[records > 0]))
    late = log.periods.count - 1 - int(entered.max())  # the last periods may not be entered yet: nobody is silent in them
    for limit in range(SHORTEST, max(log.periods.count // 2, SHORTEST)):
        if np.maximum(gaps - limit, 0).sum() <= RARE * total:
            return limit + late
    return log.periods.count


def find_leaving(log: Log, silence: int) -> Leaving | None:
    """Return how arms leave; None where no arm has been silent for so long within the log."""
    last = np.concatenate([np.diff(log.arm_of) != 0, [True]])
    known = (log.state >= 0) & (log.action >= 0) & (log.period < log.periods.count - 1 - silence)
    gone, there = (_count(log, known & one) for one in (last, ~last))
    if gone.sum() == 0:
        return None
    visits = gone + there
    rates = np.empty_like(gone)
    pooled = np.full(len(gone), float(gone[:, 0].sum() / max(visits[:, 0].sum(), 1.0)))
    rates[:, 0] = _shrink(gone[:, 0], visits[:, 0], pooled)
    rates[:, 1] = np.where(visits[:, 1] > 0, _shrink(gone[:, 1], visits[:, 1], rates[:, 0]), rates[:, 0])
    return Leaving(silence, gone, there, rates)


def _count(log: Log, rows: FloatArray | IntArray) -> FloatArray:
    found = np.zeros((len(log.state_names), 2))
    np.add.at(found, (log.state[rows], log.action[rows]), 1.0)
    return found


def _shrink(gone: FloatArray, visits: FloatArray, centre: FloatArray) -> FloatArray:
    """(S,) chances of so many of so many visits, shrunk towards centres (S,)."""
    sure = np.clip(centre, 1e-6, 1.0 - 1e-6)
    counts, means = np.stack([gone, visits - gone], axis=1), np.stack([sure, 1.0 - sure], axis=1)
    strength = float(strengths(counts[:, np.newaxis], means[:, np.newaxis])[0])
    return np.asarray((gone + strength * sure) / (visits + strength))
