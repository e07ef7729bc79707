"""Statistics of a report: intervals, and paired comparisons of learners.

Rounds are independent. Learners of the same round share its random seed, and so the model, the rewards and the noise. What
they share cancels in their difference, so tests are paired. Intervals are Student's 95% intervals, unless a function
documents another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from rmab.common import FloatArray
from rmab.errors import many

LEVEL = 0.95
NEAR = 0.5  # largest relative standard error of a mean for which its logarithm is nearly linear


@dataclass(frozen=True)
class Interval:
    """A mean over `count` rounds and its 95% interval; low and high are NaN with fewer than two rounds."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def negative(self) -> Interval:
        """The interval of the negative."""
        return Interval(-self.mean, -self.high, -self.low, self.count)

    def __repr__(self) -> str:
        return f"Interval({self.mean:.6g}, 95%: {self.low:.6g} to {self.high:.6g}, {many(self.count, 'round')})"


@dataclass(frozen=True)
class Paired:
    """A paired comparison: how much more `first` earned than `second` in the same rounds.

    `relative` is relative to the reward of second, None if that may be zero; `ahead` counts the rounds in which first earned
    more; `p` is of the paired t-test, `adjusted` after Holm's correction for all pairs of the task.
    """

    first: str
    second: str
    difference: Interval
    relative: Interval | None
    ahead: int
    p: float
    adjusted: float

    @property
    def is_significant(self) -> bool:
        """Whether the two differ significantly at the 5% level, after the correction for all pairs of the task."""
        return self.adjusted < 1 - LEVEL


@dataclass(frozen=True)
class Power:
    """The fit mean ~ factor size^exponent. The exponent's interval is NaN with one round, or if a mean is near zero."""

    exponent: Interval
    factor: float


def band(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means (...) of values (R, ...) over rounds, and the half widths (...) of their intervals, NaN if R < 2."""
    rounds = values.shape[0]
    mean = np.asarray(values.mean(axis=0))
    if rounds < 2:
        return mean, np.full_like(mean, np.nan)
    spread = values.std(axis=0, ddof=1) / np.sqrt(rounds)
    return mean, np.asarray(stats.t.ppf((1 + LEVEL) / 2, rounds - 1) * spread)


def interval(values: FloatArray) -> Interval:
    """Return the mean of values (R,) and its interval; NaN if there is no round.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0]))
    Interval(2, 95%: -0.484138 to 4.48414, 3 rounds)
    """
    if values.size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    mean, half = band(values)
    return Interval(float(mean), float(mean - half), float(mean + half), values.size)


def ratio(top: FloatArray, bottom: FloatArray) -> Interval | None:
    """Return mean(top) / |mean(bottom)| of the same rounds, both (R,); None if the mean of bottom may be 0.

    The interval is that of the linearised ratio q, Student's of top - q bottom: it includes the spread of bottom.
    """
    below = interval(bottom)
    if below.mean == 0 or below.low <= 0 <= below.high:
        return None
    value = float(top.mean()) / abs(below.mean)
    left = interval(top - value * np.sign(below.mean) * bottom)
    half = left.half / abs(below.mean)
    return Interval(value, value - half, value + half, top.size)


def compare_pair(first: str, second: str, a: FloatArray, b: FloatArray) -> Paired:
    """Compare the rewards a (R,) of first with b (R,) of second in the same rounds; `adjusted` is not yet corrected."""
    difference = a - b
    found = interval(difference)
    p = _two_sided(difference)
    return Paired(first, second, found, ratio(difference, b), int((difference > 0).sum()), p, p)


def _two_sided(difference: FloatArray) -> float:
    """Return the p-value of Student's test that the mean is 0; 1 with fewer than two rounds."""
    if difference.size < 2:
        return 1.0
    mean, error = float(difference.mean()), float(stats.sem(difference))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, difference.size - 1))


def holm(pairs: Sequence[Paired]) -> list[Paired]:
    """Return the pairs with `adjusted` corrected for their number (Holm 1979), which assumes no independence."""
    found = np.array([one.p for one in pairs])
    order = np.argsort(found, kind="stable")
    found[order] = np.minimum(np.maximum.accumulate(np.arange(len(pairs), 0, -1) * found[order]), 1.0)
    return [replace(one, adjusted=float(p)) for one, p in zip(pairs, found, strict=True)]


def power(sizes: FloatArray, values: FloatArray) -> Power | None:
    """Fit a power of the sizes (L,) to the means of values (L, R), by least squares of logarithms; None if one is <= 0.

    The slope is lean @ ln(means). To first order it varies as the mean over rounds of lean @ (values / means), which is one
    number per round, as a round has the same seed at all sizes. The interval is Student's of these numbers.
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
