"""Options that say what the columns of a log mean, for all commands that read one."""

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
    "reward_column",
    "states",
    "rename",
    "decimal",
    "encoding",
)  # what `read_columns` takes


def names_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:  # noqa: ARG001
    """Return names with commas between."""
    return [one.strip() for value in values for one in value.split(",") if one.strip()]


def _states(ctx: click.Context, param: click.Parameter, value: str | None) -> "list[str] | dict[str, float] | None":
    """Return 'lapsed,engaged' as a list, and 'low=0,ok=3.5' as a table."""
    if value is None:
        return None
    return pairs(ctx, param, (value,)) if "=" in value else names_of(ctx, param, (value,))


def _column(name: str, help: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(f"--{name}", metavar="COLUMN", help=help, **more)


rename_option = click.option(
    "--rename", type=click.Path(path_type=Path), help="A file that renames values, with the columns column, from and to."
)

since_option = click.option(
    "--since", type=click.Path(path_type=Path), help="The last list's file: show who is new, or dropped, and why."
)


def log_options(*, required: bool = True) -> Callable[[Command], Command]:
    """Return the options of a log's columns; `read_columns` takes them."""
    rewards = "What a period in a state is worth; may be repeated. Default: 1 in the best state; the output shows which."
    states = "The states, the best last: lapsed,engaged; of readings low=0,ok=3.5."
    groups = "Columns that define groups: age,district."
    options = [
        _column("arm", "Column of the ids.", required=required),
        _column("period", "Column of the weeks, dates or numbers of periods.", required=required),
        _column("state", "Column of the states, or of readings (see --states).", required=required),
        _column("action", "Column that says who was acted on (decided, not reached), yes or no.", required=required),
        _column("reached", "Column that says whom the action reached, yes or no."),
        click.option("--group", "groups", multiple=True, metavar="COLUMNS", callback=names_of, help=groups),
        _column("reward-column", "Column with what was earned."),
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
    """Read a log with the columns that `log_options` took."""
    from rmab.logs.reading import read_log

    return read_log(log, reward=reward_column, **columns)
