"""`rmab bench`: how fast it is on this machine."""

import click

from rmab.cli.program import examples
from rmab.cli.screen import print_json, print_table

__all__ = ["bench"]


@click.command(epilog=examples(("rmab bench", "a table, in well under a minute"), ("rmab bench --json", "for a program")))
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def bench(machine: bool) -> None:
    """Time the simulator, a projection, a plan and a run on this machine, each beside a peer.

    The first call loads or compiles machine code, which is kept for the next time.
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
    print_table("On this machine", ("what", "peer", "first call", "then", "peer", "ratio"), rows, left=2)


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:,.1f} ms"
