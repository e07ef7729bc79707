"""From a study's words to tasks and learners, and what is wrong with them."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rmab.common.files import SUFFIXES
from rmab.errors import FileError, ModelError
from rmab.families import Task, task
from rmab.learning.base import Learner
from rmab.learning.registry import LEARNERS, learner, learner_options

if TYPE_CHECKING:
    from rmab.study.spec import LearnerSpec, TaskSpec

__all__ = ["learner_faults", "made_learner", "made_task", "task_faults"]

Fault = tuple[tuple[str, ...], str]  # where in the table, and what


def made_task(spec: "TaskSpec", seed: int) -> Task:
    """Make the task of one round. A task file is the same in every round, and must be as it was when the study was made."""
    if Path(spec.name).suffix not in SUFFIXES:
        return task(spec.name, seed=seed, **spec.options)  # type: ignore[arg-type]
    try:
        digest = sha256(Path(spec.name).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(f"{spec.name}: cannot be read ({error.strerror or error})") from error
    if digest != spec.digest:
        raise FileError(f"{spec.name}: the task file has changed since the study was made")
    return task(spec.name, **spec.options)  # type: ignore[arg-type]


def made_learner(spec: "LearnerSpec") -> Learner:
    """Make the learner."""
    return learner(spec.name, **spec.options)


def fitted(game: Task, player: Learner, spec: "LearnerSpec") -> Task:
    """Return the task with the feedback that this learner gets."""
    if spec.feedback is not None:
        return replace(game, feedback=spec.feedback)
    return replace(game, feedback="full") if player.feedback == "full" else game


def task_faults(spec: "TaskSpec") -> Iterator[Fault]:
    """Yield what keeps the task from being made."""
    try:
        made_task(spec, 0)
    except (ModelError, FileError, TypeError) as error:
        of_name = isinstance(error, FileError) or str(error).startswith("unknown task")
        yield (("name",) if of_name else ("options",) if spec.options else ()), str(error)


def learner_faults(spec: "LearnerSpec") -> Iterator[Fault]:
    """Yield all that keeps the learner from being made, option by option."""
    if spec.name in LEARNERS:
        schema = learner_options(spec.name)
        try:
            schema.model_validate(spec.options)
        except ValidationError as error:
            known = ", ".join(schema.model_fields) or "none"
            for one in error.errors():
                hint = f" (options: {known})" if one["type"] == "extra_forbidden" else f" (got {one['input']!r:.40})"
                yield ("options", *map(str, one["loc"])), f"{one['msg'].removeprefix('Value error, ')}{hint}"
            return
    try:
        player = made_learner(spec)
    except ModelError as error:
        yield ("name",), str(error)
        return
    if player.feedback == "full" and spec.feedback not in (None, "full"):
        yield ("feedback",), f"{spec.name} needs full feedback (got {spec.feedback!r})"
