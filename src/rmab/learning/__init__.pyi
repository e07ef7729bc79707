"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .algorithms.colored_ucrl2 import ColoredUcrl2 as ColoredUcrl2
from .algorithms.dilated_po import DilatedPo as DilatedPo
from .algorithms.oracle import Oracle as Oracle, RandomLearner as RandomLearner
from .algorithms.pdgd_ops import PdgdOps as PdgdOps
from .algorithms.planned import (
    LagrangianLearner as LagrangianLearner,
    MyopicLearner as MyopicLearner,
    PlannerLearner as PlannerLearner,
    RoundRobin as RoundRobin,
    WhittleLearner as WhittleLearner,
)
from .algorithms.q_whittle import QWhittle as QWhittle
from .algorithms.r2mab_ucb import R2mabUcb as R2mabUcb
from .algorithms.restless_ucb import RestlessUcb as RestlessUcb
from .algorithms.rmab_ucrl import RmabUcrl as RmabUcrl
from .algorithms.shifted_uc_o_reps import ShiftedUcOReps as ShiftedUcOReps
from .algorithms.thompson import Thompson as Thompson
from .algorithms.uc_o_reps import UcOReps as UcOReps
from .algorithms.uc_whittle import UcWhittle as UcWhittle
from .algorithms.ucmd import Ucmd as Ucmd
from .algorithms.ucmd_armab import UcmdArmab as UcmdArmab
from .algorithms.ucpd import Ucpd as Ucpd
from .algorithms.uob_reps import UobReps as UobReps
from .base import EpisodePlan as EpisodePlan, Learner as Learner
from .components.base import (
    Component as Component,
    ConfidenceSets as ConfidenceSets,
    EveryEpisode as EveryEpisode,
    Refresh as Refresh,
    RewardEstimate as RewardEstimate,
    RewardEstimator as RewardEstimator,
    Step as Step,
    StepResult as StepResult,
)
from .components.estimated import Estimated as Estimated
from .components.execution import (
    DependentRounding as DependentRounding,
    Execution as Execution,
    Probes as Probes,
    TopB as TopB,
)
from .components.forecasts import Forecast as Forecast
from .components.priced import Priced as Priced
from .components.remembering import Fading as Fading, LastSeen as LastSeen
from .components.rewards import (
    Direct as Direct,
    ImplicitExploration as ImplicitExploration,
    PaperEstimator as PaperEstimator,
    Revealed as Revealed,
)
from .components.sets import (
    L1 as L1,
    Bernstein as Bernstein,
    Doubling as Doubling,
    Hoeffding as Hoeffding,
    Kl as Kl,
    TrueKernels as TrueKernels,
    WideBernstein as WideBernstein,
)
from .components.steps import Active as Active, Lazy as Lazy
from .index_learner import IndexLearner as IndexLearner, Knowledge as Knowledge
from .mirror_descent import ComponentSet as ComponentSet, MirrorDescent as MirrorDescent
from .options import configured as configured, option as option
from .pools import Episode as Episode, Observations as Observations, Pools as Pools
from .registry import list_learners as list_learners, make_learner as make_learner
from .state import State as State
