"""The reference: blocks of public names become autodoc directives, and links find names under their public home.

A page of docs/reference has blocks

    ```{names} rmab
    Arms
    Problem
    ```

which say which names belong to its subject; their text is that of the docstrings.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment

import rmab

MODULES = [f"rmab.{name}" for name in rmab.__all__ if inspect.ismodule(getattr(rmab, name))]
PUBLIC = ("rmab", *MODULES, "rmab.service", "rmab.tasks.deadline")
BLOCK = re.compile(r"^```\{names\} (\S+)\n(.*?)^```$", re.M | re.S)
BAR = re.compile(r"(?<=\s)\|(?=[;,.)\s])")  # a bar by itself, which docutils takes for the begin of a substitution
CLAUSE = re.compile(r"^([A-Za-z][\w` ,/-]{0,24}?) {2,}(\S.*)$")  # of a docstring that lists words in a column
_ALIASES: dict[str, str] = {}


def is_error(thing: object) -> bool:
    """Return whether it is an error of ours."""
    return isinstance(thing, type) and issubclass(thing, rmab.RmabError)


def public_names() -> list[str]:
    """Return where every public name is shown, as `rmab.Arms`; one that two packages have is shown in the first."""
    shown: list[str] = []
    seen: set[int] = set()
    for home in PUBLIC:
        module = import_module(home)
        errors = (
            name for name, thing in vars(module).items() if isinstance(thing, type) and issubclass(thing, rmab.RmabError)
        )
        for name in getattr(module, "__all__", errors):
            thing = getattr(module, name)
            if inspect.ismodule(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            shown.append(f"{home}.{name}")
    return shown


def kind_of(thing: object) -> str:
    """Return the directive of autodoc that shows it."""
    if isinstance(thing, type):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(thing) else "autodata"


def expanded(match: re.Match[str]) -> str:
    """Return the directives for a block of names."""
    home, names = match[1], match[2].split()
    module = import_module(home)
    lines = ["```{eval-rst}", f".. currentmodule:: {home}", "", ".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {name}" for name in names]
    for name in names:
        kind = kind_of(getattr(module, name))
        lines += ["", f".. {kind}:: {name}"]
        lines += ["   :no-value:"] if kind == "autodata" else []
    return "\n".join([*lines, "", "```"])


def expand(app: Sphinx, docname: str, content: list[str]) -> None:  # noqa: ARG001
    """Expand the blocks of a page as it is read."""
    content[0] = BLOCK.sub(expanded, content[0])


def as_list(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    """Turn columns of a docstring, `word  what it means`, into a list of definitions; a bar stays a bar."""
    out: list[str] = []
    inside = False
    for text in lines:
        line = text if text.lstrip().startswith((">>>", "...")) else BAR.sub(r"\\|", text)
        match, further = CLAUSE.match(line), bool(re.match(r" {6,}\S", line))
        if match:
            out += ([] if inside or not (out and out[-1]) else [""]) + [f"*{match[1].strip()}*", f"    {match[2]}"]
            inside = True
        elif inside and further:
            out.append(f"    {line.strip()}")
        else:
            out += [""] if inside and line.strip() else []
            out.append(line)
            inside = False
    lines[:] = out


def find_aliases() -> None:
    """Remember under which public name a class or function of an inner module is shown."""
    for home in public_names():
        package, _, name = home.rpartition(".")
        thing: Any = getattr(import_module(package), name)
        inner = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
        _ALIASES[inner] = home


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element) -> nodes.Element | None:
    """Link names of inner modules to their public home; words in backticks that are no names stay as they are."""
    if node.get("refdomain") != "py":
        return None
    if not _ALIASES:
        find_aliases()
    target = node["reftarget"]
    homes = [_ALIASES.get(target), *(f"{home}.{target}" for home in PUBLIC), f"rmab.{target}"]
    domain = env.domains["py"]
    assert isinstance(domain, PythonDomain)
    for home in (one for one in homes if one in domain.objects):
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", home, node, shown)
    return shown if node.get("reftype") == "obj" else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", expand)
    app.connect("autodoc-process-docstring", as_list, priority=400)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
