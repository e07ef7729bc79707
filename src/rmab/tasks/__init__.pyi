"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from . import (
    charging as charging,
    costs as costs,
    counterexamples as counterexamples,
    cpap as cpap,
    deadline as deadline,
    drawn as drawn,
    kinds as kinds,
    published as published,
    tariff as tariff,
)
from .definition import Task as Task
from .making import make_task as make_task
from .registry import TASKS as TASKS, list_tasks as list_tasks
