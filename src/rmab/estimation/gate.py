"""The gate before any benefit: one test of the effect that is valid however often it is repeated.

A programme fits its log every week, and may stop when the effect is significant. A test for one look is then positive in
one of ten programmes without an effect. So the gate is a test martingale. Within a stratum h (group, state and period),
under no effect, those m of n who were acted on are a random draw without replacement, whatever outcomes Y follow. So the
sum D_h of Y - y_h over them has mean 0, and for every l

    E exp( l D_h )  =  about exp( v_h(l) ),    v_h(l) = m (n - m) / (n - 1) [ (1 - m/n) k_h(l) + m/n k_h(-l) ],

where k_h(l) is the logarithm of the mean of exp(l (Y - y_h)) in the stratum. The first factor is the variance of draws
without replacement, and the bracket has their skewness. (For outcomes of yes and no, it is 7% below to 12% above the
hypergeometric value for l up to 1, and 1% above it on average; Hoeffding 1963, Theorem 4, is the bound for draws with
replacement.) So the product over strata of exp(l D_h - v_h(l)), whatever is chosen in later periods because of earlier
ones, is a martingale, and so is any mixture over l: it ever exceeds 20 with probability 1 / 20 at most (Ville 1939; Howard,
Ramdas, McAuliffe & Sekhon 2020). The mixture is half-normal in l s, the effect in standard deviations s of an outcome.
Evidence is the weighted mean of two of these: of one effect for everybody, and the average over groups with effects of
their own. p is one over it.

Choices may also depend on the state before, and so may outcomes. So evidence is weighed twice, also with the state before
as a part of e and y (`Records.past`), and the smaller one counts. If choices depend on the strata alone, it is at most the
martingale. If they depend on the state before, it holds approximately: means of its classes are those of the whole log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from rmab.common import FloatArray, IntArray
from rmab.estimation.fit import Fit
from rmab.estimation.scores import Average, Records

ENOUGH = 20  # actions in a group, below which it says nothing on its own
SHARED = 0.8  # weight of an effect that all groups share
USUAL = 0.3  # an effect in standard deviations of an outcome: the scale of the mixture
STEEPEST = 600.0  # of an exponent
EDGES = USUAL * np.exp2(np.arange(-32, 9) / 4)
SIZES, SHARES = np.sqrt(EDGES[1:] * EDGES[:-1]), 2 * np.diff(norm.cdf(EDGES / USUAL))  # effects, and their prior (K,)


@dataclass(frozen=True)
class Gate:
    """Test whether records show that an action helps, before any benefit is stated.

    Attributes
    ----------
    value, low, high : float
        The average effect on what the next period brings, per action, with its 95% interval (of one look).
    p : float
        Of no benefit, on average or in any group. Where actions do nothing, it is below 0.05 at some look, however many
        there are, in at most 5% of the programmes. Where the log itself says which state is good, p is multiplied by the
        number of states (Bonferroni).
    actions : int
        Number of actions with a known next state.
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
        """Whether benefits may be stated."""
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
    chosen = fit.pay.kind == "assumed" and not fit.require_log().ordered  # the state that actions make more likely
    tried = np.log(len(fit.state_names)) if chosen else 0.0
    evidence = [weigh_evidence(records, found, len(fit.groups))]
    past = replace(records, past=True)
    least = past.average()
    evidence.append(weigh_evidence(past, least, len(fit.groups)) if np.isfinite(least.value) and least.error > 0 else 0.0)
    p = float(np.exp(-max(min(evidence) - tried, 0.0)))
    return Gate(found.value, low, high, p, found.actions, *map(e_value, ratios))


def weigh_evidence(records: Records, found: Average, groups: int) -> float:
    """Return the logarithm of the evidence that an action helps, on average or in some group.

    Prices are multiplied by how much more arms vary than single records. A group with few actions is not tested separately.
    """
    stratum, every = records.blocks[0], np.ones(records.arm.size, dtype=bool)
    act, out = (records.rest(one, every) for one in (records.action, records.outcome))
    number, acts, acted = (np.bincount(stratum, weights=one) for one in (None, act**2, records.action))
    home = np.zeros(number.size, dtype=np.int64)
    home[stratum] = records.group
    alone = float(np.sum((act * (out - found.value * act)) ** 2))
    excess = max(1.0, (found.error * float((act**2).sum())) ** 2 / max(alone, 1e-300))
    deviation = np.sqrt(float((out**2).sum()) / max(records.arm.size - number.size, 1))
    if deviation <= 0:
        return 0.0
    sums = np.bincount(records.group, weights=act * out, minlength=groups)
    draws, rate = excess * acts * number / np.maximum(number - 1, 1), acted / number
    paths = np.empty((groups, SIZES.size))
    for k, slope in enumerate(SIZES / (deviation * excess)):
        price = draws * ((1 - rate) * _cumulant(slope * out, stratum) + rate * _cumulant(-slope * out, stratum))
        paths[:, k] = slope * sums - np.bincount(home, weights=price, minlength=groups)
    common = float(logsumexp(paths.sum(axis=0), b=SHARES))
    large = np.bincount(records.group, weights=records.action, minlength=groups) >= ENOUGH
    if groups == 1:
        return common
    each = float(logsumexp(paths[large], b=SHARES / groups)) if large.any() else -np.inf
    return float(np.logaddexp(np.log(SHARED) + common, np.log(1 - SHARED) + each))


def _cumulant(values: FloatArray, stratum: IntArray) -> FloatArray:
    """(H,) the logarithm of the mean of exp(values) in every stratum; at most that of the largest number."""
    mean = np.bincount(stratum, weights=np.exp(np.minimum(values, STEEPEST))) / np.bincount(stratum)
    return np.asarray(np.log(mean))


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
