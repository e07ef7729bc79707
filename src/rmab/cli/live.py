"""`rmab live`: a programme week after week, for people with spreadsheets."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.list import ids_of, raw_option
from rmab.cli.logs import names_of, rename_option
from rmab.cli.names import checked_file, pairs, whole_number
from rmab.cli.program import examples
from rmab.cli.screen import print_json, print_table, say
from rmab.cli.serve import demo, serve, token

if TYPE_CHECKING:
    from rmab.live import Programme
    from rmab.live.store import Store

Command = Callable[..., Any]
SHOWN = 20  # rows on the screen


@contextmanager
def _opened(store: str, name: str | None) -> "Iterator[Programme]":
    """Open the programme of a store: the one that is named, or the only one."""
    from rmab.errors import ModelError
    from rmab.live import open as open_store

    if "://" not in store and not os.path.lexists(store):
        raise ModelError(f"{store}: there is no such file; `rmab live create {store} NAME ...` makes a programme")
    with open_store(store, actor=_actor()) as found:
        there = found.programmes
        if name is None and len(there) != 1:
            raise ModelError(f"{store}: which programme? --name is one of {', '.join(there) or 'none'}")
        yield found.programme(name or there[0])


@contextmanager
def _created(store: str) -> "Iterator[Store]":
    """Open a store in which to create a programme; if that is refused, a new file is not left behind."""
    from rmab.errors import RmabError
    from rmab.live import open as open_store

    fresh = "://" not in store and not os.path.lexists(store)
    try:
        with open_store(store, actor=_actor()) as found:
            yield found
    except RmabError:
        for end in ("", "-wal", "-shm") if fresh else ():
            Path(store + end).unlink(missing_ok=True)
        raise


def _actor() -> str:
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
    "verify": ("p.db --replay", "check the journal, and every decision"),
    "backup": ("p.db copy.db", "also while others work with it"),
    "export": ("p.db rows.csv", "one row per arm and period"),
    "events": ("p.db", "all that was written"),
}


def _examples(name: str) -> str:
    words, what = EXAMPLES[name]
    return examples((f"rmab live {name} {words}", what))


def _command(*arguments: str) -> Callable[[Command], click.Command]:
    """Return a decorator: a command of a STORE, with these arguments more."""

    def decorate(function: Command) -> click.Command:
        wrapped: Command = click.option("--name", help="Name of the programme, where the store has several.")(function)
        for one in reversed(arguments):
            wrapped = click.argument(one)(wrapped)
        wrapped = click.argument("store")(wrapped)
        return live.command(function.__name__, epilog=_examples(function.__name__))(wrapped)

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


def _settings(function: Command) -> Command:
    """Add the options of a new programme."""
    for option in (
        click.option("--budget", type=whole_number(min=0), required=True, help="How many can be activated in a period."),
        click.option("--reward", multiple=True, metavar="STATE=VALUE", callback=pairs, help="What a state is worth."),
        click.option("--lookahead", type=whole_number(min=1), default=12, show_default=True, help="Periods to plan ahead."),
        click.option("--floor", type=whole_number(min=1), help="Everybody is on the list at least every N periods."),
        click.option("--control", type=click.FloatRange(0, 1), default=0.0, help="Part of the arms to leave to themselves."),
        click.option(
            "--random-share", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Part of the places to draw."
        ),
        click.option(
            "--fallback",
            type=click.Choice(["rotation", "random", "last", "nothing"]),
            default="rotation",
            show_default=True,
            help="What is decided where no plan can be made.",
        ),
        click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of draws."),
    ):
        function = option(function)
    return function


@live.command(epilog=_examples("create"))
@click.argument("store")
@click.argument("name")
@click.option("--states", required=True, multiple=True, callback=names_of, help="Names of the states: lapsed,engaged.")
@click.option("--every", default="week", show_default=True, help="Rhythm: week, day, month, number, '2 weeks', '5 minutes'.")
@click.option("--start", help="A period to count from, for several weeks or days at a time.")
@click.option("--zone", default="", help="Zone of times: Europe/Berlin.")
@click.option("--action", default="call", show_default=True, help="What an activation is called.")
@_settings
def create(store: str, name: str, reward: dict[str, float], **options: Any) -> None:
    """Create the programme NAME. Without --reward, rewards are reported."""
    with _created(store) as found:
        found.create(name, reward=reward or None, **options)
    say(f"The programme {name} is in {store}.")


@live.command(epilog=_examples("init"))
@click.argument("store")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--name", default="programme", show_default=True, help="Name of the programme.")
@click.option("--arm", required=True, metavar="COLUMN", help="Column of the ids.")
@click.option("--period", required=True, metavar="COLUMN", help="Column of the periods.")
@click.option("--state", required=True, metavar="COLUMN", help="Column of the states in which periods begin.")
@click.option("--action", required=True, metavar="COLUMN", help="Column that says who was acted on, yes or no.")
@click.option("--group", "groups", multiple=True, metavar="COLUMNS", callback=names_of, help="Columns that define groups.")
@rename_option
@_settings
def init(store: str, log: Path, name: str, reward: dict[str, float], groups: list[str], **options: Any) -> None:
    """Create a programme from a LOG: its arms join, and its records become reports."""
    from rmab.data import read_log
    from rmab.live import create_from_log

    columns = {one: options.pop(one) for one in ("arm", "period", "state", "action", "rename")}
    records = read_log(log, **columns, groups=groups)
    with _created(store) as found:
        p = create_from_log(found, name, records, reward=reward or None, **options)
        known = p.statistics.counts.sum()
    following = records.periods.label(records.periods.count)
    say(f"The programme {name} is in {store}: {len(records.arms):,} arms, {known:,} transitions. Next is {following}.")


@_command("file")
@click.option("--period", help="The first period with them; needed once a period is decided.")
def join(store: str, file: str, name: str | None, period: str | None) -> None:
    """Let the arms of FILE take part: columns arm, and if known group and state."""
    from rmab.live.spreadsheets import join_file

    with _opened(store, name) as p:
        count, event = join_file(p, file, period)
    say(f"{count:,} arms take part (event {event}).")


@_command("period")
@click.option(
    "--ids", multiple=True, required=True, metavar="IDS", callback=ids_of, help="Who leaves; @FILE has one a line."
)
@reason_option
def leave(store: str, period: str, name: str | None, ids: list[str], reason: str) -> None:
    """Let arms leave: PERIOD is the first without them."""
    with _opened(store, name) as p:
        say(f"{len(ids):,} arms leave (event {p.leave(ids, period=period, reason=reason)}).")


@_command()
@click.argument("budget", type=whole_number(min=0), required=False)
@click.option(
    "--in", "single", multiple=True, metavar="PERIOD=N", callback=pairs, help="Budget of one period: 2026-W48=150."
)
def budget(store: str, name: str | None, budget: int | None, single: dict[str, float]) -> None:
    """Change how many can be activated: BUDGET from now on, or in single periods."""
    if (budget is None) == (not single):
        raise click.UsageError("say a budget, or one of single periods with --in 2026-W48=150")
    with _opened(store, name) as p:
        say(f"The budget is changed (event {p.set_budget(single if budget is None else budget)}).")  # type: ignore[arg-type]


@_command("period")
@click.option(
    "--csv",
    "out",
    type=click.Path(path_type=Path),
    callback=checked_file(".csv", ".xlsx", ".parquet"),
    help="Write the list there: a form with empty columns executed and state.",
)
@click.option("--all", "everybody", is_flag=True, help="Write those who are not on the list, too.")
@click.option("--skip", is_flag=True, help="Ask for a period far ahead on purpose.")
@json_option
def ask(store: str, period: str, name: str | None, out: Path | None, everybody: bool, skip: bool, machine: bool) -> None:
    """Decide PERIOD, or show what was decided: who is on the list, and why."""
    from rmab.common import write_table
    from rmab.live.tables import list_table

    with _opened(store, name) as p:
        found = p.ask(period, skip=skip)
    if out is not None:
        write_table(list_table(found, everybody=everybody), out, raw=False)
    if machine:
        print_json({"for": found.period, "notes": found.notes, "rows": [vars(one) for one in found.rows()]})
        return
    rows = [(str(one.rank), one.id, one.state, f"{one.index:.3g}", one.reason) for one in found.rows(first=SHOWN)]
    print_table(
        f"{found.period}: {len(found.ids):,} of {len(found.arms):,}", ("rank", "arm", "state", "index", "why"), rows, left=5
    )
    if len(found.ids) > SHOWN:
        say(f"{len(found.ids) - SHOWN:,} more: --csv FILE writes them all.")
    for note in found.notes:
        say(f"- {note}.")
    if out is not None:
        say(f"The list is in {out}.")


@_command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file, and write nothing.")
def tell(store: str, period: str, file: str, name: str | None, dry_run: bool) -> None:
    """Report what happened in PERIOD, from FILE: columns arm, and any of executed, state, reward.

    `state` is that in which the period ended. What is empty is not reported. The file is taken as a whole, or refused with
    all its line numbers, and the same file twice is harmless.
    """
    from rmab.live.spreadsheets import tell_file

    with _opened(store, name) as p:
        count, event = tell_file(p, period, file, dry_run=dry_run)
    say(f"{count:,} reports of {period} are {'fine' if dry_run else f'stored (event {event})'}.")


@_command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file, and write nothing.")
@reason_option
def correct(store: str, period: str, file: str, name: str | None, reason: str, dry_run: bool) -> None:
    """Correct reports of PERIOD, from FILE: as in `tell`, but it replaces what was told."""
    from rmab.live.spreadsheets import tell_file

    with _opened(store, name) as p:
        count, event = tell_file(p, period, file, reason=reason, dry_run=dry_run)
    say(f"{count:,} corrections of {period} are {'fine' if dry_run else f'stored (event {event})'}.")


@_command("period")
def missing(store: str, period: str, name: str | None) -> None:
    """Declare that the reports of PERIOD that are not there will not come."""
    with _opened(store, name) as p:
        say(f"Declared missing (event {p.missing(period)}).")


@_command("period")
@click.option("--add", multiple=True, metavar="IDS", callback=ids_of, help="Arms to put on the list; @FILE has one a line.")
@click.option("--remove", multiple=True, metavar="IDS", callback=ids_of, help="Arms to take off it.")
@reason_option
def override(store: str, period: str, name: str | None, add: list[str], remove: list[str], reason: str) -> None:
    """Change the list of PERIOD by hand, before or after it is decided."""
    with _opened(store, name) as p:
        say(f"The list of {period} is changed (event {p.override(period, add=add, remove=remove, reason=reason)}).")


@_command()
@click.argument("event", type=whole_number(min=1))
@reason_option
def undo(store: str, event: int, name: str | None, reason: str) -> None:
    """Let EVENT count as if it had never happened."""
    with _opened(store, name) as p:
        say(f"Event {event} is undone (event {p.undo(event, reason=reason)}).")


@_command()
@json_option
def status(store: str, name: str | None, machine: bool) -> None:
    """Show what is due, what is missing, and what looks wrong."""
    with _opened(store, name) as p:
        found = p.status()
    if machine:
        print_json({**vars(found), "findings": [vars(one) for one in found.findings]})
        return
    due = (
        f"{found.due} is due, with a budget of {found.budget}"
        if found.due
        else f"no period is decided; the budget is {found.budget}"
    )
    say(f"{found.arms:,} arms; {due}.")
    for period, count in found.missing.items():
        say(f"{period}: {count:,} reports have not come.")
    for one in found.findings:
        say(f"{one.severity}: {one.what}.")


@_command()
@json_option
def benefit(store: str, name: str | None, machine: bool) -> None:
    """Show what the list has brought: without a model, with an interval that is valid whenever one looks."""
    with _opened(store, name) as p:
        found = p.benefit()
    print_json(vars(found)) if machine else say(f"{found}.")


@_command()
@click.option("--head", help="Number and hash of an event that the journal must still contain, as `verify` printed them.")
@click.option("--replay", is_flag=True, help="Make every decision again, and compare.")
def verify(store: str, name: str | None, head: str | None, replay: bool) -> None:
    """Check that nothing in the journal was changed."""
    with _opened(store, name) as p:
        count = p.verify(head)
        say(f"{count:,} events, none was changed. Head: {p.head}")
        if replay:
            found = p.replay()
            say(f"{found.decisions} decisions made again; different: {', '.join(found.differences) or 'none'}.")


@_command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(store: str, name: str | None, file: Path) -> None:
    """Copy a SQLite STORE to FILE, also while it is in use."""
    with _opened(store, name) as p:
        p.store.backup(file)
    say(f"The copy is in {file}.")


@_command()
@click.argument("file", type=click.Path(path_type=Path), callback=checked_file(".csv", ".xlsx", ".parquet"))
@raw_option
def export(store: str, name: str | None, file: Path, raw: bool) -> None:
    """Write one row per arm and decided period to FILE, for an analysis elsewhere."""
    from rmab.common import write_table

    with _opened(store, name) as p:
        table = p.export()
    write_table(table, file, raw=raw)
    say(f"{table.num_rows:,} rows are in {file}.")


@_command()
def events(store: str, name: str | None) -> None:
    """List the journal."""
    with _opened(store, name) as p:
        rows = [(str(one.sequence), one.kind, one.server_at, one.actor, one.key) for one in p.events]
    print_table("Journal", ("event", "kind", "at", "actor", "key"), rows, left=5)


live.add_command(serve)
live.add_command(token)
live.add_command(demo)
