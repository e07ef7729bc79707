"""How many periods it takes to measure what a list brings, before one starts: by the share that is drawn, and the effect.

Of the L arms that the index chooses, l are left out at random and as many of the U others take their places. One period
then measures the sum of what L - l places bring with the variance s^2 (L (L - l) / l + U l / (U - l)), s the standard
deviation of an outcome (see `rmab.estimation.measure`; both terms are sums of p / (1 - p)). An effect is shown once the
confidence sequence lies above 0. When that happens is found by drawing the sum as a random walk, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from rmab.common import FloatArray, as_integer, as_share, as_tolerance
from rmab.errors import ModelError
from rmab.estimation.measure import TUNED
from rmab.estimation.measurement import LEAST
from rmab.estimation.sequences import margin, mixture_scale

WALKS, LONGEST = 2000, 520  # random walks, and periods of each
SHARES = (0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Design:
    """What a share of random places can show.

    Attributes
    ----------
    share : float
        The share of the places that is drawn at random.
    left_out : int
        How many of those whom the index chooses are left out in a period; as many others take their places.
    periods : int or None
        After how many periods the effect is shown with the power asked for; None where it takes more than 520.
    power : float
        The probability that the effect is shown within 26 periods.
    cost : float
        What is lost in a period, in outcomes: places that go to others at random, who are taken to gain `others`.
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
    shares: Sequence[float] = SHARES,
    others: float = 0.0,
    deviation: float = 0.5,
    recorded: float = 1.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> list[Design]:
    """Estimate, for several random shares, after how many periods `rmab.data.measure` shows an effect.

    Parameters
    ----------
    effect : float
        What a place adds to the outcome of an arm that the index chooses, on average: 0.1 for ten more in a hundred.
    budget, arms : int
        Places in a period, and arms.
    shares : sequence of float
        Values of `random_share` to compare.
    others : float
        What a place adds to the outcome of an arm that is drawn from the others.
    deviation : float
        Standard deviation of an outcome among arms in like states; 0.5 is the most for yes and no.
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
        Where nobody would be left out, or there are no others.

    Examples
    --------
    >>> [(one.share, one.left_out, one.periods) for one in estimate_power(0.15, budget=100, arms=2000)]
    [(0.05, 5, 32), (0.1, 10, 18), (0.2, 20, 11), (0.3, 30, 10)]
    """
    places, count = as_integer(budget, "budget"), as_integer(arms, "arms")
    if not 1 <= places < count:
        raise ModelError(f"budget must be in 1..{count - 1} (there must be others than those on the list), got {places}")
    gain, side = float(effect), float(others)
    noise, seen = as_tolerance(deviation, "deviation"), as_share(recorded, "recorded")
    wanted, error = as_share(power, "power"), as_share(alpha, "alpha")
    if not (np.isfinite([gain, side]).all() and gain > 0):
        raise ModelError(f"effect must be more than 0, got {effect}")
    if not (0 < wanted < 1 and 0 < error < 1 and seen > 0):
        raise ModelError("power and alpha must be above 0 and below 1, and recorded above 0")
    found = []
    for share in shares:
        out = min(int(as_share(share, "share") * places + 0.5), places // 2, count - places)
        if out < 1:
            raise ModelError(f"a share of {share:g} leaves nobody out of {places} places: nothing can be measured")
        rest = count - places
        mean = seen * (gain * (places - out) + side * out)
        ratios = places * (places - out) / out + (rest * out / (rest - out) if rest > out else 0.0)
        reached = _shown_by(mean, seen * noise**2 * ratios, first=-(-LEAST // max(int(seen * out), 1)), alpha=error)
        enough = np.flatnonzero(reached >= wanted)
        periods = int(enough[0]) + 1 if enough.size else None
        found.append(Design(float(share), out, periods, float(reached[TUNED - 1]), (gain - side) * out))
    return found


def _shown_by(mean: float, variance: float, first: int, alpha: float) -> FloatArray:
    """(T,) the probability that the interval has been above 0 by each period; `first`: the period of the first look."""
    at = np.arange(1, LONGEST + 1)
    width = margin(at * variance, mixture_scale(TUNED * variance, alpha), alpha)
    above = at * mean + np.sqrt(variance) * _walks() > width
    above[:, : first - 1] = False
    return np.asarray(np.maximum.accumulate(above, axis=1).mean(axis=0))


@cache
def _walks() -> FloatArray:
    return np.cumsum(np.random.default_rng(0).normal(size=(WALKS, LONGEST)), axis=1)
