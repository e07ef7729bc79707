"""`rmab evaluate`: the expected benefit of a plan with its uncertainty, and a report for the manager."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import check_since, since_in_report
from rmab.cli.names import checked_file, whole_number
from rmab.cli.outputs import PAGE
from rmab.cli.program import examples
from rmab.cli.screen import alone_on_stdout, print_json, print_table, progress, say

if TYPE_CHECKING:
    from rmab.data import Evaluation, Fit
    from rmab.estimation.effect_checks import Check


@click.command(
    epilog=examples(
        ("rmab evaluate model.npz", "compare the plan with no action, rotation, a random policy and the log"),
        ("rmab evaluate model.npz --budget 100 --horizon 52 --report plan.html", "for a year, with a report"),
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--budget", type=whole_number(min=1), help="Number of interventions per period; default: the average of the log."
)
@click.option("--horizon", type=whole_number(min=1), default=26, show_default=True, help="Number of periods to simulate.")
@click.option(
    "--replicates",
    type=click.IntRange(40, 20_000),
    default=200,
    show_default=True,
    help="Number of bootstrap replicates behind the intervals.",
)
@click.option(
    "--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of the replicates and simulations."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    callback=checked_file(".html", kind=PAGE),
    help="File for a report to the manager, .html.",
)
@since_in_report
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def evaluate(
    model: Path,
    budget: int | None,
    horizon: int,
    replicates: int,
    seed: int,
    report: Path | None,
    since: Path | None,
    machine: bool,
) -> None:
    """Compare the plan of a MODEL to four alternatives: no action, rotation, a random policy, and continuing as in the log.

    The intervals show how much the results vary if the model is fitted to random samples of the arms (--replicates).

    The output begins with the standing of the result: how far you can rely on it. *Promised*: the records show that an
    action helps, and actions were drawn at random (`rmab fit --randomised`, or `--chance`), so no unrecorded reason can
    explain the benefit. *Conditional*: the benefit holds if no unrecorded reason decided who got an action; the output shows
    how much such a reason could change. *Not shown*: the records do not show that an action helps; no benefit is stated,
    only an upper limit and ranges, or not even these. *Problem*: a check of the log fails; there is no single number,
    only a range.
    """
    check_since(since, report)
    from rmab.estimation.fit import Fit

    fitted = Fit.load(model)
    with alone_on_stdout(machine):
        found = evaluate_with_bar(fitted, budget, horizon=horizon, replicates=replicates, seed=seed)
    written = (
        "" if report is None else report_plan(fitted, budget, report, seed=seed, found=found, since=since, quiet=machine)
    )
    if machine:
        print_json(found.fields())
        return
    _print_evaluation(found)
    if written:
        say(written)


def evaluate_with_bar(fitted: "Fit", budget: int | None, **options: Any) -> "Evaluation":
    """Evaluate a fit, with a progress bar."""
    from rmab.estimation.evaluation import evaluate as evaluate_fit

    with progress("evaluating") as advance:
        return evaluate_fit(fitted, budget, progress=advance, **options)


def report_plan(
    fitted: "Fit",
    budget: int | None,
    path: Path,
    *,
    seed: int,
    checks: "list[Check] | None" = None,
    found: "Evaluation | None" = None,
    since: Path | None = None,
    quiet: bool = False,
) -> str:
    """Write the report of a fit and its figures; return a sentence with their paths."""
    from rmab.data import decide
    from rmab.report.programme import write_programme_report

    with alone_on_stdout(quiet):
        outcome = found or evaluate_with_bar(fitted, budget, seed=seed, checks=checks)
        checked = replace(fitted, problems=tuple(one.name for one in outcome.problems))
        calls = decide(checked, outcome.budget, horizon=outcome.horizon, since=since, seed=seed)
        written = write_programme_report(fitted, calls, outcome, path)
    return f"The report is in {written[0]}, its figures are in {written[-1].parent}."


def _print_evaluation(found: "Evaluation") -> None:
    say(found.conclusion)
    if found.states_benefits:
        _print_policies(found)
    for sentence in found.sentences():
        say(f"- {sentence}")
    if found.gate.is_known and not found.states_benefits:
        heads = ("k", "over rotation", "over no action")
        pairs = zip(found.ranges["rotation"], found.ranges["nothing"], strict=True)
        ranges = [(f"{one.strength:g}", *(f"{x.low:+,.0f} to {x.high:+,.0f}" for x in (one, other))) for one, other in pairs]
        title = f"Possible benefit of the plan in {found.horizon} {found.period_word}s: {found.unit}"
        meaning = (
            "k: an unrecorded reason was up to k times as frequent among those who got an action as among the others, and "
            "made a good outcome up to k times as likely."
        )
        print_table(title, heads, ranges, notes=[meaning])


def _print_policies(found: "Evaluation") -> None:
    unit, per = found.unit, found.period_word
    condition = "if there were no unrecorded reasons; " if found.standing == "conditional" else ""
    title = f"{found.budget} {found.word}s a {per} for {found.horizon} {per}s: {unit}, {condition}with 95% intervals"
    rows = [("the plan", found.describe(found.plan), "", f"{found.budget:,}")]
    for name, value in found.baselines.items():
        gain = "not stated" if found.leaves_open(name) else found.describe(found.benefits[name], signed=True)
        rows.append((name, found.describe(value), gain, f"{found.used[name]:,.0f}"))
    print_table(title, ("policy", unit, "benefit of the plan", f"{found.word}s a {per}"), rows)
