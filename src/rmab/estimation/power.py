"""The number of periods needed to measure the benefit of lists, by the random share and the effect.

Of the L arms that the index chooses, l are left out at random and as many of the U others take their places. So arms have a
chance p, 1 - l / L or l / U. With the variances v1 and v0 of an outcome with and without a place, and the effect e, one arm
adds the variance p v1 + p^2 v0 / (1 - p) to what a period measures (see `rmab.estimation.measure`), if predictions are
right. The interval is made with an estimate that is larger, for it takes both sides for equally variable:

    p / (1 - p) (p (v1 + p^2 e^2) + (1 - p) (v0 + (1 - p)^2 e^2)).

Predictions with a place are learned from n outcomes so far, two states apart, and have one effect for everybody, that of the
average place. An error c of a prediction adds p c^2 / (1 - p) to both variances.

An effect is shown once the confidence sequence lies above 0. When that happens is found by drawing the sum as a random walk,
with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from rmab.common import FloatArray, as_integer, as_share, as_tolerance
from rmab.errors import ModelError
from rmab.estimation.measure import PRIOR, TUNED
from rmab.estimation.measurement import LEAST
from rmab.estimation.sequences import margin, mixture_scale

WALKS, LONGEST = 2000, 520  # random walks, and periods of each
STATES = 2  # in which outcomes are predicted apart
SHARES = (0.05, 0.1, 0.2, 0.3)
HUGE = 1e100  # an effect whose square is no number


@dataclass(frozen=True)
class Design:
    """What a random share can show.

    Attributes
    ----------
    share : float
        The share of the places that is drawn at random.
    left_out : int
        Number of arms chosen by the index that are left out in a period; as many others take their places.
    periods : int or None
        Periods until the effect is significant with the given power; None if it takes more than 520.
    power : float
        The probability that the effect is shown within 26 periods.
    cost : float
        Cost per period, in outcomes: places that go to others at random, whose effect is `others`.
    """

    share: float
    left_out: int
    periods: int | None
    power: float
    cost: float


def estimate_power(
    effect: float,
    *,
    budget: int,
    arms: int,
    shares: Sequence[float] | None = None,
    others: float = 0.0,
    rate: float | None = None,
    deviation: float = 0.5,
    recorded: float = 1.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> list[Design]:
    """Estimate the number of periods until `rmab.data.measure` shows an effect, for several random shares.

    Parameters
    ----------
    effect : float
        Mean effect of a place on the outcome of an arm that the index chooses: 0.1 for ten more in a hundred.
    budget, arms : int
        Places in a period, and arms.
    shares : sequence of float, optional
        Values of `random_share` to compare; by default those of 0.05, 0.1, 0.2 and 0.3 that leave somebody out.
    others : float
        Effect of a place on the outcome of an arm that is drawn from the others.
    rate : float, optional
        For outcomes of yes and no: the share of good ones without a place, among arms in similar states.
    deviation : float
        For other outcomes: the standard deviation among arms in similar states, with and without a place.
    recorded : float
        Share of the outcomes that are recorded.
    power, alpha : float
        The probability of showing the effect, and that of ever showing one that is not there, over all looks.

    Returns
    -------
    list of Design
        One for each share.

    Raises
    ------
    ModelError
        If nobody would be left out, or there are no others.

    Examples
    --------
    >>> [(one.share, one.left_out, one.periods) for one in estimate_power(0.15, budget=100, arms=2000)]
    [(0.05, 5, 34), (0.1, 10, 19), (0.2, 20, 12), (0.3, 30, 10)]
    """
    places, count = as_integer(budget, "budget"), as_integer(arms, "arms")
    if not 1 <= places < count:
        raise ModelError(f"budget must be in 1..{count - 1} (some arms must be off the list), got {places}")
    gain, side = float(effect), float(others)
    seen, variances = as_share(recorded, "recorded"), _find_variances(rate, as_tolerance(deviation, "deviation"), gain, side)
    wanted, error = as_share(power, "power"), as_share(alpha, "alpha")
    if not (np.isfinite([gain, side]).all() and gain > 0 and max(gain, abs(side)) < HUGE):
        raise ModelError(f"effect must be more than 0, and it and others below {HUGE:g}, got {effect} and {others}")
    if not (0 < wanted < 1 and 0 < error < 1 and seen > 0):
        raise ModelError("power and alpha must be above 0 and below 1, and recorded above 0")
    found = []
    for share in SHARES if shares is None else shares:
        out = min(int(as_share(share, "share") * places + 0.5), places // 2, count - places)
        if out < 1:
            if shares is None and share < SHARES[-1]:
                continue
            raise ModelError(f"a share of {share:g} of {places} places leaves nobody out; use a larger share")
        several = ((places, out, gain, variances[0]), (count - places, count - places - out, side, variances[1]))
        sides = [Side(seen * size, 1.0 - less / size, one, *both) for size, less, one, both in several if less]
        reached = _shown_by(sides, first=-(-LEAST // max(int(seen * out), 1)), alpha=error)
        enough = np.flatnonzero(reached >= wanted)
        periods = int(enough[0]) + 1 if enough.size else None
        found.append(Design(float(share), out, periods, float(reached[TUNED - 1]), (gain - side) * out))
    return found


@dataclass(frozen=True)
class Side:
    """Arms with the same chance of a place: how many outcomes of them are known, their effect, and variances without and
    with a place.
    """

    size: float
    chance: float
    effect: float
    without: float
    with_one: float

    @property
    def mean(self) -> float:
        """What places bring them in a period."""
        return self.size * self.chance * self.effect

    @property
    def noise(self) -> float:
        """The variance of what a period measures."""
        p = self.chance
        return self.size * (p * self.with_one + p**2 / (1.0 - p) * self.without)

    @property
    def ratios(self) -> float:
        """The sum of p / (1 - p)."""
        return self.size * self.chance / (1.0 - self.chance)

    @property
    def stated(self) -> float:
        """The variance that the interval takes, on average."""
        p = self.chance
        errors = self.with_one + (p * self.effect) ** 2, self.without + ((1.0 - p) * self.effect) ** 2
        return self.ratios * max(p * errors[0] + (1.0 - p) * errors[1], (1.0 - p) * errors[0] + p * errors[1])


def _find_variances(rate: float | None, deviation: float, *effects: float) -> list[tuple[float, float]]:
    """Return the variance of an outcome without and with a place, for every effect."""
    if rate is None:
        return [(deviation**2, deviation**2)] * len(effects)
    usual = as_share(rate, "rate")
    for one in effects:
        if not 0.0 <= usual + one <= 1.0:
            raise ModelError(
                f"a rate of {usual:g} and an effect of {one:g} add up to {usual + one:g}; a rate must be in [0, 1]"
            )
    return [(usual * (1.0 - usual), (usual + one) * (1.0 - usual - one)) for one in effects]


def _shown_by(sides: list[Side], first: int, alpha: float) -> FloatArray:
    """(T,) the probability that the interval has been above 0 by each period; `first`: the period of the first look."""
    at = np.arange(1, LONGEST + 1)
    mean, noise, stated = (sum(getattr(one, name) for one in sides) for name in ("mean", "noise", "stated"))
    places = sum(one.size * one.chance for one in sides)
    seen = (at - 1) * places / STATES
    wrong = np.zeros(LONGEST)
    for one in sides:
        effect = mean / places * seen / (seen + PRIOR) - one.effect
        wrong += one.ratios * (1.0 - one.chance) ** 2 * (effect**2 + one.with_one / (seen + PRIOR))
    tuned = sum(one.ratios * one.without for one in sides)
    width = margin(np.cumsum(stated + wrong), mixture_scale(TUNED * max(tuned, 1e-12), alpha), alpha)
    above = at * mean + np.cumsum(np.sqrt(noise + wrong) * _steps(), axis=1) > width
    above[:, : first - 1] = False
    return np.asarray(np.maximum.accumulate(above, axis=1).mean(axis=0))


@cache
def _steps() -> FloatArray:
    return np.random.default_rng(0).normal(size=(WALKS, LONGEST))
