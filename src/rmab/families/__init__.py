"""Tasks by name: `family@adversary`, for instance `cpap@switching`; without an adversary, the paper's ramp."""

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rmab.common.checks import as_integer
from rmab.common.files import SUFFIXES
from rmab.errors import ModelError
from rmab.families.cpap import cpap, cpap_adherence
from rmab.families.deadline import deadline
from rmab.families.split import split
from rmab.families.task import Task, load_task
from rmab.model.adversaries import ADVERSARIES
from rmab.model.view import FeedbackMode

__all__ = ["FAMILIES", "Task", "family_options", "load_task", "task", "tasks"]

FAMILIES: dict[str, Callable[..., Task]] = {
    "cpap": cpap,
    "cpap-adherence": cpap_adherence,
    "deadline": deadline,
    "split": split,
}


def tasks() -> dict[str, str]:
    """Return every built-in task name with one line on what it is."""
    summaries = {name: (make.__doc__ or "").splitlines()[0] for name, make in FAMILIES.items()}
    return {f"{name}@{against}": summary for name, summary in summaries.items() for against in ADVERSARIES}


def family_options(family: str) -> dict[str, int | bool]:
    """Return the options of a family, by name, with what they are unless given."""
    parameters = inspect.signature(FAMILIES[family]).parameters.values()
    own = {one.name: one.default for one in parameters if one.kind == one.KEYWORD_ONLY}
    return {**own, "copies": 1}  # which all tasks have


def task(
    name: str | os.PathLike[str],
    *,
    seed: int | None = None,
    feedback: FeedbackMode = "bandit",
    copies: int = 1,
    **options: int | bool,
) -> Task:
    """Make a built-in task by name, or read one from a `.npz` or `.json` file.

    The seed (0 unless given) fixes the model and the adversary, each from its own stream. copies: so many of every arm,
    under so many times the budget. Options are the family's own keywords, for instance arms, budget, horizon, episodes.
    """
    if Path(name).suffix in SUFFIXES:
        if options or seed is not None or feedback != "bandit":
            raise ModelError(f"{name}: a task from a file takes neither seed nor options")
        return load_task(name).repeated(as_integer(copies, "copies"))
    family, _, against = str(name).partition("@")
    if family not in FAMILIES:
        raise ModelError(f"unknown task {str(name)!r}; there are {', '.join(FAMILIES)}, each @{', @'.join(ADVERSARIES)}")
    make = FAMILIES[family]
    known = {key: one for key, one in inspect.signature(make).parameters.items() if one.kind == one.KEYWORD_ONLY}
    if unknown := sorted(options.keys() - known.keys()):
        raise ModelError(f"task {family}: unknown option {', '.join(unknown)} (known: {', '.join(known)})")
    for key, value in options.items():
        if known[key].annotation is bool and not isinstance(value, bool):
            raise ModelError(f"{key} must be True or False, got {value!r}")
    checked = {key: value if known[key].annotation is bool else as_integer(value, key) for key, value in options.items()}
    number = as_integer(0 if seed is None else seed, "seed")
    if number < 0:
        raise ModelError(f"seed must be 0 or more, got {number}")
    made = make(np.random.SeedSequence(number), against or "ramp", **checked)
    return replace(made, feedback=feedback).repeated(as_integer(copies, "copies"))
