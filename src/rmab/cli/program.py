"""Shared by all commands: exit codes, one-line errors, and examples on help pages."""

import errno
import io
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from rmab.cli.screen import say
from rmab.errors import FileError, LogError, ModelError, RmabError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO}  # a problem of the disk, not of the input
NO_STORE = {"bad-url", "unknown-programme"}  # the store or programme does not exist
MOST = 100  # maximum number of printed problems of a log
NARROW = 76  # columns for examples in a terminal of 80


class Failure(click.ClickException):
    """Failed work, printed as one line."""

    exit_code = FAILED


class BadInput(Failure):
    """Wrong input, printed as one line."""

    exit_code = BAD_INPUT


class Program(click.Group):
    """A group of commands that prints errors of the library as one line and exits with code 130 on Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn errors that click does not know into a Failure."""
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (Exception, SystemExit) as error:
            if ctx.params["debug"]:
                say(traceback.format_exc(), err=True, nl=False)
            if isinstance(error, click.ClickException):
                raise
            from rmab.common.extras import as_missing_extra

            raise _failure(as_missing_extra(error) if isinstance(error, Exception) else error) from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run and exit as click does, but with our exit codes and one-line errors."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # the encoding of a pipe may lack characters of names
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            say(f"Error: {error.format_message()}{_hint(error)}", err=True)
            code = error.exit_code
        except click.Abort:
            click.echo("stopped", err=True)
            code = INTERRUPTED
        sys.exit(code or 0)


def examples(*lines: tuple[str, str]) -> str:
    """Format (command, description) pairs for the end of a help page, on two lines each if they are too wide for one."""
    width = max(len(command) for command, _ in lines)
    shown = [f"  {command:<{width}}  # {what}" for command, what in lines]
    if max(map(len, shown)) > NARROW:
        shown = [f"  # {what}\n  {command}" for command, what in lines]
    return "\b\nExamples:\n" + "\n".join(shown)


def write_sections(formatter: click.HelpFormatter, sections: dict[str, list[tuple[str, str]]]) -> None:
    """Write commands and their summaries in sections, aligned."""
    width = max(len(name) for several in sections.values() for name, _ in several)
    for title, several in sections.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), summary) for name, summary in several])


def command(
    *lines: tuple[str, str], name: str | None = None, parent: click.Group | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a command, alone or in a group, whose help page ends with these `examples`."""
    decorate = click.command if parent is None else parent.command
    return decorate(name, epilog=examples(*lines))


def _failure(error: Exception | SystemExit) -> Failure:
    if isinstance(error, SystemExit):  # the library never calls sys.exit
        return Failure(f"your code called sys.exit({error.code!r}) (rmab --debug shows where)")
    cause = error.__cause__
    full = isinstance(cause, OSError) and cause.errno in DISK
    if isinstance(error, LogError) and len(error.problems) > 1:
        return BadInput(_list_problems(error))
    if (isinstance(error, ModelError | FileError) and not full) or getattr(error, "code", "") in NO_STORE:
        return BadInput(str(error))
    if isinstance(error, RmabError):
        return Failure(str(error))
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return Failure(f"{place}{error.strerror or error}")
    return Failure(f"{type(error).__name__}: {error} (rmab --debug shows where)")


def _list_problems(error: LogError) -> str:
    """List all problems of a log, one per line."""
    rest = len(error.problems) - MOST
    lines = [f"{error.name}: {len(error.problems)} problems; nothing was read", *map(str, error.problems[:MOST])]
    return "\n  ".join([*lines, f"and {rest:,} more"] if rest > 0 else lines)


def _hint(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return f" (see '{error.ctx.command_path} --help')"
