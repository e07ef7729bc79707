"""Shared by the commands of `rmab live`: the group, opening a programme, and an example of each command."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.program import examples, write_sections
from rmab.cli.serve import demo, serve, token

if TYPE_CHECKING:
    from rmab.live import Programme
    from rmab.live.store import Store

Command = Callable[..., Any]
SHOWN = 20  # maximum number of printed rows


@contextmanager
def open_existing_store(store: str) -> "Iterator[Store]":
    """Open a store that exists."""
    from rmab.errors import ModelError
    from rmab.live import open as open_store

    if "://" not in store and not os.path.lexists(store):
        raise ModelError(f"{store}: no such file; create a programme with `rmab live create {store} NAME ...`")
    with open_store(store, actor=actor()) as found:
        yield found


@contextmanager
def open_programme(store: str, name: str | None) -> "Iterator[Programme]":
    """Open a programme of a store: the named one, or the only one."""
    from rmab.errors import ModelError

    with open_existing_store(store) as found:
        there = found.programmes
        if name is None and len(there) != 1:
            raise ModelError(f"{store}: choose a programme with --name: {', '.join(there) or 'none'}")
        yield found.programme(name or there[0])


@contextmanager
def open_to_create(store: str) -> "Iterator[Store]":
    """Open a store to create a programme in; remove a new file if that fails."""
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
    """Return the value of --actor."""
    return str(click.get_current_context().obj or "")


EXAMPLES = {  # arguments and description
    "create": ("p.db mothers --states lapsed,engaged --budget 200 --reward engaged=1", "create a programme"),
    "init": (
        "p.db log.csv --arm id --period week --state state --action called --budget 200 --reward engaged=1",
        "create a programme from a log",
    ),
    "join": ("p.db mothers.csv", "add arms; the columns are arm, group, state"),
    "leave": ("p.db 2026-W48 --ids m017,m142 --reason moved", "remove two arms from 2026-W48 on"),
    "budget": ("p.db --in 2026-W52=120", "change the budget of one week"),
    "ask": ("p.db 2026-W47 --csv list.csv --all", "write the list as a form to fill in"),
    "tell": ("p.db 2026-W47 list.csv", "report what happened, from the form"),
    "correct": ("p.db 2026-W47 fixed.csv --reason 'wrong week'", "replace reports"),
    "missing": ("p.db 2026-W47", "stop waiting for reports"),
    "override": ("p.db 2026-W47 --add m017 --remove m142 --reason ill", "add one arm and remove another"),
    "undo": ("p.db 12 --reason 'reported twice'", "cancel event 12"),
    "status": ("p.db", "show what is due, missing or wrong"),
    "benefit": ("p.db", "show the benefit of the lists"),
    "report": ("p.db report.html", "write a page for the people in charge"),
    "shadow": ("p.db thompson", "compare with the lists of another learner"),
    "verify": ("p.db --replay", "check the journal and recompute every decision"),
    "backup": ("p.db copy.db", "copy a store that is in use"),
    "export": ("p.db rows.csv", "write one row per arm and period"),
    "events": ("p.db", "list all events"),
}


def examples_of(name: str) -> str:
    """Return the example of a command, for the end of its help page."""
    words, what = EXAMPLES[name]
    return examples((f"rmab live {name} {words}", what))


def command(*arguments: str, named: bool = True) -> Callable[[Command], click.Command]:
    """Return a decorator that makes a command of a STORE with these further arguments; named: of one of its programmes."""

    def decorate(function: Command) -> click.Command:
        wrapped: Command = function
        if named:
            wrapped = click.option("--name", help="Name of the programme, if the store has several.")(function)
        for one in reversed(arguments):
            wrapped = click.argument(one)(wrapped)
        wrapped = click.argument("store")(wrapped)
        return live.command(function.__name__, epilog=examples_of(function.__name__))(wrapped)

    return decorate


reason_option = click.option("--reason", required=True, help="Reason, stored in the journal.")
skip_option = click.option(
    "--skip", is_flag=True, help="Allow a PERIOD that is far from all known ones: more than 4 periods and more than a day."
)
json_option = click.option("--json", "machine", is_flag=True, help="Print JSON.")


SECTIONS = {  # commands with their summaries
    "Start": {
        "create": "Create a programme.",
        "init": "Create a programme from a log.",
        "join": "Add the arms of a file.",
        "demo": "Show the web page of a simulated programme.",
    },
    "Every period": {
        "ask": "Make the list of a period: who is on it, and why.",
        "tell": "Report what happened in a period.",
        "status": "Show what is due, missing or wrong.",
    },
    "Changes": {
        "override": "Add arms to a list, or remove them.",
        "budget": "Change the budget.",
        "leave": "Remove arms from the programme.",
        "correct": "Replace reports.",
        "missing": "Stop waiting for outstanding reports.",
        "undo": "Undo an event.",
    },
    "Results": {
        "benefit": "Show the measured benefit of the lists, without a model.",
        "report": "Write a page with status, benefit and who gets places.",
        "export": "Write one row per arm and period, for other tools.",
        "shadow": "Compare the lists with those of another method.",
    },
    "Store and service": {
        "events": "List the events of the journal.",
        "verify": "Check that the journal has not been changed.",
        "backup": "Copy a store while it is in use.",
        "serve": "Serve a store as a web page and an API.",
        "token": "Create, list and revoke tokens of the service.",
    },
}


class Live(click.Group):
    """The group of commands of live programmes, listed in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section."""
        write_sections(formatter, {title: [*several.items()] for title, several in SECTIONS.items()})


@click.group(
    cls=Live,
    epilog=examples(
        *((f"rmab live {one} {EXAMPLES[one][0]}", EXAMPLES[one][1]) for one in ("create", "join", "ask", "tell", "status"))
    ),
)
@click.option("--actor", default="", help="Name of the person who makes changes, stored in the journal.")
@click.pass_context
def live(ctx: click.Context, actor: str) -> None:
    """Run a live programme: every period it makes a list, takes reports of what happened, and learns from them.

    A STORE is a file, such as programme.db, or a database, postgresql://... Every change is an event in its journal.
    """
    ctx.obj = actor


live.add_command(serve)
live.add_command(token)
live.add_command(demo)
