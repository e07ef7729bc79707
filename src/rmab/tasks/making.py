"""Build tasks by name: `cpap`, `cpap@switching`, `mine:ward@switching`, or a file."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import Any

import numpy as np

from rmab.common import Reference, as_integer, as_seed
from rmab.errors import ModelError
from rmab.model import FeedbackMode, Problem, RewardModel, make_adversary
from rmab.tasks.definition import Task
from rmab.tasks.registry import TASKS


def make_task(
    name: str | os.PathLike[str],
    *,
    seed: int | None = None,
    feedback: FeedbackMode | None = None,
    copies: int = 1,
    **options: Any,
) -> Task:
    """Build a task by name, or read one from a file.

    Parameters
    ----------
    name : str or path
        A task and its adversary, `cpap@switching`; without an adversary, the paper's ramp. Both may be custom:
        `module:function` for a task, called as ``function(seed=seed, **options)``, which returns a Problem and a
        RewardModel, or a whole Task; `module:function` for an adversary, called as ``function(model, episodes, rng)``. An
        adversary after a custom Task scales its typical reward, within the declared range. A file ends in `.npz` or
        `.json`.
    seed : int, optional
        Random seed of the model and of the adversary, which use separate streams; 0 by default. A file has none.
    feedback : {'bandit', 'active', 'full'}, optional
        What is revealed after an episode. By default that of the file or the custom Task, 'bandit' otherwise.
    copies : int, optional
        Number of copies of each arm; the budget is multiplied by it.
    **options
        Options of the task: `rmab tasks NAME` lists them. A file has none.

    Returns
    -------
    Task

    Raises
    ------
    ModelError
        If there is no such task, an option is wrong, or a custom function fails.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> import rmab
    >>> task = rmab.make_task("cpap@switching", seed=1, arms=4, budget=2, episodes=10)
    >>> task.name, task.episodes, task.feedback
    ('cpap@switching', 10, 'bandit')
    """
    if not isinstance(name, str | os.PathLike):
        raise ModelError(f"a task is built from a name or a file, got {type(name).__name__}")
    reference = Reference.parse(str(name))
    if reference.is_file:
        if options or seed is not None:
            raise ModelError(f"{name}: a task file takes no seed and no options; leave them out")
        task = Task.load(reference.text)
    else:
        task = _build(reference, as_seed(0 if seed is None else seed), options)
    task = task if feedback is None else replace(task, feedback=feedback)
    return task.repeated(as_integer(copies, "copies"))


def find_task(name: str, seed: int, **options: Any) -> Task:
    """Build a task like `make_task`; the seed is ignored for a file, whose rewards are fixed."""
    return make_task(name, seed=None if Reference.parse(name).is_file else seed, **options)


def _build(reference: Reference, seed: int, options: dict[str, Any]) -> Task:
    name, against = reference.name, reference.against
    if not reference.is_custom and TASKS[name].fixed and against:
        raise ModelError(f"task {name} has fixed rewards; leave out @{against}")
    given = TASKS.checked_options(name, options)
    parameters = inspect.signature(TASKS.load(name)).parameters
    episodes = given.get("episodes", TASKS.schema(name).model_fields["episodes"].default)
    taken = {"seed": seed} if _takes(parameters, "seed") else {}
    taken |= {key: one for key, one in given.items() if key != "episodes" or _takes(parameters, key)}
    built = TASKS.call(name, **taken)
    if isinstance(built, Task):
        if given.keys() - taken.keys():
            raise ModelError(f"task {name}: episodes: no such option; its function sets the number")
        return _replace_adversary(built, against, seed) if against else built
    if len(built) != 2 or not isinstance(built[0], Problem) or not isinstance(built[1], RewardModel):
        kinds = ", ".join(type(one).__name__ for one in built)
        raise ModelError(f"task {name}: its function must return a Task, or (Problem, RewardModel), got ({kinds})")
    problem, stakes = built
    return _combine(f"{name}@{against or 'ramp'}", problem, stakes, episodes, against or "ramp", seed)


def _takes(parameters: Any, name: str) -> bool:
    return name in parameters or any(one.kind == one.VAR_KEYWORD for one in parameters.values())


def _combine(name: str, problem: Problem, stakes: RewardModel, episodes: int, against: str, seed: int) -> Task:
    """Return the task with an adversary by name, which uses the second stream of the seed."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    return Task(name, problem, make_adversary(against, stakes, episodes, rng))


def _replace_adversary(task: Task, against: str, seed: int) -> Task:
    """Return a custom task with another adversary, which scales its typical reward within the declared range."""
    first = task.adversary
    stakes = getattr(first, "model", None)
    if not isinstance(stakes, RewardModel):
        stakes = RewardModel(first.base[np.newaxis], first.low, first.high)
    played = _combine(f"{task.name}@{against}", task.problem, stakes, first.episodes, against, seed)
    return replace(played, feedback=task.feedback)
