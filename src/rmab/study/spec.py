"""A study as data: tasks x learners x rounds. Each run is a Job with an id that never changes.

The same study gives the same jobs, and a job gives the same result on every machine. All learners of a round share one
random seed, so they meet the same task and the same random numbers.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rmab.common import Reference, check_memory, expect, parse_json, parse_toml, path_of
from rmab.errors import FileError, ModelError
from rmab.study.build import learner_problems, task_problems
from rmab.study.entries import LearnerSpec, TaskSpec, Text, Value

Spec = TypeVar("Spec", bound=BaseModel)
LONGEST = 40  # maximum length of a label in a run's id


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a study.

    Attributes
    ----------
    id : str
        Name of its file; it never changes.
    study_hash : str
        Hash of the study.
    task, learner : TaskSpec, LearnerSpec
        Entries of the study.
    round, seed : int
        Number and seed of the round; all learners of a round share the seed.
    """

    id: str
    study_hash: str
    task: TaskSpec
    learner: LearnerSpec
    round: int
    seed: int

    def to_text(self) -> str:
        """Return the job as JSON, for a worker on another machine."""
        specs = {"task": self.task.model_dump(), "learner": self.learner.model_dump()}
        return json.dumps({"id": self.id, "study_hash": self.study_hash, **specs, "round": self.round, "seed": self.seed})

    @classmethod
    def from_text(cls, text: str) -> "Job":
        """Parse the text of `to_text`."""
        expect(text, str, "the text of a job")
        try:
            fields = parse_json(text)
            task, learner = TaskSpec.model_validate(fields.pop("task")), LearnerSpec.model_validate(fields.pop("learner"))
            return cls(task=task, learner=learner, **fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"the text of a job must be as to_text wrote it ({str(error).splitlines()[0]})") from error


class Study(BaseModel):
    """Tasks x learners x rounds, as data.

    Parameters
    ----------
    name : str, optional
        Name of the study.
    title : str, optional
        One line that describes it.
    kind : {'learning', 'asymptotic', 'growth'}, optional
        Kind of the report.
    rounds : int
        Number of rounds, 1 or more: every learner plays every task once per round.
    seed : int, optional
        Random seed of the study.
    tasks : list of str, Task, TaskSpec or dict
        At least one: a name, a file, an object, or an entry with options. An object is the same in every round.
    learners : list of str, Learner, LearnerSpec or dict
        At least one: a name, an object, or an entry with options. The class of an object must be importable.

    Raises
    ------
    ModelError
        In one line, with all problems of the entries.

    Examples
    --------
    >>> from rmab.learning import Ucmd
    >>> from rmab.study import Study
    >>> [one.label for one in Study(tasks=["cpap"], learners=["random", Ucmd(estimator="fading")], rounds=20).learners]
    ['random', 'ucmd, estimator=fading']
    >>> study = Study(name="small", rounds=2, tasks=[{"name": "cpap"}], learners=[{"name": "ucmd"}, {"name": "random"}])
    >>> [job.id.rpartition(".")[0] for job in study.jobs()]
    ['cpap.ucmd.r00000', 'cpap.random.r00000', 'cpap.ucmd.r00001', 'cpap.random.r00001']
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field("study", min_length=1)
    title: Text = ""
    kind: Literal["learning", "asymptotic", "growth"] = "learning"
    rounds: int = Field(ge=1, le=10**7)
    seed: int = Field(0, ge=0, lt=2**53)
    tasks: list[TaskSpec] = Field(min_length=1)
    learners: list[LearnerSpec] = Field(min_length=1)

    def __init__(self, **entries: Any) -> None:
        """Validate the entries; see the class."""
        try:
            super().__init__(**entries)
        except ValidationError as error:
            raise ModelError(f"study: {'; '.join(_problems(error))}", code="bad-study") from error

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> "Study":
        """Validate a table, as in a study file; see the class. Raise ModelError with all problems."""
        if not isinstance(obj, dict | Study):
            raise ModelError(f"study: must be a table, got {type(obj).__name__}", code="bad-study")
        return obj if isinstance(obj, Study) else cls(**obj)

    @model_validator(mode="after")
    def _labels_differ(self) -> "Study":
        for what, specs in (("tasks", self.tasks), ("learners", self.learners)):
            labels = [one.label for one in specs]
            if twice := sorted({one for one in labels if labels.count(one) > 1}):
                raise ValueError(f"{what}: duplicate label {', '.join(map(repr, twice))}")
        return self

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> "Study":
        """Read a TOML file or a built-in study, and check that all its tasks and learners can be built.

        Raises
        ------
        ModelError
            In one line, with all problems of the study.
        FileError
            If the file cannot be read.

        Examples
        --------
        >>> from rmab.study import Study
        >>> Study.load("paper-cpap").with_rounds(10).rounds
        10
        """
        if str(source) in builtin_names():
            return cls._checked(builtin_table(str(source)), str(source))
        if not isinstance(source, str | os.PathLike):
            raise ModelError(f"a study is a name or the path of a file, got {type(source).__name__}")
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # also of bytes that are no text, and of names that no file can have
            known = ", ".join(builtin_names())
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise FileError(
                f"{source}: cannot be read ({reason}), and is not a built-in study; available: {known}"
            ) from error
        raw = _parse(text, str(path))
        return cls._checked(_from_here(raw, path.parent), str(path))

    @classmethod
    def _checked(cls, raw: dict[str, Any], source: str) -> "Study":
        found: list[str] = []
        try:
            study = cls(**raw)
        except ModelError as error:
            found = _problems(error.__cause__) if isinstance(error.__cause__, ValidationError) else [str(error)]
        for place, task in _valid(TaskSpec, raw.get("tasks")):
            found += [_problem(("tasks", place, *where), message) for where, message in task_problems(task)]
        for place, learner in _valid(LearnerSpec, raw.get("learners")):
            found += [_problem(("learners", place, *where), message) for where, message in learner_problems(learner)]
        if found:
            raise ModelError(f"{source}: {'; '.join(found)}", code="bad-study", study=source)
        return study

    def check(self) -> None:
        """Raise ModelError unless all tasks and learners can be built."""
        self._checked(self.model_dump(), self.name)

    def with_rounds(self, rounds: int) -> "Study":
        """Return the study with another number of rounds; common rounds are the same."""
        return type(self)(**{**self.model_dump(), "rounds": rounds})

    @cached_property
    def hash(self) -> str:
        """Hash of everything except the number of rounds."""
        whole = self.model_dump(exclude={"rounds"})
        whole["tasks"] = [_identity(one) for one in self.tasks]
        return _digest(whole)[:16]

    def rounds_of(self, task: TaskSpec) -> int:
        """Return the number of rounds of a task."""
        return self.rounds if task.rounds is None else min(self.rounds, task.rounds)

    def jobs(self) -> tuple[Job, ...]:
        """Return all runs, round by round, so that an interrupted study is balanced."""
        number = float(self.rounds) * len(self.tasks) * len(self.learners)
        check_memory(f"a list of {number:.3g} runs", 500.0 * number)
        pairs = [(task, learner, *_slug(task, learner)) for task in self.tasks for learner in self.learners]
        found = []
        for number in range(self.rounds):
            state = np.random.SeedSequence(self.seed, spawn_key=(number,)).generate_state(1, np.uint64)
            seed = int(state[0] >> np.uint64(11))  # below 2^53, like all whole numbers of the library
            for task, learner, slug, key in (one for one in pairs if number < self.rounds_of(one[0])):
                mark = sha256(f"{key} {number} {seed}".encode()).hexdigest()[:10]
                found.append(Job(f"{slug}.r{number:05d}.{mark}", self.hash, task, learner, number, seed))
        return tuple(found)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in studies."""
    files = (resources.files("rmab.study") / "builtin").iterdir()
    return tuple(sorted(one.name.removesuffix(".toml") for one in files if one.name.endswith(".toml")))


def builtin_table(name: str) -> dict[str, Any]:
    """Return the TOML table of a built-in study."""
    text = (resources.files("rmab.study") / "builtin" / f"{name}.toml").read_text(encoding="utf-8")
    return _parse(text, name)


def _slug(task: TaskSpec, learner: LearnerSpec) -> tuple[str, str]:
    """Return the readable prefix of the ids of their runs, and a digest of everything that their results depend on."""
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", one.label)[:LONGEST].strip("-") for one in (task, learner))
    return ".".join(part or "x" for part in parts), _digest([_identity(task), learner.model_dump()])


def _identity(task: TaskSpec) -> dict[str, Any]:
    """Return what identifies the task: the content of a file, not its path; and not the number of rounds."""
    return task.model_dump(exclude={"name", "rounds"} if task.digest else {"rounds"})


def _digest(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise FileError(f"{source}: not TOML ({error})") from error


def _from_here(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the table with absolute paths of task files, which are relative to the study's file."""
    if not isinstance(raw.get("tasks"), list):
        return raw

    def resolve(one: Any) -> Any:
        name = one.get("name") if isinstance(one, dict) else None
        file = isinstance(name, str) and Reference.parse(name).is_file
        return {**one, "name": str((folder / str(name)).absolute())} if file else one

    return {**raw, "tasks": [resolve(one) for one in raw["tasks"]]}


def _valid(kind: type[Spec], items: object) -> Iterator[tuple[int, Spec]]:
    """Yield position and content of the valid items."""
    for place, one in enumerate(items if isinstance(items, list) else []):
        with suppress(ValidationError):
            yield place, kind.model_validate(one)


def _problems(error: ValidationError) -> list[str]:
    """Return one line per problem; an option with several allowed types has only one."""
    found: dict[tuple[int | str, ...], str] = {}
    for one in error.errors():
        place, message = one["loc"], one["msg"].removeprefix("Value error, ")
        if "options" in place[:-2]:
            place, message = place[:-1], "Input should be true, false, a number, text, a list or a table"
        found.setdefault(place, _problem(place, message, one["input"]))
    return list(found.values())


def _problem(place: tuple[int | str, ...], message: str, given: object = None) -> str:
    """Format a problem, such as `learners[1].options.epsilon: must be below 1 (got 2)`."""
    path = path_of(place)
    shown = f" (got {given!r:.40})" if isinstance(given, Value) else ""
    return f"{path}: {message}{shown}" if path else f"{message}{shown}"
