"""Studies: grids of runs as data, on one machine or a cluster, resumable at any time."""

from rmab.common import require

require("study", "a study")

from rmab.study.engines import Engine, Outcome
from rmab.study.engines.dask import DaskEngine
from rmab.study.engines.local import LocalEngine
from rmab.study.entries import LearnerSpec, TaskSpec
from rmab.study.execution import run_study
from rmab.study.failures import Failure
from rmab.study.origin import Changes, changes_since
from rmab.study.results import Results, Status
from rmab.study.single_run import play
from rmab.study.spec import Job, Study, builtin_names, builtin_table

__all__ = [
    "BUILTIN",
    "Changes",
    "DaskEngine",
    "Engine",
    "Failure",
    "Job",
    "LearnerSpec",
    "LocalEngine",
    "Outcome",
    "Results",
    "Status",
    "Study",
    "TaskSpec",
    "changes_since",
    "play",
    "run_study",
]

BUILTIN: dict[str, Study] = {name: Study(**builtin_table(name)) for name in builtin_names()}
