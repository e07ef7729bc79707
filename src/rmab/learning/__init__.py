"""Learners, and the parts that they are made of.

`MirrorDescent` and `IndexLearner` are the two skeletons; `Ucmd` takes parts of your choice. docs/extending.md teaches how to
write your own.
"""

from rmab.learning.algorithms.colored_ucrl2 import ColoredUcrl2
from rmab.learning.algorithms.dilated_po import DilatedPo
from rmab.learning.algorithms.oracle import Chance, Oracle
from rmab.learning.algorithms.pdgd_ops import PdgdOps
from rmab.learning.algorithms.planned import PlannedLagrangian, PlannedMyopic, PlannedWhittle, RoundRobin
from rmab.learning.algorithms.q_whittle import QWhittle
from rmab.learning.algorithms.r2mab_ucb import R2mabUcb
from rmab.learning.algorithms.restless_ucb import RestlessUcb
from rmab.learning.algorithms.rmab_ucrl import RmabUcrl
from rmab.learning.algorithms.shifted_uc_o_reps import ShiftedUcOReps
from rmab.learning.algorithms.thompson import Thompson
from rmab.learning.algorithms.uc_o_reps import UcOReps
from rmab.learning.algorithms.uc_whittle import UcWhittle
from rmab.learning.algorithms.ucmd import Ucmd
from rmab.learning.algorithms.ucmd_armab import UcmdArmab
from rmab.learning.algorithms.ucpd import Ucpd
from rmab.learning.algorithms.uob_reps import UobReps
from rmab.learning.base import Learner, Plan
from rmab.learning.index_learner import IndexLearner, Known
from rmab.learning.mirror_descent import MirrorDescent, Parts
from rmab.learning.options import configured, option
from rmab.learning.parts import (
    L1,
    Active,
    Bernstein,
    DependentRounding,
    Direct,
    Doubling,
    Episode,
    Estimate,
    Estimated,
    EveryEpisode,
    Execution,
    Fading,
    Forecast,
    Hoeffding,
    ImplicitExploration,
    Kl,
    LastSeen,
    Lazy,
    Looks,
    PaperEstimator,
    Part,
    Priced,
    Refresh,
    Revealed,
    Rewards,
    Sets,
    Step,
    Stepped,
    TopB,
    TrueKernels,
    WideBernstein,
)
from rmab.learning.pools import Observed, Pools
from rmab.learning.registry import learner, learners
from rmab.learning.state import State
from rmab.solvers.transitions import TransitionSets

__all__ = [
    "L1", "Active", "Bernstein", "Chance", "ColoredUcrl2", "DependentRounding", "DilatedPo", "Direct", "Doubling",
    "Episode", "Estimate", "Estimated", "EveryEpisode", "Execution", "Fading", "Forecast", "Hoeffding",
    "ImplicitExploration", "IndexLearner", "Kl", "Known", "LastSeen", "Lazy", "Learner", "Looks", "MirrorDescent",
    "Observed", "Oracle", "PaperEstimator", "Part", "Parts", "PdgdOps", "Plan", "PlannedLagrangian", "PlannedMyopic",
    "PlannedWhittle", "Pools", "Priced", "QWhittle", "R2mabUcb", "Refresh", "RestlessUcb", "Revealed", "Rewards",
    "RmabUcrl", "RoundRobin", "Sets", "ShiftedUcOReps", "State", "Step", "Stepped", "Thompson", "TopB", "TransitionSets",
    "TrueKernels", "UcOReps", "UcWhittle", "Ucmd", "UcmdArmab", "Ucpd", "UobReps", "WideBernstein", "configured",
    "learner", "learners", "option",
]  # fmt: skip
