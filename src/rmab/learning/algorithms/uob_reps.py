"""UOB-REPS (Jin, Jin, Luo, Sra and Yu, ICML 2020): losses divided by upper occupancy bounds plus gamma, mirror descent.

Knowledge: nothing of the kernels; Bernstein boxes around the empirical ones, rebuilt when a pair's count doubles. Feedback:
bandit. The loss of a pair at a step is estimated by loss * visited / (u + gamma), u the most mass that a kernel of the
boxes can bring there (Comp-UOB): too low on average, so it explores (implicit exploration). All losses are weighed so, also
those of pairs that are declared to pay nothing: if these were exact and the others too low, it would avoid them
(docs/details.md has both; neither is better everywhere).
Hard budget: the budget is a constraint of the projection, for all arms together; arms are activated by dependent rounding
of the plan's shares, as far as they fill the budget; free slots go to the highest indices (rule `fill`).
With the B highest indices instead (`rounding="top"`) an arm that is left out is
never seen to lose, and all take turns: the plan does not converge. An arm's visits then depend on the others:
u is the visits of the executed policy in simulated episodes, times what the upper bound of a state is in units of its
empirical occupancy.
Parameters: eta = gamma = sqrt(ln(S H^2 A / epsilon) / (T S A)) (the paper's, in our reading). Tuned: 8 eta and
0.03 gamma (docs/tuning.md).
Cost: one backward induction per visited node. With S = 120 and H = 100 (deadline, one block) an episode takes about 8 s,
nine tenths of it in Comp-UOB; cpap takes a twentieth of a second.
"""

from __future__ import annotations

from rmab.common import cached_property
from rmab.learning.components import Bernstein, Centred, RewardEstimate, RewardEstimator
from rmab.learning.epochs import EpochLearner
from rmab.learning.mirror_descent import RATE, ComponentSet
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, share_of
from rmab.learning.state import Memory
from rmab.learning.visits import bounds, exploration, importance, step_visits, weighted_losses
from rmab.model import View

WIDTH = "confidence level in the rate and in gamma, as in UOB-REPS"


@configured
class UpperOccupancy(RewardEstimator):
    """Losses over the most mass that a kernel of the boxes can bring to a pair, plus gamma. It needs boxes, not balls."""

    draws = True
    alike = True  # declared zeros are weighted, too
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=WIDTH)
    gamma: float = option(default=1.0, ge=1e-12, le=1e6, help="implicit exploration, in units of the theory's")

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:  # noqa: ARG002
        """Weigh the losses of every step by how likely they were to be seen, at most."""
        pools, share = episode.pools, share_of(episode.mass)
        visits = step_visits(pools, episode.feedback)
        upper = bounds(pools, episode.sets, share, visits.sum(axis=3) > 0, most=True)
        weights = importance(pools, episode.policy, share, episode.basis, upper, episode.draw_key)
        weights += self.gamma * exploration(pools.view, self.epsilon)
        return RewardEstimate(-weighted_losses(pools, episode.observed, visits, weights, alike=self.alike))


@configured
class UobStep(Centred):
    """Online mirror descent at the rate of UOB-REPS, which is its gamma."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=WIDTH)

    def rate(self, view: View) -> float:
        """Return sqrt(ln(S H^2 A / epsilon) / (T S A)), times the scale."""
        return self.scale * exploration(view, self.epsilon)


@configured
class UobReps(EpochLearner):
    """Mirror descent with losses over upper occupancy bounds."""

    name = "uob-reps"
    TUNED = {"rate": 8.0, "gamma": 0.03}
    rate: float | None = option(default=None, ge=1e-12, le=1e6, help=RATE)
    gamma: float | None = option(default=None, ge=1e-12, le=1e6, help="implicit exploration, in units of the theory's")

    @cached_property
    def components(self) -> ComponentSet:
        """Bernstein boxes by doubling epochs, losses over upper bounds, online mirror descent."""
        losses = UpperOccupancy(epsilon=self.epsilon, gamma=self.parameter("gamma"))
        step = UobStep(scale=self.parameter("rate"), epsilon=self.epsilon)
        return self.assemble(step, losses, Bernstein(epsilon=self.epsilon))
