"""Draws of kernels that a log allows, for the intervals.

Arms are the independent units of a log: records of one arm hang together. So every arm is weighted by an exponential
number, and the model is fitted to the weighted records: the Bayesian bootstrap over arms (Rubin 1981). The prior of the
shrinkage is drawn, too, as separate records (gamma numbers whose mean is its strength times its centre): else groups
that borrow most of what is known of them would look far too sure. Its strength m is drawn from the marginal likelihood of
the counts as they are (random weights would add noise, which looks like differences between groups), with a prior that is
uniform in the standard deviation between groups, 1 / sqrt(m) (Gelman 2006): where groups are few, the most likely strength
is often infinite, and tells nothing of those that are nearly as likely. Clusters are
fitted to weighted arms, and every arm's drawn from its shares. With fewer than ten arms, their variation is unknown:
transitions are then weighted one by one, as if arms were identical.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, IntArray, as_integer
from rmab.errors import ModelError
from rmab.estimation.balance import balance
from rmab.estimation.clusters import count_by_arm, redraw_clusters
from rmab.estimation.fit import Fit
from rmab.estimation.rewards import average_rewards
from rmab.estimation.shrinkage import draw_rows, posterior

ALONE = 2.0  # visits that a prior is worth where a group stands on its own records
LEVEL = 0.95  # of all intervals
FEW_ARMS = 10  # arms with records, below which weights of arms would show next to nothing
LEAST_DRAWS = 40  # below which the smallest and the largest lie too close for 95%
MOST_DRAWS = 20_000  # the ends of an interval hardly move beyond: more is a typing error, which would take hours


def as_replicates(value: object) -> int:
    """Return the number of draws behind intervals; ModelError unless it is a whole number in LEAST_DRAWS..MOST_DRAWS."""
    number = as_integer(value, "replicates")
    if not LEAST_DRAWS <= number <= MOST_DRAWS:
        raise ModelError(f"replicates must be in {LEAST_DRAWS}..{MOST_DRAWS:,}, got {number:,}", field="replicates")
    return number


def interval(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the middle 95% of draws (R, ...).

    The k-th smallest of R draws has k / (R + 1) of the distribution below it, on average (Weibull 1939): interpolation that
    takes the smallest for the 0% quantile would make intervals of 100 draws hold 93%.
    """
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0, method="weibull")
    return low, high


class Resampler:
    """The transitions of a fit, arm by arm, ready to be counted with weights."""

    def __init__(self, fitted: Fit) -> None:
        moves, states = fitted.require_log().transitions, len(fitted.state_names)
        self.levels, self.arms, self.shape = fitted.levels, len(fitted.roster.ids), fitted.counts.shape
        self.rows, self.fitted, self.seen = fitted.rows, fitted.kernels, fitted.counts * fitted.state_weights
        kind = (moves.state * 2 + moves.action) * states + moves.after
        size = 2 * states * states
        both, one_of, times = np.unique(moves.arm * size + kind, return_inverse=True, return_counts=True)
        self.known, self.kind = int(np.unique(both // size).size), both % size
        extra = fitted.state_weights.reshape(-1)[both % (2 * states)]
        self.times, self.balanced = times * extra, extra * np.bincount(one_of.reshape(-1), weights=balance(fitted))
        self.arm, self.place = both // size, fitted.group_of[both // size] * size + both % size
        self.clusters = (count_by_arm(fitted.require_log()), fitted.group_of) if fitted.clustered else None
        self.learned, log = fitted.pay.kind == "learned", fitted.require_log()
        if self.learned and log.reward is not None:
            known = (log.state >= 0) & (log.action >= 0) & ~np.isnan(log.reward)
            self.payee, self.paid = log.arm_of[known], log.reward[known]
            self.pay_place = (fitted.group_of[self.payee] * states + log.state[known]) * 2 + log.action[known]

    def counts(self, weights: FloatArray, group_of: IntArray | None = None) -> FloatArray:
        """(G, S, 2, S) the transitions, every arm (N,) weighted; in other groups (N,), where they are given."""
        place = self.place if group_of is None else group_of[self.arm] * int(np.prod(self.shape[1:])) + self.kind
        return self._add(self.times * weights[self.arm], place)

    def _add(self, each: FloatArray, place: IntArray) -> FloatArray:
        found = np.bincount(place, weights=each, minlength=int(np.prod(self.shape)))
        return np.asarray(found.reshape(self.shape), dtype=np.float64)

    def draw_pay(self, rng: np.random.Generator) -> FloatArray:
        """(G, S, 2) rewards that were learned, as they may be: every arm weighted at random."""
        weight = (rng.exponential(size=self.arms) if not self.few else np.ones(self.arms))[self.payee]
        size = int(np.prod(self.shape[:3]))
        several = (weight, weight * self.paid, weight * self.paid**2)
        sums = np.stack([np.bincount(self.pay_place, weights=one, minlength=size) for one in several]).astype(np.float64)
        return average_rewards(*sums.reshape(3, *self.shape[:3]))

    @property
    def few(self) -> bool:
        """Whether there are too few arms to estimate how much they differ."""
        return self.known < FEW_ARMS

    def reweight(self, rng: np.random.Generator, times: FloatArray) -> FloatArray:
        """(G, S, 2, S) the transitions, every arm weighted at random; where arms are few, every transition."""
        each = rng.gamma(times) if self.few else times * rng.exponential(size=self.arms)[self.arm]
        return self._add(each, self.place)

    def alone(self, rng: np.random.Generator | None = None) -> FloatArray:
        """(G, S, 2, S) what the kernels may be by the records of each group alone, balanced, and next to no prior.

        Without a generator, what they are taken to be: the centre of the draws.
        """
        if rng is None:
            return posterior(self._add(self.balanced, self.place), ALONE * self.fitted, self.fitted)
        counts = self.reweight(rng, self.balanced)
        return posterior(counts, rng.gamma(ALONE * self.fitted), self.fitted)

    def draw(self, rng: np.random.Generator, group_of: IntArray | None = None) -> FloatArray:
        """(G, S, 2, S) what the kernels may be, in other groups (N,) where they are given."""
        if group_of is None:
            return draw_rows(self.reweight(rng, self.times), self.rows, self.levels, rng, self.seen)
        counts, seen = (self.counts(one, group_of) for one in (rng.exponential(size=self.arms), np.ones(self.arms)))
        return draw_rows(counts, self.rows, self.levels, rng, seen)

    def draw_groups(self, rng: np.random.Generator) -> IntArray | None:
        """(N,) the clusters of arms, as they may be; None where groups are given."""
        return None if self.clusters is None or self.few else redraw_clusters(*self.clusters, rng)
