"""The command line: parse arguments, call the library, print.

`--help` must be fast, so these modules import only click; a command imports heavy modules inside its function.
"""

import os

import click

from rmab import __version__
from rmab.cli.program import Program, examples, write_sections
from rmab.cli.screen import say
from rmab.common import import_target, look_in

__all__ = ["main"]

SECTIONS = {  # commands with their summaries
    "A programme and its records": {
        "example-log": "Write an example log, to try the other commands.",
        "fit": "Fit a model to a log: the effect of the action in each group.",
        "list": "List who gets an intervention next, and why.",
        "evaluate": "Compare the plan with rotation, a random policy and the log.",
        "measure": "Measure the benefit of past lists, without a model.",
        "power": "Estimate how long a measurement takes.",
        "live": "Run a live programme, week by week.",
    },
    "Planning with a known model": {
        "plan": "Find the best policy for a problem.",
        "bound": "Bound the reward of any policy, with prices and indices.",
        "planners": "List planners and their options.",
    },
    "Research on learning": {
        "run": "Run a learner on a task.",
        "study": "Run and report studies: many learners, tasks and rounds.",
        "tasks": "List tasks and their options.",
        "learners": "List learners and their options.",
    },
    "Installation": {
        "doctor": "Show versions, memory and missing extras.",
        "warm": "Compile all code now, so that the first run starts fast.",
    },
}
TARGETS = {  # loaded on use; by default a module and a function with the name of the command
    "tasks": "catalog:tasks",
    "learners": "catalog:learners",
    "planners": "catalog:planners",
    "list": "list:weekly",
    "power": "measure:power",
    "example-log": "fit:example_log",
}
COMMANDS = {name: TARGETS.get(name, f"{name}:{name}") for section in SECTIONS.values() for name in section}


class Commands(Program):
    """The group of all commands. A command is imported when it is called, or when all are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        return import_target(f"rmab.cli.{COMMANDS[name]}") if name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section."""
        write_sections(formatter, {title: [*several.items()] for title, several in SECTIONS.items()})


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples(
        ("rmab example-log log.csv", "a simulated programme of weekly calls"),
        (
            "rmab fit log.csv --arm id --period week --state state --action called --reward engaged=1 --out model.npz",
            "a model of the log",
        ),
        ("rmab list model.npz --budget 100 --csv next-week.csv", "who gets a call next week, and why"),
        ("rmab run cpap ucmd", "a learner on a case study"),
    ),
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="rmab")
def main(debug: bool) -> None:  # noqa: ARG001  (Program reads it)
    """Decide who gets a scarce intervention next, such as a call, a visit or a repair, within a budget.

    An arm is a person or a thing that can get the intervention. Its state, such as engaged or lapsed, changes from
    period to period. In research, the problem is called a restless multi-armed bandit.

    Every command has --help with examples. Exit codes: 0 success, 1 failure, 2 wrong input, 130 stopped by Ctrl-C.
    """
    try:
        here = [os.getcwd()]  # noqa: PTH109  (light)
    except OSError:  # the folder was deleted
        here = []
    look_in(here, lambda module, file: say(f"{module}: imported from {file}", err=True))
