"""rmab: online learning in restless multi-armed bandits, under a budget that is never broken.

The public names live in the modules listed below and are loaded on first use, so that `import rmab` is quick. No
module directly in this package bears the name of a public function: importing it would hide the function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rmab.errors import (
        BudgetExceeded,
        FeedbackError,
        FileError,
        ModelError,
        PolicyError,
        RmabError,
        SolverError,
        StudyError,
    )
    from rmab.families import Task, load_task, task, tasks
    from rmab.families.deadline import deadline_whittle, earliest_deadline_first, least_laxity_first
    from rmab.learning import learner, learners
    from rmab.learning.base import Learner, Plan
    from rmab.learning.state import State
    from rmab.model.adversaries import Adversary, adversary
    from rmab.model.arms import Arms
    from rmab.model.problem import Problem
    from rmab.model.rewards import RewardModel
    from rmab.model.view import View
    from rmab.planners.indices import lagrangian_index, myopic_index, occupancy_index, random_policy, round_robin
    from rmab.planners.lp_update import LpUpdate
    from rmab.planners.whittle import Whittle, whittle, whittle_finite
    from rmab.play.feedback import Feedback
    from rmab.play.outcomes import Batch, Trajectory
    from rmab.play.policy import IndexPolicy, Policy
    from rmab.play.simulation import simulate, simulate_many
    from rmab.runs.comparators import Comparators, theory_curve
    from rmab.runs.running import Run, run
    from rmab.solvers.fluid.fluid import Fluid, fluid
    from rmab.solvers.fluid.optimistic import OptimisticFluid, optimistic_fluid
    from rmab.solvers.projection.project import Projection, project, project_ball

_HOMES = {
    "model.arms": ("Arms",),
    "errors": (
        "BudgetExceeded",
        "FeedbackError",
        "FileError",
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
    "planners.indices": ("lagrangian_index", "myopic_index", "occupancy_index", "random_policy", "round_robin"),
    "planners.lp_update": ("LpUpdate",),
    "solvers.fluid.optimistic": ("OptimisticFluid", "optimistic_fluid"),
    "planners.whittle": ("Whittle", "whittle", "whittle_finite"),
    "play.policy": ("IndexPolicy", "Policy"),
    "model.problem": ("Problem",),
    "model.view": ("View",),
    "solvers.projection.project": ("Projection", "project", "project_ball"),
    "runs.comparators": ("Comparators", "theory_curve"),
    "model.adversaries": ("Adversary", "adversary"),
    "model.rewards": ("RewardModel",),
    "runs.running": ("Run", "run"),
    "play.outcomes": ("Batch", "Trajectory"),
    "play.simulation": ("simulate", "simulate_many"),
    "families": ("Task", "load_task", "task", "tasks"),
    "families.deadline": ("deadline_whittle", "earliest_deadline_first", "least_laxity_first"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604  (names are checked by a test)


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rmab' has no attribute {name!r}")
    value = getattr(import_module(f"rmab.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
