"""UCMD-ARMAB (Xiong & Li, ICML 2024, Algorithm 2), to the letter: the paper's four parts.

What the paper leaves undefined follows the library's conventions: no reward term before the first feedback, all mass in the
start state at step 0, a floor of 1e-12 under the last plan, and rewards that are declared to be zero are known.
"""

from __future__ import annotations

from rmab.common.forks import cached_property
from rmab.learning.mirror_descent import MirrorDescent, Parts
from rmab.learning.options import configured, option
from rmab.learning.parts import EPSILON, EXECUTIONS, RULE, Active, Hoeffding, PaperEstimator
from rmab.play.policy import Rounding, Rule

ROUNDING = "the highest indices (top), or dependent rounding of the plan's shares"


@configured
class UcmdArmab(MirrorDescent):
    """The paper's learner: Hoeffding sets, its estimator, online mirror descent, and its index policy.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import UcmdArmab
    >>> rmab.run(rmab.task("cpap", episodes=2, arms=4, budget=2, horizon=5), UcmdArmab(epsilon=0.1)).reward.shape
    (2,)
    """

    name = "ucmd-armab"
    paper = "Xiong & Li, ICML 2024"
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    scale: float = option(default=1.0, ge=1e-12, le=1e6, help="the learning rate, in units of the paper's")
    rule: Rule = option(default="fill", help=RULE)
    rounding: Rounding = option(default="top", help=ROUNDING)

    @cached_property
    def parts(self) -> Parts:
        """The paper's parts (Sections 4.1, 4.3, 4.2 and 4.4)."""
        return Parts(
            sets=Hoeffding(epsilon=self.epsilon),
            rewards=PaperEstimator(epsilon=self.epsilon),
            step=Active(scale=self.scale),
            execute=EXECUTIONS[self.rounding](rule=self.rule),
        )
