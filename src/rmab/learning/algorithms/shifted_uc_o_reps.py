"""Shifted Bandit UC-O-REPS (Rosenberg and Mansour, NeurIPS 2019): kernels mixed with the uniform one, importance weights.

Knowledge: nothing of the kernels; sets that are rebuilt when a pair's count doubles. Feedback: bandit. Every kernel P of
the set is replaced by (1 - alpha) P + alpha / S (over the possible successors), so that no state of the plan is too rare to
divide by: the loss of a pair at a step is loss * visited / q, q the plan's occupancy (the exact form in our reading). Pairs
that are declared to pay nothing keep their loss unweighted: these weights have little bias, and this avoids noise.
Sets: the paper's L1 ball, shifted, has a lower bound on every entry that a ball has not; we take the smallest box around
it, entries within half the radius, which shifts to a box.
Hard budget: the budget is a constraint of the projection, for all arms together; arms are activated by dependent rounding
of the plan's shares, as far as they fill the budget; free slots go to the highest indices (rule `fill`).
With the B highest indices instead (`rounding="top"`) an arm that is left out is
never seen to lose, and all take turns: the plan does not converge. An arm's visits then depend on the others:
q is the visits of the executed policy in simulated episodes, times what the plan's mass of a state is in units of its
empirical occupancy; no less than alpha / (S A), which the analysis counts on.
Parameters: alpha = T^(-1/4), the published rate without its constant, which would be above 1 here, and eta = sqrt(ln(S^2 A)
alpha / (S A T)), which balances the bound (both in our reading). Tuned: 64 eta (docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import IntArray, cached_property
from rmab.learning.components import L1, Centred, RewardEstimate, RewardEstimator
from rmab.learning.epochs import EpochLearner
from rmab.learning.mirror_descent import RATE, ComponentSet
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools, share_of
from rmab.learning.state import Memory
from rmab.learning.visits import importance, step_visits, weighted_losses
from rmab.model import View
from rmab.solvers.transitions import TransitionSets

SHIFT = "alpha, in units of the theory's; never above 1"


def mixing_weight(view: View, shift: float) -> float:
    """Return alpha: how much of the uniform kernel is mixed in."""
    return float(min(shift * view.episodes**-0.25, 1.0))


def shifted_box(pools: Pools, ball: TransitionSets, alpha: float) -> TransitionSets:
    """Return the box around the L1 ball, every kernel in it mixed with alpha of the uniform one."""
    low, high = np.where(pools.support, ball.low, 0.0), np.where(pools.support, ball.high, 0.0)
    uniform = alpha * pools.support / pools.support.sum(axis=3, keepdims=True)
    return TransitionSets.boxes((1 - alpha) * low + uniform, np.minimum((1 - alpha) * high + uniform, 1.0))


@configured
class ShiftedL1(L1):
    """Boxes around L1 balls, shifted towards the uniform kernel."""

    shift: float = option(default=1.0, ge=1e-12, le=1e6, help=SHIFT)

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return the shifted boxes."""
        return shifted_box(pools, super().around(pools, counts, episode), mixing_weight(pools.view, self.shift))


@configured
class ShiftedWeights(RewardEstimator):
    """Losses over the plan's own occupancy, no less than alpha / (S A)."""

    draws = True
    alike = False  # losses of declared zeros stay unweighted
    shift: float = option(default=1.0, ge=1e-12, le=1e6, help=SHIFT)

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:  # noqa: ARG002
        """Weigh the losses of every step by how likely they were to be seen."""
        pools, mass = episode.pools, episode.mass
        visits = step_visits(pools, episode.feedback)
        weights = importance(pools, episode.policy, share_of(mass), episode.basis, mass, episode.draw_key)
        least = mixing_weight(pools.view, self.shift) / (2 * pools.view.states)
        weights = np.maximum(weights, least)
        return RewardEstimate(-weighted_losses(pools, episode.observed, visits, weights, alike=self.alike))


@configured
class ShiftedStep(Centred):
    """Online mirror descent at the rate that balances the bound."""

    shift: float = option(default=1.0, ge=1e-12, le=1e6, help=SHIFT)

    def rate(self, view: View) -> float:
        """Return sqrt(ln(S^2 A) alpha / (S A T)), times the scale."""
        pairs, alpha = 2 * view.states, mixing_weight(view, self.shift)
        return float(self.scale * np.sqrt(np.log(view.states * pairs) * alpha / (pairs * view.episodes)))


@configured
class ShiftedUcOReps(EpochLearner):
    """Mirror descent with importance-weighted losses over shifted kernels."""

    name = "shifted-uc-o-reps"
    TUNED = {"rate": 64.0, "shift": 1.0}
    rate: float | None = option(default=None, ge=1e-12, le=1e6, help=RATE)
    shift: float | None = option(default=None, ge=1e-12, le=1e6, help=SHIFT)

    @cached_property
    def components(self) -> ComponentSet:
        """Shifted boxes by doubling epochs, weighted losses, online mirror descent."""
        shift = self.parameter("shift")
        sets, step = ShiftedL1(epsilon=self.epsilon, shift=shift), ShiftedStep(scale=self.parameter("rate"), shift=shift)
        return self.assemble(step, ShiftedWeights(shift=shift), sets)
