"""Options that name files, and options of the form name=number: checked before any work starts."""

from collections.abc import Callable
from pathlib import Path

import click


def checked_file(*suffixes: str) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Return a callback that refuses a file that could not be written, before any work starts."""

    def checked(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
        if value is None or ctx.resilient_parsing:
            return value
        if value.suffix not in suffixes:
            raise click.BadParameter(f"{value}: the name must end in {' or '.join(suffixes)}", ctx, param)
        if not value.parent.is_dir():
            raise click.BadParameter(f"{value}: there is no folder {value.parent}", ctx, param)
        from rmab.common.extras import require
        from rmab.common.files import check_writable
        from rmab.errors import FileError

        if ".parquet" in suffixes:
            require("study", param.get_error_hint(ctx).strip("'"))

        try:
            check_writable(value)
        except FileError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return value

    return checked


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Return `name=number` pairs, also several with commas between, as a dictionary."""
    found: dict[str, float] = {}
    for text in (one for value in values for one in value.split(",")):
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise click.BadParameter(f"expected name=number, for instance engaged=1, got {text!r}", ctx, param)
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()} is given twice; keep one", ctx, param)
        found[name.strip()] = value
    return found
