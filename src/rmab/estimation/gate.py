"""The gate before any benefit: one test of the effect that holds however often one looks.

A programme fits its log every week, and may stop asking when the answer is yes. A test for one look would then say yes in
one of five programmes without an effect. So the gate is a test martingale. Within a stratum h (group, state and period),
under no effect, who was acted on says nothing of outcomes Y: the sum D_h of Y - y_h over those who were has mean 0 and the
variance v_h of draws without replacement. As its terms are at most c_h, for every l > 0 (Bennett 1962; for draws without
replacement Hoeffding 1963, Theorem 4, which has the slightly larger variance of draws with it)

    E exp( l D_h - v_h (exp(l c_h) - l c_h - 1) / c_h^2 )  <=  1.

So the product over strata, whatever is chosen in later periods because of earlier ones, is a supermartingale, and so is any
mixture over l: it ever exceeds 20 with probability 1 / 20 at most (Ville 1939; Freedman 1975; Howard, Ramdas, McAuliffe &
Sekhon 2020). The mixture is half-normal in l s, the effect in standard deviations s of an outcome. Evidence is the weighted
mean of two of these: of one effect for everybody, and the average over groups with effects of their own. p is one over it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from rmab.common import FloatArray
from rmab.estimation.fit import Fit
from rmab.estimation.scores import Average, Records

ENOUGH = 20  # actions in a group, below which it says nothing on its own
SHARED = 0.8  # weight of an effect that all groups share
USUAL = 0.3  # an effect in standard deviations of an outcome: the scale of the mixture
EDGES = USUAL * np.exp2(np.arange(-40, 11) / 4)
SIZES, SHARES = np.sqrt(EDGES[1:] * EDGES[:-1]), 2 * np.diff(norm.cdf(EDGES / USUAL))  # effects, and their prior (K,)


@dataclass(frozen=True)
class Gate:
    """Whether records show that an action helps: one test, before any benefit is stated.

    Attributes
    ----------
    value, low, high : float
        The average effect on what the next period brings, per action, with its 95% interval (of one look).
    p : float
        Of no benefit, on average or in any group. Where actions do nothing, it is below 0.05 at some look, however many
        there are, in at most 5% of the programmes.
    actions : int
        How many were seen, with what came after.
    e_value : float
        How strongly something unrecorded would have to be linked to both being chosen and to the outcome, as ratios of
        risks, to explain the average effect away; `e_low` the same for the end of its interval that is nearer to none
        (VanderWeele & Ding 2017).
    """

    value: float
    low: float
    high: float
    p: float
    actions: int
    e_value: float
    e_low: float

    @property
    def is_known(self) -> bool:
        """Whether actions could be compared with anything."""
        return bool(np.isfinite(self.value))

    @property
    def is_open(self) -> bool:
        """Whether a benefit may be stated."""
        return self.p < 0.05


def check_effect(fit: Fit) -> Gate:
    """Test whether an action helps, on average or in some group."""
    records = Records.of(fit)
    found = records.average()
    if not np.isfinite(found.value) or found.error <= 0:
        return Gate(np.nan, np.nan, np.nan, 1.0, found.actions, 1.0, 1.0)
    low, high = found.ends
    near = min(low, high, key=abs) if low * high > 0 else 0.0
    ratios = [_ratio(one, found.usual, fit.pay.counts_periods, records.outcome) for one in (found.value, near)]
    p = float(np.exp(-max(weigh_evidence(records, found, len(fit.groups)), 0.0)))
    return Gate(found.value, low, high, p, found.actions, *map(e_value, ratios))


def weigh_evidence(records: Records, found: Average, groups: int) -> float:
    """Return the logarithm of the evidence that an action helps, on average or in some group.

    Variances are multiplied by how much more arms vary than single records. A group with few actions has no say of its own.
    """
    stratum, every = records.blocks[0], np.ones(records.arm.size, dtype=bool)
    act, out = (records.rest(one, every) for one in (records.action, records.outcome))
    number, acts, outs, acted = (np.bincount(stratum, weights=one) for one in (None, act**2, out**2, records.action))
    home, most = np.zeros(number.size, dtype=np.int64), np.zeros(number.size)
    home[stratum] = records.group
    rarer = np.where(2 * acted > number, -1.0, 1.0)[stratum]  # the sum over those who were not acted on is its negative
    np.maximum.at(most, stratum, rarer * out)
    alone = float(np.sum((act * (out - found.value * act)) ** 2))
    excess = max(1.0, (found.error * float((act**2).sum())) ** 2 / max(alone, 1e-300))
    variance = excess * acts * outs / np.maximum(number - 1, 1)
    deviation = np.sqrt(outs.sum() / max(records.arm.size - number.size, 1))
    if deviation <= 0:
        return 0.0
    sums = np.bincount(records.group, weights=act * out, minlength=groups)
    paths = np.empty((groups, SIZES.size))
    for k, rate in enumerate(SIZES / (deviation * excess)):
        price = variance * rate**2 * _bend(rate * most)
        paths[:, k] = rate * sums - np.bincount(home, weights=price, minlength=groups)
    common = float(logsumexp(paths.sum(axis=0), b=SHARES))
    large = np.bincount(records.group, weights=records.action, minlength=groups) >= ENOUGH
    if groups == 1:
        return common
    each = float(logsumexp(paths[large], b=SHARES / groups)) if large.any() else -np.inf
    return float(np.logaddexp(np.log(SHARED) + common, np.log(1 - SHARED) + each))


def _bend(x: FloatArray) -> FloatArray:
    """(H,) (exp(x) - x - 1) / x^2, for x of 0 or more: 1/2 at 0."""
    small = x < 1e-3
    safe = np.where(small, 1.0, x)
    return np.where(small, 0.5 + x / 6, (np.expm1(safe) - safe) / safe**2)


def _ratio(value: float, usual: float, counts: bool, outcome: FloatArray) -> float:
    """Return an effect as a ratio of risks; of what is no chance, as VanderWeele & Ding (2017, Table 2) do: exp(0.91 d)."""
    if counts:
        return float((usual + value) / usual) if usual > 0 and usual + value > 0 else 1.0
    spread = float(outcome.std())
    return float(np.exp(0.91 * value / spread)) if spread > 0 else 1.0


def e_value(ratio: float) -> float:
    """Return the E-value of a ratio of risks: R + sqrt(R (R - 1)), R its larger direction (VanderWeele & Ding 2017).

    Examples
    --------
    >>> round(e_value(3.9), 2)  # their example
    7.26
    """
    larger = max(ratio, 1.0 / ratio)
    return float(larger + np.sqrt(larger * (larger - 1.0)))
