"""Tasks by name: `family@adversary`, for instance `cpap@switching`; without an adversary, the paper's ramp."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rmab.errors import ModelError
from rmab.families.cpap import cpap, cpap_adherence
from rmab.families.deadline import deadline
from rmab.families.task import Task, load_task
from rmab.files import SUFFIXES
from rmab.problem import as_integer
from rmab.rewards import ADVERSARIES

__all__ = ["FAMILIES", "Task", "load_task", "task", "tasks"]

FAMILIES: dict[str, Callable[..., Task]] = {"cpap": cpap, "cpap-adherence": cpap_adherence, "deadline": deadline}


def tasks() -> dict[str, str]:
    """Return every built-in task name with one line on what it is."""
    summaries = {name: (make.__doc__ or "").splitlines()[0] for name, make in FAMILIES.items()}
    return {f"{name}@{against}": summary for name, summary in summaries.items() for against in ADVERSARIES}


def task(name: str | os.PathLike[str], *, seed: int = 0, **options: int | bool) -> Task:
    """Make a built-in task by name, or read one from a `.npz` or `.json` file.

    The seed fixes the model and the adversary, each from its own stream. Options are the family's own keywords, for instance
    arms, budget, horizon, episodes.
    """
    if Path(name).suffix in SUFFIXES:
        if options:
            raise ModelError(f"{name}: a task from a file takes no options, got {', '.join(options)}")
        return load_task(name)
    family, _, against = str(name).partition("@")
    if family not in FAMILIES:
        raise ModelError(f"unknown task {str(name)!r}; there are {', '.join(FAMILIES)}, each @{', @'.join(ADVERSARIES)}")
    known = [
        key for key, value in inspect.signature(FAMILIES[family]).parameters.items() if value.kind == value.KEYWORD_ONLY
    ]
    if unknown := sorted(options.keys() - set(known)):
        raise ModelError(f"task {family}: unknown option {', '.join(unknown)} (known: {', '.join(known)})")
    seeds = np.random.SeedSequence(as_integer(seed, "seed"))
    return FAMILIES[family](seeds, against or "ramp", **options)
