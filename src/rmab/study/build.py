"""Build the tasks and learners of a study's entries, and list problems of the entries.

Each is built once per process: a study that was just checked is not built again to be run, and the runs of a worker share
their learner and, in each round, their task. Neither stores anything of a run.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from rmab.common import Reference, json_schema, source_digest
from rmab.errors import FileError, ModelError
from rmab.learning.base import Learner
from rmab.learning.registry import LEARNERS, component_names, make_learner, option_problems
from rmab.runs.running import feedback_of
from rmab.study.entries import LearnerSpec, TaskSpec
from rmab.tasks.definition import Task
from rmab.tasks.making import make_task
from rmab.tasks.registry import TASKS

Problem = tuple[tuple[str, ...], str]  # position in the table, and message
_FINE: set[tuple[str, ...]] = set()  # entries that this process has built successfully


def task_of(spec: TaskSpec, seed: int) -> Task:
    """Return the task of one round. A file is the same in every round, and must not change after the study is created."""
    if not _is_file(spec):
        return _task(spec.name, _text(spec.options), seed, source_of(spec))
    try:
        digest = sha256(Path(spec.name).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(f"{spec.name}: cannot be read ({error.strerror or error})") from error
    if digest != spec.digest:
        raise FileError(
            f"{spec.name}: the task file has changed since the study was created; restore it, or create a new study"
        )
    return _task(spec.name, _text(spec.options), None, digest)


def learner_of(spec: LearnerSpec) -> Learner:
    """Build the learner of an entry."""
    return _learner(spec.name, _text(spec.options), source_of(spec))


def modules_of(spec: TaskSpec | LearnerSpec) -> list[str]:
    """Return the custom modules that an entry needs, including those of its adversary and components."""
    names = {spec.name} | (component_names(spec.name, spec.options) if isinstance(spec, LearnerSpec) else set())
    return sorted(set().union(*(Reference.parse(name).modules for name in names)))


def files_of(spec: TaskSpec | LearnerSpec) -> list[Path]:
    """Return the files named by options of a task, such as a tariff."""
    name = Reference.parse(spec.name).name
    if not isinstance(spec, TaskSpec) or name not in TASKS or not spec.options:
        return []
    return [Path(value) for key in _file_options(name) if isinstance(value := spec.options.get(key), str)]


@cache
def _file_options(name: str) -> list[str]:
    options = json_schema(TASKS.schema(name)).get("properties", {})
    return sorted(key for key, one in options.items() if one.get("file"))


def source_of(spec: TaskSpec | LearnerSpec, *, on_disk: bool = False) -> str | None:
    """Return the SHA-256 of the source of modules, as imported or as on disk, and of files; None if there are none."""
    digests = [source_digest(module, on_disk=on_disk) for module in modules_of(spec)]
    digests += [sha256(one.read_bytes()).hexdigest() for one in files_of(spec) if one.is_file()]
    known = [one for one in digests if one is not None]
    return known[0] if len(known) == 1 else sha256("".join(known).encode()).hexdigest() if known else None


@lru_cache(maxsize=2)  # tasks can be large, and jobs are ordered by round
def _task(name: str, options: str, seed: int | None, source: str | None) -> Task:  # noqa: ARG001  (another source is another task)
    return make_task(name, seed=seed, **json.loads(options))


@lru_cache(maxsize=256)
def _learner(name: str, options: str, source: str | None) -> Learner:  # noqa: ARG001
    return make_learner(name, **json.loads(options))


def _text(options: Mapping[str, Any]) -> str:
    return json.dumps(options, sort_keys=True)


def _is_file(spec: TaskSpec) -> bool:
    return Reference.parse(spec.name).is_file


def _key(spec: TaskSpec | LearnerSpec) -> tuple[str, ...]:
    asked: Any = getattr(spec, "feedback", None)
    return type(spec).__name__, spec.name, _text(spec.options), str(asked), str(source_of(spec))


def task_problems(spec: TaskSpec) -> Iterator[Problem]:
    """Yield problems that prevent building the task."""
    reference = Reference.parse(spec.name)
    if not reference.is_file and _key(spec) in _FINE:
        return
    if reference.name in TASKS and (wrong := TASKS.problems(reference.name, spec.options)):
        yield from ((("options", option), message) for option, message in wrong)
        return
    try:
        task_of(spec, 0)
    except (ModelError, FileError, TypeError) as error:
        of_file = isinstance(error, FileError) and not (reference.name in TASKS and files_of(spec))
        of_name = of_file or reference.modules or reference.name not in TASKS
        yield (("name",) if of_name else ("options",) if spec.options else ()), str(error)
        return
    _FINE.add(_key(spec))


def learner_problems(spec: LearnerSpec) -> Iterator[Problem]:
    """Yield problems that prevent building the learner, option by option."""
    if _key(spec) in _FINE:
        return
    if spec.name in LEARNERS:
        wrong = option_problems(spec.name, dict(spec.options))
        for option, message in wrong:
            yield ("options", option) if option else ("options",), message
        if wrong:
            return
    try:
        player = learner_of(spec)
    except ModelError as error:
        yield ("name",), str(error)
        return
    try:
        feedback_of(player, "bandit", spec.feedback)
    except ModelError as error:
        yield ("feedback",), str(error)
        return
    _FINE.add(_key(spec))
