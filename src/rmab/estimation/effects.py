"""The effect of an action in each group by the next period, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from rmab.common import FloatArray, as_seed, expect
from rmab.estimation.fit import Fit
from rmab.estimation.resampling import Resampler, as_replicates, interval
from rmab.estimation.scores import WIDE

LEVEL = 0.95  # of intervals


@dataclass(frozen=True)
class Effect:
    """The effect of an action in a group, from the records of the group.

    Attributes
    ----------
    group : str
        Name of the group.
    arms, seen : int
        Number of arms, and of actions with a known next state.
    value, low, high : float
        By how much the chance of the best state in the next period rises (or what that period is expected to bring), on
        average over the states in which the group was, with its 95% interval. Both only use the group's records. NaN
        if it was never seen both with and without an action.
    model : float
        The estimate of the model, which pools with larger groups: the plan uses it.
    what : str
        Name of the outcome.
    in_points : bool
        Whether it is a probability.
    reach, reach_error : float
        Share of the decided actions that reached somebody, and its standard error; None if the log does not have it.
    """

    group: str
    arms: int
    seen: int
    value: float
    low: float
    high: float
    model: float
    what: str
    in_points: bool
    reach: float | None = None
    reach_error: float | None = None

    @property
    def per_contact(self) -> tuple[float, float, float]:
        """The effect of an action that reaches somebody, with its interval: that of a decision over the share that reaches.

        It holds for those who can be reached, if a decision that reaches nobody changes nothing (Bloom 1984; Angrist, Imbens
        & Rubin 1996). Errors of both are in the interval (`divide_by_reach`).
        """
        if not self.reach:
            return (float("nan"),) * 3
        return divide_by_reach((self.value, self.low, self.high), self.reach, self.reach_error or 0.0)


def divide_by_reach(effect: tuple[float, float, float], reach: float, error: float) -> tuple[float, float, float]:
    """Return an effect and the ends of its interval divided by the share that is reached, with its standard error.

    The error of a ratio v / r adds (v e / r^2)^2 to the square of the width (delta method).

    Examples
    --------
    >>> [round(one, 3) for one in divide_by_reach((0.1, 0.02, 0.18), 0.5, 0.05)]
    [0.2, 0.035, 0.365]
    """
    value, low, high = (one / reach for one in effect)
    more = WIDE * value * error / reach
    return value, value - float(np.hypot(value - low, more)), value + float(np.hypot(high - value, more))


def estimate_effects(fit: Fit, *, replicates: int = 200, seed: int = 0) -> list[Effect]:
    """Return the effect of an action in every group.

    Parameters
    ----------
    fit : Fit
        The model.
    replicates : int
        Draws behind the intervals, in which arms are weighted at random.
    seed : int
        Random seed of these draws.

    Returns
    -------
    list of Effect
        One for each of `fit.groups`.
    """
    expect(fit, Fit, "fit")
    number = as_replicates(replicates)
    visits = fit.counts.sum(axis=3).astype(np.float64)  # (G, S, 2)
    both = ~fit.rows.unseen.any(axis=1)
    weight = visits.sum(axis=2) * both
    whole = visits.sum(axis=(0, 2)) * both
    weight = np.where(weight.sum(axis=1, keepdims=True) > 0, weight, whole)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.divide(weight, total, out=np.full_like(weight, np.nan), where=total > 0)
    points = fit.pay.counts_periods
    worth = np.eye(len(fit.state_names))[fit.pay.goal][np.newaxis] if points else fit.pay.table[:, :, 0]
    worth = np.broadcast_to(worth, visits.shape[:2])
    resampler, rng = Resampler(fit), np.random.default_rng((as_seed(seed), 2))
    draws = np.stack([_change(resampler.alone(rng), weight, worth) for _ in range(number)])
    low, high = interval(draws)
    value, model = (_change(one, weight, worth) for one in (resampler.alone(), fit.kernels))
    seen = visits.sum(axis=1)  # (G, 2)
    value, low, high = (np.where((seen > 0).all(axis=1), one, np.nan) for one in (value, low, high))
    goal, unit = fit.state_names[fit.pay.goal], fit.words.period
    what = f"the chance of being {goal} next {unit}" if points else f"what next {unit} brings"
    sizes = np.bincount(fit.group_of, minlength=len(fit.groups))
    low, high = np.minimum(low, value), np.maximum(high, value)
    numbers = zip(fit.groups, sizes.tolist(), seen[:, 1].astype(np.int64).tolist(), strict=True)
    values = zip(value.tolist(), low.tolist(), high.tolist(), model.tolist(), strict=True)
    reach = [[None if np.isnan(one) else one for one in several.tolist()] for several in find_reach(fit)]
    parts = zip(*reach, strict=True)
    return [Effect(*one, *four, what, points, *part) for one, four, part in zip(numbers, values, parts, strict=True)]


def hold_together(effects: list[Effect]) -> list[Effect]:
    """Return effects with intervals that all hold in 95% of the cases (Bonferroni): as wide as normal errors make them."""
    known = max(sum(np.isfinite(one.value) for one in effects), 1)
    wider = float(norm.isf((1.0 - LEVEL) / 2 / known)) / WIDE
    return [
        replace(one, low=one.value - wider * (one.value - one.low), high=one.value + wider * (one.high - one.value))
        for one in effects
    ]


def find_reach(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Return the share of the decided actions that reached somebody, (G,), and its standard error; NaN if unknown."""
    log, count = fit.require_log(), len(fit.groups)
    if log.reached is None:
        return np.full(count, np.nan), np.full(count, np.nan)
    known = (log.action == 1) & (log.reached >= 0)
    arm = log.arm_of[known]
    decided, met = (np.bincount(fit.group_of[arm], weights=one, minlength=count) for one in (None, log.reached[known]))
    part = np.divide(met, decided, out=np.full(count, np.nan), where=decided > 0)
    rest = np.bincount(arm, weights=log.reached[known] - part[fit.group_of[arm]], minlength=len(log.arms))
    squares = np.bincount(fit.group_of, weights=rest**2, minlength=count)
    return part, np.divide(np.sqrt(squares), decided, out=np.full(count, np.nan), where=decided > 0)


def _change(kernels: FloatArray, weight: FloatArray, worth: FloatArray) -> FloatArray:
    """(G,) by how much an action raises what comes next."""
    rise = np.einsum("gsy,gy->gs", kernels[:, :, 1] - kernels[:, :, 0], worth)
    return np.asarray((weight * rise).sum(axis=1))
