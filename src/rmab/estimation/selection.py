"""Who was acted on: whether records show that the choice depended on more than group and state, and on what it may rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from rmab.common import FloatArray, IntArray
from rmab.estimation.scores import WIDE, Records, centre
from rmab.estimation.significance import SURE, Test, permute

LEAST_ACTIONS, LEAST_ARMS = 50, 20  # below which nobody can tell how arms were chosen
BALANCED = 0.05  # p of arms being alike at first, above which they may have been assigned at random
NEVER = 0.2  # of the arms, that would have been acted on but never were: then arms were assigned


@dataclass(frozen=True)
class Link:
    """Whether arms that were chosen more often do otherwise without an action.

    value: by how much those who were acted on would be better off without it, by their other records; its p; whether
    there are enough actions and arms to tell; and its standard error.
    """

    value: float
    p: float
    is_known: bool
    error: float = float("nan")

    @property
    def is_real(self) -> bool:
        """Whether it is more than chance."""
        return self.is_known and self.p < SURE


def find_link(records: Records) -> Link:
    """Compare how often arms were chosen with what came after their other records, those without an action.

    If choices depend on group, state and period alone, both are unrelated. Where they are not, something that
    belongs to the arm, and is not in the log, chose it.
    """
    alone = records.action == 0
    act, rest = records.rest(records.action, np.ones_like(alone)), records.rest(records.outcome, alone)
    excess = np.bincount(records.arm, weights=act, minlength=records.arms)
    number = np.bincount(records.arm[alone], minlength=records.arms)
    level = np.bincount(records.arm[alone], weights=rest, minlength=records.arms) / np.maximum(number, 1)
    acted = np.bincount(records.arm, weights=records.action, minlength=records.arms)
    known = number > 0
    product = (excess * level)[known]
    size = float(np.sqrt((product**2).sum()))
    enough = acted[known].sum() >= LEAST_ACTIONS and (acted[known] > 0).sum() >= LEAST_ARMS
    if not enough or size <= 0:
        return Link(float("nan"), 1.0, is_known=False)
    weight = np.maximum(acted[known].sum(), 1)
    p = float(2 * norm.sf(abs(product.sum()) / size))
    return Link(float(product.sum() / weight), p, is_known=True, error=size / float(weight))


def compare_arms(records: Records) -> Test:
    """Test whether some arms were chosen more often than others like them: variance of their totals over that of chance."""
    row = records.strata()
    number = np.bincount(row)
    rate = np.bincount(row, weights=records.action) / np.maximum(number, 1)
    chance = np.bincount(records.arm, weights=(rate * (1 - rate))[row], minlength=records.arms)
    sure = chance > 0.5

    def statistic(action: IntArray) -> float:
        excess = np.bincount(records.arm, weights=action - rate[row], minlength=records.arms)
        return float((excess[sure] ** 2 / chance[sure]).sum())

    test = Test(statistic(records.action), int(sure.sum()), max(int((rate * (1 - rate))[row].sum()), 1))
    return permute(test, statistic, row, np.asarray(records.action))


@dataclass(frozen=True)
class Trial:
    """A log in which some arms were never acted on, and look like the others: assigned at random, or volunteers.

    arms, never: how many, and how many of them were never acted on. p: of both being alike when they were first seen.
    value, low, high: by how much a period of the others brings more, on average, with its 95% interval: no model is needed.
    """

    arms: int
    never: int
    p: float
    value: float
    low: float
    high: float


def find_trial(records: Records) -> Trial | None:
    """Return the trial in a log, if it looks like one: many arms without an action, far more than chance would leave."""
    row = records.strata()
    rate = np.bincount(row, weights=records.action) / np.maximum(np.bincount(row), 1)
    miss = np.bincount(records.arm, weights=np.log1p(-np.minimum(rate[row], 0.999)), minlength=records.arms)
    seen = np.bincount(records.arm, minlength=records.arms) > 0
    acted = np.bincount(records.arm, weights=records.action, minlength=records.arms) > 0
    never, expected = int((seen & ~acted).sum()), float(np.exp(miss[seen]).sum())
    spread = float(np.sqrt((np.exp(miss[seen]) * (1 - np.exp(miss[seen]))).sum()))
    excess = never - expected
    if excess < NEVER * seen.sum() or excess < 6 * spread or not acted.any():
        return None
    first = np.unique(records.arm, return_index=True)[1]  # records are in the order of arms and periods
    member = acted[records.arm[first]].astype(np.float64)
    group = np.unique(records.group[first], return_inverse=True)[1].reshape(-1)
    worth = records.worth[records.group[first], records.state[first]]
    balance = _difference(member, worth, group)
    total, number = (np.bincount(records.arm, weights=one)[records.arm[first]] for one in (records.outcome, None))
    mean = np.asarray(total / number, dtype=np.float64)
    value, error = _difference(member, mean, group)
    if not 0 < balance[1] < np.inf:  # all began in the same state, which shows nothing
        return None
    p = float(2 * norm.sf(abs(balance[0]) / balance[1]))
    return Trial(int(seen.sum()), never, p, value, value - WIDE * error, value + WIDE * error)


def _difference(member: FloatArray, outcome: FloatArray, group: IntArray) -> tuple[float, float]:
    """Return the difference of means between members and others within groups, and its standard error."""
    act, out = centre(member, group), centre(outcome, group)
    whole = float((act**2).sum())
    if whole <= 0:
        return float("nan"), float("inf")
    value = float((act * out).sum()) / whole
    return value, float(np.sqrt(((act * (out - value * act)) ** 2).sum())) / whole
