"""`rmab live`: commands that read a programme: status, benefit, reports and copies."""

import json
import math
from pathlib import Path

import click

from rmab.cli.list import raw_option
from rmab.cli.live_group import command, json_option, open_existing_store, open_programme
from rmab.cli.names import checked_file
from rmab.cli.outputs import EXPORT, PAGE
from rmab.cli.screen import print_json, print_table, say

SHOWN = 20  # maximum number of printed rows


@command()
@json_option
def status(store: str, name: str | None, machine: bool) -> None:
    """Show what is due, missing or wrong."""
    with open_programme(store, name) as p:
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
        say(f"{period}: {count:,} reports are outstanding.")
    for one in found.findings:
        say(f"{one.severity}: {one.what}.")


@command()
@click.option("--fallback", is_flag=True, help="Measure the lists of the fallback instead of the planned ones.")
@json_option
def benefit(store: str, name: str | None, fallback: bool, machine: bool) -> None:
    """Show the measured benefit of the lists, without a model.

    You may look as often as you like: with probability 95%, the interval contains the true benefit at every look.
    """
    with open_programme(store, name) as p:
        found = p.benefit(fallback=fallback)
    print_json(vars(found)) if machine else say(f"{found}.")


@command()
@click.argument("file", type=click.Path(path_type=Path), callback=checked_file(".html", kind=PAGE))
def report(store: str, name: str | None, file: Path) -> None:
    """Write a page to FILE: status, benefit, and who gets places."""
    with open_programme(store, name) as p:
        p.report(file)
    say(f"The report is in {file}.")


@command("engine")
@json_option
def shadow(store: str, engine: str, name: str | None, machine: bool) -> None:
    """Show what ENGINE (sampled, mean, or a learner) would have decided in each period, without changing anything.

    `same places` is the share of places that go to the same arms. `its list` is the reward that the model of
    that time expected from ENGINE's list in that period; `the real list` is what it expected from the list that was made.
    Both count only places given by the index, not those given by a rule, by hand or by a draw; "-" means that there was
    no model. `why the fallback` says why ENGINE could not have made a plan; it is empty if it could.
    """
    with open_programme(store, name) as p:
        found = p.shadow(engine)
    if machine:
        print_json(vars(found))
        return
    columns = zip(found.periods, found.agreement, found.promised, found.own_promise, found.fallbacks, strict=True)
    rows = [(one, f"{a:.0%}", *map(_format_number, (mine, own)), why) for one, a, mine, own, why in list(columns)[-SHOWN:]]
    print_table(
        f"{engine}, compared with the decisions",
        ("period", "same places", "its list", "the real list", "why the fallback"),
        rows,
        left=5,
    )
    say(f"{found}.")


def _format_number(number: float) -> str:
    return "-" if math.isnan(number) else f"{number:.3g}"


@command()
@click.option("--head", help="Number and hash of an event that the journal must contain, as printed by `verify`.")
@click.option("--replay", is_flag=True, help="Recompute every decision and compare.")
@json_option
def verify(store: str, name: str | None, head: str | None, replay: bool, machine: bool) -> None:
    """Check that the journal has not been changed."""
    with open_programme(store, name) as p:
        count, last = p.verify(head), p.head
        found = p.replay() if replay else None
    if machine:
        print_json({"events": count, "head": last, **({} if found is None else vars(found))})
        return
    say(f"{count:,} events, all unchanged. Head: {last}")
    if found is not None:
        say(f"{found.decisions} decisions recomputed; different: {', '.join(found.differences) or 'none'}.")


@command(named=False)
@click.argument("file", type=click.Path(path_type=Path))
def backup(store: str, file: Path) -> None:
    """Copy a SQLite STORE, with all its programmes, to FILE, even while it is in use."""
    with open_existing_store(store) as found:
        found.backup(file)
    say(f"The copy is in {file}.")


@command()
@click.argument("file", type=click.Path(path_type=Path), callback=checked_file(".csv", ".xlsx", ".parquet", kind=EXPORT))
@raw_option
def export(store: str, name: str | None, file: Path, raw: bool) -> None:
    """Write one row per arm and decided period to FILE, for analysis with other tools."""
    from rmab.common import write_table

    with open_programme(store, name) as p:
        table = p.export()
    write_table(table, file, raw=raw)
    say(f"{table.num_rows:,} rows are in {file}.")


@command()
@json_option
def events(store: str, name: str | None, machine: bool) -> None:
    """List the events of the journal; with --json, including their content."""
    with open_programme(store, name) as p:
        found = p.events
    if machine:
        print_json([{**vars(one), "body": json.loads(one.body)} for one in found])
        return
    rows = [(str(one.sequence), one.kind, one.server_at, one.actor, one.key) for one in found]
    print_table("Journal", ("event", "kind", "at", "actor", "key"), rows, left=5)
