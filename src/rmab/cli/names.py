"""Names and options as the user types them: checked before any work, completed by the shell, with the nearest on a typo."""

import difflib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

__all__ = [
    "BUILTIN_LEARNER",
    "BUILTIN_STUDY",
    "LEARNER",
    "MODEL_FILES",
    "STUDY",
    "TASK",
    "check_known",
    "key_values",
    "nearest",
]

MODEL_FILES = (".npz", ".json")


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """One of a list of names, or a file with one of these suffixes, or one's own `module:maker` where these are allowed.

    The list is read when it is needed.
    """

    def __init__(
        self, kind: str, known: Callable[[], Iterable[str]], listed_by: str, files: tuple[str, ...] = (), own: bool = False
    ) -> None:
        self.name, self.known, self.listed_by, self.files, self.own = kind, known, listed_by, files, own

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail with the nearest one."""
        if Path(value).suffix in self.files or (self.own and ":" in value):
            return value
        known = list(self.known())
        if value not in known:
            also = f", a file ends in {' or '.join(self.files)}" if self.files else ""
            self.fail(
                f"unknown {self.name} {value!r}{nearest(value, known)} `{self.listed_by}` lists them{also}", param, ctx
            )
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the names that begin so, and files where they are allowed."""
        names = [CompletionItem(name) for name in self.known() if name.startswith(incomplete)]
        return names + ([CompletionItem(incomplete, type="file")] if self.files else [])


def _tasks() -> list[str]:
    from rmab.families import FAMILIES, tasks

    return [*FAMILIES, *tasks()]


def _learners() -> list[str]:
    from rmab.learning import learners

    return list(learners())


def _studies() -> list[str]:
    from rmab.study import BUILTIN

    return list(BUILTIN)


TASK = Name("task", _tasks, "rmab tasks", MODEL_FILES, own=True)
LEARNER = Name("learner", _learners, "rmab learners", own=True)
BUILTIN_LEARNER = Name("learner", _learners, "rmab learners")
STUDY = Name("study", _studies, "rmab study list", (".toml",))
BUILTIN_STUDY = Name("study", _studies, "rmab study list")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: a question after the nearest known name, or a full stop."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else "."


def check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first name that is not known, with the nearest one and all the others."""
    names = list(known)
    for name in given:
        if name not in names:
            there = f"It has {', '.join(names)}" if names else "It has none"
            raise click.UsageError(f"{what} has no option {name!r}{nearest(name, names)} {there}")


def key_values(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, object]:
    """Turn `key=value` pairs into a dictionary: numbers, true, false and null as in JSON, everything else is text."""
    pairs: dict[str, object] = {}
    for text in values:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.BadParameter(f"expected key=value, got {text!r}", ctx, param)
        if key in pairs:
            raise click.BadParameter(f"{key} is given twice", ctx, param)
        try:
            pairs[key] = json.loads(value)
        except ValueError:
            pairs[key] = value
    return pairs
