"""`rmab list`: who gets an intervention next and why, with runners-up."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import COLUMNS, ROLES, log_options, read_columns, since_option
from rmab.cli.names import checked_file, given_options, keep_apart, pairs, whole_number
from rmab.cli.numbers import Number
from rmab.cli.outputs import LIST, check_draws
from rmab.cli.program import examples
from rmab.cli.screen import alone_on_stdout, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from rmab.data import Decision, Fit

SHOWN = 20  # maximum number of printed rows
READ = "rmab.read"  # key of the files of ids
raw_option = click.option(
    "--raw", is_flag=True, help="Do not put an apostrophe before text that a spreadsheet would read as a formula."
)


def ids_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Parse ids separated by commas, or @FILE with one id per line."""
    found: list[str] = []
    for value in values:
        if value.startswith("@"):
            ctx.meta.setdefault(READ, []).append(value[1:])
            try:
                lines = Path(value[1:]).read_text(encoding="utf-8-sig").splitlines()
            except (OSError, ValueError) as error:
                raise click.BadParameter(f"{value[1:]}: cannot be read ({error})", ctx, param) from error
            found += [one.strip() for one in lines if one.strip()]
        else:
            found += [one.strip() for one in value.split(",") if one.strip()]
    return found


def _caps(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    found = pairs(ctx, param, values)
    for name, most in found.items():
        if not most.is_integer():  # also rejects infinity and NaN
            raise click.BadParameter(f"expected a whole number for {name}, got {most:g}", ctx, param)
    return {name: int(most) for name, most in found.items()}


@click.command(
    "list",
    epilog=examples(
        ("rmab list model.npz --budget 100", "who gets a call, and why"),
        ("rmab list model.npz --budget 100 --csv next-week.csv", "the list as a spreadsheet"),
        (
            "rmab list --log log.csv --arm id --period week --state state --action called --reward engaged=1 --budget 100",
            "from a log in one step",
        ),
        ("rmab list model.npz --csv w12.csv --all --since w11.csv", "with the changes since the previous list"),
        (
            "rmab list model.npz --floor 26 --cap district=north=30",
            "nobody waits longer than half a year; at most 30 in the north",
        ),
        ("rmab list model.npz --cost costs.csv --budget 700", "interventions that cost 700 together at most"),
        (
            "rmab list model.npz --must 0042,0107 --must-not @away.txt --random-share 0.1",
            "include and exclude ids; draw a tenth of the places at random",
        ),
    ),
)
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option(
    "--log", type=click.Path(path_type=Path), help="Log to fit first, in place of MODEL; needs the options for columns."
)
@log_options(required=False)
@click.option(
    "--budget",
    type=Number(min=0),
    help="Number of interventions, or with --cost the amount to spend; default: the average number in the log.",
)
@click.option(
    "--cost",
    type=click.Path(path_type=Path),
    help="File with the cost of an intervention for each arm: columns id and cost.",
)
@click.option("--horizon", type=whole_number(min=1), default=26, show_default=True, help="Number of periods to plan ahead.")
@click.option(
    "--for", "when", default="", metavar="PERIOD", help="Period of the list, written as in the log or in the output."
)
@click.option("--floor", type=whole_number(min=1), help="Put everybody on the list at least every N periods.")
@click.option(
    "--must", multiple=True, metavar="IDS", callback=ids_of, help="Ids to put on the list, or @FILE with one id per line."
)
@click.option("--must-not", multiple=True, metavar="IDS", callback=ids_of, help="Ids to keep off the list, or @FILE.")
@click.option(
    "--cap",
    "caps",
    multiple=True,
    metavar="GROUP=N",
    callback=_caps,
    help="Maximum number of places for a group: district=north=20.",
)
@click.option(
    "--random-share",
    type=Number(0, 1),
    default=0.0,
    help="Share of the places to draw at random, so that the effect can be measured; more than 0.5 counts as 0.5.",
)
@click.option(
    "--next",
    "upcoming",
    type=whole_number(min=0),
    default=10,
    show_default=True,
    help="Number of runners-up to write to the file, with action = no; the screen shows them only if the list is short.",
)
@click.option(
    "--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed for ties and drawn places."
)
@click.option(
    "--csv",
    "out",
    type=click.Path(path_type=Path),
    callback=checked_file(".csv", ".parquet", ".xlsx", kind=LIST),
    help="File for the list, .csv, .xlsx or .parquet.",
)
@since_option
@click.option("--all", "everybody", is_flag=True, help="Write all arms to the file, as `rmab measure` needs them.")
@raw_option
@click.option(
    "--force", is_flag=True, help="Replace the file of --csv even if it has random draws that the new list does not repeat."
)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def weekly(
    model: Path | None,
    log: Path | None,
    upcoming: int,
    when: str,
    out: Path | None,
    everybody: bool,
    raw: bool,
    force: bool,
    machine: bool,
    **options: Any,
) -> None:
    """List who gets an intervention next, from a MODEL of `rmab fit --out`: highest expected benefit first, with reasons.

    Rules that contradict each other are an error. If one group gets nearly all places, the output shows the cost of a
    fairer list.
    """
    from rmab.data import decide

    context = click.get_current_context()
    if out is None and (alone := given_options(context, ("everybody", "raw", "force"))):
        raise click.UsageError(f"{' and '.join(alone)} changes only the file of the list; add --csv FILE")
    given = [model, log, *(options[name] for name in ("cost", "since", "rename"))]
    keep_apart(out, *given, *context.meta.get(READ, []))
    columns, reward = {name: options.pop(name) for name in COLUMNS}, options.pop("reward")
    with alone_on_stdout(machine), waiting(f"planning {model or log}"):
        found = decide(_find_model(model, log, columns, reward), period=when, **options)
        if out is not None:
            if not force:
                encoding = None if found.dialect is None else found.dialect.encoding
                check_draws(out, found.to_table(None if everybody else upcoming), encoding)
            found.save(out, None if everybody else upcoming, raw=raw)
    warnings = [] if out is None or everybody else _warn_of_missing(found, upcoming, options["random_share"])
    if machine:
        rows = [vars(one) for one in found.rows(upcoming)]
        changes = None if found.changes is None else {"since": found.changes.period, **found.changes.counts}
        notes = (*found.notes, *warnings)
        fields = {"for": found.period, "unit": found.words.unit, "standing": found.standing or None, "notes": notes}
        print_json({**fields, "changes": changes, "rows": rows})
        return
    _print_list(found, upcoming, out)
    if out is not None:
        held = "everybody" if everybody else f"the {int(found.active.sum()):,} on it (action: yes)"
        after = found.to_table(upcoming).num_rows - int(found.active.sum())
        held += f" and {after:,} others after them (action: no)" if after and not everybody else ""
        say(f"The list is in {out}: {held}.")
    for one in warnings:
        say(f"warning: {one}.", err=True)


def _warn_of_missing(found: "Decision", upcoming: int, share: float) -> list[str]:
    """Return a warning if the file of a list with random places lacks arms, whose chances measuring needs."""
    held = found.to_table(upcoming).num_rows
    if share == 0 or held == len(found.arms):
        return []
    return [f"the file has only {held:,} of {len(found.arms):,} arms, so the list cannot be measured; add --all"]


def _find_model(model: Path | None, log: Path | None, columns: dict[str, Any], reward: dict[str, float]) -> "Fit":
    """Load the model of a file, or fit one to a log."""
    given = [name for name in ROLES if columns[name] is not None]
    if (model is None) == (log is None):
        raise click.UsageError("give either MODEL, or --log with its columns")
    if model is not None and (alone := given_options(click.get_current_context(), (*COLUMNS, "reward"))):
        what = f"{', '.join(alone)}: the MODEL was fitted with its own columns and rewards"
        raise click.UsageError(f"{what}; leave this out, fit again, or give --log in place of MODEL")
    if log is not None and len(given) < len(ROLES):
        raise click.UsageError("--log needs --arm, --period, --state and --action")
    from rmab.data import Fit, fit

    if model is not None:
        return Fit.load(model)
    from rmab.data import run_checks
    from rmab.estimation.significance import PROBLEM

    fitted = fit(read_columns(log, **columns), reward=reward or None)
    return replace(fitted, problems=tuple(one.name for one in run_checks(fitted) if one.verdict == PROBLEM))


def _print_list(found: "Decision", upcoming: int, out: Path | None) -> None:
    size = int(found.active.sum())
    rows = found.rows(min(upcoming, max(3, SHOWN - size)) if size <= SHOWN else 0, first=SHOWN)
    costs = [] if found.cost is None else ["cost"]
    heads = ["rank", "id", "state", found.words.action, "index", *costs]
    heads += [*([] if found.changes is None else ["since"]), "why"]
    lines = []
    for one in rows:
        since = [] if found.changes is None else [one.since.partition(":")[0]]
        cost = [] if one.cost is None else [f"{one.cost:g}"]
        lines.append((str(one.rank), one.id, one.state, one.action, f"{one.index:.3g}", *cost, *since, one.reason))
    per = "" if found.cost is None else " per unit of cost"
    worth = (
        f"index: what {found.words.an_action} now is worth over the coming {found.words.period}s, in {found.words.unit}{per}"
    )
    title = f"{found.period}: {size:,} of {len(found.arms):,}; {worth}"
    where = "--csv FILE writes them all" if out is None else f"all are in {out}"
    notes = [f"{size - SHOWN:,} more are on the list: {where}."] if size > SHOWN else []
    print_table(title, heads, lines, left=7 + len(costs), notes=notes)
    for sentence in [] if found.changes is None else found.changes.sentences():
        say(f"- {sentence}.")
    for note in found.notes:
        say(f"- {note}.")
    if not found.standing:
        say("- standing: not known, as the checks of the log are not in the model; `rmab fit --out` makes and stores them.")
