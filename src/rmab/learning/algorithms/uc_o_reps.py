"""UC-O-REPS (Rosenberg and Mansour, ICML 2019): mirror descent on the true losses, which all are revealed.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full;
in bandit mode it is not defined. It is what `ucmd-armab` would be with the true rewards instead of its estimates.
Hard budget: the budget is a constraint of the projection, for all arms together; arms are activated by dependent rounding of
the plan's shares, so that they hold on average, as the regret bound assumes, except where they add up to more
than the budget in the current states and are scaled down; free slots go to the highest indices (rule `fill`). With the B
highest indices instead (`rounding="top"`) a plan that slightly prefers one arm always activates it: if rewards
alternate, it is always one episode behind (family `turns`); if the best policy stays the same, it is far better.
Parameters: eta = sqrt(ln(S^2 A) / T), the minimiser of the regret bound (the constant of the paper in our reading). Tuned:
64 eta (docs/tuning.md).
"""

from __future__ import annotations

from rmab.common import cached_property
from rmab.learning.components import Centred
from rmab.learning.epochs import EpochLearner
from rmab.learning.mirror_descent import RATE, ComponentSet
from rmab.learning.options import configured, option


@configured
class UcOReps(EpochLearner):
    """Online mirror descent with the true losses."""

    name = "uc-o-reps"
    TUNED = {"rate": 64.0}
    rate: float | None = option(default=None, ge=1e-12, le=1e6, help=RATE)

    @cached_property
    def components(self) -> ComponentSet:
        """L1 balls by doubling epochs, the true rewards, online mirror descent."""
        return self.assemble(Centred(scale=self.parameter("rate")))
