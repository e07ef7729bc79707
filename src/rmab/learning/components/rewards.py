"""Reward estimators (Xiong & Li 2024, Section 4.3): the rewards of the last episode, also of pairs that were not observed.

Values are mapped to [0, 1]. The learner inserts known zeros, unless a component declares otherwise.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rmab.common import BoolArray, FloatArray
from rmab.learning.components.base import RewardEstimate, RewardEstimator
from rmab.learning.components.sets import hoeffding_width
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Observations
from rmab.learning.state import Memory
from rmab.model import View, by_phase

Zeros = Literal["estimated", "declared"]
ZEROS = "passive rewards that are declared to be 0: estimated like all others, as the formula has it, or taken as declared"


@configured
class Revealed(RewardEstimator):
    """The true rewards, which full feedback reveals."""

    feedback = "full"
    anywhere = True

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:  # noqa: ARG002
        """Add one episode; padded states have no reward."""
        return RewardEstimate(np.nan_to_num(episode.observed.values))


@configured
class PaperEstimator(RewardEstimator):
    """The paper's estimator exactly as published: min(r H / c + delta, 1) for a pair visited c times, 1 elsewhere.

    Where H / c is large, and it mostly is, the estimate is 1 for any observation: kept as published. So is the use
    for all pairs: where passive arms are declared to pay 0, the formula still gives delta, or 1 if no arm was
    passive; with ``zeros="declared"`` these rewards are 0, as is known. With full feedback there is nothing to estimate:
    the true rewards are taken.
    """

    anywhere = True
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help="confidence level of the bonus delta, as in Hoeffding sets")
    zeros: Zeros = option(default="estimated", help=ZEROS)

    @property
    def knows_zeros(self) -> bool:
        """Whether declared zeros are used."""
        return self.zeros == "declared"

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:
        """Add one episode; delta is of the visits before it."""
        pools = episode.pools
        if pools.view.feedback == "full":
            return Revealed().learn(memory, episode)
        visits = episode.before.sum(axis=3)[pools.group_of_payoff]
        width = hoeffding_width(pools.view, visits, episode.number, self.epsilon)
        played = int(episode.observed.counts.sum()) // pools.view.arms  # steps, of which an episode may have fewer than H
        return RewardEstimate(paper_estimate(pools.view, episode.observed, width, played, pools.zero))


@configured
class Direct(RewardEstimator):
    """The observed value; 1 if there is none."""

    anywhere = True

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:  # noqa: ARG002
        """Add one episode."""
        values = episode.observed.values
        return RewardEstimate(np.where(np.isnan(values), 1.0, values))


@configured
class ImplicitExploration(RewardEstimator):
    """One minus the loss times visits, over the expected visits plus gamma (Jin et al. 2020).

    The steps of an episode are taken together, as rewards do not depend on them. Expected visits are counted in
    simulated episodes of the executed policy.
    """

    draws = True
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help="confidence level in gamma, as in UOB-REPS")

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:  # noqa: ARG002
        """Add one episode."""
        from rmab.learning.visits import executed_occupancy, exploration, of_payoffs  # noqa: PLC0415  (rarely used)

        pools = episode.pools
        rates = executed_occupancy(pools, episode.policy, episode.counts, episode.draw_key)
        visits = by_phase(rates, pools.view.steps, pools.view.phases)
        expected = of_payoffs(pools, visits) + exploration(pools.view, self.epsilon)
        return RewardEstimate(implicit_estimate(episode.observed, expected))


def paper_estimate(
    view: View, observed: Observations, width: FloatArray, played: int | None = None, zero: BoolArray | None = None
) -> FloatArray:
    """(R, S, 2) the paper's estimate; width (R, S, 2) is delta; played: the steps of the episode, by default the view's.

    zero (R, S, 2): pairs whose value is known without a visit; they are estimated like the others, 1 where not visited.
    """
    seen = ~np.isnan(observed.values)
    if zero is not None:
        seen &= ~zero | (observed.visits > 0)
    of_phase = np.bincount(view.steps[:played], minlength=view.phases)  # when a pair can be visited; H with one phase
    steps = np.tile(of_phase, len(observed.values) // view.phases)[:, np.newaxis, np.newaxis]
    scaled = observed.values * steps / np.maximum(observed.visits, 1.0)
    return np.where(seen, np.minimum(scaled + width, 1.0), 1.0)


def implicit_estimate(observed: Observations, expected: FloatArray) -> FloatArray:
    """(R, S, 2) 1 - loss c / expected, where expected (R, S, 2) is what c is on average, plus gamma; 1 where not seen.

    Biased upwards, less for pairs with many visits: so it explores.
    """
    loss = np.where(np.isnan(observed.values), 0.0, 1.0 - observed.values)
    return np.asarray(1.0 - loss * observed.visits / expected)
