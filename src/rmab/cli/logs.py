"""Options for the columns of a log, shared by all commands that read one."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rmab.cli.names import pairs

if TYPE_CHECKING:
    from rmab.data import Log

Command = TypeVar("Command", bound=Callable[..., Any])
ROLES = ("arm", "period", "state", "action")
COLUMNS = (
    *ROLES,
    "reached",
    "groups",
    "chance",
    "reward_column",
    "states",
    "rename",
    "decimal",
    "encoding",
)  # keywords of `read_columns`


def names_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:  # noqa: ARG001
    """Split names at commas."""
    return [one.strip() for value in values for one in value.split(",") if one.strip()]


def _states(ctx: click.Context, param: click.Parameter, value: str | None) -> "list[str] | dict[str, float] | None":
    """Parse 'lapsed,engaged' into a list, and 'low=0,ok=3.5' into a dictionary."""
    if value is None:
        return None
    return pairs(ctx, param, (value,)) if "=" in value else names_of(ctx, param, (value,))


def _column(name: str, help: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(f"--{name}", metavar="COLUMN", help=help, **more)


rename_option = click.option(
    "--rename",
    type=click.Path(path_type=Path),
    help="File that renames values, with three columns, named `column`, `from` and `to`.",
)

since_option = click.option(
    "--since", type=click.Path(path_type=Path), help="File of the previous list: show who is new or dropped, and why."
)
since_in_report = click.option(
    "--since",
    type=click.Path(path_type=Path),
    help="File of the previous list: the report shows who is new or dropped, and why. Needs --report.",
)


def check_since(since: Path | None, report: Path | None) -> None:
    """Raise UsageError for --since without --report, in commands that only show it there."""
    if since is not None and report is None:
        raise click.UsageError("--since is shown in the report; add --report FILE.html, or use `rmab list --since`")


def log_options(*, required: bool = True) -> Callable[[Command], Command]:
    """Return a decorator with the options of a log's columns, for `read_columns`."""
    best = "1 in the last of --states, or else in the state that actions make more likely; see the output"
    rewards = f"What one period in this state counts, for example engaged=1; may be repeated. Default: {best}."
    states = "States, the best last: lapsed,engaged. For readings, with lower limits: low=0,ok=3.5."
    groups = "Columns that define groups, separated by commas: age,district."
    options = [
        _column("arm", "Column with the arm's id.", required=required),
        _column("period", "Column with the period: week, date or number.", required=required),
        _column(
            "state",
            "Column with the state at the start of the period, before the action, or with a reading (see --states).",
            required=required,
        ),
        _column(
            "action",
            "Column with the decided action, yes or no (for whether it reached the arm, see --reached).",
            required=required,
        ),
        _column("reached", "Column with whether the action reached the arm, yes or no."),
        click.option("--group", "groups", multiple=True, metavar="COLUMNS", callback=names_of, help=groups),
        _column(
            "chance", "Column with the probability (0 to 1) with which an action was drawn at random, if the log has it."
        ),
        _column("reward-column", "Column with the reward."),
        click.option("--reward", multiple=True, metavar="STATE=VALUE", callback=pairs, help=rewards),
        click.option("--states", metavar="NAMES", callback=_states, help=states),
        rename_option,
        click.option("--decimal", type=click.Choice([".", ","]), default=".", show_default=True, help="Decimal sign."),
        click.option("--encoding", help="Encoding of the CSV file, for example cp1252."),
    ]

    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def read_columns(log: object, *, reward_column: str | None, **columns: Any) -> "Log":
    """Read a log with the columns given by `log_options`."""
    from rmab.logs.reading import read_log

    return read_log(log, reward=reward_column, **columns)
