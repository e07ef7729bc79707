"""Entries of a study: its tasks and learners, as data.

Objects become data when a study is created. A learner becomes its name, or that of its class, and its options; a task is
written to a temporary file. So workers in other processes can rebuild both, and equal objects give equal runs.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from rmab.common import Reference
from rmab.errors import ModelError, is_control
from rmab.learning.base import Learner
from rmab.learning.options import Configured, describe
from rmab.learning.registry import LEARNERS, component_options, make_learner
from rmab.model import ADVERSARIES, FORESEES, FeedbackMode
from rmab.tasks.definition import Task

Value = bool | int | float | str
_FOLDER: list[tempfile.TemporaryDirectory[str]] = []  # holds the task objects of this process


def readable(text: str) -> str:
    """Return a name or label; raise ValueError if it has control characters, which no table, file or figure can show."""
    if wrong := next(filter(is_control, text), None):
        raise ValueError(f"must have no control characters, found {wrong.encode('unicode_escape').decode()}")
    return text


Text = Annotated[str, AfterValidator(readable)]


class TaskSpec(BaseModel):
    """A task of a study.

    Parameters
    ----------
    name : str
        As for `rmab.make_task`: a built-in name, a custom `module:function`, or the path of a task file.
    label : str, optional
        Name in tables and figures; the name by default.
    options : dict, optional
        Options of the task.
    rounds : int, optional
        Maximum number of rounds, for slow tasks; all rounds of the study by default.
    digest : str, optional
        SHA-256 of a task file when the study is created: the content identifies the task, not the path.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, JsonValue] = {}
    rounds: int | None = Field(None, ge=1)
    digest: str = ""

    @property
    def stronger(self) -> str:
        """What makes a built-in adversary stronger than the paper's; empty otherwise."""
        against = Reference.parse(self.name).against
        return FORESEES if against in ADVERSARIES and ADVERSARIES[against].foresees else ""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        given = task_entry(given) if isinstance(given, Task) else given
        given = {"name": str(given)} if isinstance(given, str | os.PathLike) else given
        if not isinstance(given, dict):
            return checked_entry(given, cls, Task)
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # pydantic then reports the name
        name, found = given["name"], {}
        if Reference.parse(name).is_file and not given.get("digest"):
            try:
                found["digest"] = sha256(Path(name).read_bytes()).hexdigest()
            except OSError as error:
                raise ValueError(f"{name}: cannot be read ({error.strerror or error})") from error
        return {"label": Path(name).stem if found else name, **given, **found}


class LearnerSpec(BaseModel):
    """A learner of a study.

    Parameters
    ----------
    name : str
        As for `rmab.make_learner`: a built-in name, or a custom `module:Class` or `module:function`.
    label : str, optional
        Name in tables and figures; name, options and feedback by default.
    options : dict, optional
        Options of the learner.
    feedback : {'bandit', 'active', 'full'}, optional
        What the learner observes after an episode; by default that of the task, or what the learner needs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, JsonValue] = {}
    feedback: FeedbackMode | None = None

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        given = learner_entry(given) if isinstance(given, Learner) else {"name": given} if isinstance(given, str) else given
        if not isinstance(given, dict):
            return checked_entry(given, cls, Learner)
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # pydantic then reports the name
        words = list(_flat(given.get("options")))
        words += [f"{given['feedback']} feedback"] if isinstance(given.get("feedback"), str) else []
        return {"label": ", ".join([given["name"], *words]), **given}


def checked_entry(given: Any, spec: type[BaseModel], kind: type) -> Any:
    """Return `given` if it is an entry already; otherwise raise ValueError."""
    if isinstance(given, spec):
        return given
    shown = type(given).__name__
    if isinstance(given, type):
        shown = f"a class; give an object, {given.__name__}(...)"
    elif callable(given):
        shown = f"a function; give its name, 'module:{getattr(given, '__name__', shown)}'"
    raise ValueError(f"must be a name, a {kind.__name__} or a table, got {shown}")


def _flat(options: Any, before: str = "") -> Iterator[str]:
    """Yield each option as text, a component before its options: `estimator=mine:Fade, estimator.speed=0.5`."""
    for key, value in options.items() if isinstance(options, dict) else ():
        if isinstance(value, dict):
            yield from [f"{before}{key}={value['name']}"] if "name" in value else []
            yield from _flat({one: each for one, each in value.items() if one != "name"}, f"{before}{key}.")
        else:
            yield f"{before}{key}={value}"


def task_entry(task: Task) -> dict[str, Any]:
    """Return the entry of a task object, stored in a temporary file of this process."""
    if not _FOLDER:
        _FOLDER.append(tempfile.TemporaryDirectory(prefix="rmab-tasks-"))
    path = Path(_FOLDER[0].name) / "task.npz"
    try:
        task.save(path)
    except ModelError as error:
        hint = "use a name such as cpap@adaptive, or module:function"
        raise ValueError(f"task {task.name}: cannot be sent to other processes ({error}); {hint}") from error
    digest = sha256(path.read_bytes()).hexdigest()
    path = path.replace(path.with_name(f"{digest[:16]}.npz"))
    return {"name": str(path), "label": task.name, "digest": digest}


def learner_entry(learner: Learner) -> dict[str, Any]:
    """Return the entry of a learner object: the name of its class, and the options that are not defaults."""
    cls = type(learner)
    reference, options = LEARNERS.name_of(cls) or _reference(cls, "learner"), _options(learner)
    try:
        same = make_learner(reference, **options).signature == learner.signature
    except ModelError as error:
        raise ValueError(f"learner {cls.__name__}: cannot be rebuilt from its options ({error})") from error
    if not same:
        raise ValueError(f"learner {cls.__name__}: cannot be rebuilt from its options; use module:function")
    return {"name": reference, "options": options, "label": ", ".join([learner.name, *_flat(options)])}


def _reference(thing: Any, what: str) -> str:
    """Return the reference by which other processes can import a class or function; raise ValueError if there is none."""
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
    if not name or module == "__main__" or "<" in name:
        where = "the script that runs" if module == "__main__" else "a function"
        shown = getattr(thing, "__name__", repr(thing))
        raise ValueError(f"{what} {shown:.60}: other processes cannot import it from {where}; move it into a module")
    return f"{module}:{name}"


def _options(thing: Configured) -> dict[str, Any]:
    """Return the options that are not defaults, as data; a component is a table with its name."""
    defaults: dict[str, Any] = {one.name: one.default for one in fields(thing)} if is_dataclass(thing) else {}
    kinds, changed = component_options(type(thing)), dict[str, Any]()
    for key, value in thing.options.items():
        if key in defaults and describe(value) == describe(defaults[key]):
            continue
        if isinstance(value, Configured):
            name = kinds[key].name_of(type(value)) if key in kinds else ""
            changed[key] = {"name": name or _reference(type(value), key), **_options(value)}
        elif callable(value):
            changed[key] = _reference(value, key)
        else:
            changed[key] = np.asarray(value).tolist() if isinstance(value, tuple | np.generic) else value
    return changed
