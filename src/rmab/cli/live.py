"""`rmab live`: commands that change a programme, for people who work with spreadsheets."""

from pathlib import Path
from typing import Any

import click

import rmab.cli.live_reading  # noqa: F401  (it adds its commands)
from rmab.cli.list import ids_of
from rmab.cli.live_group import (
    Command,
    command,
    examples_of,
    json_option,
    live,
    open_programme,
    open_to_create,
    reason_option,
    skip_option,
)
from rmab.cli.logs import names_of, rename_option
from rmab.cli.names import checked_file, pairs, whole_number
from rmab.cli.numbers import Number
from rmab.cli.outputs import FORM, check_all
from rmab.cli.screen import print_json, print_table, say
from rmab.errors import many

SHOWN = 20  # maximum number of printed rows
LACKING = {"start": "a known state at the start of the period", "executed": "executed", "state": "a state at its end"}


def _settings(function: Command) -> Command:
    """Add the options of a new programme."""
    for option in (
        click.option(
            "--budget", type=whole_number(min=0), required=True, help="Number of arms that can be activated per period."
        ),
        click.option(
            "--reward",
            multiple=True,
            metavar="STATE=VALUE",
            callback=pairs,
            help="What one period in this state counts, for example engaged=1; may be repeated.",
        ),
        click.option(
            "--lookahead", type=whole_number(min=1), default=12, show_default=True, help="Number of periods to plan ahead."
        ),
        click.option("--floor", type=whole_number(min=1), help="Put everybody on the list at least every N periods."),
        click.option(
            "--control",
            type=Number(0, 1),
            default=0.0,
            help="Share of the arms in a control group. They get a place only if somebody adds them (`override`) or "
            "--floor requires it.",
        ),
        click.option(
            "--random-share",
            type=Number(0, 1),
            default=0.1,
            show_default=True,
            help="Share of the places to draw at random.",
        ),
        click.option(
            "--fallback",
            type=click.Choice(["rotation", "random", "last", "nothing"]),
            default="rotation",
            show_default=True,
            help="Rule to use when no plan can be computed: rotation (the longest waiting first), random, last (the indices "
            "of the last plan) or nothing (no list).",
        ),
        click.option(
            "--engine",
            metavar="NAME",
            help="Method that makes the lists. Without --horizon: sampled (default: plans with models drawn from those that "
            "fit the reports, so that uncertain groups are tried, too), mean (plans with the most likely model), or "
            "the learner thompson, rmab-ucrl or r2mab-ucb. With --horizon: any learner; the default is ucmd.",
        ),
        click.option(
            "--horizon",
            type=whole_number(min=1),
            help="Length of an episode in periods, if all arms start afresh after it, as in a school year. Then every "
            "learner of `rmab learners` can be the --engine.",
        ),
        click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of drawn places."),
    ):
        function = option(function)
    return function


@live.command(epilog=examples_of("create"))
@click.argument("store")
@click.argument("name")
@click.option("--states", required=True, multiple=True, callback=names_of, help="Names of the states: lapsed,engaged.")
@click.option(
    "--every",
    default="week",
    show_default=True,
    help="Length of a period: week, day, month, '2 weeks', '5 minutes'; or `number`, for periods 1, 2, 3.",
)
@click.option("--start", help="A period to count from, if a period is several weeks or days.")
@click.option("--zone", default="", help="Time zone, for example Europe/Berlin.")
@click.option("--action", default="call", show_default=True, help="Word for an activation.")
@_settings
def create(store: str, name: str, reward: dict[str, float], **options: Any) -> None:
    """Create the programme NAME.

    Without --reward, you report the reward of each arm and period, in the column `reward` of the files for `tell`.
    """
    with open_to_create(store) as found:
        found.create(name, reward=reward or None, **options)
    say(f"The programme {name} is in {store}.")


@live.command(epilog=examples_of("init"))
@click.argument("store")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--name", default="programme", show_default=True, help="Name of the programme.")
@click.option("--arm", required=True, metavar="COLUMN", help="Column with the arm's id.")
@click.option("--period", required=True, metavar="COLUMN", help="Column with the period.")
@click.option("--state", required=True, metavar="COLUMN", help="Column with the state at the start of the period.")
@click.option(
    "--action",
    required=True,
    metavar="COLUMN",
    help="Column with the action, yes or no: who was called, whether or not the call reached anybody.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="COLUMNS",
    callback=names_of,
    help="Columns that define groups, separated by commas.",
)
@rename_option
@_settings
def init(store: str, log: Path, name: str, reward: dict[str, float], groups: list[str], **options: Any) -> None:
    """Create a programme from a LOG: all its arms join, and its records become reports. --reward is required.

    Arms that no longer take part join as well; remove them with `rmab live leave`.
    """
    from rmab.data import read_log
    from rmab.live import create_from_log

    columns = {one: options.pop(one) for one in ("arm", "period", "state", "action", "rename")}
    records = read_log(log, **columns, groups=groups)
    with open_to_create(store) as found:
        p = create_from_log(found, name, records, reward=reward or None, **options)
        known, due = p.statistics.counts.sum(), p.status().due
    named = "" if name == "programme" else f" {name}"
    say(f"The programme{named} is in {store}: {len(records.arms):,} arms, {known:,} transitions. Next period: {due}.")


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
