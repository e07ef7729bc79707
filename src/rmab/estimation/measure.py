"""The benefit of lists, without a model: from randomised lists with recorded chances.

In a period, arm i had the known chance p_i of a place, 0 < p_i < 1, and Z_i says whether the draw gave it one. With Y_i the
outcome and m_i a prediction made before the draw,

    D = sum_i (Z_i - p_i) / (1 - p_i) (Y_i - m_i)

has the mean sum_i p_i (Y_i(1) - Y_i(0)): the benefit of the places for arms with a chance between 0 and 1. It is the
estimator of Horvitz & Thompson (1952) of the listed less that of the others, with a control variate.
It is unbiased for any m; m = (1 - p) E[Y(1)] + p E[Y(0)], by the state before and from earlier periods, makes its
variance smallest. So the errors of the periods form a martingale, and the interval of their sum is a confidence sequence
(`rmab.estimation.sequences`): it is valid at all looks simultaneously.

Arms count as decided, even if the decision was not carried out. Arms with chance 0 or 1 cannot be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, as_integer
from rmab.errors import ModelError
from rmab.estimation.measurement import LEAST, Gain, Measurement
from rmab.estimation.rewards import make_pay
from rmab.estimation.sequences import confidence_sequence, mixture_scale
from rmab.estimation.statistics import Statistics
from rmab.logs.log import Log

TUNED = 26  # periods after which the interval is narrowest
PRIOR = 2.0  # records of no difference behind a prediction
IMPOSSIBLE = 5.0  # standard deviations allowed between drawn places and their chances
SURE, MATTERS = 0.01, 0.02  # error, and change of the share that is recorded, of the check of recording
CHOSEN = 0.5  # chance from which an arm counts as chosen by the index; whether it has a place must not decide


@dataclass(frozen=True, eq=False)
class Decisions(ReadOnly):
    """Decisions whose outcome may be known by now, all (R,).

    listed is -1 and chance NaN where they are not known; expected is what was predicted for the outcome before the draw.
    """

    period: IntArray
    listed: IntArray
    chance: FloatArray
    outcome: FloatArray
    expected: FloatArray

    def where(self, rows: BoolArray) -> Decisions:
        """Return the decisions of these rows (R,)."""
        return Decisions(*(one[rows] for one in vars(self).values()))


def measure(
    log: Log, *, reward: Mapping[str, float] | None = None, after: int = 1, alpha: float = 0.05, looks: int = TUNED
) -> Measurement:
    """Measure the benefit of lists, from a log with the chances with which they were drawn.

    Parameters
    ----------
    log : Log
        With the lists' columns `chance` and `by`, as ``read_log(..., chance="chance", by="by")`` reads them, for everybody,
        on the list or not. Without `by`, the action counts as the decision.
    reward : dict of str to float, optional
        Rewards of states: ``{"engaged": 1}``. By default the log's rewards, or 1 for the last state of an order.
    after : int
        Periods from the decision to its outcome: 1, or 0 for rewards of the same period.
    alpha : float
        The probability that any interval, at any look, misses.
    looks : int
        Number of periods after which the interval is narrowest. It is valid after any number.

    Returns
    -------
    Measurement
        The result; `sentences()` describes it.

    Raises
    ------
    ModelError
        If the log has no chances, or rewards are not clear.

    Examples
    --------
    >>> import pyarrow as pa, rmab
    >>> ids, drawn, none = [f"{k}" for k in range(60)], [1, 0, 0] * 20, [None] * 60  # a third was drawn, and all got well
    >>> columns = {"id": ids * 2, "week": [1] * 60 + [2] * 60, "state": [0] * 60 + drawn, "called": drawn + none}
    >>> table = pa.table(columns | {"chance": [1 / 3] * 60 + none})
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", chance="chance")
    >>> print(rmab.data.measure(log, reward={"1": 1}).sentences()[0])
    The lists helped: 20.0 (3.0 to 37.0) weeks 1, 1.000 (0.150 to 1.850) for each of 20 places (1 week)
    """
    if log.chance is None:
        raise ModelError("the log has no chances; name the column of the lists: read_log(..., chance='chance') (--chance)")
    if as_integer(after, "after") not in (0, 1):
        raise ModelError(f"after must be 0 or 1, got {after}")
    worth, unit = _find_worth(log, reward, after)
    every = _list_decisions(log, worth, after)
    drawn = (every.chance > 0) & (every.chance < 1) & (every.listed >= 0)
    known = ~np.isnan(every.outcome)
    shown = every.where(drawn & known)
    periods = np.unique(shown.period)
    spread = _find_spread(log, every.outcome[known & (every.period < periods.min(initial=log.periods.count))], worth, shown)
    parts = (shown.chance > 0, shown.chance >= CHOSEN, shown.chance < CHOSEN)
    gains = [_sum_up(shown.where(part), periods, spread * looks, alpha) for part in parts]
    return Measurement(
        periods=tuple(log.periods.label(int(one)) for one in periods),
        all=gains[0],
        chosen=gains[1],
        others=gains[2],
        listed=int((shown.listed == 1).sum()),
        left_out=int((shown.listed == 0).sum()),
        enough=_find_enough(shown, periods),
        certain=int((every.chance == 1).sum()),
        excluded=int((every.chance == 0).sum()),
        unknown=int((np.isnan(every.chance) | ((every.listed < 0) & (every.chance > 0) & (every.chance < 1))).sum()),
        unrecorded=int((drawn & ~known).sum()),
        pending=int(((log.chance > 0) & (log.chance < 1) & (log.period + after >= log.periods.count)).sum()),
        problems=(*_check_draw(every.where(drawn)), *_check_recording(every.where(drawn), looks)),
        unit=unit,
        words=log.words,
        effective=_count_effective(shown.chance[shown.listed == 0]),
    )


def _find_worth(log: Log, reward: Mapping[str, float] | None, after: int) -> tuple[FloatArray | None, str]:
    """Return what each state is worth (S,), or None where rewards are recorded; and the unit."""
    if reward is None and log.reward is not None:
        return None, "reward"
    if after == 0:
        raise ModelError("after=0 needs rewards: the state of a period is the one before its decision")
    if reward is None and not log.ordered:
        best = log.state_names[-1]
        raise ModelError(f"reward is missing; name the good state, for example reward={{'{best}': 1}} (--reward {best}=1)")
    statistics = Statistics.from_log(replace(log, reward=None), np.zeros(len(log.arms), dtype=np.int64), 1)
    pay = make_pay(statistics, log.state_names, log.words, reward, ordered=log.ordered)
    return pay.table[0, :, 0], pay.unit


def _list_decisions(log: Log, worth: FloatArray | None, after: int) -> Decisions:
    """Return the decisions of a log whose outcome may be known by now, with predictions."""
    value = log.reward if worth is None else np.where(log.state >= 0, worth[np.maximum(log.state, 0)], np.nan)
    assert value is not None
    assert log.chance is not None
    outcome = np.full(log.period.size, np.nan)
    if after:
        first = np.flatnonzero((np.diff(log.arm_of) == 0) & (np.diff(log.period) == 1))
        outcome[first] = value[first + 1]
    else:
        outcome = value
    decided = log.action if log.listed is None else np.where(np.isnan(log.chance), log.action, log.listed)
    start = 0.0 if worth is None else value[log.period == log.period.min()]
    expected = _predict(log, decided, outcome, float(np.nanmean(start)) if np.isfinite(start).any() else 0.0)
    due = log.period + after < log.periods.count
    return Decisions(log.period, decided, log.chance, outcome, expected).where(due)


def _predict(log: Log, decided: IntArray, outcome: FloatArray, start: float) -> FloatArray:
    """(R,) what to expect of an outcome, by the state before and the chance, from earlier periods; `start` before these."""
    shape = (log.periods.count, len(log.state_names) + 1, 2)
    number, total = np.zeros(shape), np.zeros(shape)
    seen = ~np.isnan(outcome) & (decided >= 0)
    at = log.period[seen], log.state[seen], decided[seen]  # a state that is not known is the last
    np.add.at(number, at, 1.0)
    np.add.at(total, at, outcome[seen])
    number, total = (np.concatenate([np.zeros((1, *shape[1:])), np.cumsum(one, axis=0)[:-1]]) for one in (number, total))
    everybody = (total.sum(axis=(1, 2)) + PRIOR * start) / (number.sum(axis=(1, 2)) + PRIOR)
    by_state = (total.sum(axis=2) + PRIOR * everybody[:, np.newaxis]) / (number.sum(axis=2) + PRIOR)
    mean = (total + PRIOR * by_state[..., np.newaxis]) / (number + PRIOR)
    assert log.chance is not None
    chance = np.nan_to_num(log.chance, nan=0.5)
    without, with_one = (mean[log.period, log.state, a] for a in (0, 1))
    return np.asarray(chance * without + (1.0 - chance) * with_one)


def _find_spread(log: Log, past: FloatArray, worth: FloatArray | None, shown: Decisions) -> float:
    """Return the variance of an outcome as it is known before the first list; it decides where intervals are narrowest."""
    if worth is not None and past.size < 2:  # the states in which the first list finds everybody
        past = worth[log.state[(log.state >= 0) & (log.period == log.period.min())]]
    if past.size > 1 and past.var() > 0:
        return float(past.var())
    if worth is not None:
        return float(np.ptp(worth)) ** 2 / 4.0
    first = shown.period == shown.period.min(initial=0)
    return float(((shown.outcome - shown.expected)[first] ** 2).mean()) if first.any() else 1.0


def _sum_up(part: Decisions, periods: IntArray, spread: float, alpha: float) -> Gain:
    """Return what places brought up to each period, by decisions with outcomes; spread: as many variances as looks."""
    slot, chance = np.searchsorted(periods, part.period), part.chance
    ratio, error = chance / (1.0 - chance), part.outcome - part.expected
    terms = (part.listed - chance) / (1.0 - chance) * error
    each, own, places, first = (
        np.bincount(slot, weights=one, minlength=periods.size) for one in (terms, terms**2, chance, ratio)
    )
    pooled = np.zeros(periods.size)  # as many draws of the errors of all: steadier where few were left out
    for side in (chance >= CHOSEN, chance < CHOSEN):
        count, squares, weight = (
            np.bincount(slot[side], weights=one, minlength=periods.size)
            for one in (np.ones(int(side.sum())), error[side] ** 2, ratio[side])
        )
        pooled += weight * squares / np.maximum(count, 1.0)
    tuned = float(first[first > 0][0]) * spread if first.any() else 0.0
    scale = mixture_scale(tuned, alpha) if tuned > 0 else 1.0
    return Gain(*confidence_sequence(each, np.maximum(own, pooled), scale=scale, alpha=alpha), np.cumsum(places))


def _find_enough(shown: Decisions, periods: IntArray) -> BoolArray:
    """(T,) whether both sides have outcomes enough, in effective numbers (Kish 1965, Section 11.7)."""
    slot, out = np.searchsorted(periods, shown.period), shown.listed == 0
    ratio = shown.chance / (1.0 - shown.chance)
    sums = [
        np.cumsum(np.bincount(slot[side], weights=one[side], minlength=periods.size))
        for side, one in ((~out, np.ones(slot.size)), (out, ratio), (out, ratio**2))
    ]
    return np.asarray((sums[0] >= LEAST) & (sums[1] ** 2 >= LEAST * sums[2]) & (sums[1] > 0))


def _count_effective(chance: FloatArray) -> float:
    """Return as how many outcomes of equal weight those of arms without a place count, by their chances (M,)."""
    weight = chance / (1.0 - chance)
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def _check_draw(drawn: Decisions) -> list[str]:
    """Return what is wrong where more or fewer have a place than chances say: a sample ratio mismatch."""
    for name, side in (("at least one half", drawn.chance >= CHOSEN), ("less than one half", drawn.chance < CHOSEN)):
        chance, listed = drawn.chance[side], drawn.listed[side]
        gap, usual = float((listed - chance).sum()), float(np.sqrt((chance * (1.0 - chance)).sum()))
        if abs(gap) > IMPOSSIBLE * usual:
            return [
                f"of {listed.size:,} arms with a chance of {name}, {int(listed.sum()):,} have a place; by their chances, "
                f"it would be about {chance.sum():,.0f}. The log must hold everybody in the draw: write lists with --all"
            ]
    return []


def _check_recording(drawn: Decisions, looks: int) -> list[str]:
    """Return what is wrong where outcomes are recorded more often, or less often, for those who have a place."""
    if not drawn.period.size:
        return []
    recorded = (~np.isnan(drawn.outcome)).astype(np.float64)
    usual = np.full(recorded.size, recorded.mean())
    periods = np.unique(drawn.period)
    spread = float(recorded.var()) + 1.0 / recorded.size
    found = _sum_up(replace(drawn, outcome=recorded, expected=usual), periods, spread * looks, SURE)
    change = float(found.total[-1] / found.places[-1])
    if (found.low[-1] <= 0 <= found.high[-1]) or abs(change) < MATTERS or not _find_enough(drawn, periods)[-1]:
        return []
    more = "more" if change > 0 else "less"
    return [
        f"a place makes it {100 * abs(change):.0f} points {more} likely that an outcome is recorded: those who are seen are "
        "not alike. Record outcomes of everybody in the draw"
    ]
