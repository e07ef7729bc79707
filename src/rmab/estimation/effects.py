"""What an action changes in each group by the next period, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, as_seed, expect
from rmab.estimation.fit import Fit
from rmab.estimation.resampling import Resampler, as_replicates, interval


@dataclass(frozen=True)
class Effect:
    """What an action changes in a group, by the group's own records.

    Attributes
    ----------
    group : str
        Which.
    arms, seen : int
        Arms in it, and actions that were seen with what came after.
    value, low, high : float
        By how much the chance of the best state in the next period rises (or what that period is expected to bring), on
        average over the states in which the group was, with its 95% interval. Both stand on the group's own records. NaN
        where it was never seen both with and without an action.
    model : float
        The same by the model, which borrows from larger groups: what the plan uses.
    what : str
        What it is that rises.
    in_points : bool
        Whether it is a chance.
    reach : float
        The part of the decided actions that reached somebody; None where the log does not say.
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

    @property
    def per_contact(self) -> tuple[float, float, float]:
        """The effect of an action that reaches somebody, with its interval: that of a decision over the part that reaches.

        It holds for those who can be reached, if a decision that reaches nobody changes nothing (Bloom 1984; Angrist, Imbens
        & Rubin 1996). The error of the part itself, which is small beside that of the effect, is left out.
        """
        if not self.reach:
            return (float("nan"),) * 3
        return self.value / self.reach, self.low / self.reach, self.high / self.reach


def estimate_effects(fit: Fit, *, replicates: int = 200, seed: int = 0) -> list[Effect]:
    """Return the effect of an action in every group.

    Parameters
    ----------
    fit : Fit
        The model.
    replicates : int
        Draws behind the intervals, in which arms are weighted at random.
    seed : int
        Of these draws.

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
    reach = [None if np.isnan(one) else one for one in find_reach(fit).tolist()]
    return [Effect(*one, *four, what, points, part) for one, four, part in zip(numbers, values, reach, strict=True)]


def find_reach(fit: Fit) -> FloatArray:
    """(G,) the part of the decided actions that reached somebody, by group; NaN where the log does not say."""
    log, count = fit.require_log(), len(fit.groups)
    if log.reached is None:
        return np.full(count, np.nan)
    known = (log.action == 1) & (log.reached >= 0)
    group = fit.group_of[log.arm_of[known]]
    decided, met = (np.bincount(group, weights=one, minlength=count) for one in (None, log.reached[known]))
    return np.asarray(np.divide(met, decided, out=np.full(count, np.nan), where=decided > 0))


def _change(kernels: FloatArray, weight: FloatArray, worth: FloatArray) -> FloatArray:
    """(G,) by how much an action raises what comes next."""
    rise = np.einsum("gsy,gy->gs", kernels[:, :, 1] - kernels[:, :, 0], worth)
    return np.asarray((weight * rise).sum(axis=1))
