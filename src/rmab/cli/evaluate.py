"""`rmab evaluate`: what the plan would bring, how sure that is, and a report for the manager."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import since_option
from rmab.cli.names import checked_file, whole_number
from rmab.cli.program import examples
from rmab.cli.screen import alone_on_stdout, print_json, print_table, progress, say

if TYPE_CHECKING:
    from rmab.data import Evaluation, Fit
    from rmab.estimation.effect_checks import Check


@click.command(
    epilog=examples(
        ("rmab evaluate model.npz", "the plan against doing nothing, rotation, chance, and what was done"),
        ("rmab evaluate model.npz --budget 100 --horizon 52 --report plan.html", "for a year, with a report"),
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--budget", type=whole_number(min=1), help="How many can be acted on; default: as many as in the log.")
@click.option("--horizon", type=whole_number(min=1), default=26, show_default=True, help="Periods to look ahead.")
@click.option(
    "--replicates", type=click.IntRange(40, 20_000), default=200, show_default=True, help="Draws behind the intervals."
)
@click.option("--seed", type=whole_number(min=0), default=0, show_default=True, help="Random seed of draws and simulations.")
@click.option("--report", type=click.Path(path_type=Path), callback=checked_file(".html"), help="Write a report.")
@since_option
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
    """Say what the plan of a MODEL would bring, against doing nothing, rotation, chance, and what was done in the log.

    Intervals hold the error of estimation: the log is drawn again, arm by arm, and the model is fitted to it again. Where
    the records do not show that an action helps, or a check of the log says 'problem', no benefit is stated: the output
    begins with that, and shows a range under unrecorded selection. Unless it is known that actions were drawn at random
    (`rmab fit --randomised`, recorded chances), every benefit is conditional on nothing unrecorded having
    chosen.
    """
    from rmab.estimation.fit import Fit

    fitted = Fit.load(model)
    with alone_on_stdout(machine):
        found = evaluated(fitted, budget, horizon=horizon, replicates=replicates, seed=seed)
    written = "" if report is None else reported(fitted, budget, report, seed=seed, found=found, since=since, quiet=machine)
    if machine:
        print_json(found.fields())
        return
    _print_evaluation(found)
    if written:
        say(written)


def evaluated(fitted: "Fit", budget: int | None, **options: Any) -> "Evaluation":
    """Evaluate with a progress bar."""
    from rmab.estimation.evaluation import evaluate as evaluate_fit

    with progress("evaluating") as advance:
        return evaluate_fit(fitted, budget, progress=advance, **options)


def reported(
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
    """Write the report of a fit to a path, and its figures beside it; return a sentence that says where they are."""
    from rmab.data import decide
    from rmab.report.programme import write_programme_report

    with alone_on_stdout(quiet):
        outcome = found or evaluated(fitted, budget, seed=seed, checks=checks)
        calls = decide(fitted, outcome.budget, horizon=outcome.horizon, since=since, seed=seed)
        written = write_programme_report(fitted, calls, outcome, path)
    return f"The report is in {written[0]}, its figures are in {written[-1].parent}."


def _print_evaluation(found: "Evaluation") -> None:
    unit, per = found.unit, found.period_word
    for sentence in found.sentences():
        say(f"- {sentence}")
    if not found.gate.is_known:
        return
    if not found.states_benefits:
        heads = ("strength of selection", "over rotation", "over nothing")
        pairs = zip(found.ranges["rotation"], found.ranges["nothing"], strict=True)
        ranges = [(f"{one.strength:g}", *(f"{x.low:+,.0f} to {x.high:+,.0f}" for x in (one, other))) for one, other in pairs]
        print_table(
            f"What the plan may bring in {found.horizon} {per}s, if something unrecorded chose: {unit}", heads, ranges
        )
        return
    condition = "if nothing unrecorded chose; " if found.standing == "conditional" else ""
    title = f"{found.budget} {found.word}s a {per} for {found.horizon} {per}s: {unit}, {condition}with 95% intervals"
    rows = [("the plan", found.describe(found.plan), "", f"{found.budget:,}")]
    for name, value in found.baselines.items():
        rows.append(
            (name, found.describe(value), found.describe(found.benefits[name], signed=True), f"{found.used[name]:,.0f}")
        )
    print_table(title, ("policy", unit, "the plan brings more by", f"{found.word}s a {per}"), rows)
