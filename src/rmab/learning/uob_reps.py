"""UOB-REPS (Jin, Jin, Luo, Sra and Yu, ICML 2020): losses divided by upper occupancy bounds plus gamma, mirror descent.

Knowledge: nothing of the kernels; Bernstein boxes around the empirical ones, rebuilt when a pair's count doubles. Feedback:
bandit. The loss of a pair at a step is estimated by loss * visited / (u + gamma), u the most mass that a kernel of the
boxes can bring there (Comp-UOB): too low on average, so it explores (implicit exploration).
Hard budget: the budget is a constraint of the projection, for all arms together; arms are activated by dependent rounding
of the plan's shares, as far as they fill the budget; free slots go to the highest indices (rule `fill`).
With the B highest indices instead (`rounding="top"`) an arm that is left out is
never seen to lose, and all take turns: the plan does not settle in the long run. An arm's visits then depend on the others:
u is the visits of the executed policy in simulated episodes, times what the upper bound of a state is in units of its
empirical occupancy.
Parameters: eta = gamma = sqrt(ln(S H^2 A / epsilon) / (T S A)) (the paper's, in our reading). Tuned: 16 eta
(studies/tuning_rivals.py, docs/tuning.md).
Cost: one backward induction per visited node. With S = 120 and H = 100 (deadline, one block) an episode takes about 8 s,
nine tenths of it in Comp-UOB; cpap takes a twentieth of a second.
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, State
from rmab.learning.confidence import Kind
from rmab.learning.exposure import bounds, exploration, importance, rows_of, step_visits, weighted_losses
from rmab.learning.occupancy import OccupancyLearner
from rmab.learning.pools import Observed, Pools, share_of
from rmab.learning.presets import WeightedOptions
from rmab.play.feedback import Feedback

__all__ = ["UobReps", "UobRepsOptions"]


class UobRepsOptions(WeightedOptions):
    """Options of `uob-reps`."""

    TUNED: ClassVar[Mapping[str, float]] = {"rate": 16.0, "gamma": 1.0}
    rate: float | None = Field(None, gt=0, le=1e6, description="the learning rate, in units of the theory's")
    gamma: float | None = Field(None, gt=0, le=1e6, description="implicit exploration, in units of the theory's")


class UobReps(OccupancyLearner):
    """Mirror descent with losses over upper occupancy bounds."""

    name = "uob-reps"
    paper = "Jin, Jin, Luo, Sra & Yu, ICML 2020"
    sets: ClassVar[Kind] = "bernstein"

    def _tilt(self, state: State, feedback: Feedback, observed: Observed) -> tuple[FloatArray, Arrays]:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        share, visits = share_of(arrays["mass"]), step_visits(view, pools, feedback)
        rows = rows_of(pools, self._kernels(view, pools, arrays["epoch"]))
        upper = bounds(pools, rows, share, visits.sum(axis=3) > 0, most=True)
        weights = importance(
            view, pools, self._plan(state).policy, share, arrays["epoch"], upper, (state.seed, state.episode)
        )
        theory = exploration(view, self.settings.epsilon)
        weights += self.settings.chosen("gamma") * theory
        return -self.settings.chosen("rate") * theory * weighted_losses(pools, observed, visits, weights), {}
