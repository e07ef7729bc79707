"""`rmab fit`: a model of a programme's log, checks of the log, and a report for the manager."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import check_since, log_options, read_columns, since_in_report
from rmab.cli.names import checked_file, whole_number
from rmab.cli.outputs import MODEL, PAGE
from rmab.cli.program import BadInput, examples
from rmab.cli.screen import alone_on_stdout, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from rmab.data import Fit
    from rmab.estimation.effect_checks import Check

SHOWN = 24  # maximum number of rows in the table of groups


def _clusters(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    if value is None or value == "auto":
        return value
    try:
        return int(value)
    except ValueError as error:
        raise click.BadParameter(f"expected a whole number or auto, got {value!r}", ctx, param) from error


@click.command(
    epilog=examples(
        ("rmab fit log.csv --arm id --period week --state state --action called", "fit a model and check the log"),
        (
            "rmab fit log.csv --arm id --period week --state state --action called --group age,district "
            "--reward engaged=1 --out model.npz --report fit.html",
            "with groups; store the model and write a report for the manager",
        ),
        (
            "rmab fit meters.csv --arm meter --period date --state reading --action visited --states low=0,ok=3.5",
            "divide readings into states",
        ),
    )
)
@click.argument("log", type=click.Path(path_type=Path))
@log_options()
@click.option(
    "--clusters",
    metavar="N|auto",
    callback=_clusters,
    help="Number of groups to form by behaviour; auto chooses it. The columns of --group are then used only by "
    "`rmab list --cap`, and shown in the list.",
)
@click.option(
    "--gone-after",
    type=whole_number(min=1),
    help="Treat arms whose last record is more than N periods before the next list as having left.",
)
@click.option(
    "--randomised", is_flag=True, help="Declare that actions were drawn at random within groups, states and periods."
)
@click.option(
    "--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of clusters and intervals."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=checked_file(".npz", ".json", kind=MODEL),
    help="File for the model, .npz or .json.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    callback=checked_file(".html", kind=PAGE),
    help="File for a report to the manager, .html.",
)
@click.option(
    "--budget",
    type=whole_number(min=1),
    help="Interventions per period in the report's plan; default: the average of the log. Needs --report.",
)
@since_in_report
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def fit(
    log: Path,
    reward: dict[str, float],
    clusters: int | str | None,
    gone_after: int | None,
    randomised: bool,
    seed: int,
    out: Path | None,
    report: Path | None,
    budget: int | None,
    since: Path | None,
    machine: bool,
    **columns: Any,
) -> None:
    """Fit a model to the LOG of a programme: a CSV, Excel or Parquet file with one row per arm and period.

    An arm is a person or a thing that can get the action. The output shows the effect of the action in each group, and
    checks of the log. All errors in the file are listed together, with line numbers. Missing periods stay missing. Use
    `rmab list` for the next list.
    """
    check_since(since, report)
    if budget is not None and report is None:
        raise click.UsageError("--budget is for the plan in the report; add --report FILE.html, or use `rmab list --budget`")
    from rmab.estimation.checks import run_checks
    from rmab.estimation.fitting import fit as fitted_to
    from rmab.estimation.significance import PROBLEM

    with alone_on_stdout(machine), waiting(f"reading {log}") as report_step:
        read = read_columns(log, **columns)
        report_step("fitting")
        options: dict[str, Any] = {"clusters": clusters, "gone_after": gone_after, "randomised": randomised, "seed": seed}
        model = fitted_to(read, reward=reward or None, **options)
        report_step("checking")
        checks = run_checks(model, seed=seed)
        model = replace(model, problems=tuple(one.name for one in checks if one.verdict == PROBLEM))
        if out is not None:
            model.save(out)
    written, failure = [] if out is None else [f"The model is in {out}."], None
    if report is not None:
        from rmab.cli.evaluate import report_plan
        from rmab.errors import ModelError

        try:
            written.append(report_plan(model, budget, report, seed=seed, checks=checks, since=since, quiet=machine))
        except ModelError as error:  # the fit is printed all the same
            failure = error
    if machine:
        print_json(_fields(model, checks))
    else:
        _print_fit(log, model)
        _print_checks(checks)
        for sentence in written:
            say(sentence)
    if failure is not None:
        raise failure


def _fields(model: "Fit", checks: "list[Check]") -> dict[str, Any]:
    from rmab.estimation.effects import find_reach

    return {
        "arms": model.present.size,
        "arms_in_the_log": len(model.roster.ids),
        "states": model.state_names,
        "groups": model.groups,
        "plan_for": model.situation.label,
        "unit": model.pay.unit,
        "kernels": model.kernels,
        "visits": model.counts.sum(axis=3),
        "reach": None if model.require_log().reached is None else find_reach(model)[0],
        "notes": [str(one) for one in model.notes],
        "checks": [vars(one) for one in checks],
    }


def _print_fit(path: Path, model: "Fit") -> None:
    from rmab.errors import many

    log = model.require_log()
    span = f"{log.periods.label(0)} to {log.periods.label(log.periods.count - 1)}, {log.periods.every}"
    recorded = model.situation.period < log.periods.count
    due = f" (the log has its states, but no {model.words.action}s yet)" if recorded else ""
    left = f" ({model.present.size:,} of them in the programme)" if model.present.size < len(log.arms) else ""
    say(f"{path}: {log.arm_of.size:,} records of {many(len(log.arms), 'arm')}{left}, {span}.")
    say(f"Next list: {model.situation.label}{due}.")
    for note in model.notes:
        say(f"- {note}")
    visits = model.counts.sum(axis=3)
    rows = []
    for g, name in enumerate(model.groups):
        for s, state in enumerate(log.state_names):
            probabilities = [f"{100 * model.kernels[g, s, a, model.pay.goal]:.1f}%" for a in (0, 1)]
            seen = [f"{visits[g, s, a]:,}" for a in (0, 1)]
            rows.append((name if s == 0 else "", state, seen[0], probabilities[0], seen[1], probabilities[1]))
    goal, word = log.state_names[model.pay.goal], log.words.action
    heads = ("group", "state", f"records without {word}", f"{goal} next", f"records with {word}", f"{goal} next with {word}")
    notes = [f"{len(rows) - SHOWN} more rows: --json prints all."] if len(rows) > SHOWN else []
    print_table(
        f"What {log.words.an_action} changes: the estimated probability of '{goal}' in the next {log.words.period} "
        "(groups with few records borrow from others)",
        heads,
        rows[:SHOWN],
        left=2,
        notes=notes,
    )


def _print_checks(checks: "list[Check]") -> None:
    from rmab.estimation.effect_checks import TREND
    from rmab.estimation.significance import SURE

    title = (
        f"Checks (significant: p < {SURE:.2g}, because there are many; p < {TREND:.2g} where a plan could promise too much)"
    )
    print_table(title, ("check", "verdict", "finding"), [(one.name, one.verdict, one.words) for one in checks], left=3)
    for one in checks:
        if one.advice:
            say(f"- {one.name}: {one.advice}.")


@click.command("example-log", epilog=examples(("rmab example-log log.csv --arms 500", "a simulated log of 500 mothers")))
@click.argument("out", type=click.Path(path_type=Path), callback=checked_file(".csv", ".parquet"))
@click.option("--arms", type=whole_number(min=1), default=2000, show_default=True, help="Number of arms.")
@click.option("--weeks", type=whole_number(min=2), default=52, show_default=True, help="Number of weeks.")
@click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of the log.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
def example_log(out: Path, arms: int, weeks: int, seed: int, force: bool) -> None:
    """Write an example log to OUT (.csv or .parquet): simulated weekly calls to mothers.

    The columns are id, week, state, called, age and district.
    """
    if out.exists() and not force:
        raise BadInput(f"{out}: the file exists; --force replaces it")
    from rmab.common import write_table
    from rmab.logs.example import example_log as draw_log

    table = draw_log("mothers", arms=arms, weeks=weeks, seed=seed)
    write_table(table, out)
    say(f"{table.num_rows:,} records of {arms:,} arms are in {out}.")
