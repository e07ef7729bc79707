"""The entries of a study: its tasks and learners, as data.

An object becomes data when a study is made of it. A learner is its name, or that of its class, and its options; a task is
written to a temporary file. So workers in other processes can rebuild both, and the same objects give the same runs.
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

from rmab.common import Reference, is_control
from rmab.errors import ModelError
from rmab.learning.base import Learner
from rmab.learning.options import Configured, described
from rmab.learning.registry import LEARNERS, component_options, make_learner
from rmab.model import ADVERSARIES, FORESEES, FeedbackMode
from rmab.tasks.definition import Task

Value = bool | int | float | str
_FOLDER: list[tempfile.TemporaryDirectory[str]] = []  # of the task objects of this process


def readable(text: str) -> str:
    """Return a name or label; ValueError where it holds control characters, which no table, file or figure can show."""
    if wrong := next(filter(is_control, text), None):
        raise ValueError(f"must have no control characters, found {wrong.encode('unicode_escape').decode()}")
    return text


Text = Annotated[str, AfterValidator(readable)]


class TaskSpec(BaseModel):
    """A task of a study.

    Parameters
    ----------
    name : str
        As `rmab.make_task` takes it: a built-in name, a custom `module:maker`, or the path of a task file.
    label : str, optional
        What tables and figures call it; the name by default.
    options : dict, optional
        Options of the task.
    rounds : int, optional
        The most that are played of it, for tasks that take long; all rounds of the study by default.
    digest : str, optional
        SHA-256 of a task file, taken when the study is made: what counts is the content, not the path.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, JsonValue] = {}
    rounds: int | None = Field(None, ge=1)
    digest: str = ""

    @property
    def stronger(self) -> str:
        """What makes its adversary, if it is a built-in one, stronger than the paper's; empty if nothing does."""
        against = Reference.parse(self.name).against
        return FORESEES if against in ADVERSARIES and ADVERSARIES[against].foresees else ""

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, given: Any) -> Any:
        given = stored_task(given) if isinstance(given, Task) else given
        given = {"name": str(given)} if isinstance(given, str | os.PathLike) else given
        if not isinstance(given, dict):
            return accepted(given, cls, Task)
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # what is wrong is the name
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
        As `rmab.make_learner` takes it: a built-in name, or a custom `module:maker`.
    label : str, optional
        What tables and figures call it; name, options and feedback by default.
    options : dict, optional
        Options of the learner.
    feedback : {'bandit', 'active', 'full'}, optional
        What it is told after an episode; by default what the task gives, or what the learner needs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, JsonValue] = {}
    feedback: FeedbackMode | None = None

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, given: Any) -> Any:
        given = stored_learner(given) if isinstance(given, Learner) else {"name": given} if isinstance(given, str) else given
        if not isinstance(given, dict):
            return accepted(given, cls, Learner)
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # what is wrong is the name
        words = list(_flat(given.get("options")))
        words += [f"{given['feedback']} feedback"] if isinstance(given.get("feedback"), str) else []
        return {"label": ", ".join([given["name"], *words]), **given}


def accepted(given: Any, spec: type[BaseModel], kind: type) -> Any:
    """Return an entry that is one already; ValueError for everything that no entry can be made of."""
    if isinstance(given, spec):
        return given
    shown = type(given).__name__
    if isinstance(given, type):
        shown = f"a class; give an object, {given.__name__}(...)"
    elif callable(given):
        shown = f"a function; give its name, 'module:{getattr(given, '__name__', shown)}'"
    raise ValueError(f"must be a name, a {kind.__name__} or a table, got {shown}")


def _flat(options: Any, before: str = "") -> Iterator[str]:
    """Yield every option as text; those of a component after its name: `estimator=mine:Fade, estimator.speed=0.5`."""
    for key, value in options.items() if isinstance(options, dict) else ():
        if isinstance(value, dict):
            yield from [f"{before}{key}={value['name']}"] if "name" in value else []
            yield from _flat({one: each for one, each in value.items() if one != "name"}, f"{before}{key}.")
        else:
            yield f"{before}{key}={value}"


def stored_task(task: Task) -> dict[str, Any]:
    """Return the entry of a task that was built already: it is in a temporary file of this process, by its content."""
    if not _FOLDER:
        _FOLDER.append(tempfile.TemporaryDirectory(prefix="rmab-tasks-"))
    path = Path(_FOLDER[0].name) / "task.npz"
    try:
        task.save(path)
    except ModelError as error:
        hint = "give the study its name, such as cpap@adaptive, or a maker, module:function"
        raise ValueError(f"task {task.name}: cannot be sent to other processes ({error}); {hint}") from error
    digest = sha256(path.read_bytes()).hexdigest()
    path = path.replace(path.with_name(f"{digest[:16]}.npz"))
    return {"name": str(path), "label": task.name, "digest": digest}


def stored_learner(learner: Learner) -> dict[str, Any]:
    """Return the entry of a learner that was built already: the name of its class, and the options that were set."""
    cls = type(learner)
    reference, options = LEARNERS.name_of(cls) or _reference(cls, "learner"), _options(learner)
    try:
        same = make_learner(reference, **options).signature == learner.signature
    except ModelError as error:
        raise ValueError(f"learner {cls.__name__}: cannot be rebuilt from its options ({error})") from error
    if not same:
        raise ValueError(f"learner {cls.__name__}: cannot be rebuilt from its options; give the study module:function")
    return {"name": reference, "options": options, "label": ", ".join([learner.name, *_flat(options)])}


def _reference(thing: Any, what: str) -> str:
    """Return where other processes can import a class or a function; ValueError where they cannot."""
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
    if not name or module == "__main__" or "<" in name:
        where = "the script that runs" if module == "__main__" else "a function"
        shown = getattr(thing, "__name__", repr(thing))
        raise ValueError(f"{what} {shown:.60}: other processes cannot import it from {where}; move it into a module")
    return f"{module}:{name}"


def _options(thing: Configured) -> dict[str, Any]:
    """Return the options that are not the defaults, as data: a component is a table with its name."""
    defaults: dict[str, Any] = {one.name: one.default for one in fields(thing)} if is_dataclass(thing) else {}
    kinds, changed = component_options(type(thing)), dict[str, Any]()
    for key, value in thing.options.items():
        if key in defaults and described(value) == described(defaults[key]):
            continue
        if isinstance(value, Configured):
            name = kinds[key].name_of(type(value)) if key in kinds else ""
            changed[key] = {"name": name or _reference(type(value), key), **_options(value)}
        elif callable(value):
            changed[key] = _reference(value, key)
        else:
            changed[key] = np.asarray(value).tolist() if isinstance(value, tuple | np.generic) else value
    return changed
