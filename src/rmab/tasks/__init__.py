"""Tasks by name: `family@adversary`, for instance `cpap@switching`, or `module:maker` for your own.

A few families bring their own rewards: `turns` is a task as it stands, and takes no adversary.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common.checks import as_integer
from rmab.common.files import SUFFIXES
from rmab.common.own import is_own, made_by
from rmab.errors import ModelError
from rmab.model.adversaries import ADVERSARIES
from rmab.model.view import FeedbackMode
from rmab.tasks import charging
from rmab.tasks.counterexamples import COUNTEREXAMPLES
from rmab.tasks.cpap import cpap, cpap_adherence
from rmab.tasks.definition import Task
from rmab.tasks.drawn import DRAWN
from rmab.tasks.machine import machine
from rmab.tasks.options import ABOUT, WHOLE, Kind, Option, options_of
from rmab.tasks.published import PUBLISHED
from rmab.tasks.queue import queue
from rmab.tasks.split import split
from rmab.tasks.swim import swim
from rmab.tasks.two_way import two_way

__all__ = ["FAMILIES", "OWN_REWARDS", "Task", "declared_options", "family_options", "list_tasks", "make_task"]

FAMILIES: dict[str, Callable[..., Task]] = {
    "cpap": cpap,
    "cpap-adherence": cpap_adherence,
    "deadline": charging.deadline,
    "deadline-day": charging.deadline_day,
    "split": split,
    "swim": swim,
    **PUBLISHED,
    "machine": machine,
    "queue": queue,
    **DRAWN,
    **COUNTEREXAMPLES,
    "two-way": two_way,
}
OWN_REWARDS = ("good-bad", *COUNTEREXAMPLES, "two-way")  # families that take no adversary


def list_tasks() -> dict[str, str]:
    """List the tasks that come with the library.

    Returns
    -------
    dict of str to str
        The name of every task, with one line on what it is.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_tasks()["cpap@switching"]
    'CPAP as in the paper: only patients who are called pay, by their adherence level.'
    """
    summaries = {name: (make.__doc__ or "").splitlines()[0] for name, make in FAMILIES.items()}
    names = {name: [name] if name in OWN_REWARDS else [f"{name}@{one}" for one in ADVERSARIES] for name in FAMILIES}
    return {one: summary for name, summary in summaries.items() for one in names[name]}


def family_options(family: str) -> dict[str, Any]:
    """Return the options of a family, by name, with their defaults."""
    return {name: one.default for name, one in declared_options(family).items()}


def declared_options(family: str) -> dict[str, Option]:
    """Return the options of a family, by name: what each may be, what it is, and its default."""
    copies = Option(Kind(WHOLE.values, WHOLE.read, ABOUT["copies"]), 1)  # which all tasks have
    return {**options_of(FAMILIES[family]), "copies": copies}


def make_task(
    name: str | os.PathLike[str],
    *,
    seed: int | None = None,
    feedback: FeedbackMode | None = None,
    copies: int = 1,
    **options: Any,
) -> Task:
    """Make a task by name, or read one from a file.

    Parameters
    ----------
    name : str or path
        A built-in name, `family` or `family@adversary`: without an adversary, the paper's ramp. The adversary may be your
        own, `family@module:maker`, called as maker(model, episodes, rng). A whole task of your own is `module:maker`,
        called as ``maker(seed=seed, **options)``. A file ends in `.npz` or `.json`.
    seed : int, optional
        Fixes the model and the adversary, each from its own stream; 0 by default. A file has none.
    feedback : {'bandit', 'active', 'full'}, optional
        What is revealed after an episode. By default what the file or your own maker says, 'bandit' for built-in tasks.
    copies : int, optional
        So many copies of every arm, under so many times the budget.
    **options
        Options of the family (`rmab tasks NAME` lists them), or of your maker. A file has none.

    Returns
    -------
    Task

    Raises
    ------
    ModelError
        If there is no such task, an option is wrong, or your own maker fails.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> import rmab
    >>> mine = rmab.make_task("cpap@switching", seed=1, arms=4, budget=2, episodes=10)
    >>> mine.name, mine.episodes, mine.feedback
    ('cpap@switching', 10, 'bandit')
    """
    if not isinstance(name, str | os.PathLike):
        raise ModelError(f"a task is made by name, or from a file, got {type(name).__name__}")
    text = str(name)
    if Path(text).suffix in SUFFIXES:
        if options or seed is not None:
            raise ModelError(f"{name}: a task from a file takes neither seed nor options")
        made = Task.load(text)
    else:
        number = as_integer(0 if seed is None else seed, "seed")
        if number < 0:
            raise ModelError(f"seed must be 0 or more, got {number}")
        made = _own(text, number, options) if is_own(text.partition("@")[0]) else _built_in(text, number, options)
    chosen = made if feedback is None else replace(made, feedback=feedback)
    return chosen.repeated(as_integer(copies, "copies"))


def _own(name: str, seed: int, options: dict[str, Any]) -> Task:
    if "@" in name:
        raise ModelError(f"task {name}: your own maker brings its own adversary: leave out @{name.partition('@')[2]}")
    made: Task = made_by("task", name, Task, seed=seed, **options)
    return made


def _built_in(name: str, seed: int, options: dict[str, Any]) -> Task:
    family, _, against = name.partition("@")
    if family not in FAMILIES:
        there = f"{', '.join(FAMILIES)}, each @{', @'.join(ADVERSARIES)}"
        hint = f"there are {there}, and module:maker for your own"
        raise ModelError(f"unknown task {name!r}; {hint}", code="unknown-name", task=name)
    make = FAMILIES[family]
    known = options_of(make)
    if unknown := sorted(options.keys() - known.keys()):
        wrong = f"task {family}: unknown option {', '.join(unknown)} (known: {', '.join(known)})"
        raise ModelError(wrong, code="unknown-option", task=family, option=unknown[0])
    checked = {key: known[key].value(value, key) for key, value in options.items()}
    if family in OWN_REWARDS:
        if against:
            raise ModelError(f"task {family} brings its own rewards: leave out @{against}")
        return make(np.random.SeedSequence(seed), **checked)
    made = make(np.random.SeedSequence(seed), against or "ramp", **checked)
    return replace(made, name=f"{family}@{against or 'ramp'}")
