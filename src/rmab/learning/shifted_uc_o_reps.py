"""Shifted Bandit UC-O-REPS (Rosenberg and Mansour, NeurIPS 2019): kernels mixed with the uniform one, importance weights.

Knowledge: nothing of the kernels; sets that are rebuilt when a pair's count doubles. Feedback: bandit. Every kernel P of
the set is replaced by (1 - alpha) P + alpha / S (over the possible successors), so that no state of the plan is too rare to
divide by: the loss of a pair at a step is loss * visited / q, q the plan's occupancy (the exact form in our reading).
Sets: the paper's L1 ball, shifted, has a lower bound on every entry that a ball has not; we take the smallest box around
it, entries within half the radius, which shifts to a box.
Hard budget: the budget is a constraint of the projection, for all arms together; arms are activated by dependent rounding
of the plan's shares, as far as they fill the budget; free slots go to the highest indices (rule `fill`).
With the B highest indices instead (`rounding="top"`) an arm that is left out is
never seen to lose, and all take turns: the plan does not settle in the long run. An arm's visits then depend on the others:
q is the visits of the executed policy in simulated episodes, times what the plan's mass of a state is in units of its
empirical occupancy; no less than alpha / (S A), which the analysis counts on.
Parameters: alpha = T^(-1/4), the published rate without its constant, which would be above 1 here, and eta = sqrt(ln(S^2 A)
alpha / (S A T)), which balances the bound (both in our reading). Tuned: 64 eta (studies/tuning_rivals.py, docs/tuning.md).
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays, State
from rmab.learning.confidence import Confidence, Kernels, Kind
from rmab.learning.exposure import importance, step_visits, weighted_losses
from rmab.learning.occupancy import OccupancyLearner
from rmab.learning.pools import Observed, Pools, share_of
from rmab.learning.presets import WeightedOptions
from rmab.model.view import View
from rmab.play.feedback import Feedback

__all__ = ["ShiftedUcOReps", "ShiftedUcORepsOptions", "shifted_box"]


class ShiftedUcORepsOptions(WeightedOptions):
    """Options of `shifted-uc-o-reps`."""

    TUNED: ClassVar[Mapping[str, float]] = {"rate": 64.0, "shift": 1.0}
    rate: float | None = Field(None, gt=0, le=1e6, description="the learning rate, in units of the theory's")
    shift: float | None = Field(None, gt=0, le=1e6, description="alpha, in units of the theory's; never above 1")


def shifted_box(pools: Pools, ball: Kernels, alpha: float) -> Kernels:
    """Return the box around the L1 ball, every kernel in it mixed with alpha of the uniform one."""
    assert ball.radius is not None
    half = ball.radius[..., np.newaxis] / 2
    low = np.where(pools.support, np.maximum(ball.low - half, 0.0), 0.0)
    high = np.where(pools.support, np.minimum(ball.low + half, 1.0), 0.0)
    uniform = alpha * pools.support / pools.support.sum(axis=3, keepdims=True)
    return Kernels((1 - alpha) * low + uniform, np.minimum((1 - alpha) * high + uniform, 1.0), None)


class ShiftedUcOReps(OccupancyLearner):
    """Mirror descent with importance-weighted losses over shifted kernels."""

    name = "shifted-uc-o-reps"
    paper = "Rosenberg & Mansour, NeurIPS 2019"
    sets: ClassVar[Kind] = "l1"

    def _alpha(self, view: View) -> float:
        return float(min(self.settings.chosen("shift") * view.episodes**-0.25, 1.0))

    def _kernels(self, view: View, pools: Pools, epoch: IntArray) -> Kernels:
        ball = Confidence(self.sets, self.settings.epsilon).kernels(view, epoch, pools.support, 0)
        return shifted_box(pools, ball, self._alpha(view))

    def _tilt(self, state: State, feedback: Feedback, observed: Observed) -> tuple[FloatArray, Arrays]:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        share, visits = share_of(arrays["mass"]), step_visits(view, pools, feedback)
        weights = importance(
            view, pools, self._plan(state).policy, share, arrays["epoch"], arrays["mass"], (state.seed, state.episode)
        )
        alpha, pairs = self._alpha(view), 2 * view.states
        losses = weighted_losses(pools, observed, visits, np.maximum(weights, alpha / pairs))
        rate = np.sqrt(np.log(view.states * pairs) * alpha / (pairs * view.episodes))
        return -self.settings.chosen("rate") * rate * losses, {}
