"""What is printed: tables for people, JSON for programs, progress on standard error."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["alone_on_stdout", "as_json", "number", "print_json", "print_table", "progress"]

WIDTH = 120  # of a table that goes into a file or a pipe
TENTHS = 10
SHORT = 24  # characters up to which a cell is not broken into lines


def print_json(value: object) -> None:
    """Print as JSON; what is not a number becomes null, as JSON has no word for it."""
    click.echo(json.dumps(as_json(value), indent=2))


def alone_on_stdout(machine: bool) -> AbstractContextManager[object]:
    """Keep standard output for the JSON, if there will be one: what learners print inside goes to standard error."""
    return redirect_stdout(sys.stderr) if machine else nullcontext()


def as_json(value: object) -> object:
    """Return the same of plain lists, dictionaries, numbers and strings; arrays become lists."""
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def number(value: float, form: str = ",.1f") -> str:
    """Return a number for a table; a dash for one that does not exist."""
    return f"{value:{form}}" if math.isfinite(value) else "-"


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, notes: Sequence[str] = ()
) -> None:
    """Print rows of text under these columns: the first `left` are words, the others numbers. Notes follow."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        short = max((len(row[place]) for row in rows), default=0) <= SHORT
        table.add_column(column, justify="left" if place < left else "right", overflow="fold", no_wrap=short)
    for row in rows:
        table.add_row(*row)
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)
    for note in notes:
        click.echo(note)


@contextmanager
def progress(description: str, *, in_lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while the body runs; yields a function that takes (done, all).

    Where standard error is no terminal there is no bar; in_lines: but a line at every tenth, for a log.
    """
    with _bar() as bar:
        task = bar.add_task(f"{description} (the first time, it compiles for a minute or two)", total=None)
        said = -1

        def advance(done: int, whole: int) -> None:
            nonlocal said
            bar.update(task, description=description, completed=done, total=whole)
            if in_lines and bar.disable and done * TENTHS // max(whole, 1) > said:
                said = done * TENTHS // max(whole, 1)
                click.echo(f"{description}: {done:,} of {whole:,}", err=True)

        yield advance


def _bar() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = _console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    # Names of the user's are printed as they are, brackets and all.
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console
