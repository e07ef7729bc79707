"""`rmab tasks`, `rmab learners` and `rmab planners`: list names and options."""

from collections.abc import Iterator
from typing import Any

import click

from rmab.cli.names import LEARNER, TASK
from rmab.cli.program import BadInput, command
from rmab.cli.screen import print_json, print_table
from rmab.common import Registry


@command(
    ("rmab tasks", "all tasks and adversaries"),
    ("rmab tasks deadline", "the options of this one"),
    ("rmab tasks mine:ward", "the options of a custom task"),
    ("rmab tasks --json", "machine-readable list"),
)
@click.argument("name", type=TASK, required=False)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def tasks(name: str | None, machine: bool) -> None:
    """List tasks and adversaries; with NAME, show the options of a task.

    A task name may end with an adversary, which sets the rewards of each episode: cpap@switching. cpap alone is cpap@ramp,
    as in the paper. A custom task is a file or module:function (see docs/cli.md).
    """
    from rmab.model import ADVERSARIES, FORESEES
    from rmab.tasks.registry import TASKS, names_of

    if name is not None:
        _show_options(TASKS, name.partition("@")[0], machine, "rmab run {name} ucmd -t {option}")
        return
    if machine:
        options = {n: {key: one.default for key, one in TASKS.schema(n).model_fields.items()} for n in TASKS}
        every = [(one, entry) for entry in TASKS.entries() for one in names_of(entry)]
        print_json([{"task": n, "summary": e.summary, "paper": e.paper, "options": options[e.name]} for n, e in every])
        return
    print_table(
        "Tasks", ("task", "description", "paper"), [(one.name, one.summary, one.paper) for one in TASKS.entries()], left=3
    )
    fixed = ", ".join(one.name for one in TASKS.entries() if one.fixed)
    notes = [f"Combine any task with any adversary: rmab run cpap@iid ucmd (not {fixed})"]
    notes += [f"@{one.name} {FORESEES}" for one in ADVERSARIES.entries() if one.foresees]
    notes.append("Show the options of a task: rmab tasks NAME")
    columns = ("adversary", "how it sets rewards (a unit is one arm, or all arms that share a tariff)")
    print_table("Adversaries", columns, list(ADVERSARIES.summaries().items()), left=2, notes=notes)


@command(
    ("rmab learners", "all learners"),
    ("rmab learners ucmd", "the options of this one"),
    ("rmab learners ucmd estimator", "all choices for its estimator, with their options"),
    ("rmab learners ucmd --json", "its options as a JSON schema"),
)
@click.argument("name", type=LEARNER, required=False)
@click.argument("component", required=False)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def learners(name: str | None, component: str | None, machine: bool) -> None:
    """List learners; with NAME, show its options; with COMPONENT (such as estimator), show all choices for it.

    Privileged learners know what a real programme cannot know; they are for comparison only.
    """
    from rmab.learning.registry import LEARNERS

    if name is not None and component is not None:
        _show_components(name, component, machine)
        return
    if name is not None:
        _show_options(LEARNERS, name, machine, "rmab run cpap {name} -o {option}")
        return
    entries = LEARNERS.entries()
    if machine:
        columns = ("feedback", "privileged", "paper", "summary")
        print_json([{"learner": one.name, **{key: getattr(one, key) for key in columns}} for one in entries])
        return
    rows = [(one.name, one.feedback, one.summary, one.paper) for one in entries]
    notes = [f"{one.name} is privileged: it {one.privileged}." for one in entries if one.privileged]
    notes.append("Show the options of a learner: rmab learners NAME")
    print_table("Learners", ("learner", "feedback", "description", "paper"), rows, left=4, notes=notes)


@command(("rmab planners", "all planners"), ("rmab planners rolling", "the options of this one"))
@click.argument("name", required=False)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def planners(name: str | None, machine: bool) -> None:
    """List planners; with NAME, show its options. A custom planner is module:planner."""
    from rmab.planners.registry import PLANNERS

    if name is not None:
        _show_options(PLANNERS, name, machine, "rmab plan cpap --candidates {name} -o {name}.{option}")
        return
    rows = [(one.name, one.summary, one.paper) for one in PLANNERS.entries()]
    if machine:
        print_json([dict(zip(("planner", "summary", "paper"), row, strict=True)) for row in rows])
        return
    notes = ["Show the options of a planner: rmab planners NAME"]
    print_table("Planners", ("planner", "description", "paper"), rows, left=3, notes=notes)


def _properties(registry: Registry[Any], name: str) -> dict[str, Any]:
    from rmab.common import json_schema

    return json_schema(registry.schema(name)).get("properties", {})  # type: ignore[no-any-return]


def _show_options(registry: Registry[Any], name: str, machine: bool, example: str) -> None:
    """Print the options of a name and an example that sets one."""
    from rmab.common import json_schema

    if machine:
        print_json(json_schema(registry.schema(name)))
        return
    rows = list(_rows(_properties(registry, name)))
    if not rows:
        click.echo(f"{name} has no options.")
        return
    changed = example.format(name=name, option=f"{rows[0][0]}={rows[0][1]}")
    notes = [f"Set an option: {changed}"]
    if any("one per" in values for _, _, values, _ in rows):
        notes.append("Lists and tables are JSON: -t phases=2 -t 'arrival=[0.2, 0.6]'")
    if any("." in option for option, *_ in rows):
        kind = next(option for option, *_ in rows if "." in option).partition(".")[0]
        notes.append(f"An option with a dot belongs to the default component. All choices: rmab learners {name} {kind}")
    print_table(f"Options of {name}", ("option", "default", "values", "description"), rows, left=4, notes=notes)


def _show_components(name: str, kind: str, machine: bool) -> None:
    """Print all choices for a component of a learner, with their options."""
    from rmab.common import json_schema
    from rmab.learning.registry import LEARNERS, component_options

    kinds = component_options(LEARNERS.load(name))
    if kind not in kinds:
        known = f"it has {', '.join(kinds)}" if kinds else "it has none"
        raise BadInput(f"learner {name} has no component {kind!r}; {known}")
    registry = kinds[kind]
    if machine:
        print_json({one: json_schema(registry.schema(one)) for one in registry})
        return
    rows = [
        (one.name if not place else "", one.summary if not place else "", *row)
        for one in registry.entries()
        for place, row in enumerate(list(_rows(_properties(registry, one.name))) or [("", "", "", "")])
    ]
    notes = [f"Choose one: rmab run cpap {name} -o {kind}={rows[0][0]}"]
    notes.append(f"Set its options: -o {kind}.OPTION=VALUE. Use a custom class: -o {kind}=module:Class")
    columns = (kind, "description", "option", "default", "values", "meaning")
    print_table(f"Choices for {kind} of {name}", columns, rows, left=6, notes=notes)


def _rows(properties: dict[str, Any], before: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield option, default, values and description; the options of a default component follow it."""
    for key, one in properties.items():
        yield f"{before}{key}", _default(one.get("default")), _values(one), one.get("description", "")
        yield from _rows(one.get("options", {}), f"{key}.")


def _default(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} by {len(value[0])} table" if isinstance(value[0], list) else f"{len(value)} numbers"
    return "" if value is None else str(value).lower()


def _values(option: dict[str, Any]) -> str:
    """Describe the values that an option may take, from its JSON schema."""
    if "values" in option:
        return str(option["values"])
    if "anyOf" in option:
        return " or ".join(_values(one) for one in option["anyOf"] if one.get("type") != "null")
    if names := option.get("enum"):
        return " | ".join(map(str, names))
    bounds = {"exclusiveMinimum": "> ", "minimum": ">= ", "exclusiveMaximum": "< ", "maximum": "<= "}
    limits = [f"{sign}{option[key]:g}" for key, sign in bounds.items() if key in option]
    return " ".join([str(option.get("const", option.get("type", ""))), ", ".join(limits)]).strip()
