"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from . import (
    data as data,
    errors as errors,
    gym as gym,
    learning as learning,
    live as live,
    planners as planners,
    report as report,
    runs as runs,
    solvers as solvers,
    study as study,
    tasks as tasks,
    testing as testing,
)
from .errors import RmabError as RmabError
from .learning.base import EpisodePlan as EpisodePlan, Learner as Learner
from .learning.registry import list_learners as list_learners, make_learner as make_learner
from .learning.state import State as State
from .model.adversaries import make_adversary as make_adversary
from .model.adversary import Adversary as Adversary, RewardModel as RewardModel
from .model.arms import Arms as Arms
from .model.problem import Problem as Problem
from .model.registry import list_adversaries as list_adversaries
from .model.view import View as View
from .planners.contract import Planner as Planner
from .planners.plan import PlanResult as PlanResult, plan as plan
from .planners.registry import list_planners as list_planners, make_planner as make_planner
from .play.feedback import Feedback as Feedback
from .play.index_policy import IndexPolicy as IndexPolicy
from .play.policy import Policy as Policy
from .play.simulation import simulate as simulate, simulate_many as simulate_many
from .play.trajectory import Batch as Batch, Trajectory as Trajectory
from .runs.record import RunResult as RunResult
from .runs.running import run as run
from .tasks.definition import Task as Task
from .tasks.making import make_task as make_task
from .tasks.registry import list_tasks as list_tasks

__version__: str
