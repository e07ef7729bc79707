"""What an action changes in each group by the next period, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_integer
from rmab.data.fit import Fit
from rmab.data.resampling import Resampler
from rmab.errors import ModelError

LEVEL = 0.95


@dataclass(frozen=True)
class Effect:
    """What an action changes in a group.

    Attributes
    ----------
    group : str
        Which.
    arms, seen : int
        Arms in it, and actions that were seen with what came after.
    value, low, high : float
        By how much the chance of the best state in the next period rises (or what that period is expected to bring), on
        average over the states in which the group was. NaN where nothing is known. The value is the model's, which borrows
        from larger groups; the 95% interval is what the group's own records allow.
    what : str
        What it is that rises.
    in_points : bool
        Whether it is a chance.
    """

    group: str
    arms: int
    seen: int
    value: float
    low: float
    high: float
    what: str
    in_points: bool


def effects_of(fit: Fit, *, replicates: int = 200, seed: int = 0) -> list[Effect]:
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
        One for each of `fit.cells`.
    """
    number = as_integer(replicates, "replicates")
    if number < 20:
        raise ModelError(f"replicates must be at least 20, got {number}")
    visits = fit.counts.sum(axis=3).astype(np.float64)  # (G, S, 2)
    both = ~fit.rows.unseen.any(axis=1)
    weight = visits.sum(axis=2) * both
    whole = visits.sum(axis=(0, 2)) * both
    weight = np.where(weight.sum(axis=1, keepdims=True) > 0, weight, whole)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.divide(weight, total, out=np.full_like(weight, np.nan), where=total > 0)
    points = fit.pay.unit.startswith(f"{fit.log.periods.unit}s ")
    worth = np.eye(len(fit.log.state_names))[fit.pay.goal][np.newaxis] if points else fit.pay.table[:, :, 0]
    worth = np.broadcast_to(worth, visits.shape[:2])
    resampler, rng = Resampler(fit), np.random.default_rng((as_integer(seed, "seed"), 2))
    draws = np.stack([_change(resampler.alone(rng), weight, worth) for _ in range(number)])
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    value = _change(fit.kernels, weight, worth)
    low, high = np.minimum(low, value), np.maximum(high, value)
    goal = fit.log.state_names[fit.pay.goal]
    what = (
        f"the chance of being {goal} next {fit.log.periods.unit}" if points else f"what next {fit.log.periods.unit} brings"
    )
    arms = np.bincount(fit.cell_of, minlength=len(fit.cells))
    return [
        Effect(name, int(arms[g]), int(visits[g, :, 1].sum()), float(value[g]), float(low[g]), float(high[g]), what, points)
        for g, name in enumerate(fit.cells)
    ]


def _change(kernels: FloatArray, weight: FloatArray, worth: FloatArray) -> FloatArray:
    """(G,) by how much an action raises what comes next."""
    rise = np.einsum("gsy,gy->gs", kernels[:, :, 1] - kernels[:, :, 0], worth)
    return np.asarray((weight * rise).sum(axis=1))
