"""Pictures of the packages and of the data flow, drawn from the code when the site is built: `{drawn} packages`."""

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import layers
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rmab

SOURCE = Path(rmab.__file__).parent
EVERYWHERE = ("common", "errors", "testing", "__init__", "__main__")  # below or above all others: arrows would say nothing


def descriptions() -> dict[str, str]:
    """Return the folders of the package, each with the first sentence of its docstring."""
    found = {}
    for path in sorted(SOURCE.glob("*/__init__.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.parent.name] = said.split(". ")[0].splitlines()[0].replace("`", "").rstrip(".:")
    return {name: said for name, said in found.items() if name not in EVERYWHERE}


def imports(package: str) -> set[str]:
    """Return the packages that a package imports."""
    found = set()
    for path in (SOURCE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.split(".")[1] for name in names if name.startswith("rmab.")}
    return found - {package}


def packages() -> str:
    """Draw which package builds on which: an arrow leads from a package to those that import it."""
    known = descriptions()
    edges = {(other, name) for name in known for other in imports(name) if other in known}
    boxes = [
        layers.Node(name, (f"rmab.{name}", *textwrap.wrap(said, 34, max_lines=3, placeholder=" ...")))
        for name, said in known.items()
    ]
    return layers.svg(boxes, layers.reduced(edges), title="The packages of the library, by what they import")


def calls() -> list[tuple[str, Callable[..., Any] | property]]:
    """Return the calls of one episode, in the order in which they are made."""
    task, learner, feedback, plan = rmab.Task, rmab.Learner, rmab.Feedback, rmab.EpisodePlan
    return [
        ("rmab.make_task", rmab.make_task),
        ("Task.problem", task),
        ("Task.view", task.view),
        ("learner.begin", learner.begin),
        ("learner.plan", learner.plan),
        ("EpisodePlan.policy", plan),
        ("rmab.simulate", rmab.simulate),
        ("Feedback.reveal", feedback.reveal),
        ("learner.learn", learner.learn),
    ]


def things(hint: Any) -> list[str]:
    """Return the public types of ours within a type hint."""
    if isinstance(hint, type) and hint.__module__.startswith("rmab."):
        return [hint.__name__]
    return [name for part in typing.get_args(hint) for name in things(part)]


def moved(label: str, call: Any) -> tuple[list[str], list[str]]:
    """Return what a call takes and what it gives, by its type hints; for an attribute, its owner and its type."""
    if isinstance(call, type):
        return [call.__name__], things(typing.get_type_hints(call)[label.partition(".")[2]])
    hints = typing.get_type_hints(call)
    owner = label.partition(".")[0]
    takes = [owner] if inspect.isfunction(call) and owner[0].isupper() and not inspect.ismethod(call) else []
    for name, hint in hints.items():
        takes += things(hint) if name != "return" else []
    return list(dict.fromkeys(takes)), things(hints["return"])


def dataflow() -> str:
    """Draw what passes from call to call in one episode."""
    boxes: dict[str, layers.Node] = {}
    edges, back = set(), set()
    made: set[str] = set()
    for label, call in calls():
        takes, gives = moved(label, call)
        boxes[label] = layers.Node(label, (label,), quiet=True)
        for name in takes:
            if name in made:
                edges.add((name, label))
        for name in gives:
            (back if name in made else edges).add((label, name))
            boxes.setdefault(name, layers.Node(name, (name,)))
            made.add(name)
    return layers.svg(list(boxes.values()), edges, back, title="What passes from call to call in an episode")


PICTURES = {"packages": packages, "dataflow": dataflow}


class Drawn(SphinxDirective):
    """`{drawn} packages`: the picture in the page, in the page's own colours; the content is its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        caption = " ".join(self.content)
        figure = f'<figure class="drawn">{PICTURES[self.arguments[0]]()}<figcaption>{caption}</figcaption></figure>'
        self.env.note_dependency(__file__)
        return [nodes.raw("", figure, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("drawn", Drawn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
