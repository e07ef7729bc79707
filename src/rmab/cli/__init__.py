"""The command line: parse, call, print. What it does is done elsewhere in the package.

`--help` answers at once: the files of this folder import click, and whatever is heavy inside the command that needs it.
"""

import os

import click

from rmab import __version__
from rmab.cli.catalog import learners, tasks
from rmab.cli.doctor import doctor
from rmab.cli.evaluate import evaluate
from rmab.cli.fit import example_log, fit
from rmab.cli.list import weekly
from rmab.cli.plan import plan
from rmab.cli.program import Program, examples
from rmab.cli.run import run
from rmab.cli.screen import say
from rmab.cli.study import study
from rmab.cli.warm import warm
from rmab.common.imports import look_in

__all__ = ["main"]


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples(
        ("rmab run cpap@switching ucmd", "let a learner play a case study"),
        ("rmab plan mine.json", "bound, prices and indices of your own model"),
        ("rmab fit log.csv --arm id --period week --state state --action called", "a model of a programme's own log"),
        ("rmab list model.npz --budget 100 --csv next-week.csv", "whom to act on next, and why"),
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


for command in (tasks, learners, run, plan, fit, weekly, evaluate, example_log, study, warm, doctor):
    main.add_command(command)
