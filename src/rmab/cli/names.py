"""Types of arguments and options: checked before any work, completed by the shell; a typo gets a suggestion."""

import difflib
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rmab.common.parsing import parsed_json

if TYPE_CHECKING:
    from rmab.tasks import Task

MODEL_FILES = (".npz", ".json")


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A known name; or, where allowed, a file with one of these suffixes, or the user's own `module:maker`.

    `known` is called only when the list is needed.
    """

    def __init__(
        self, what: str, known: Callable[[], Iterable[str]], listed_by: str, files: tuple[str, ...] = (), own: bool = False
    ) -> None:
        self.name, self.known, self.listed_by, self.files, self.own = what, known, listed_by, files, own

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail with the nearest known one."""
        if Path(value).suffix in self.files or (self.own and ":" in value):
            return value
        known = list(self.known())
        family, at, _ = value.partition("@")
        # A task that brings its own rewards takes no adversary: `rmab.make_task` says so better than "unknown".
        alone = bool(at) and family in known and not any(name.startswith(f"{family}@") for name in known)
        if value not in known and not alone:
            also = f"; the name of a file must end in {' or '.join(self.files)}" if self.files else ""
            own = "; one of your own is given as module:name" if self.own else ""
            hint = f"{nearest(value, known)} `{self.listed_by}` lists them{also}{own}"
            self.fail(f"unknown {self.name} {value!r}{hint}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the names that begin like this, and files where they are allowed."""
        names = [CompletionItem(name) for name in self.known() if name.startswith(incomplete)]
        return names + ([CompletionItem(incomplete, type="file")] if self.files else [])


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A whole number, `least` or more."""

    name = "number"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or fail with what was expected."""
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or number < self.least:
            self.fail(f"expected a whole number, {self.least} or more, got {str(value)!r}", param, ctx)
        return number


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A time in seconds, more than none."""

    name = "seconds"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail with what was expected."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"expected a number of seconds above 0, got {str(value)!r}", param, ctx)
        return number


def whole_number(min: int) -> WholeNumber:
    """Return the type of an option that takes a whole number, `min` or more."""
    return WholeNumber(min)


def _tasks() -> list[str]:
    from rmab.tasks import FAMILIES, list_tasks

    return [*FAMILIES, *list_tasks()]


def _learners() -> list[str]:
    from rmab.learning import list_learners

    return list(list_learners())


def _studies() -> list[str]:
    from rmab.study import BUILTIN

    return list(BUILTIN)


TASK = Name("task", _tasks, "rmab tasks", MODEL_FILES, own=True)
BUILTIN_TASK = Name("task", _tasks, "rmab tasks")
LEARNER = Name("learner", _learners, "rmab learners", own=True)
STUDY = Name("study", _studies, "rmab study list", (".toml",))
BUILTIN_STUDY = Name("study", _studies, "rmab study list")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: ', did you mean ...?' with the nearest known name, or a full stop."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else "."


def check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first unknown name, with the nearest known one and the list."""
    names = list(known)
    for name in given:
        if name not in names:
            there = f"Its options are {', '.join(names)}" if names else "It has no options"
            raise click.UsageError(f"{what} has no option {name!r}{nearest(name, names)} {there}")


def chosen_task(name: str, seed: int, options: dict[str, Any]) -> "Task":
    """Make or read the task of a command."""
    from rmab.tasks import FAMILIES, family_options, make_task

    if Path(name).suffix in MODEL_FILES:
        return make_task(name, **options)
    family = name.partition("@")[0]
    if family in FAMILIES:  # one's own says itself what is wrong with its options
        check_known(f"task {family}", options, family_options(family))
    return make_task(name, seed=seed, **options)


def key_values(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, object]:
    """Return `key=value` pairs as a dictionary: a value is JSON (a number, true, false, null, a list), or else text."""
    pairs: dict[str, object] = {}
    for text in values:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.BadParameter(f"expected key=value, for instance arms=40, got {text!r}", ctx, param)
        if key in pairs:
            raise click.BadParameter(f"{key} is given twice; keep one", ctx, param)
        try:
            pairs[key] = parsed_json(value)
        except ValueError:
            pairs[key] = value
    return pairs
