"""The parts that learners are made of: sets, rewards, steps and executions, and when sets are refreshed."""

from rmab.learning.parts.base import Episode, Part
from rmab.learning.parts.counting import (
    OBSERVING,
    Counting,
    Exploration,
    Observing,
    Sampling,
    add_to_means,
    begin_means,
    drawn,
    mean_reward,
    times_seen,
)
from rmab.learning.parts.execution import RULE, DependentRounding, Execution, TopB
from rmab.learning.parts.forecasts import DOUBT, Forecast
from rmab.learning.parts.looks import Looks
from rmab.learning.parts.named import ESTIMATORS, EXECUTIONS, REFRESHES, SETS, STEPS, part
from rmab.learning.parts.priced import TRUST, Priced
from rmab.learning.parts.refresh import Doubling, EveryEpisode, Refresh, doubled
from rmab.learning.parts.remembering import Fading, LastSeen
from rmab.learning.parts.rewards import Direct, Estimate, ImplicitExploration, PaperEstimator, Revealed, Rewards
from rmab.learning.parts.sets import EPSILON, L1, Bernstein, Estimated, Hoeffding, Kl, Sets, WideBernstein, hoeffding_width
from rmab.learning.parts.steps import Active, Centred, Lazy, Step, Stepped

__all__ = [
    "DOUBT",
    "EPSILON",
    "ESTIMATORS",
    "EXECUTIONS",
    "L1",
    "OBSERVING",
    "REFRESHES",
    "RULE",
    "SETS",
    "STEPS",
    "TRUST",
    "Active",
    "Bernstein",
    "Centred",
    "Counting",
    "DependentRounding",
    "Direct",
    "Doubling",
    "Episode",
    "Estimate",
    "Estimated",
    "EveryEpisode",
    "Execution",
    "Exploration",
    "Fading",
    "Forecast",
    "Hoeffding",
    "ImplicitExploration",
    "Kl",
    "LastSeen",
    "Lazy",
    "Looks",
    "Observing",
    "PaperEstimator",
    "Part",
    "Priced",
    "Refresh",
    "Revealed",
    "Rewards",
    "Sampling",
    "Sets",
    "Step",
    "Stepped",
    "TopB",
    "WideBernstein",
    "add_to_means",
    "begin_means",
    "doubled",
    "drawn",
    "hoeffding_width",
    "mean_reward",
    "part",
    "times_seen",
]  # fmt: skip
