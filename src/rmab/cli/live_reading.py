"""`rmab live`: how a programme stands, what it has brought, and copies of it. Commands that read."""

import json
from pathlib import Path

import click

from rmab.cli.list import raw_option
from rmab.cli.live_group import command, json_option, opened
from rmab.cli.names import checked_file
from rmab.cli.screen import print_json, print_table, say

SHOWN = 20  # rows on the screen


@command()
@json_option
def status(store: str, name: str | None, machine: bool) -> None:
    """Show what is due, what is missing, and what looks wrong."""
    with opened(store, name) as p:
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


@command()
@click.option("--fallback", is_flag=True, help="Of the lists of the fallback, not of the planned ones.")
@json_option
def benefit(store: str, name: str | None, fallback: bool, machine: bool) -> None:
    """Show what the list has brought: without a model, with an interval that is valid whenever one looks."""
    with opened(store, name) as p:
        found = p.benefit(fallback=fallback)
    print_json(vars(found)) if machine else say(f"{found}.")


@command()
@click.argument("file", type=click.Path(path_type=Path), callback=checked_file(".html"))
def report(store: str, name: str | None, file: Path) -> None:
    """Write a page to FILE: how the programme stands, what it has brought, and who gets places."""
    with opened(store, name) as p:
        p.report(file)
    say(f"The report is in {file}.")


@command("engine")
@json_option
def shadow(store: str, engine: str, name: str | None, machine: bool) -> None:
    """Show what ENGINE would have decided, period by period: sampled, mean, or a learner. It changes nothing."""
    with opened(store, name) as p:
        found = p.shadow(engine)
    if machine:
        print_json(vars(found))
        return
    columns = zip(found.periods, found.agreement, found.promised, found.own_promise, found.fallbacks, strict=True)
    rows = [(one, f"{a:.0%}", f"{mine:.3g}", f"{own:.3g}", why) for one, a, mine, own, why in list(columns)[-SHOWN:]]
    print_table(
        f"{engine}, beside what was decided", ("period", "agreement", "promise", "of decided", "fallback"), rows, left=5
    )
    say(f"{found}.")


@command()
@click.option("--head", help="Number and hash of an event that the journal must still contain, as `verify` printed them.")
@click.option("--replay", is_flag=True, help="Make every decision again, and compare.")
@json_option
def verify(store: str, name: str | None, head: str | None, replay: bool, machine: bool) -> None:
    """Check that nothing in the journal was changed."""
    with opened(store, name) as p:
        count, last = p.verify(head), p.head
        found = p.replay() if replay else None
    if machine:
        print_json({"events": count, "head": last, **({} if found is None else vars(found))})
        return
    say(f"{count:,} events, none was changed. Head: {last}")
    if found is not None:
        say(f"{found.decisions} decisions made again; different: {', '.join(found.differences) or 'none'}.")


@command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(store: str, name: str | None, file: Path) -> None:
    """Copy a SQLite STORE to FILE, also while it is in use."""
    with opened(store, name) as p:
        p.store.backup(file)
    say(f"The copy is in {file}.")


@command()
@click.argument("file", type=click.Path(path_type=Path), callback=checked_file(".csv", ".xlsx", ".parquet"))
@raw_option
def export(store: str, name: str | None, file: Path, raw: bool) -> None:
    """Write one row per arm and decided period to FILE, for an analysis elsewhere."""
    from rmab.common import write_table

    with opened(store, name) as p:
        table = p.export()
    write_table(table, file, raw=raw)
    say(f"{table.num_rows:,} rows are in {file}.")


@command()
@json_option
def events(store: str, name: str | None, machine: bool) -> None:
    """List the journal; with --json, what every event says as well."""
    with opened(store, name) as p:
        found = p.events
    if machine:
        print_json([{**vars(one), "body": json.loads(one.body)} for one in found])
        return
    rows = [(str(one.sequence), one.kind, one.server_at, one.actor, one.key) for one in found]
    print_table("Journal", ("event", "kind", "at", "actor", "key"), rows, left=5)
