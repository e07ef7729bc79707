"""rmab: online learning in restless multi-armed bandits, under a budget that is never broken.

The public names live in the modules listed below and are loaded on first use, so that `import rmab` is quick. No
module directly in this package bears the name of a public function: importing it would hide the function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    import rmab.data
    from rmab.errors import BudgetExceeded as BudgetExceeded
    from rmab.errors import FeedbackError as FeedbackError
    from rmab.errors import FileError as FileError
    from rmab.errors import LogError as LogError
    from rmab.errors import MissingExtra as MissingExtra
    from rmab.errors import ModelError as ModelError
    from rmab.errors import PolicyError as PolicyError
    from rmab.errors import RmabError as RmabError
    from rmab.errors import SolverError as SolverError
    from rmab.errors import StudyError as StudyError
    from rmab.families import Task as Task
    from rmab.families import load_task as load_task
    from rmab.families import task as task
    from rmab.families import tasks as tasks
    from rmab.families.deadline import deadline_whittle as deadline_whittle
    from rmab.families.deadline import earliest_deadline_first as earliest_deadline_first
    from rmab.families.deadline import least_laxity_first as least_laxity_first
    from rmab.learning import learner as learner
    from rmab.learning import learners as learners
    from rmab.learning.base import Learner as Learner
    from rmab.learning.base import Plan as Plan
    from rmab.learning.state import State as State
    from rmab.model.adversaries import adversary as adversary
    from rmab.model.adversary import Adversary as Adversary
    from rmab.model.arms import Arms as Arms
    from rmab.model.problem import Problem as Problem
    from rmab.model.rewards import RewardModel as RewardModel
    from rmab.model.view import View as View
    from rmab.planners.endless import Ftva as Ftva
    from rmab.planners.endless import IdPolicy as IdPolicy
    from rmab.planners.endless import stationary_index as stationary_index
    from rmab.planners.indices import lagrangian_index as lagrangian_index
    from rmab.planners.indices import myopic_index as myopic_index
    from rmab.planners.indices import occupancy_index as occupancy_index
    from rmab.planners.indices import random_policy as random_policy
    from rmab.planners.indices import round_robin as round_robin
    from rmab.planners.lp_update import LpUpdate as LpUpdate
    from rmab.planners.plan import Planned as Planned
    from rmab.planners.plan import plan as plan
    from rmab.planners.rolling import Rolling as Rolling
    from rmab.planners.whittle import Whittle as Whittle
    from rmab.planners.whittle import whittle as whittle
    from rmab.planners.whittle import whittle_finite as whittle_finite
    from rmab.play.feedback import Feedback as Feedback
    from rmab.play.outcomes import Batch as Batch
    from rmab.play.outcomes import Trajectory as Trajectory
    from rmab.play.policy import IndexPolicy as IndexPolicy
    from rmab.play.policy import Policy as Policy
    from rmab.play.simulation import simulate as simulate
    from rmab.play.simulation import simulate_many as simulate_many
    from rmab.runs.comparators import Comparators as Comparators
    from rmab.runs.comparators import theory_curve as theory_curve
    from rmab.runs.record import Run as Run
    from rmab.runs.running import run as run
    from rmab.solvers.fluid.fluid import Fluid as Fluid
    from rmab.solvers.fluid.fluid import fluid as fluid
    from rmab.solvers.fluid.optimistic import OptimisticFluid as OptimisticFluid
    from rmab.solvers.fluid.optimistic import optimistic_fluid as optimistic_fluid
    from rmab.solvers.priced.soften import Softened as Softened
    from rmab.solvers.priced.soften import soften as soften
    from rmab.solvers.projection.project import Projection as Projection
    from rmab.solvers.projection.project import project as project
    from rmab.solvers.projection.project import project_ball as project_ball
    from rmab.solvers.stationary.average import AverageFluid as AverageFluid
    from rmab.solvers.stationary.average import average_fluid as average_fluid

_HOMES = {
    "model.arms": ("Arms",),
    "errors": (
        "BudgetExceeded",
        "FeedbackError",
        "FileError",
        "LogError",
        "MissingExtra",
        "ModelError",
        "PolicyError",
        "RmabError",
        "SolverError",
        "StudyError",
    ),
    "learning": ("learner", "learners"),
    "learning.base": ("Learner", "Plan"),
    "learning.state": ("State",),
    "play.feedback": ("Feedback",),
    "solvers.fluid.fluid": ("Fluid", "fluid"),
    "solvers.stationary.average": ("AverageFluid", "average_fluid"),
    "planners.endless": ("Ftva", "IdPolicy", "stationary_index"),
    "planners.indices": ("lagrangian_index", "myopic_index", "occupancy_index", "random_policy", "round_robin"),
    "planners.lp_update": ("LpUpdate",),
    "planners.plan": ("Planned", "plan"),
    "planners.rolling": ("Rolling",),
    "solvers.fluid.optimistic": ("OptimisticFluid", "optimistic_fluid"),
    "planners.whittle": ("Whittle", "whittle", "whittle_finite"),
    "play.policy": ("IndexPolicy", "Policy"),
    "model.problem": ("Problem",),
    "model.view": ("View",),
    "solvers.priced.soften": ("Softened", "soften"),
    "solvers.projection.project": ("Projection", "project", "project_ball"),
    "runs.comparators": ("Comparators", "theory_curve"),
    "model.adversaries": ("adversary",),
    "model.adversary": ("Adversary",),
    "model.rewards": ("RewardModel",),
    "runs.record": ("Run",),
    "runs.running": ("run",),
    "play.outcomes": ("Batch", "Trajectory"),
    "play.simulation": ("simulate", "simulate_many"),
    "families": ("Task", "load_task", "task", "tasks"),
    "families.deadline": ("deadline_whittle", "earliest_deadline_first", "least_laxity_first"),
}
_ROOMS = ("data", "families", "gym", "learning", "report", "study", "testing")  # rmab.data needs no import of its own
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604  (names are checked by a test)


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name == "data":
        from rmab.common.extras import require  # noqa: PLC0415

        require("log", "rmab.data")
    if name in _ROOMS:
        return import_module(f"rmab.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rmab' has no attribute {name!r}")
    value = getattr(import_module(f"rmab.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
