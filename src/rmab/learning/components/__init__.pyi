"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .base import (
    Component as Component,
    ConfidenceSets as ConfidenceSets,
    EveryEpisode as EveryEpisode,
    Refresh as Refresh,
    RewardEstimate as RewardEstimate,
    RewardEstimator as RewardEstimator,
    Step as Step,
    StepResult as StepResult,
)
from .counting import (
    OBSERVING as OBSERVING,
    Counting as Counting,
    Exploration as Exploration,
    Observing as Observing,
    Sampling as Sampling,
    add_to_means as add_to_means,
    begin_means as begin_means,
    draw_counts as draw_counts,
    mean_reward as mean_reward,
    times_seen as times_seen,
)
from .estimated import Estimated as Estimated
from .execution import (
    ROUNDING as ROUNDING,
    RULE as RULE,
    DependentRounding as DependentRounding,
    Execution as Execution,
    Probes as Probes,
    TopB as TopB,
)
from .forecasts import DOUBT as DOUBT, Forecast as Forecast
from .priced import TRUST as TRUST, Priced as Priced
from .remembering import Fading as Fading, LastSeen as LastSeen
from .rewards import (
    Direct as Direct,
    ImplicitExploration as ImplicitExploration,
    PaperEstimator as PaperEstimator,
    Revealed as Revealed,
)
from .sets import (
    EPSILON as EPSILON,
    L1 as L1,
    Bernstein as Bernstein,
    Doubling as Doubling,
    Hoeffding as Hoeffding,
    Kl as Kl,
    TrueKernels as TrueKernels,
    WideBernstein as WideBernstein,
    has_doubled as has_doubled,
    hoeffding_width as hoeffding_width,
)
from .steps import Active as Active, Centred as Centred, Lazy as Lazy
