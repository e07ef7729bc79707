"""`rmab tasks` and `rmab learners`: lists of both, and their options."""

import re
from typing import Any

import click

from rmab.cli.names import BUILTIN_TASK, LEARNER
from rmab.cli.program import examples
from rmab.cli.screen import print_json, print_table

CITED = r" \([^()]*\d{4}\)$"  # a paper at the end of a summary; the table has a column for it


@click.command(
    epilog=examples(
        ("rmab tasks", "the families and their options"),
        ("rmab tasks deadline", "what the options of one are, and may be"),
        ("rmab tasks --json", "all of them for a program"),
    )
)
@click.argument("name", type=BUILTIN_TASK, required=False)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def tasks(name: str | None, machine: bool) -> None:
    """List the tasks and their options; with a NAME, show what its options are.

    The name of a task is a family, @ and an adversary, which chooses the rewards: cpap@switching. cpap alone is cpap@ramp,
    as in the paper. A task of your own is a file or module:maker: see docs/cli.md.
    """
    if name is not None:
        _show_task(name.partition("@")[0], machine)
        return
    from rmab.model.adversaries import ADVERSARIES, STRONGER
    from rmab.model.adversary import FORESEES
    from rmab.tasks import FAMILIES, OWN_REWARDS, family_options, list_tasks as every

    if machine:
        every_task = every().items()
        print_json([{"task": n, "summary": line, "options": family_options(n.partition("@")[0])} for n, line in every_task])
        return
    rows = [
        (
            name,
            (make.__doc__ or "").splitlines()[0],
            " ".join(map(_in_short, *zip(*family_options(name).items(), strict=True))),
        )
        for name, make in FAMILIES.items()
    ]
    notes = [f"Add an adversary: @{', @'.join(ADVERSARIES)} (but for {', '.join(OWN_REWARDS)}, which have their rewards)"]
    notes += ["Change an option: rmab run cpap@iid ucmd -t arms=40"]
    notes += [f"@{one} {FORESEES}" for one in ADVERSARIES if one in STRONGER]
    notes.append("What the options of one are: rmab tasks NAME")
    print_table("Tasks", ("task", "what it is", "options"), rows, left=3, notes=notes)


def _in_short(option: str, default: object) -> str:
    """Return an option and its default; a table is not written out, and where there is no default none is shown."""
    if default is None or isinstance(default, tuple):
        return option
    return f"{option}={default}".lower()


def _show_task(family: str, machine: bool) -> None:
    from rmab.tasks import declared_options

    options = declared_options(family)
    if machine:
        fields = {name: (one.default, one.kind.values, one.kind.about) for name, one in options.items()}
        print_json({name: dict(zip(("default", "values", "about"), one, strict=True)) for name, one in fields.items()})
        return
    rows = [(name, _default(one.default), one.kind.values, one.kind.about) for name, one in options.items()]
    lists = (
        "; lists and tables are JSON: -t phases=2 -t 'arrival=[0.2, 0.6]'" if {"phases", "arrival"} <= set(options) else ""
    )
    notes = [f"Change an option: rmab run {family} ucmd -t episodes=5{lists}"]
    print_table(f"Options of {family}", ("option", "default", "values", "what it is"), rows, left=4, notes=notes)


def _default(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} by {len(value[0])} table" if isinstance(value[0], tuple) else f"{len(value)} numbers"
    return "" if value is None else str(value).lower()


@click.command(
    epilog=examples(
        ("rmab learners", "all learners"),
        ("rmab learners ucmd", "the options of one"),
        ("rmab learners ucmd --json", "its options as a JSON schema"),
    )
)
@click.argument("name", type=LEARNER, required=False)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def learners(name: str | None, machine: bool) -> None:
    """List the learners; with a NAME, show its options.

    Privileged learners know what no real programme knows; they are for comparison only.
    """
    if name is not None:
        _show_options(name, machine)
        return
    from rmab.learning import list_learners as every, make_learner

    made = {one: make_learner(one) for one in every()}
    rows = [(one, each.feedback, each.privileged, each.paper, every()[one]) for one, each in made.items()]
    if machine:
        columns = ("learner", "feedback", "privileged", "paper", "summary")
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    shown = [(one, feedback, re.sub(CITED, "", line), paper) for one, feedback, _, paper, line in rows]
    notes = [f"{one} is privileged: it {told}." for one, _, told, *_ in rows if told]
    notes.append("Show the options of one: rmab learners NAME")
    print_table("Learners", ("learner", "feedback", "what it is", "paper"), shown, left=4, notes=notes)


def _show_options(name: str, machine: bool) -> None:
    from rmab.common.own import imported, is_own
    from rmab.learning import Learner
    from rmab.learning.options import schema as options_of
    from rmab.learning.registry import learner_options

    schema = (options_of(imported("learner", name, Learner)) if is_own(name) else learner_options(name)).model_json_schema()
    if machine:
        print_json(schema)
        return
    options = schema.get("properties", {})
    if not options:
        click.echo(f"{name} has no options.")
        return
    rows = [(key, str(one.get("default", "")), _values(one), one.get("description", "")) for key, one in options.items()]
    notes = [f"Change an option: rmab run cpap {name} -o {rows[0][0]}={rows[0][1]}"]
    print_table(f"Options of {name}", ("option", "default", "values", "what it is"), rows, left=4, notes=notes)


def _values(option: dict[str, Any]) -> str:
    """Return the values that an option may take, in a few words, from its JSON schema."""
    if "anyOf" in option:
        return " or ".join(_values(one) for one in option["anyOf"])
    if names := option.get("enum") or option.get("names"):
        return " | ".join(map(str, names))
    bounds = {"exclusiveMinimum": "> ", "minimum": ">= ", "exclusiveMaximum": "< ", "maximum": "<= "}
    limits = [f"{sign}{option[key]:g}" for key, sign in bounds.items() if key in option]
    return " ".join([str(option.get("const", option.get("type", ""))), ", ".join(limits)]).strip()
