"""`rmab measure`: the benefit of past lists, without a model; `rmab power`: how long measuring takes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import log_options, names_of, read_columns
from rmab.cli.names import whole_number
from rmab.cli.numbers import Number, suggest_number
from rmab.cli.program import command
from rmab.cli.screen import alone_on_stdout, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from rmab.data import Measurement

GAINS = ("all", "chosen", "others")


@command(
    (
        "rmab measure log.csv --arm id --period week --state state --action called "
        "--reward engaged=1 --list week1.csv --list week2.csv",
        "benefit of two lists",
    )
)
@click.argument("log", type=click.Path(path_type=Path))
@log_options()
@click.option(
    "--list",
    "lists",
    multiple=True,
    type=click.Path(path_type=Path),
    help="List written by `rmab list --all --csv`; may be repeated.",
)
@click.option(
    "--by",
    metavar="COLUMN",
    help="Column with the rule that gave an arm its place; empty for an arm without a place. Without this option, arms with "
    "the action count as having a place.",
)
@click.option(
    "--after", type=click.IntRange(0, 1), default=1, show_default=True, help="Number of periods from decision to outcome."
)
@click.option("--alpha", type=Number(0, 1, min_open=True, max_open=True), default=0.05, show_default=True,
              help="Largest probability that any interval, at any time, misses the true value.")  # fmt: skip
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def measure(
    log: Path, lists: tuple[Path, ...], reward: dict[str, float], after: int, alpha: float, machine: bool, **columns: Any
) -> None:
    """Measure the benefit of past lists from a LOG, without a model, from places that were drawn at random.

    This needs the lists of `rmab list --random-share 0.2 --all --csv FILE`, or their columns `chance`
    and `by` in the log, for all arms that took part in the draw.
    """
    if bool(lists) == bool(columns["chance"]):
        raise click.UsageError("give either the lists (--list), or columns of the log (--chance, --by)")
    from rmab.estimation.measure import measure as measure_log
    from rmab.logs.lists import join_lists

    with alone_on_stdout(machine), waiting(f"reading {log}"):
        read = read_columns(log, **columns)
        joined = join_lists(read, lists, encoding=columns["encoding"]) if lists else read
        found = measure_log(joined, reward=reward or None, after=after, alpha=alpha)
    notes = [str(one) for one in joined.notes[len(read.notes) :]]
    if machine:
        print_json({**_fields(found), "notes": notes})
        return
    for sentence in (*found.sentences(), *notes):
        say(f"- {sentence}.")


def _fields(found: "Measurement") -> dict[str, Any]:
    counts = ("listed", "left_out", "certain", "excluded", "unknown", "unrecorded", "pending", "effective")
    return {
        "verdict": found.verdict,
        "unit": found.unit,
        "periods": found.periods,
        "enough": found.enough,
        **{name: None if found.problems else vars(getattr(found, name)) for name in GAINS},
        **{name: getattr(found, name) for name in counts},
        "problems": found.problems,
        "sentences": found.sentences(),
    }


def _shares(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[float]:
    try:
        return [float(one) for one in names_of(ctx, param, values)]
    except ValueError as error:
        hint = suggest_number(values[0]) if values[0].endswith("%") else ""
        hint = f"; write {hint} for {values[0]}" if hint else ""
        raise click.BadParameter(f"expected numbers such as 0.1,0.2, got {','.join(values)!r}{hint}", ctx, param) from error


@command(
    ("rmab power --effect 0.1 --budget 100 --arms 2000", "periods needed for several random shares"),
    (
        "rmab power --effect 0.1 --budget 100 --arms 2000 --share 0.15 --rate 0.3",
        "if 30% have a good outcome without a place",
    ),
)
@click.option(
    "--effect",
    type=Number(),
    required=True,
    help="Effect of being on the list (having a place) on the outcome: 0.1 means 10 more good outcomes in 100.",
)
@click.option("--budget", type=whole_number(min=1), required=True, help="Number of places per period.")
@click.option("--arms", type=whole_number(min=2), required=True, help="Number of arms.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="SHARES",
    callback=_shares,
    help="Shares of random places, separated by commas: 0.1,0.2.",
)
@click.option(
    "--others",
    type=Number(),
    default=0.0,
    show_default=True,
    help="Effect of a place on arms that are on the list only because they were drawn at random.",
)
@click.option("--rate", type=Number(0, 1), default=0.5, show_default=True,
              help="Probability of a good outcome without a place.")  # fmt: skip
@click.option(
    "--deviation", type=Number(min=0), help="Standard deviation of an outcome that is not yes or no; replaces --rate."
)
@click.option(
    "--recorded",
    type=Number(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of outcomes that are recorded.",
)
@click.option(
    "--power",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Probability of showing the effect.",
)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def power(effect: float, shares: list[float], rate: float, deviation: float | None, machine: bool, **design: Any) -> None:
    """Estimate how many periods `rmab measure` needs to show an effect, for several shares of random places.

    The table shows, for each share: how many arms per period lose their place to others that are drawn at random; the
    periods needed; the probability of a result within 26 periods; and the cost per period, in good outcomes lost because
    of the draw. You may look at the result every week and stop as soon as the effect is shown.
    """
    from rmab.estimation.power import estimate_power

    if effect <= 0 or (deviation is None and effect >= 1):
        limit, points = ("" if deviation is not None else " and below 1"), f"; for {effect:g} points write {effect / 100:g}"
        hint = points if 1 < effect < 100 else ""
        raise click.BadParameter(f"expected an effect above 0{limit}, got {effect:g}{hint}", param_hint="'--effect'")
    design |= {"rate": rate} if deviation is None else {"deviation": deviation}
    found = estimate_power(effect, shares=shares or None, **design)
    if machine:
        print_json([asdict(one) for one in found])
        return
    rows = [
        (f"{one.share:g}", f"{one.left_out:,}", f"{one.periods or 'over 520'}", f"{one.power:.0%}", f"{one.cost:.3g}")
        for one in found
    ]
    title = f"Periods until an effect of {effect:g} per place is shown with probability {design['power']:g}"
    heads = ("random share", "left out per period", "periods needed", "shown within 26", "cost per period")
    print_table(title, heads, rows)
