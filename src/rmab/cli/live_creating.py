"""`rmab live`: commands that create a programme, from nothing or from a log."""

from pathlib import Path
from typing import Any

import click

from rmab.cli.live_group import Command, examples_of, live, open_to_create
from rmab.cli.logs import names_of, rename_option
from rmab.cli.names import pairs, whole_number
from rmab.cli.numbers import Number
from rmab.cli.screen import say


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
            "the learner thompson, rmab-ucrl or r2mab-ucb. With --horizon: see there; the default is ucmd.",
        ),
        click.option(
            "--horizon",
            type=whole_number(min=1),
            help="Length of an episode in periods, if all arms start afresh after it, as in a school year. Then the "
            "--engine can be any learner of `rmab learners` with bandit feedback that is not privileged.",
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
