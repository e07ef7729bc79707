"""`rmab live`: commands that change a programme, for people who work with spreadsheets."""

from pathlib import Path

import click

import rmab.cli.live_creating
import rmab.cli.live_reading  # noqa: F401
from rmab.cli.list import ids_of
from rmab.cli.live_group import command, json_option, live, open_programme, reason_option, skip_option
from rmab.cli.names import checked_file, pairs, whole_number
from rmab.cli.outputs import FORM, check_all
from rmab.cli.screen import print_json, print_table, say
from rmab.errors import many

__all__ = ["live"]  # the command line loads the group from here

SHOWN = 20  # maximum number of printed rows
LACKING = {"start": "a known state at the start of the period", "executed": "executed", "state": "a state at its end"}


@command("file")
@click.option("--period", help="First period with these arms; required after the first decision.")
def join(store: str, file: str, name: str | None, period: str | None) -> None:
    """Add the arms of FILE, which has the column arm and optionally group and state."""
    from rmab.live.spreadsheets import join_file

    with open_programme(store, name) as p:
        count, event = join_file(p, file, period)
    say(f"{count:,} arms joined (event {event}).")


@command("period")
@click.option(
    "--ids",
    multiple=True,
    required=True,
    metavar="IDS",
    callback=ids_of,
    help="Ids of the arms that leave, or @FILE with one id per line.",
)
@reason_option
def leave(store: str, period: str, name: str | None, ids: list[str], reason: str) -> None:
    """Remove arms from the programme; PERIOD is the first period without them."""
    with open_programme(store, name) as p:
        event = p.leave(ids, period=period, reason=reason)
    say(f"{len(ids):,} {'arm leaves' if len(ids) == 1 else 'arms leave'} the programme from {period} on (event {event}).")


@command()
@click.argument("budget", type=whole_number(min=0), required=False)
@click.option(
    "--in",
    "single",
    multiple=True,
    metavar="PERIOD=N",
    callback=pairs,
    help="Budget of a single period: 2026-W48=150; may be repeated.",
)
def budget(store: str, name: str | None, budget: int | None, single: dict[str, float]) -> None:
    """Change the budget: to BUDGET from now on, or in single periods."""
    if (budget is None) == (not single):
        raise click.UsageError("give either BUDGET, or --in with a period: --in 2026-W48=150")
    with open_programme(store, name) as p:
        say(f"The budget is changed (event {p.set_budget(single if budget is None else budget)}).")  # type: ignore[arg-type]


@command("period")
@click.option(
    "--csv",
    "out",
    type=click.Path(path_type=Path),
    callback=checked_file(".csv", ".xlsx", ".parquet", kind=FORM),
    help="File for the list, a form with the empty columns executed and state: .csv, .xlsx or .parquet.",
)
@click.option(
    "--all",
    "everybody",
    is_flag=True,
    help="Write all arms to the file, not only those on the list: `rmab live benefit` needs the states of all.",
)
@skip_option
@click.option("--ahead", type=whole_number(min=1), help="Number of further periods to issue lists for.")
@click.option(
    "--issued",
    type=whole_number(min=1),
    help="If people worked from a list of --ahead: its event number (`rmab live events`).",
)
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
    """Make the list of PERIOD, or show it if it was made before: who is on it, and why.

    Write PERIOD in the programme's own format: 2026-W47, 2026-11-16, 2026-11, 17, or the time at which a period starts,
    2026-11-16T08:05.

    --ahead also issues the lists of later periods, for people who may be offline. With --csv list.csv, they are in
    list-2026-W48.csv and so on. If such a list was used, run `ask` for its period with --issued EVENT; otherwise the
    list is made from the latest reports.
    """
    from rmab.common import write_table
    from rmab.live.tables import list_table

    with open_programme(store, name) as p:
        found = p.ask(period, skip=skip, issued=issued)
        later = p.ask_ahead(ahead) if ahead else ()
    if out is not None:
        labels = [one.decision.period.replace(":", "") for one in later]
        ahead_of = [out.with_stem(f"{out.stem}-{label}") for label in labels]
        check_all(ahead_of, FORM)
        lists = (found, *(one.decision for one in later))
        for made, place in zip(lists, (out, *ahead_of), strict=True):
            write_table(list_table(made, everybody=everybody), place, raw=False)
    if machine:
        print_json({"for": found.period, "notes": found.notes, "rows": [vars(one) for one in found.rows()]})
        return
    rows = [(str(one.rank), one.id, one.state, f"{one.index:.3g}", one.reason) for one in found.rows(first=SHOWN)]
    print_table(
        f"{found.period}: {len(found.ids):,} of {len(found.arms):,}", ("rank", "arm", "was", "index", "why"), rows, left=5
    )
    if len(found.ids) > SHOWN:
        where = "--csv FILE writes them all" if out is None else f"all are in {out}"
        say(f"{len(found.ids) - SHOWN:,} more are on the list: {where}.")
    for note in found.notes:
        say(f"- {note}.")
    for one in later:
        say(f"{one.decision.period}: {len(one.decision.ids):,} are on the list issued ahead (event {one.event}).")
    if out is not None:
        say(f"The list is in {out}.")


@command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file without storing anything.")
@skip_option
def tell(store: str, period: str, file: str, name: str | None, dry_run: bool, skip: bool) -> None:
    """Report what happened in PERIOD, from FILE with the column arm and any of executed, state, reward.

    `executed` says whether the action was carried out, `state` is the state at the end of the period. An empty cell
    means: not reported. If the file has errors, they are listed with line numbers and nothing is stored. Reporting the
    same file twice is harmless.
    """
    from rmab.live.spreadsheets import find_uncounted, read_sheet, tell_sheet

    with open_programme(store, name) as p:
        sheet = read_sheet(file)
        count, event = tell_sheet(p, period, sheet, dry_run=dry_run, skip=skip)
        lacking = {} if dry_run else find_uncounted(p, period, sheet.columns["arm"])
    verb = "is" if count == 1 else "are"
    say(f"{many(count, 'report')} of {period} {verb} {'fine' if dry_run else f'stored (event {event})'}.")
    if lacking:
        why = ", ".join(f"{number:,} without {LACKING[what]}" for what, number in lacking.items())
        some = sum(lacking.values())
        what = "does not count as a transition" if some == 1 else "do not count as transitions"
        say(f"{some:,} of them {what} yet: {why}.")


@command("period", "file")
@click.option("--dry-run", is_flag=True, help="Check the file without storing anything.")
@skip_option
@reason_option
def correct(store: str, period: str, file: str, name: str | None, reason: str, dry_run: bool, skip: bool) -> None:
    """Replace reports of PERIOD, from FILE in the format of `tell`."""
    from rmab.live.spreadsheets import tell_file

    with open_programme(store, name) as p:
        count, event = tell_file(p, period, file, reason=reason, dry_run=dry_run, skip=skip)
    say(f"{count:,} corrections of {period} are {'fine' if dry_run else f'stored (event {event})'}.")


@command("period")
@skip_option
def missing(store: str, period: str, name: str | None, skip: bool) -> None:
    """Declare the outstanding reports of PERIOD as missing, so that nothing waits for them."""
    with open_programme(store, name) as p:
        say(f"The outstanding reports of {period} are declared missing (event {p.missing(period, skip=skip)}).")


@command("period")
@click.option(
    "--add", multiple=True, metavar="IDS", callback=ids_of, help="Ids to put on the list, or @FILE with one id per line."
)
@click.option("--remove", multiple=True, metavar="IDS", callback=ids_of, help="Ids to take off the list, or @FILE.")
@reason_option
def override(store: str, period: str, name: str | None, add: list[str], remove: list[str], reason: str) -> None:
    """Change the list of PERIOD manually, before or after it is decided."""
    with open_programme(store, name) as p:
        say(f"The list of {period} is changed (event {p.override(period, add=add, remove=remove, reason=reason)}).")


@command()
@click.argument("event", type=whole_number(min=1))
@reason_option
def undo(store: str, event: int, name: str | None, reason: str) -> None:
    """Cancel EVENT, as if it had never happened."""
    with open_programme(store, name) as p:
        say(f"Event {event} is undone (event {p.undo(event, reason=reason)}).")
