"""`rmab bench`: how fast the library is on this machine."""

import click

from rmab.cli.program import examples
from rmab.cli.screen import print_json, print_table

RATIO = "ratio: the time of the peer, divided by that of a later call; above 1, rmab is faster."


@click.command(epilog=examples(("rmab bench", "a table, within a minute"), ("rmab bench --json", "the same for a program")))
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def bench(machine: bool) -> None:
    """Time simulator, projection, plan and run on this machine.

    Each is timed next to a peer. The first call loads or compiles machine code, which is kept on disk.
    """
    from rmab.cli.selfbench import measures

    taken = []
    for one in measures():
        click.echo(f"{one.name} ...", err=True)
        taken.append(one.measured())
    if machine:
        print_json([vars(one) for one in taken])
        return
    rows = [
        (one.name, one.peer, f"{one.first:.2f} s", _short(one.seconds), _short(one.peer_seconds), f"{one.ratio:.2g}")
        for one in taken
    ]
    print_table(
        "On this machine", ("what", "peer", "first call", "later calls", "peer", "ratio"), rows, left=2, notes=[RATIO]
    )


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:,.1f} ms"
