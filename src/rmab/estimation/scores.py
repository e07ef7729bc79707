"""Average effects within strata of like records, with the errors of arms: the tests behind gates and checks.

Within a stratum h (group, state and period) an action has the frequency e_h, and what comes next the mean y_h. The average
effect is that of least squares within strata, which weighs them by how much both choices were made,

    b = sum of (A - e_h)(Y - y_h)  /  sum of (A - e_h)^2,

so that periods in which all do well, and more are acted on, add nothing. Records of a stratum are also alike in the time
since the arm's first record, and in the chance with which an action was drawn, where the log has it. Where strata would be
tiny, e and y are sums of two parts instead: one of group, state and half of the log, and one of group and period, or of the
period where groups are tiny (two-way fixed effects). Either way arms are its independent units: the variance is the sum
over arms of the squares of their parts (Liang & Zeger 1986).

Where calls go to those who have just fallen, and where arms go depends on the state before as well, an action seems to have
an effect. So the state before, within group and state, can be one more part of e and y (`past`): a part and not a stratum,
as strata would be thin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from rmab.common import BoolArray, FloatArray, IntArray, cached_property
from rmab.estimation.fit import Fit

WIDE = 1.959963984540054  # standard errors in half a 95% interval
RECENT = 4  # periods in which an earlier action may still count
TINY, TURNS = 6.0, 20  # records in a stratum, on average, below which two parts replace it; iterations that separate them
LEAST = 5.0  # actions beside like records without one, below which nothing can be compared
NEW = (2, 4, 8, 16)  # periods since the first record: classes of arms that are about as new
LIKE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)  # ends of like chances


@dataclass(frozen=True, eq=False)
class Average:
    """An average effect, the part of every arm in its error (N,), the actions behind it, and the mean without one."""

    value: float
    parts: FloatArray
    actions: int
    usual: float

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt((self.parts**2).sum()))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the 95% interval."""
        return self.value - WIDE * self.error, self.value + WIDE * self.error


@dataclass(frozen=True, eq=False)
class Records:
    """All transitions of a fit, (M,): arm, group, state, period, action, what comes next, recent and earlier actions.

    worth (G, S): what a state brings without an action. tenure (M,): time since the first record, in classes. chance (M,):
    of being acted on, in classes; -1 is not known. before (M,): the state before; -1 is not known. past: whether records are
    compared within the state before, too.
    """

    arm: IntArray
    group: IntArray
    state: IntArray
    period: IntArray
    action: IntArray
    outcome: FloatArray
    recent: IntArray
    earlier: IntArray
    worth: FloatArray
    arms: int
    tenure: IntArray | None = None
    chance: IntArray | None = None
    before: IntArray | None = None
    past: bool = False

    @classmethod
    def of(cls, fit: Fit) -> Records:
        """Return the records of a fit; what a state is worth is what it brings without an action."""
        log = fit.require_log()
        moves = log.transitions
        group = fit.group_of[moves.arm]
        worth, count = fit.pay.table[group, moves.after, 0], log.periods.count
        row = np.searchsorted(log.arm_of * count + log.period, moves.arm * count + moves.period)
        if fit.pay.kind == "learned" and log.reward is not None:  # an action may change what its own period brings
            worth = worth + np.where(np.isnan(log.reward[row]), fit.pay.table[group, moves.state, 0], log.reward[row])
        acted = np.zeros((len(log.arms), log.periods.count + RECENT), dtype=np.int8)
        acted[log.arm_of, log.period + RECENT] = log.action == 1
        before = np.cumsum(acted, axis=1, dtype=np.int64)
        recent = before[moves.arm, moves.period + RECENT - 1] - np.where(
            moves.period > 0, before[moves.arm, np.maximum(moves.period - 1, 0)], 0
        )
        earlier = before[moves.arm, moves.period + RECENT - 1]
        own = (moves.arm, group, moves.state, moves.period, moves.action, worth, recent, earlier, fit.pay.table[:, :, 0])
        first = np.full(len(log.arms), count)
        np.minimum.at(first, log.arm_of, log.period)
        tenure = np.searchsorted(NEW, moves.period - first[moves.arm], side="right")
        if log.chance is None:
            return cls(*own, len(log.arms), tenure, None, moves.before)
        drawn = log.chance[row]
        chance = np.where(np.isnan(drawn), -1, np.searchsorted(LIKE, drawn))
        return cls(*own, len(log.arms), tenure, chance, moves.before)

    @property
    def half(self) -> IntArray:
        """(M,) 1 for records in the second half of the log: levels may change."""
        return np.asarray(self.period > (self.period.max(initial=0) + self.period.min(initial=0)) / 2).astype(np.int64)

    def strata(self, *more: IntArray) -> IntArray:
        """(M,) numbers of strata: group, state, like tenures and chances, and whatever else."""
        like = [one for one in (self.tenure, self.chance) if one is not None]
        return classes(self.group, self.state, *like, *more)

    @cached_property
    def blocks(self) -> tuple[IntArray, ...]:
        """Strata (M,) of group, state and period; where those are tiny, of group, state and half, and of periods.

        With `past`, also of the state before, within group and state, or within the state where those are tiny.
        """
        past: tuple[IntArray, ...] = ()
        if self.past and self.before is not None:
            own = classes(self.group, self.state, self.before)
            past = (own if is_large(own, TINY) else classes(self.state, self.before),)
        fine = self.strata(self.period)
        if is_large(fine, TINY):
            return fine, *past
        both = classes(self.group, self.period)
        return self.strata(self.half), both if is_large(both, TINY / 2) else self.period, *past

    def rest(self, values: FloatArray | IntArray, inside: BoolArray) -> FloatArray:
        """Return what is left of values (M,) of some records after the means of their blocks."""
        left = np.asarray(values[inside], dtype=np.float64)
        blocks = [np.unique(one[inside], return_inverse=True)[1].reshape(-1) for one in self.blocks]
        for _ in range(TURNS if len(blocks) > 1 else 1):
            for one in blocks:
                left = centre(left, one)
        return left

    @property
    def coarse(self) -> Average:
        """The average effect within group and state alone, as the model has it, whatever the period, tenure and chance."""
        return replace(self, period=np.zeros_like(self.period), tenure=None, chance=None).average()

    @property
    def carried(self) -> Average:
        """What an action in the last periods still adds, in records without one: nothing, if the state says it all."""
        rows = self.action == 0
        arm, group, state, period, recent = (
            one[rows] for one in (self.arm, self.group, self.state, self.period, self.recent)
        )
        tenure, chance = (None if one is None else one[rows] for one in (self.tenure, self.chance))
        alone = Records(
            arm, group, state, period, (recent > 0).astype(np.int64), self.outcome[rows], recent, self.earlier[rows],
            self.worth, self.arms, tenure, chance,
        )  # fmt: skip
        return alone.average()

    def change(self, by: FloatArray | IntArray, part: IntArray | None = None) -> tuple[float, float]:
        """Return by how much the effect rises with something, (M,), within group and state, and the p of no change.

        Every group and state has a separate effect: that more actions go where they work is no change. Strata never hold
        both parts (M,) of the records, where they are given.
        """
        act, out = np.empty(self.arm.size), np.empty(self.arm.size)
        for k in (0,) if part is None else (0, 1):
            inside = np.ones(self.arm.size, dtype=bool) if part is None else part == k
            act[inside], out[inside] = (self.rest(one, inside) for one in (self.action, self.outcome))
        cell = classes(self.group, self.state)
        size = np.maximum(np.bincount(cell, weights=act**2), 1e-9)
        own, mean = (np.bincount(cell, weights=one) / size for one in (act * out, act**2 * by))
        rise, left = act * (by - mean[cell]), out - act * own[cell]
        total, spare = float((rise**2).sum()), float(size.sum()) - int((size > LEAST / 10).sum()) - 1
        if total <= LEAST / 100 or spare < LEAST:
            return np.nan, 1.0
        value = float((rise * left).sum()) / total
        parts = np.bincount(self.arm, weights=rise * (left - value * rise), minlength=self.arms) / total
        error = float(np.sqrt((parts**2).sum() * size.sum() / spare))
        return value, float(2 * norm.sf(abs(value) / error)) if error > 0 else 1.0

    @property
    def trend(self) -> tuple[float, float]:
        """By how much the effect rises over the log, and the p of no change."""
        return self.change((self.period - self.period.min(initial=0)) / max(int(np.ptp(self.period)), 1))

    def average(self, part: IntArray | None = None, of: int = 0) -> Average:
        """Return the average effect, of the records in one of two parts (M,), or of all; strata never hold both parts."""
        inside = np.ones(self.arm.size, dtype=bool) if part is None else part == of
        if not inside.any():
            return Average(np.nan, np.zeros(self.arms), 0, np.nan)
        act, out = (self.rest(one, inside) for one in (self.action, self.outcome))
        whole = float((act**2).sum())
        if whole < LEAST:
            return Average(np.nan, np.zeros(self.arms), int(self.action[inside].sum()), np.nan)
        value = float((act * out).sum()) / whole
        parts = np.bincount(self.arm[inside], weights=act * (out - value * act), minlength=self.arms) / whole
        usual = float((act**2 * (self.outcome[inside] - value * self.action[inside])).sum()) / whole
        return Average(value, parts, int(self.action[inside].sum()), usual)


def classes(*columns: IntArray) -> IntArray:
    """(M,) numbers of classes of records that are equal in all columns (M,)."""
    return np.asarray(np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1))


def is_large(classes: IntArray, least: float) -> bool:
    """Whether classes (M,) have so many records on average."""
    return bool(classes.size >= least * (classes.max(initial=0) + 1))


def centre(values: FloatArray, stratum: IntArray) -> FloatArray:
    """(M,) values less the mean of their stratum."""
    number = np.bincount(stratum)
    return np.asarray(values - (np.bincount(stratum, weights=values) / np.maximum(number, 1))[stratum])


def compare(one: Average, other: Average) -> tuple[float, float]:
    """Return by how much an average effect is larger than another of the same arms, and the p of no difference."""
    error = float(np.sqrt(((one.parts - other.parts) ** 2).sum()))
    gap = one.value - other.value
    return (gap, float(2 * norm.sf(abs(gap) / error))) if error > 0 and np.isfinite(gap) else (np.nan, 1.0)
