"""`rmab warm`: compile before the first run, or remove compiled code."""

import click

from rmab.cli.program import Failure, command


@command(
    ("rmab warm", "compile now, so that the first run starts fast"),
    ("rmab warm --clear", "remove the machine code of all versions"),
)
@click.option("--clear", is_flag=True, help="Remove the stored machine code of all versions.")
def warm(clear: bool) -> None:
    """Compile all code that learners and planners use, and store the machine code.

    Without this command, the first run compiles what it needs, which takes about half a minute.

    The machine code is stored in the folder `rmab` of XDG_CACHE_HOME, or of ~/.cache. The folder is ignored unless it
    belongs to the user who runs rmab and nobody else may write there. If a file is damaged or the folder cannot be
    used, a warning is printed once and the code is compiled again.
    """
    from rmab.common import clear_cache, home

    try:
        place = home()
    except RuntimeError as error:
        raise Failure(f"no folder for machine code: {error}") from error
    if clear:
        files, size = clear_cache()
        click.echo(f"{place}: {files} files removed, {size / 1e6:.1f} MB")
        return
    from rmab.cli.warming import count_stored, steps

    before = count_stored()
    for name, work in steps():
        click.echo(f"{name} ...", err=True)
        work()
    click.echo(f"everything is compiled: {count_stored()} functions, {count_stored() - before} of them new, in {place}")
