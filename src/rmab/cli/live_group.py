"""What the commands of `rmab live` share: the group itself, how a programme is opened, and examples of every command."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.program import examples
from rmab.cli.serve import demo, serve, token

if TYPE_CHECKING:
    from rmab.live import Programme
    from rmab.live.store import Store

Command = Callable[..., Any]
SHOWN = 20  # rows on the screen


@contextmanager
def opened(store: str, name: str | None) -> "Iterator[Programme]":
    """Open the programme of a store: the one that is named, or the only one."""
    from rmab.errors import ModelError
    from rmab.live import open as open_store

    if "://" not in store and not os.path.lexists(store):
        raise ModelError(f"{store}: there is no such file; `rmab live create {store} NAME ...` makes a programme")
    with open_store(store, actor=actor()) as found:
        there = found.programmes
        if name is None and len(there) != 1:
            raise ModelError(f"{store}: which programme? --name is one of {', '.join(there) or 'none'}")
        yield found.programme(name or there[0])


@contextmanager
def created(store: str) -> "Iterator[Store]":
    """Open a store in which to create a programme; if that is refused, a new file is not left behind."""
    from rmab.errors import RmabError
    from rmab.live import open as open_store

    fresh = "://" not in store and not os.path.lexists(store)
    try:
        with open_store(store, actor=actor()) as found:
            yield found
    except RmabError:
        for end in ("", "-wal", "-shm") if fresh else ():
            Path(store + end).unlink(missing_ok=True)
        raise


def actor() -> str:
    """Return who writes."""
    return str(click.get_current_context().obj or "")


EXAMPLES = {  # what follows `rmab live` and the name of the command, and what it does
    "create": ("p.db mothers --states lapsed,engaged --budget 200 --reward engaged=1", "a new programme"),
    "init": ("p.db log.csv --arm id --period week --state state --action called --budget 200", "from a log"),
    "join": ("p.db mothers.csv", "columns arm, group, state"),
    "leave": ("p.db 2026-W48 --ids m017,m142 --reason moved", "they are not on lists from then on"),
    "budget": ("p.db --in 2026-W52=120", "fewer places in one week"),
    "ask": ("p.db 2026-W47 --csv list.csv", "the list as a form to fill in"),
    "tell": ("p.db 2026-W47 list.csv", "what happened, from the form"),
    "correct": ("p.db 2026-W47 fixed.csv --reason 'wrong week'", "replace what was told"),
    "missing": ("p.db 2026-W47", "nobody will report any more"),
    "override": ("p.db 2026-W47 --add m017 --remove m142 --reason ill", "one in, one out"),
    "undo": ("p.db 12 --reason 'told twice'", "event 12 no longer counts"),
    "status": ("p.db", "what is due, missing or wrong"),
    "benefit": ("p.db", "what the list has brought"),
    "report": ("p.db report.html", "a page for people who answer for it"),
    "shadow": ("p.db thompson", "what another engine would have decided"),
    "verify": ("p.db --replay", "check the journal, and every decision"),
    "backup": ("p.db copy.db", "also while others work with it"),
    "export": ("p.db rows.csv", "one row per arm and period"),
    "events": ("p.db", "all that was written"),
}


def examples_of(name: str) -> str:
    """Return the example of a command, for the end of its help page."""
    words, what = EXAMPLES[name]
    return examples((f"rmab live {name} {words}", what))


def command(*arguments: str) -> Callable[[Command], click.Command]:
    """Return a decorator: a command of a STORE, with these arguments more."""

    def decorate(function: Command) -> click.Command:
        wrapped: Command = click.option("--name", help="Name of the programme, where the store has several.")(function)
        for one in reversed(arguments):
            wrapped = click.argument(one)(wrapped)
        wrapped = click.argument("store")(wrapped)
        return live.command(function.__name__, epilog=examples_of(function.__name__))(wrapped)

    return decorate


reason_option = click.option("--reason", required=True, help="Why; it is kept in the journal.")
json_option = click.option("--json", "machine", is_flag=True, help="Print JSON.")


@click.group(
    epilog=examples(
        *((f"rmab live {one} {EXAMPLES[one][0]}", EXAMPLES[one][1]) for one in ("create", "join", "ask", "tell", "status"))
    )
)
@click.option("--actor", default="", help="Who writes; it is kept in the journal.")
@click.pass_context
def live(ctx: click.Context, actor: str) -> None:
    """Run a live programme: lists, reports, corrections and evidence, in a STORE (a file, or postgresql://...)."""
    ctx.obj = actor


live.add_command(serve)
live.add_command(token)
live.add_command(demo)
