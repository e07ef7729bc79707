"""UCMD-ARMAB (Xiong & Li, ICML 2024, Algorithm 2), exactly as published, with the paper's four components.

What the paper leaves undefined follows the library's conventions: no reward term before the first feedback, all mass in the
start state at step 0, and a floor of 1e-12 under the last plan.

The paper's model has passive rewards of zero, and its estimator none the less estimates them: delta where an arm was
passive, 1 where it never was. This learner does the same (`zeros="estimated"`). That ignores known zeros, so
there is an option to use them (`zeros="declared"`). Neither is always better: docs/reproduction.md and
docs/growth.md have both.
With full feedback the true rewards replace the estimator, and it equals `uc-o-reps` except for the sets.

Its regret theorem (Section 5.1) does not hold as stated, for two independent reasons: see the families `greener`
and `turns`, the study `theorem`, and docs/reproduction.md.
"""

from __future__ import annotations

from rmab.common import cached_property
from rmab.learning.components import EPSILON, ROUNDING, RULE, Active, Hoeffding, PaperEstimator
from rmab.learning.components.rewards import ZEROS, Zeros
from rmab.learning.mirror_descent import ComponentSet, MirrorDescent
from rmab.learning.options import configured, option
from rmab.learning.registry import ROUNDINGS
from rmab.play import Rounding, Rule


@configured
class UcmdArmab(MirrorDescent):
    """The paper's learner: Hoeffding sets, its estimator, online mirror descent, and its index policy.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import UcmdArmab
    >>> rmab.run(rmab.make_task("cpap", episodes=2, arms=4, budget=2, horizon=5), UcmdArmab(epsilon=0.1)).reward.shape
    (2,)
    """

    name = "ucmd-armab"
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    scale: float = option(default=1.0, ge=1e-12, le=1e6, help="learning rate, in units of the paper's")
    rule: Rule = option(default="fill", help=RULE)
    rounding: Rounding = option(default="top", help=ROUNDING)
    zeros: Zeros = option(default="estimated", help=ZEROS)

    @cached_property
    def components(self) -> ComponentSet:
        """The paper's components (Sections 4.1, 4.3, 4.2 and 4.4)."""
        return ComponentSet(
            confidence=Hoeffding(epsilon=self.epsilon),
            estimator=PaperEstimator(epsilon=self.epsilon, zeros=self.zeros),
            step=Active(scale=self.scale),
            rounding=ROUNDINGS.load(self.rounding)(rule=self.rule),
        )
