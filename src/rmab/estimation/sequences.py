"""Confidence sequences: intervals for a growing sum that are valid at all times simultaneously, however often one looks.

Each period brings an estimate of what it added, unbiased given the past, and an estimate of its variance. The errors form a
martingale. Robbins' normal mixture (Robbins 1970; Howard, Ramdas, McAuliffe & Sekhon 2021, Section 3) bounds its path: with
V the sum of the variances,

    |error| < sqrt( (V + r) ln( (V + r) / (r a^2) ) )   at all times, with probability 1 - a,

for normal increments of known variance. For others, with estimated variances, it holds in the limit of many observations:
this is an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2021), whose target may change from
period to period. r is fixed before the first look; it decides when the interval is narrowest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw, ndtri

from rmab.common import FloatArray, as_floats, as_integer, as_share, as_tolerance
from rmab.errors import ModelError

LONGEST = 100_000  # periods that a design may take


def mixture_scale(variance: float, alpha: float = 0.05) -> float:
    """Return the r that makes the interval narrowest when the variances sum to `variance` (Howard et al. 2021, Prop. 3).

    Examples
    --------
    >>> round(mixture_scale(100.0), 2)
    12.18
    """
    return float(as_tolerance(variance, "variance") / (-lambertw(-(alpha**2) / np.e, -1).real - 1.0))


def margin(variance: ArrayLike, scale: float, alpha: float = 0.05) -> FloatArray:
    """Return the half width (...) of the interval where variances sum to `variance` (...); scale: r, fixed in advance."""
    total = as_floats(variance, "variance") + as_tolerance(scale, "scale")
    return np.asarray(np.sqrt(total * np.log(total / (scale * _checked_alpha(alpha) ** 2))))


def confidence_sequence(
    estimates: ArrayLike, variances: ArrayLike, *, scale: float, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sum, low and high (T,) after each of T periods: all intervals hold simultaneously with probability 1 - alpha.

    Parameters
    ----------
    estimates, variances : array_like, shape (T,)
        Of each period, unbiased given what came before.
    scale : float
        The r of the mixture, from `mixture_scale` at the variance for which the interval is to be narrowest.
    alpha : float
        The probability that any of the intervals, ever, misses.

    Examples
    --------
    >>> total, low, high = confidence_sequence([1.0] * 50, [1.0] * 50, scale=mixture_scale(50.0))
    >>> float(total[-1]), round(float(low[-1]), 1), round(float(high[-1]), 1)
    (50.0, 28.5, 71.5)
    """
    each, spread = as_floats(estimates, "estimates"), as_floats(variances, "variances")
    if each.ndim != 1 or each.shape != spread.shape or (spread < 0).any():
        raise ModelError("estimates and variances must be (T,), and variances 0 or more")
    total = np.cumsum(each)
    width = margin(np.cumsum(spread), scale, alpha)
    return total, total - width, total + width


def compare_means(listed: FloatArray, left_out: FloatArray, spread: float) -> tuple[float, float]:
    """Return the difference of the means of two random parts of a group, and an estimate of its variance.

    Of a part with one value, whose variance cannot be estimated, it is the largest of values within `spread`.

    Examples
    --------
    >>> compare_means(np.array([1.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0]), 1.0)
    (0.25, 0.3125)
    """
    difference, variance = 0.0, 0.0
    for sign, values in ((1.0, listed), (-1.0, left_out)):
        if values.size == 0:
            raise ModelError("both sides need at least one value")
        difference += sign * float(values.mean())
        variance += float(values.var(ddof=1)) / values.size if values.size > 1 else spread**2 / 4.0
    return difference, variance


def periods_needed(
    effect: float, listed: int, left_out: int, *, deviation: float = 0.5, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Return the number of periods until an effect is significant: the interval lies above 0 with probability `power`.

    Parameters
    ----------
    effect : float
        Mean effect of a place on the outcome of its arm.
    listed, left_out : int
        How many arms of the index's choice get a place in a period, and how many are left out at random.
    deviation : float
        The standard deviation of an outcome; 0.5 is the most for yes and no.
    alpha, power : float
        As usual; alpha is for all looks together.

    Returns
    -------
    int or None
        None if it takes more than 100,000 periods.

    Examples
    --------
    >>> periods_needed(0.2, listed=180, left_out=20)
    6
    """
    places, out = as_integer(listed, "listed"), as_integer(left_out, "left_out")
    if places < 1 or out < 1:
        raise ModelError("listed and left_out must be at least 1, as both are compared")
    gain = as_tolerance(effect, "effect") * places
    each = places**2 * as_tolerance(deviation, "deviation") ** 2 * (1.0 / places + 1.0 / out)
    quantile = float(ndtri(as_share(power, "power")))
    count = np.arange(1, LONGEST + 1)
    scale = mixture_scale(26.0 * each, _checked_alpha(alpha))
    enough = count * gain - quantile * np.sqrt(count * each) >= margin(count * each, scale, alpha)
    return int(count[enough][0]) if enough.any() else None


def _checked_alpha(alpha: float) -> float:
    if not 0.0 < as_share(alpha, "alpha") < 1.0:
        raise ModelError(f"alpha must be above 0 and below 1, got {alpha}")
    return float(alpha)
