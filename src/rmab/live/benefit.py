"""The benefit of the lists, without a model: arms that the index chose, on the list or left out at random.

In every period some of the arms that the index chooses are drawn to be left out. They differ from the others only in
the draw, so the difference in the period's outcome (the reward of its last state, or the reported one) is the benefit of
the places. Its sum over periods is a martingale around the truth, and its interval is a confidence sequence: it
is valid at all periods simultaneously, however often one looks.

Assumptions: whether an outcome is reported must not depend on the draw; one arm's place must not change another arm's
outcome; and lists must not be so small that a handful of outcomes decide. It does not matter whether
the model is right, or what happened before, or whether people override lists: arms count as they were drawn. It excludes
effects after the period, and places by name, floor or at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError, many
from rmab.estimation.sequences import compare_means, confidence_sequence, mixture_scale, periods_needed
from rmab.live.choosing import random_places
from rmab.live.ledger import Ledger

TUNED = 26  # periods after which the interval is narrowest
Z = 1.959964  # standard errors in half a 95% interval of the model's prediction


@dataclass(frozen=True, eq=False)
class Benefit:
    """Benefit of the places by index, in units of reward.

    Attributes
    ----------
    periods : tuple of str
        The T periods that could be compared.
    shown, low, high : (T,) float array
        The measured sum up to each period, without a model, and its confidence sequence.
    promised, promised_low, promised_high : (T,) float array
        Predictions of the models at the time for the same places, and 95% intervals.
    listed, left_out : (T,) int array
        Number of outcomes compared.
    unit : str
        The unit: 'weeks engaged', or 'reward'.
    others : int
        Number of further periods that were decided in another way: by the fallback if these were
        planned, and by plans if these are of the fallback.

    Examples
    --------
    >>> import tempfile, rmab
    >>> with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/p.db") as store:
    ...     p = store.create("p", states=["low", "high"], every="number", budget=4, reward={"high": 1}, random_share=0.5)
    ...     _ = p.join([str(k) for k in range(20)], state="low")
    ...     called = p.ask(1).ids
    ...     _ = p.tell(1, [{"arm": str(k), "state": "high" if str(k) in called else "low"} for k in range(20)])
    ...     print(p.benefit(fallback=True))
    ...     print(p.benefit())
    shown so far 2.0 (-2.4 to 6.4) periods high in 1 period; no model had promised anything
    nothing can be shown yet: the fallback decided 1 period, and none was planned with reports of arms left out at random
    """

    periods: tuple[str, ...]
    shown: FloatArray
    low: FloatArray
    high: FloatArray
    promised: FloatArray
    promised_low: FloatArray
    promised_high: FloatArray
    listed: IntArray
    left_out: IntArray
    unit: str
    others: int = 0

    def __str__(self) -> str:
        if not self.periods and self.others:
            what = f"the fallback decided {many(self.others, 'period')}, and none was planned with reports"
            return f"nothing can be shown yet: {what} of arms left out at random"
        if not self.periods:
            return "nothing can be shown yet: no period has reports of arms on the list and of arms left out at random"
        count = many(len(self.periods), "period")
        shown = f"shown so far {_form(self.shown[-1], self.low[-1], self.high[-1])} {self.unit} in {count}"
        if not self.promised.any():
            return f"{shown}; no model had promised anything"
        aside = f", and {many(self.others, 'period')} by the fallback aside" if self.others else ""
        return f"promised {_form(self.promised[-1], self.promised_low[-1], self.promised_high[-1])}, {shown}{aside}"


def measure_benefit(ledger: Ledger, alpha: float = 0.05, *, fallback: bool = False) -> Benefit:
    """Return the benefit of the places by index, from the reports of a ledger.

    Planned lists and those of the fallback are two policies: they are compared separately.
    """
    worth = _worth(ledger)
    count, spread = len(ledger.ids), _spread(ledger, worth)
    rows: list[tuple[int, float, float, float, float, int, int]] = []
    tuned, others = 0.0, 0
    for period, record in sorted(ledger.decisions.items()):
        by_index = record.by_index()
        if not by_index or not record.left_out:
            continue
        mine = (record.body.status == "fallback") == fallback
        tuned = tuned or mine * TUNED * spread**2 / 4.0 * len(by_index) ** 2 * (1 / len(by_index) + 1 / len(record.left_out))
        outcome = outcomes(ledger, period, worth, count)
        on, off = (outcome[list(arms)] for arms in (by_index, record.left_out))
        on, off = on[~np.isnan(on)], off[~np.isnan(off)]
        if not on.size or not off.size:
            continue
        if not mine:
            others += 1
            continue
        difference, variance = compare_means(on, off, spread)
        mean, error = record.body.promise or (0.0, 0.0)
        rows.append((period, len(by_index) * difference, len(by_index) ** 2 * variance, mean, error, on.size, off.size))
    table = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 6)
    scale = mixture_scale(tuned, alpha) if tuned else 1.0
    shown, low, high = confidence_sequence(table[:, 0], table[:, 1], scale=scale, alpha=alpha)
    promised, doubt = np.cumsum(table[:, 2]), Z * np.cumsum(table[:, 3])  # one model's errors do not average out
    numbers = (promised, promised - doubt, promised + doubt, table[:, 4].astype(np.int64), table[:, 5].astype(np.int64))
    return Benefit(tuple(ledger.label(row[0]) for row in rows), shown, low, high, *numbers, _unit(ledger), others)


def outcomes(ledger: Ledger, period: int, worth: FloatArray | None, count: int) -> FloatArray:
    """(N,) the outcome of a period: the reward of the state at its end, or the reported reward; NaN if unknown."""
    cells = ledger.cell(period)
    if worth is None:
        return cells.rewards(count)
    state = cells.states(count)
    return np.where(state >= 0, worth[np.maximum(state, 0)], np.nan)


def plan_evidence(
    effect: float, budget: int, *, shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3), deviation: float = 0.5
) -> dict[float, int | None]:
    """Return, for several random shares, the periods until an effect of one place is significant with probability 0.8.

    Parameters
    ----------
    effect : float
        Mean effect of a place on the outcome of its arm: 0.1 for ten more in a hundred who are engaged.
    budget : int
        Places in a period.
    shares : tuple of float
        Values of `random_share` to compare.
    deviation : float
        The standard deviation of an outcome; at most 0.5 for outcomes of yes and no.

    Returns
    -------
    dict of float to int
        Periods by share; None if it takes more than 100,000.

    Examples
    --------
    >>> plan_evidence(0.2, budget=200)
    {0.05: 11, 0.1: 6, 0.2: 4, 0.3: 4}
    """
    found: dict[float, int | None] = {}
    for share in shares:
        out = min(random_places(share, budget), budget // 2)
        if out < 1:
            raise ModelError(f"a share of {share:g} of {budget} places leaves nobody out; use a larger share")
        found[share] = periods_needed(effect, budget - out, out, deviation=deviation)
    return found


def _worth(ledger: Ledger) -> FloatArray | None:
    config = ledger.declared
    return None if config.reward is None else np.array([config.reward.get(one, 0.0) for one in config.states])


def _spread(ledger: Ledger, worth: FloatArray | None) -> float:
    """Return the range of an outcome: of declared rewards, or of those that were reported."""
    if worth is not None:
        return float(np.ptp(worth))
    seen = [one.rewards(len(ledger.ids)) for one in ledger.cells.values()]
    known: BoolArray = ~np.isnan(np.concatenate(seen)) if seen else np.zeros(0, dtype=bool)
    return float(np.ptp(np.concatenate(seen)[known])) if known.any() else 1.0


def _unit(ledger: Ledger) -> str:
    reward = ledger.declared.reward or {}
    single = len(reward) == 1 and next(iter(reward.values())) == 1
    return f"{ledger.declared.rhythm.unit}s {next(iter(reward))}" if single else "reward"


def _form(value: float, low: float, high: float) -> str:
    digits = 0 if max(abs(low), abs(high)) >= 100 else 1
    return f"{value:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"
