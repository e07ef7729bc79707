"""The command line: parse arguments, call the library, print.

`--help` must be fast, so these modules import only click; a command imports heavy modules inside its function.
"""

import os

import click

from rmab import __version__
from rmab.cli.program import Program, examples
from rmab.cli.screen import say
from rmab.common import imported, look_in

__all__ = ["main"]

COMMANDS = {  # loaded on use
    "tasks": "catalog:tasks",
    "learners": "catalog:learners",
    "planners": "catalog:planners",
    "run": "run:run",
    "plan": "plan:plan",
    "bound": "bound:bound",
    "fit": "fit:fit",
    "list": "list:weekly",
    "evaluate": "evaluate:evaluate",
    "measure": "measure:measure",
    "power": "measure:power",
    "example-log": "fit:example_log",
    "live": "live:live",
    "study": "study:study",
    "warm": "warm:warm",
    "doctor": "doctor:doctor",
}


class Commands(Program):
    """The group of all commands. A command is imported when it is called, or when all are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        return imported(f"rmab.cli.{COMMANDS[name]}") if name in COMMANDS else None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples(
        ("rmab run cpap@switching ucmd", "run a learner on a case study"),
        ("rmab plan mine.json", "the best policy for a custom model"),
        ("rmab fit log.csv --arm id --period week --state state --action called", "a model of a programme's log"),
        ("rmab list model.npz --budget 100 --csv next-week.csv", "who gets an intervention next, and why"),
        ("rmab live ask programme.db 2026-W47 --csv list.csv", "this week's list of a live programme"),
        ("rmab study run paper-cpap --rounds 20 --out results", "the paper's figures, with fewer rounds"),
    ),
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="rmab")
def main(debug: bool) -> None:  # noqa: ARG001  (Program reads it)
    """Restless multi-armed bandits: plan, learn online, and run programmes with a budget that is never exceeded.

    Results go to standard output, progress and errors to standard error. --json prints machine-readable output.
    Exit codes: 0 success, 1 failure, 2 wrong usage or input, 130 stopped by Ctrl-C.
    """
    try:
        here = [os.getcwd()]  # noqa: PTH109  (light)
    except OSError:  # the folder was deleted
        here = []
    look_in(here, lambda module, file: say(f"{module}: imported from {file}", err=True))
