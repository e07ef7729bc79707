"""Output: tables for people, JSON for programs, and progress on standard error."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from errno import EPIPE
from typing import IO, TYPE_CHECKING

import click

from rmab.errors import escape

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

WIDTH = 120  # columns of a table in a file or a pipe
TENTHS = 10
ROUNDING = 1e-9
READABLE = 12  # minimum width of a column of long text
SHORT = 24  # cells up to this length are not wrapped


def print_json(value: object) -> None:
    """Print as JSON; NaN and infinity become null, because JSON has neither."""
    click.echo(json.dumps(as_json(value), indent=2))


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text that may contain user input: control characters are escaped."""
    click.echo(escape(text), err=err, nl=nl)


@contextmanager
def alone_on_stdout(machine: bool) -> Iterator[None]:
    """Reserve standard output for JSON, if `machine`: whatever custom code prints goes to standard error.

    File descriptor 1 is redirected, so this also covers C code and child processes.
    """
    if not machine:
        yield
        return
    usual = sys.stdout
    with redirect_stdout(sys.stderr):
        usual.flush()
        try:
            saved = os.dup(1)
        except OSError:  # standard output is closed: there is nothing to reserve
            yield
            return
        try:
            with suppress(OSError):  # standard error is closed: leave the output where it is
                os.dup2(2, 1)
            yield
        finally:
            _flush_all(usual)
            os.dup2(saved, 1)
            os.close(saved)


def _flush_all(*streams: IO[str]) -> None:
    """Flush the buffers of Python and C before standard output is restored."""
    import ctypes

    for one in (*streams, sys.__stdout__):
        with suppress(OSError, ValueError):  # the stream may be closed
            if one is not None:
                one.flush()
    with suppress(OSError, AttributeError, TypeError):  # not available on all systems
        ctypes.CDLL(None).fflush(None)


def as_json(value: object) -> object:
    """Convert a value to plain lists, dictionaries, numbers and strings."""
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def number(value: float, form: str = ",.1f", *, of: float = 0.0) -> str:
    """Format a number for a table; a dash if it is not finite. A nonzero number is never shown as zero.

    of: magnitude of the numbers it is a difference of; much smaller values are rounding errors and may be shown as zero.
    """
    if not math.isfinite(value):
        return "-"
    text = f"{value:{form}}"
    lost = abs(value) > ROUNDING * abs(of) and not any(one in text for one in "123456789")
    return f"{value:{'+' if form.startswith('+') else ''}.3g}" if lost else text


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, notes: Sequence[str] = ()
) -> None:
    """Print a table with notes below it. The first `left` columns are text, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console()
    if not _fits(columns, rows, console.width):
        _print_records(title, columns, rows, left, notes)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        short = max((len(row[place]) for row in rows), default=0) <= SHORT
        table.add_column(escape(column), justify="left" if place < left else "right", overflow="fold", no_wrap=short)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(Text(escape(title), style="bold"), soft_wrap=True)
    console.print(table)
    for note in notes:
        say(note)


def _fits(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether the table fits the width with short cells unwrapped and nothing cut off."""
    from rich.cells import cell_len

    needed = 2
    for place, column in enumerate(columns):
        longest = max((cell_len(escape(row[place])) for row in rows), default=0)
        needed += 3 + max(cell_len(column), longest if longest <= SHORT else READABLE)
    return needed <= width


def _print_records(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int, notes: Sequence[str]
) -> None:
    """Print a table for a narrow terminal: each row as a few lines, so that nothing is cut off."""
    say(title)
    for row in rows:
        cells = [(column.strip(), cell.strip()) for column, cell in zip(columns, row, strict=True)]
        if left and cells[0][1]:
            say(cells[0][1])
        for column, cell in cells[1 if left else 0 :]:
            if cell:
                say(f"  {column}: {cell}")
    for note in notes:
        say(note)


@contextmanager
def progress(description: str, *, in_lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while the body runs; yield a function that takes (done, total).

    Without a terminal there is no bar; with in_lines, a line is printed at every tenth instead.
    """
    description = escape(description)
    bar = _bar()
    with nullcontext() if bar.disable else bar:  # before rich 15, a disabled bar prints an empty line at its end
        task = bar.add_task(f"{description} (the first run compiles for a minute or two)", total=None)
        shown = -1

        def advance(done: int, whole: int) -> None:
            nonlocal shown
            bar.update(task, description=description, completed=done, total=whole)
            if in_lines and bar.disable and done * TENTHS // max(whole, 1) > shown:
                shown = done * TENTHS // max(whole, 1)
                click.echo(f"{description}: {done:,} of {whole:,}", err=True)

        yield advance


@contextmanager
def waiting(description: str) -> Iterator[Callable[[str], None]]:
    """Show a status line on a terminal while the body runs; yield a function that changes the line."""
    console = _console(stderr=True)
    with console.status(escape(description)) as status:
        yield lambda line: status.update(escape(line))


def screen_width() -> int:
    """Return the width of the terminal, or the default width without one."""
    return _console().width


def _bar() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = _console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            """Raise, so that the program ends quietly when the output is closed."""
            raise BrokenPipeError(EPIPE, "the output is closed")

    # Names given by users may contain brackets, which are not markup.
    console = Screen(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console
