"""The statistics of a report: every number has its uncertainty, and differences are taken round by round.

Rounds are independent draws of the same study; learners of the same round share its seed, so they meet the same model, the
same rewards and the same luck. What they share cancels in the difference, which is why tests are paired. Intervals are 95%
and Student's, unless a function says otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from rmab.common.arrays import FloatArray

__all__ = ["Interval", "Paired", "Power", "band", "holm", "interval", "paired", "power", "ratio"]

LEVEL = 0.95
NEAR = 0.5  # standard error of a mean, as a part of it, from which on its logarithm is far from linear


@dataclass(frozen=True)
class Interval:
    """A mean over `count` rounds and its 95% interval; low and high are NaN where there is one round or none."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def negative(self) -> "Interval":
        """The interval of the negative."""
        return Interval(-self.mean, -self.high, -self.low, self.count)


@dataclass(frozen=True)
class Paired:
    """What `first` earned more than `second` in the same rounds.

    difference  per round.     relative  as a part of what second earned; None where that cannot be told from nothing.
    ahead       rounds in which first earned more, of difference.count.
    p           of the paired t-test; adjusted, the same after Holm's correction for all pairs of the task.
    """

    first: str
    second: str
    difference: Interval
    relative: Interval | None
    ahead: int
    p: float
    adjusted: float

    @property
    def told(self) -> bool:
        """Whether the two can be told apart at the 5% level, all pairs of the task considered."""
        return self.adjusted < 1 - LEVEL


@dataclass(frozen=True)
class Power:
    """mean ~ factor size^exponent, with the exponent's interval (NaN where there is one round, or a mean is near zero)."""

    exponent: Interval
    factor: float


def band(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(R, ...) -> means (...) and half widths (...) of their 95% intervals, NaN where R < 2."""
    rounds = values.shape[0]
    mean = np.asarray(values.mean(axis=0))
    if rounds < 2:
        return mean, np.full_like(mean, np.nan)
    spread = values.std(axis=0, ddof=1) / np.sqrt(rounds)
    return mean, np.asarray(stats.t.ppf((1 + LEVEL) / 2, rounds - 1) * spread)


def interval(values: FloatArray) -> Interval:
    """(R,) -> mean and interval; NaN throughout where there is no round."""
    if values.size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    mean, half = band(values)
    return Interval(float(mean), float(mean - half), float(mean + half), values.size)


def ratio(top: FloatArray, bottom: FloatArray) -> Interval | None:
    """(R,), (R,) of the same rounds -> mean(top) / |mean(bottom)|; None where bottom cannot be told from 0.

    The interval is that of the linearised ratio: Student's, of top - q bottom. It knows that bottom varies, too.
    """
    below = interval(bottom)
    if below.mean == 0 or below.low <= 0 <= below.high:
        return None
    value = float(top.mean()) / abs(below.mean)
    left = interval(top - value * np.sign(below.mean) * bottom)
    half = left.half / abs(below.mean)
    return Interval(value, value - half, value + half, top.size)


def paired(first: str, second: str, a: FloatArray, b: FloatArray) -> Paired:
    """(R,), (R,) of the same rounds -> difference, its parts, and the paired t-test; adjusted is not yet corrected."""
    difference = a - b
    found = interval(difference)
    p = _two_sided(difference)
    return Paired(first, second, found, ratio(difference, b), int((difference > 0).sum()), p, p)


def _two_sided(difference: FloatArray) -> float:
    """Return the p-value of Student's test that the mean is 0; 1 where there is nothing to test with."""
    if difference.size < 2:
        return 1.0
    mean, error = float(difference.mean()), float(stats.sem(difference))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, difference.size - 1))


def holm(pairs: Sequence[Paired]) -> list[Paired]:
    """Return the pairs with their p-values corrected for being many (Holm 1979): no independence is assumed."""
    order = sorted(range(len(pairs)), key=lambda k: pairs[k].p)
    corrected, largest = list(pairs), 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(pairs) - rank) * pairs[k].p))
        corrected[k] = replace(pairs[k], adjusted=largest)
    return corrected


def power(sizes: FloatArray, values: FloatArray) -> Power | None:
    """(L,), (L, R) -> least squares of ln(mean) on ln(size); None where some mean is not positive.

    The slope is lean @ ln(means). To first order it moves as the mean over rounds of lean @ (values / means), one number for
    every round: its interval is Student's of these. A round is one number at all sizes, because it is the same seed.
    """
    if sizes.size < 2 or values.shape[1] == 0 or (values.mean(axis=1) <= 0).any():
        return None
    logs, means = np.log(sizes), values.mean(axis=1)
    lean = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    slope = float(lean @ np.log(means))
    factor = float(np.exp(np.log(means).mean() - slope * logs.mean()))
    rounds = values.shape[1]
    if rounds < 2 or (stats.sem(values, axis=1) > NEAR * means).any():
        return Power(Interval(slope, np.nan, np.nan, rounds), factor)
    half = interval(lean @ (values / means[:, np.newaxis])).half
    return Power(Interval(slope, slope - half, slope + half, rounds), factor)
