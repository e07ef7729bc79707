"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from . import (
    charging as charging,
    counterexamples as counterexamples,
    cpap as cpap,
    deadline as deadline,
    drawn as drawn,
    machine as machine,
    published as published,
    queue as queue,
    split as split,
    swim as swim,
    tariff as tariff,
    two_way as two_way,
)
from .definition import Task as Task
from .making import make_task as make_task
from .registry import TASKS as TASKS, list_tasks as list_tasks
