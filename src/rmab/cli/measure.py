"""`rmab measure`: what the lists brought, without a model; `rmab power`: how long it takes to find out."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.logs import log_options, names_of, read_columns
from rmab.cli.names import whole_number
from rmab.cli.program import command
from rmab.cli.screen import alone_on_stdout, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from rmab.data import Measurement

GAINS = ("all", "chosen", "others")


@command(
    (
        "rmab measure log.csv --arm id --period week --state state --action called "
        "--reward engaged=1 --list week1.csv --list week2.csv",
        "what the lists brought",
    )
)
@click.argument("log", type=click.Path(path_type=Path))
@log_options()
@click.option(
    "--list", "lists", multiple=True, type=click.Path(path_type=Path), help="A list of `rmab list --all --csv`; repeat it."
)
@click.option("--chance", metavar="COLUMN", help="Column of the chances of a place, where the log has them.")
@click.option("--by", metavar="COLUMN", help="Column of the rules that gave places; without it, the action was decided.")
@click.option("--after", type=click.IntRange(0, 1), default=1, show_default=True, help="Periods from decision to outcome.")
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True,
              help="Probability that any interval, at any look, misses.")  # fmt: skip
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def measure(
    log: Path, lists: tuple[Path, ...], reward: dict[str, float], after: int, alpha: float, machine: bool, **columns: Any
) -> None:
    """Measure what the lists in a LOG brought, without a model: from draws whose chances are known.

    It needs the lists of `rmab list --random-share 0.2 --all --csv FILE`, or their columns chance and by in the log, for
    everybody who was in the draw.
    """
    if bool(lists) == bool(columns["chance"]):
        raise click.UsageError("give the lists (--list), or the log's columns (--chance, --by)")
    from rmab.estimation.measure import measure as measure_log
    from rmab.logs.lists import join_lists

    with alone_on_stdout(machine), waiting(f"reading {log}"):
        read = read_columns(log, **columns)
        joined = join_lists(read, lists, encoding=columns["encoding"]) if lists else read
        found = measure_log(joined, reward=reward or None, after=after, alpha=alpha)
    if machine:
        print_json(_fields(found))
        return
    for sentence in (*found.sentences(), *joined.notes[len(read.notes) :]):
        say(f"- {sentence}.")


def _fields(found: "Measurement") -> dict[str, Any]:
    counts = ("listed", "left_out", "certain", "excluded", "unknown", "unrecorded", "pending")
    return {
        "verdict": found.verdict,
        "unit": found.unit,
        "periods": found.periods,
        "enough": found.enough,
        **{name: vars(getattr(found, name)) for name in GAINS},
        **{name: getattr(found, name) for name in counts},
        "problems": found.problems,
        "sentences": found.sentences(),
    }


def _shares(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[float]:
    try:
        return [float(one) for one in names_of(ctx, param, values)]
    except ValueError as error:
        raise click.BadParameter(f"expected numbers such as 0.1,0.2, got {','.join(values)!r}", ctx, param) from error


@command(
    ("rmab power --effect 0.1 --budget 100 --arms 2000", "how many weeks, for which share"),
    ("rmab power --effect 0.1 --budget 100 --arms 2000 --share 0.15 --rate 0.3", "of an outcome that 30% have"),
)
@click.option("--effect", type=float, required=True, help="What a place adds to the outcome: 0.1 for 10 more in 100.")
@click.option("--budget", type=whole_number(min=1), required=True, help="Places in a period.")
@click.option("--arms", type=whole_number(min=2), required=True, help="Number of arms.")
@click.option("--share", "shares", multiple=True, metavar="SHARES", callback=_shares, help="Random shares: 0.1,0.2.")
@click.option("--others", type=float, default=0.0, show_default=True, help="Effect for arms that are drawn from the others.")
@click.option("--rate", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Share with a good outcome without a place.")  # fmt: skip
@click.option("--deviation", type=float, help="Standard deviation of an outcome that is not yes or no; replaces --rate.")
@click.option("--recorded", type=click.FloatRange(0, 1), default=1.0, show_default=True, help="Share of known outcomes.")
@click.option("--power", type=click.FloatRange(0, 1), default=0.8, show_default=True, help="Probability to show the effect.")
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def power(effect: float, shares: list[float], rate: float, deviation: float | None, machine: bool, **design: Any) -> None:
    """Say how many periods it takes to show an EFFECT with `rmab measure`, for several shares of random places.

    Intervals hold however often one looks, so one may stop as soon as the effect is shown.
    """
    from rmab.estimation.power import estimate_power

    design |= {"rate": rate} if deviation is None else {"deviation": deviation}
    found = estimate_power(effect, shares=shares or None, **design)
    if machine:
        print_json([asdict(one) for one in found])
        return
    rows = [
        (f"{one.share:g}", f"{one.left_out:,}", f"{one.periods or 'over 520'}", f"{one.power:.0%}", f"{one.cost:.3g}")
        for one in found
    ]
    title = f"An effect of {effect:g} for a place is shown with probability {design['power']:g}"
    heads = ("random share", "left out a period", "periods it takes", "shown within 26", "cost a period")
    print_table(title, heads, rows)
