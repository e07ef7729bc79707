"""`ucmd`, the recommended learner: the paper's skeleton with the best components (docs/learning.md)."""

from __future__ import annotations

from rmab.learning.components.base import ConfidenceSets, EveryEpisode, Refresh, RewardEstimator, Step
from rmab.learning.components.estimated import Estimated
from rmab.learning.components.execution import DependentRounding, Execution, Probes, TopB
from rmab.learning.components.forecasts import Forecast
from rmab.learning.components.priced import Priced
from rmab.learning.mirror_descent import ComponentSet, MirrorDescent
from rmab.learning.options import configured, option
from rmab.learning.pools import refuse_forced
from rmab.learning.registry import CONFIDENCE, ESTIMATORS, PROBES, REFRESHES, ROUNDINGS, STEPS
from rmab.model import View


@configured
class Ucmd(MirrorDescent):
    """Any components: each is an object, its name, or a dictionary of its name and options.

    By default: estimated kernels, forecasts, the priced step, top-B, and probes of arms that were not observed for long.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import Direct, Priced, Probes, Ucmd
    >>> Ucmd(estimator=Direct(), step=Priced(rest=False, replay=False), probes=Probes(every=0)).draws
    False
    """

    name = "ucmd"
    confidence: ConfidenceSets = option(
        default=Estimated(), registry=CONFIDENCE, help="estimated transition probabilities, or sets around them"
    )
    estimator: RewardEstimator = option(
        default=Forecast(), registry=ESTIMATORS, help="estimate of the rewards of the last and the next episode"
    )
    step: Step = option(default=Priced(), registry=STEPS, help="update of the plan after an episode")
    rounding: Execution = option(default=TopB(), registry=ROUNDINGS, help="how a plan becomes decisions within the budget")
    refresh: Refresh = option(default=EveryEpisode(), registry=REFRESHES, help="when confidence sets are recomputed")
    probes: Probes = option(default=Probes(), registry=PROBES, help="forced exploration: arms activated to observe them")

    @property
    def components(self) -> ComponentSet:
        """The components as given."""
        return ComponentSet(self.confidence, self.estimator, self.step, self.rounding, self.refresh, self.probes)

    @property
    def any_budget(self) -> bool:
        """Whether its components know exact budgets and costs: the priced step, and the library's roundings."""
        return type(self.step) is Priced and type(self.rounding) in (TopB, DependentRounding)

    def refuses(self, view: View) -> str:
        """Reject budgets that leave no choice."""
        return refuse_forced(view)
