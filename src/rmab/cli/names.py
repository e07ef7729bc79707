"""Types of arguments and options: validated before any work, with shell completion and suggestions for typos."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from rmab.cli.outputs import Output, check_replaceable, is_same_file
from rmab.common import SUFFIXES, nearest


def checked_file(
    *suffixes: str, kind: Output | None = None
) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Return a callback that rejects a file that cannot be written, before any work starts.

    With `kind`, an existing file must be of this kind, so that none is replaced that the command cannot have written.
    """

    def checked(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
        if value is None or ctx.resilient_parsing:
            return value
        if value.suffix not in suffixes:
            raise click.BadParameter(f"{value}: the name must end in {' or '.join(suffixes)}", ctx, param)
        if not value.parent.is_dir():
            raise click.BadParameter(f"{value}: there is no folder {value.parent}", ctx, param)
        from rmab.common import check_writable, require
        from rmab.errors import FileError

        if ".parquet" in suffixes:
            require("study", param.get_error_hint(ctx).strip("'"))

        try:
            check_writable(value)
            if kind is not None:
                check_replaceable(value, kind)
        except FileError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return value

    return checked


def keep_apart(out: Path | None, *read: Path | str | None) -> None:
    """Raise UsageError if the output would replace a file that the command reads."""
    for one in read:
        if out is not None and one is not None and is_same_file(out, one):
            raise click.UsageError(f"{out}: the command reads this file; write to another one")


def given_options(ctx: click.Context, names: Iterable[str]) -> list[str]:
    """Return the options of these parameters that the command line has, as they are written: '--group'."""
    chosen = set(names)
    there = [one for one in ctx.command.params if one.name in chosen and isinstance(one, click.Option)]
    return [one.opts[0] for one in there if ctx.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE]


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Parse `name=number` pairs, separated by commas or repeated, into a dictionary."""
    found: dict[str, float] = {}
    for text in (one for value in values for one in value.split(",")):
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise click.BadParameter(f"expected name=number, for example engaged=1, got {text!r}", ctx, param)
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()} is given twice; keep one", ctx, param)
        found[name.strip()] = value
    return found


Command = TypeVar("Command", bound=Callable[..., Any])


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A known name or, where allowed, a file with one of these suffixes. `known` is called only when needed."""

    def __init__(self, what: str, known: Callable[[], Iterable[str]], listed_by: str, files: tuple[str, ...] = ()) -> None:
        self.name, self.known, self.listed_by, self.files = what, known, listed_by, files

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail and suggest the nearest known one."""
        if Path(value).suffix not in self.files and value not in (known := list(self.known())):
            also = f"; a file name must end in {' or '.join(self.files)}" if self.files else ""
            self.fail(
                f"unknown {self.name} {value!r}{nearest(value, known)} `{self.listed_by}` lists them{also}", param, ctx
            )
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete names, and files where they are allowed."""
        names = [CompletionItem(name) for name in self.known() if name.startswith(incomplete)]
        return names + ([CompletionItem(incomplete, type="file")] if self.files else [])


class Reference(Name):
    """A built-in name, a custom `module:attribute`, or a file; a task may be followed by @ and an adversary."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the reference, or fail and suggest the nearest known name. Built-in names are checked before any work."""
        if Path(value).suffix in self.files or all(":" in one for one in value.split("@")):
            return value
        from rmab.model import ADVERSARIES
        from rmab.tasks.registry import TASKS

        name, at, against = value.partition("@")
        custom = "; a custom one is module:name"
        if self.name == "task" and (name in TASKS or ":" in name):
            if at and against not in ADVERSARIES and ":" not in against:
                self.fail(f"{ADVERSARIES.unknown(against)}{custom}", param, ctx)
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message}{custom}", param, ctx)


def whole_number(min: int) -> click.IntRange:
    """Return the type of a whole number of at least `min`."""
    return click.IntRange(min=min)


def seed_option(help: str) -> Callable[[Command], Command]:
    """Return the option --seed, 0 by default."""
    return click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help=help)


def pairs_option(*names: str, help: str, metavar: str = "KEY=VALUE") -> Callable[[Command], Command]:
    """Return a repeatable option that takes KEY=VALUE."""
    return click.option(*names, multiple=True, metavar=metavar, callback=key_values, help=help)


def file_option(name: str, *suffixes: str, kind: Output, help: str) -> Callable[[Command], Command]:
    """Return an option for an output file of this kind, whose name ends in one of these suffixes."""
    check = checked_file(*suffixes, kind=kind)
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), callback=check, help=help)


def _tasks() -> list[str]:
    from rmab.tasks.registry import TASKS, list_tasks

    return [*TASKS, *list_tasks()]


def _learners() -> list[str]:
    from rmab.learning.registry import LEARNERS

    return list(LEARNERS)


def _studies() -> tuple[str, ...]:
    from rmab.study.spec import builtin_names

    return builtin_names()


TASK = Reference("task", _tasks, "rmab tasks", SUFFIXES)
LEARNER = Reference("learner", _learners, "rmab learners")
STUDY = Name("study", _studies, "rmab study list", (".toml",))
BUILTIN_STUDY = Name("study", _studies, "rmab study list")


def key_values(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, object]:
    """Parse `key=value` pairs into a dictionary; a value is JSON (a number, true, false, null, a list) or else text.

    A dot leads into a component: `estimator=mine:Fade` and `estimator.speed=0.5` become one table.
    """
    from rmab.common import parse_json

    pairs: dict[str, Any] = {}
    for text in values:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.BadParameter(f"expected key=value, for example arms=40, got {text!r}", ctx, param)
        first, dot, rest = key.partition(".")
        table = pairs if not dot else _table(pairs, first)
        place = rest if dot else key
        if not dot and isinstance(pairs.get(key), dict):
            table, place = pairs[key], "name"
        if place in table:
            raise click.BadParameter(f"{key} is given twice; keep one", ctx, param)
        try:
            table[place] = parse_json(value)
        except ValueError:
            table[place] = value
    return pairs


def _table(pairs: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the table of a component; a component given by name becomes a table first."""
    given = pairs.get(key, {})
    pairs[key] = given if isinstance(given, dict) else {"name": given}
    table: dict[str, Any] = pairs[key]
    return table
