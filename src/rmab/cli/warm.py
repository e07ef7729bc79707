"""`rmab warm`: compile before the first run, or remove what was compiled."""

import click

from rmab.cli.program import Failure, command


@command(
    ("rmab warm", "compile now: the first run need not"), ("rmab warm --clear", "remove the machine code of all versions")
)
@click.option("--clear", is_flag=True, help="Remove the machine code that is kept, of all versions.")
def warm(clear: bool) -> None:
    """Compile everything that learners and planners use, and keep the machine code for later.

    Without it a run compiles what it needs, which takes half a minute for the first one.

    It is kept in the folder `rmab` of XDG_CACHE_HOME, or of ~/.cache, which must be yours alone to write. A damaged file
    there, or a folder that cannot be used, is said once on standard error, and the code compiled again: slower, never wrong.
    """
    from rmab.common import cleared, home

    try:
        place = home()
    except RuntimeError as error:
        raise Failure(f"there is no folder to keep machine code in: {error}") from error
    if clear:
        files, size = cleared()
        click.echo(f"{place}: {files} files removed, {size / 1e6:.1f} MB")
        return
    from rmab.cli.warming import kept, steps

    before = kept()
    for name, work in steps():
        click.echo(f"{name} ...", err=True)
        work()
    click.echo(f"everything is compiled: {kept()} functions, {kept() - before} of them new, in {place}")
