"""What learners share whose sets are rebuilt when a count doubles."""

from __future__ import annotations

from rmab.learning.components.base import ConfidenceSets, RewardEstimator, Step
from rmab.learning.components.execution import ROUNDING, RULE
from rmab.learning.components.rewards import Revealed
from rmab.learning.components.sets import EPSILON, L1, Doubling
from rmab.learning.mirror_descent import ComponentSet, MirrorDescent
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.registry import ROUNDINGS
from rmab.play import Rounding, Rule


@configured
class EpochLearner(MirrorDescent):
    """Base of learners whose sets are rebuilt when a pair's count doubles, and whose plans are rounded."""

    preset: Preset = option(default="theory", help=PRESET)
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    rounding: Rounding = option(default="dependent", help=ROUNDING)
    rule: Rule = option(default="fill", help=RULE)

    def assemble(
        self, step: Step, estimator: RewardEstimator | None = None, confidence: ConfidenceSets | None = None
    ) -> ComponentSet:
        """Return the components with this step; by default with the true rewards, and L1 balls."""
        sets, rounding = confidence or L1(epsilon=self.epsilon), ROUNDINGS.load(self.rounding)(rule=self.rule)
        return ComponentSet(sets, estimator or Revealed(), step, rounding, Doubling())
