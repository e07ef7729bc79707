"""`rmab live`: a programme week after week, for people with spreadsheets. Commands that write."""

from pathlib import Path
from typing import Any

import click

import rmab.cli.live_reading  # noqa: F401  (it adds its commands)
from rmab.cli.list import ids_of
from rmab.cli.live_group import Command, command, created, examples_of, json_option, live, opened, reason_option
from rmab.cli.logs import names_of, rename_option
from rmab.cli.names import checked_file, pairs, whole_number
from rmab.cli.screen import print_json, print_table, say

SHOWN = 20  # rows on the screen


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
        click.option("--engine", metavar="NAME", help="What makes the lists: sampled (default), mean, or a learner."),
        click.option("--horizon", type=whole_number(min=1), help="Run in episodes of so many periods, with any learner."),
        click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of draws."),
    ):
        function = option(function)
    return function


@live.command(epilog=examples_of("create"))
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
    with created(store) as found:
        found.create(name, reward=reward or None, **options)
    say(f"The programme {name} is in {store}.")


@live.command(epilog=examples_of("init"))
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
    with created(store) as found:
        p = create_from_log(found, name, records, reward=reward or None, **options)
        known, due = p.statistics.counts.sum(), p.status().due
    say(f"The programme {name} is in {store}: {len(records.arms):,} arms, {known:,} transitions. Next is {due}.")


@command("file")
@click.option("--period", help="The first period with them; needed once a period is decided.")
def join(store: str, file: str, name: str | None, period: str | None) -> None:
    """Let the arms of FILE take part: columns arm, and if known group and state."""
    from rmab.live.spreadsheets import join_file

    with opened(store, name) as p:
        count, event = join_file(p, file, period)
    say(f"{count:,} arms take part (event {event}).")


@command("period")
@click.option(
    "--ids", multiple=True, required=True, metavar="IDS", callback=ids_of, help="Who leaves; @FILE has one a line."
)
@reason_option
def leave(store: str, period: str, name: str | None, ids: list[str], reason: str) -> None:
    """Let arms leave: PERIOD is the first without them."""
    with opened(store, name) as p:
        event = p.leave(ids, period=period, reason=reason)
    say(f"Left from {period} on: {len(ids):,} (event {event}).")


@command()
@click.argument("budget", type=whole_number(min=0), required=False)
@click.option(
    "--in", "single", multiple=True, metavar="PERIOD=N", callback=pairs, help="Budget of one period: 2026-W48=150."
)
def budget(store: str, name: str | None, budget: int | None, single: dict[str, float]) -> None:
    """Change how many can be activated: BUDGET from now on, or in single periods."""
    if (budget is None) == (not single):
        raise click.UsageError("say a budget, or one of single periods with --in 2026-W48=150")
    with opened(store, name) as p:
        say(f"The budget is changed (event {p.set_budget(single if budget is None else budget)}).")  # type: ignore[arg-type]


@command("period")
@click.option(
    "--csv",
    "out",
    type=click.Path(path_type=Path),
    callback=checked_file(".csv", ".xlsx", ".parquet"),
    help="Write the list there: a form with empty columns executed and state.",
)
@click.option("--all", "everybody", is_flag=True, help="Write those who are not on the list, too.")
@click.option("--skip", is_flag=True, help="Ask for a period far ahead on purpose.")
@click.option("--ahead", type=whole_number(min=1), help="Issue the lists of so many periods after PERIOD, too.")
@click.option("--issued", type=whole_number(min=1), help="Event of a list that was issued ahead, and used.")
@json_option
def ask(
    store: str,
    period: str,
    name: str | None,
    out: Path | None,
    everybody: bool,
    skip: bool,
    ahead: int | None,
    issued: int | None,
    machine: bool,
) -> None:
    """Decide PERIOD, or show what was decided: who is on the list, and why.

    --ahead issues the lists of the periods after it, for people who may be out of reach: FILE-2026-W48.csv and so on. When
    such a list was used, ask for its period with --issued EVENT; otherwise it is decided from what is known then.
    """
    from rmab.common import write_table
    from rmab.live.tables import list_table

    with opened(store, name) as p:
        found = p.ask(period, skip=skip, issued=issued)
        later = p.ask_ahead(ahead) if ahead else ()
    if out is not None:
        write_table(list_table(found, everybody=everybody), out, raw=False)
        for one in later:
            label = one.decision.period.replace(":", "")
            write_table(list_table(one.decision, everybody=everybody), out.with_stem(f"{out.stem}-{label}"), raw=False)
    if machine:
        print_json({"for": found.period, "notes": found.notes, "rows": [vars(one) for one in found.rows()]})
        return
    rows = [(str(one.rank), one.id, one.state, f"{one.index:.3g}", one.reason) for one in found.rows(first=SHOWN)]
    print_table(
        f"{found.period}: {len(found.ids):,} of {len(found.arms):,}", ("rank", "arm", "state", "index", "why"), rows, left=5
    )
    if len(found.ids) > SHOWN and out is None:
        say(f"{len(found.ids) - SHOWN:,} more: --csv FILE writes them all.")
    for note in found.notes:
        say(f"- {note}.")
    for one in later:
        say(f"{one.decision.period}: {len(one.decision.ids):,} are on the list that was issued ahead (event {one.event}).")
    if out is not None:
        say(f"The list is in {out}.")


@command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file, and write nothing.")
def tell(store: str, period: str, file: str, name: str | None, dry_run: bool) -> None:
    """Report what happened in PERIOD, from FILE: columns arm, and any of executed, state, reward.

    `state` is that in which the period ended. What is empty is not reported. The file is taken as a whole, or refused with
    all its line numbers, and the same file twice is harmless.
    """
    from rmab.live.spreadsheets import tell_file

    with opened(store, name) as p:
        count, event = tell_file(p, period, file, dry_run=dry_run)
    say(f"{count:,} reports of {period} are {'fine' if dry_run else f'stored (event {event})'}.")


@command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file, and write nothing.")
@reason_option
def correct(store: str, period: str, file: str, name: str | None, reason: str, dry_run: bool) -> None:
    """Correct reports of PERIOD, from FILE: as in `tell`, but it replaces what was told."""
    from rmab.live.spreadsheets import tell_file

    with opened(store, name) as p:
        count, event = tell_file(p, period, file, reason=reason, dry_run=dry_run)
    say(f"{count:,} corrections of {period} are {'fine' if dry_run else f'stored (event {event})'}.")


@command("period")
def missing(store: str, period: str, name: str | None) -> None:
    """Declare that the reports of PERIOD that are not there will not come."""
    with opened(store, name) as p:
        say(f"Declared missing (event {p.missing(period)}).")


@command("period")
@click.option("--add", multiple=True, metavar="IDS", callback=ids_of, help="Arms to put on the list; @FILE has one a line.")
@click.option("--remove", multiple=True, metavar="IDS", callback=ids_of, help="Arms to take off it.")
@reason_option
def override(store: str, period: str, name: str | None, add: list[str], remove: list[str], reason: str) -> None:
    """Change the list of PERIOD by hand, before or after it is decided."""
    with opened(store, name) as p:
        say(f"The list of {period} is changed (event {p.override(period, add=add, remove=remove, reason=reason)}).")


@command()
@click.argument("event", type=whole_number(min=1))
@reason_option
def undo(store: str, event: int, name: str | None, reason: str) -> None:
    """Let EVENT count as if it had never happened."""
    with opened(store, name) as p:
        say(f"Event {event} is undone (event {p.undo(event, reason=reason)}).")
