"""A check one step ahead, in other arms: what came after the choices that the plan would have made (inverse propensities).

At every record of the log the plan has a decision: an arm is acted on if its index is at least the price of
the budget, so that a rule d(group, state) in [0, 1] is left. The log acted with the propensity e(group, state), a
frequency. Records in which the log did what the plan would have done are weighted by one over the chance that it did
(Horvitz & Thompson 1952; weights are normalised, as Hajek 1971): the mean of what came next is that under the plan's
rule, whatever the kernels are. One period ahead, no further: over several the weights multiply, and nothing is left to
average. It stands on the same groups and states as the model, and so it cannot show unrecorded selection: it finds errors
of shrinkage and of planning, no others.

A plan looks good in the very records that it was made from. So arms are split into two halves, within groups: the plan
made from one half is checked in the records of the other, and so is the model of that half (cross-fitting). The interval is
for the records that there are: weights are drawn for arms (Rubin 1981), and frequencies estimated again, but how often every
group and state appears stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.estimation.fit import Fit
from rmab.estimation.resampling import ALONE, Resampler, interval
from rmab.estimation.shrinkage import draw_rows, posterior, shrink
from rmab.model import Arms, Problem
from rmab.solvers.fluid.fluid import solve_fluid

LEAST = 0.01  # propensities below this mean that the log shows nothing of the plan's choices
GROUPS_LOST = 0.2  # part of the records in which that may be so
EFFECTIVE = 100  # records that the weighted ones must at least be worth
REPLICATES = 200


@dataclass(frozen=True)
class OneStep:
    """The check, or why there is none.

    Attributes
    ----------
    refused : str
        Why it cannot be made; empty where it was.
    value, low, high : float
        What a period brings per arm after the plan's choices, by inverse propensities, with its 95% interval.
    logged : float
        What it brought in the log.
    model : float
        What the model says of the same records under the plan's choices.
    gap_low, gap_high : float
        The 95% interval of value - model, which holds the error of both: the model agrees where it holds 0.
    overlap : float
        Part of the plan's actions that fall where the log acted, too.
    least : float
        The smallest propensity of a choice that the plan makes.
    effective : float
        How many equally weighted records the weighted ones are worth.
    records : int
        How many there are.
    words : str
        All this in a sentence.
    """

    refused: str
    value: float
    low: float
    high: float
    logged: float
    model: float
    gap_low: float
    gap_high: float
    overlap: float
    least: float
    effective: float
    records: int
    words: str

    @property
    def agrees(self) -> bool:
        """Whether the model may be right."""
        return self.gap_low <= 0.0 <= self.gap_high


def check_one_step(fit: Fit, budget: int, horizon: int, *, seed: int = 0) -> OneStep:
    """Check the plan of a fit one step ahead, in the arms that it was not made from, or say why that cannot be done."""
    halves = Halves(fit, budget, horizon, seed)
    refusal = halves.refusal(fit.words.action)
    if refusal:
        return _refused(refusal, halves)
    value, model = halves.values()
    rng = np.random.default_rng((seed, 4))
    draws = np.array([halves.draw(rng) for _ in range(REPLICATES)])
    low, high = (value + float(one) for one in interval(draws[:, 0] - draws[:, 0].mean()))
    gap = draws[:, 0] - draws[:, 1]
    gap_low, gap_high = (value - model + float(one) for one in interval(gap - gap.mean()))
    numbers = (value, low, high, halves.logged, model, gap_low, gap_high, halves.overlap, halves.least, halves.effective)
    found = OneStep("", *numbers, records=int(halves.size.sum()), words="")
    return replace(found, words=_describe(fit, found))


class Halves:
    """The records of a log in strata of half, group and state, with what the plan of the other half would have done.

    Attributes
    ----------
    wanted : (2, G, S) float array
        The part of a stratum on which the plan of the other half acts.
    size : (2, G, S) float array
        Records in it.
    covered : (2, G, S) bool array
        Whether the log shows what comes after the choices that are wanted there.
    overlap, least, effective, logged : float
        As in `OneStep`.
    """

    def __init__(self, fit: Fit, budget: int, horizon: int, seed: int) -> None:
        self.fit, self.half, self.resampler = fit, split_halves(fit.group_of, seed), Resampler(fit)
        self.pays = np.asarray(fit.pay.table[:, :, 0])
        self.counts = counts = self._counts(np.ones(len(fit.roster.ids)))
        self.fits = [shrink(one, fit.levels) for one in counts]
        self.wanted = np.stack([rule_of(replace(fit, rows=one), budget, horizon) for one in reversed(self.fits)])
        self.visits = visits = counts.sum(axis=4)
        self.centre = np.stack([posterior(one, ALONE * np.asarray(fit.kernels), fit.kernels) for one in counts])
        self.size = visits.sum(axis=3)
        chance = np.divide(visits[..., 1], self.size, out=np.zeros(self.size.shape), where=self.size > 0)
        acts = self.size * self.wanted
        uncovered, always = (self.wanted > 0) & (chance < LEAST), (self.wanted < 1) & (chance > 1 - LEAST)
        self.covered = (self.size > 0) & ~uncovered & ~always
        self.acts, self.always = float(acts.sum()), float(self.size[always].sum() / self.size.sum())
        self.overlap = 1.0 - float(acts[uncovered].sum()) / self.acts if self.acts > 0 else 1.0
        self.least = float(chance[self.covered & (self.wanted > 0)].min(initial=1.0))
        self.effective = self._effective(visits)
        paid = np.einsum("hgsay,gy->hgs", counts, self.pays)[self.covered].sum()
        self.logged = float(paid / max(float(self.size[self.covered].sum()), 1.0))

    def _counts(self, weights: FloatArray) -> FloatArray:
        """(2, G, S, 2, S) the transitions of both halves, arms (N,) weighted."""
        return np.stack([self.resampler.counts(np.where(self.half == h, weights, 0.0)) for h in (0, 1)])

    def _effective(self, visits: FloatArray) -> float:
        """Return (sum of weights)^2 / (sum of their squares): a record of a choice weighs what is wanted over its share."""
        share = np.stack([1.0 - self.wanted, self.wanted], axis=3)
        weight = np.divide(share * self.size[..., np.newaxis], visits, out=np.zeros(visits.shape), where=visits > 0)
        weight *= self.covered[..., np.newaxis]
        return float((visits * weight).sum() ** 2 / max(float((visits * weight**2).sum()), 1e-300))

    def refusal(self, word: str) -> str:
        """Return why there can be no check; nothing where there can."""
        if self.resampler.few:
            return f"there are only {self.resampler.known} arms with records, too few to split into halves"
        if self.acts <= 0:
            return f"the plan would have made no {word} in the states of the log"
        if self.overlap < 1 - GROUPS_LOST:
            lost = f"{1 - self.overlap:.0%} of the {word}s that the plan wants"
            return f"{lost} are in groups and states where the log hardly ever made one"
        if self.always > GROUPS_LOST:
            return f"in {self.always:.0%} of the records the log always made one, where the plan would not"
        if self.effective < EFFECTIVE:
            return f"records that agree with the plan count as only {self.effective:.0f} (at least {EFFECTIVE} are needed)"
        return ""

    def values(self) -> tuple[float, float]:
        """Return what came after the choices that are wanted, and what the models of the other halves say of it."""
        paid = np.einsum("hgsay,gy->hgsa", self.counts, self.pays)
        seen = np.divide(paid, self.visits, out=np.zeros(paid.shape), where=self.visits > 0)
        return self.under_plan(seen), self.model([one.kernels for one in self.fits])

    def draw(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return both as they may be: arms weighted at random, priors drawn, strata of the sizes that they have.

        A choice that was seen once or twice would look sure if its outcomes were only weighted: a prior of next to nothing
        is drawn for them, too. Draws of n records and this prior have 1 / (n + 1 + prior) of the variance of one record, and
        frequencies have 1 / n: they are spread out so far.
        """
        counts, centre = self._counts(rng.exponential(size=self.half.size)), np.asarray(self.fit.kernels)
        alone = np.stack([posterior(one, rng.gamma(ALONE * centre), centre) for one in counts]) - self.centre
        alone *= np.sqrt((self.visits + 1.0 + ALONE) / np.maximum(self.visits, 1.0))[..., np.newaxis]
        several = zip(counts, self.fits, strict=True)
        rows = [draw_rows(one, fit, self.fit.levels, rng) for one, fit in several]
        return self.under_plan(np.einsum("hgsay,gy->hgsa", alone, self.pays)), self.model(rows)

    def model(self, kernels: list[FloatArray]) -> float:
        """Return what the records of both halves bring under the plan by the kernels of the other half."""
        return self.under_plan(np.einsum("hgsay,gy->hgsa", np.stack(kernels[::-1]), self.pays))

    def under_plan(self, ahead: FloatArray) -> float:
        """Return the mean of what comes next (2, G, S, 2) over the records, under the choices that are wanted."""
        mean = (1.0 - self.wanted) * ahead[..., 0] + self.wanted * ahead[..., 1]
        return float(np.average(mean[self.covered], weights=self.size[self.covered]))


def split_halves(group_of: IntArray, seed: int) -> IntArray:
    """(N,) 0 or 1: every group in two halves, at random; of an odd one, which half is larger is random, too."""
    rng = np.random.default_rng((seed, 6))
    order = np.lexsort((rng.random(group_of.size), group_of))
    half = np.empty(group_of.size, dtype=np.int64)
    half[order] = (np.arange(group_of.size) + rng.integers(2)) % 2
    return half


def rule_of(fit: Fit, budget: int, horizon: int) -> FloatArray:
    """(G, S) the part of a group in a state that the plan acts on now; where the plan has no arms, by its prices."""
    groups, place = np.unique(fit.group_of[fit.present], return_inverse=True)
    arms = Arms.of_groups(fit.with_leaving(fit.kernels[groups]), place.reshape(-1), state_names=fit.names_ahead)
    plan = solve_fluid(Problem(arms, fit.start, budget, horizon), fit.reward)
    found = np.zeros((len(fit.groups), len(fit.state_names)))
    block = np.zeros(groups.size, dtype=np.int64)
    block[np.searchsorted(groups, fit.group_of[fit.present])] = plan.blocks.block_of
    advantage, price = plan.advantage[:, 0], float(plan.prices[0])
    scale = max(float(np.abs(advantage).max()), 1e-12)
    share = np.where(plan.blocks.start > 0, plan.share[:, 0], (advantage > price + 1e-6 * scale).astype(np.float64))
    found[groups] = share[block][:, : len(fit.state_names)]
    return found


def _refused(why: str, halves: Halves) -> OneStep:
    nan = float("nan")
    words = f"No check one step ahead: {why}. A random share in future lists would make one possible."
    return OneStep(why, *(nan,) * 7, halves.overlap, halves.least, halves.effective, int(halves.size.sum()), words)


def _describe(fit: Fit, found: OneStep) -> str:
    """Return the check in a sentence."""
    per = fit.words.period
    unit = fit.pay.unit.split(" ", 1)[-1] if fit.pay.counts_periods else ""

    def form(number: float) -> str:
        return f"{100 * number:.1f}%" if unit else f"{number:.3g}"

    what = f"were {unit} the {per} after" if unit else f"was the average of the {per} after"
    verdict = "which agrees" if found.agrees else "a difference beyond its 95% interval, as one in twenty are by chance"
    least = f"{100 * found.least:.2g}%"
    return (
        "A check one step ahead (the arms are split into two halves, and the records of each half test a plan made from the "
        f"other): where the log happened to decide as the plan would have, {form(found.value)} ({form(found.low)} to "
        f"{form(found.high)}) {what}. The model predicts {form(found.model)}, {verdict}; in the whole log it was "
        f"{form(found.logged)}. (Only records in which the log decided as the plan would have can be used, with weights: "
        f"they are worth about {found.effective:,.0f} of the {found.records:,} records. {found.overlap:.0%} of the plan's "
        f"{fit.words.action}s go to groups and states in which the log has some. In the group and state in which the log "
        f"follows the plan least often, {least} of the records have the plan's decision.)"
    )
