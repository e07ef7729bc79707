"""The command line: parse, call, print. What it does is done elsewhere in the package.

`--help` answers at once: the files of this folder import click, and whatever is heavy inside the command that needs it.
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
    """The commands; each is imported when it is called, or when all are listed."""

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
        ("rmab run cpap@switching ucmd", "let a learner play a case study"),
        ("rmab plan mine.json", "the best policy for a custom model"),
        ("rmab fit log.csv --arm id --period week --state state --action called", "a model of a programme's log"),
        ("rmab list model.npz --budget 100 --csv next-week.csv", "whom to act on next, and why"),
        ("rmab live ask programme.db 2026-W47 --csv list.csv", "this week's list of a live programme"),
        ("rmab study run paper-cpap --rounds 20 --out results", "the paper's figures, with fewer rounds"),
    ),
)
@click.option("--debug", is_flag=True, help="Show the trace of an error.")
@click.version_option(__version__, prog_name="rmab")
def main(debug: bool) -> None:  # noqa: ARG001  (Program reads it)
    """Online learning in restless multi-armed bandits, under a budget that is never broken.

    Tables go to standard output, progress and errors to standard error; --json prints for programs. Exit codes: 0 fine, 1
    the work failed, 2 wrong usage or input, 130 stopped by Ctrl-C.
    """
    try:
        here = [os.getcwd()]  # noqa: PTH109  (light)
    except OSError:  # the folder is gone
        here = []
    look_in(here, lambda module, file: say(f"{module}: imported from {file}", err=True))
