"""The command line, called in this process."""

import click
from click.testing import CliRunner, Result

from rmab.cli import main


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="rmab")


def refused(*words: object) -> str:
    """Return the one line that a command with wrong input prints, after exit code 2 and nothing on standard output."""
    outcome = call(*words)
    assert (outcome.exit_code, outcome.stdout) == (2, ""), outcome.output
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith("Error: ")
    return outcome.stderr


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    found: dict[tuple[str, ...], click.Command] = {path: group}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        here = (*path, name)
        found |= commands(command, here) if isinstance(command, click.Group) else {here: command}
    return found
