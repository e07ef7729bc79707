"""All error messages of the library, as a list to review: `make messages`, or

python tests/helpers/messages.py               every message, by file and line
python tests/helpers/messages.py --duplicates  messages that occur several times, the most frequent first

Inserted values are shown in braces. If a variable holds a message, its assignments in the same function are shown.
"""

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "rmab"
ENDINGS = ("Error", "Exceeded", "Extra", "Failure", "BadParameter", "UsageError", "BadInput", "Problem", "Note")
LISTS = ("problems", "faults", "wrong", "errors")  # lists that are reported together


@dataclass(frozen=True, order=True)
class Message:
    """A message of the source: where it is, what reports it, and its text."""

    path: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


def messages(folder: Path = SOURCE) -> list[Message]:
    """Return the messages of all modules of a folder."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(folder))
        found += messages_of(ast.parse(path.read_text(encoding="utf-8")), name)
    return sorted(found)


def messages_of(tree: ast.AST, name: str = "") -> Iterator[Message]:
    """Yield the messages of a module."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    seen: set[ast.Call] = set()
    for scope in sorted(scopes, key=lambda one: -one.lineno):  # inner functions come first
        known = assigned(scope)
        for call in (node for node in ast.walk(scope) if isinstance(node, ast.Call) and node not in seen):
            seen.add(call)
            kind = reporter(call)
            if kind:
                yield from (
                    Message(name, call.lineno, kind, text) for text in dict.fromkeys(texts(call.args, known)) if " " in text
                )


def reporter(call: ast.Call) -> str:
    """Return what a call reports: the name of an error, or of a list of problems; empty for other calls."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "append":
        owner = ast.unparse(call.func.value).rpartition(".")[2]
        return owner if owner in LISTS else ""
    last = ast.unparse(call.func).rpartition(".")[2]
    return last if last.endswith(ENDINGS) else ""


def assigned(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the expressions that a function assigns to its variables."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def texts(arguments: list[ast.expr], known: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Yield the texts among the arguments of a call, and those of variables and choices among them."""
    for one in arguments:
        if isinstance(one, ast.Name):
            others = {name: values for name, values in known.items() if name != one.id}
            yield from texts(known.get(one.id, []), others)
        elif isinstance(one, ast.IfExp):
            yield from texts([one.body, one.orelse], known)
        elif isinstance(one, ast.Tuple):
            yield from texts(one.elts, known)
        elif text := shown(one):
            yield text


def shown(node: ast.expr) -> str:
    """Return the text of an expression with inserted values in braces; empty if it has none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"  # type: ignore[attr-defined]
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [shown(side) or f"{{{ast.unparse(side)}}}" for side in (node.left, node.right)]
        return "".join(sides) if shown(node.left) or shown(node.right) else ""
    return ""


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duplicates", action="store_true", help="messages that occur several times")
    found = messages()
    if parser.parse_args().duplicates:
        for text, count in Counter(one.text for one in found).most_common():
            if count > 1:
                print(f"{count:4} {text}")  # noqa: T201
        return
    for one in found:
        print(one)  # noqa: T201


if __name__ == "__main__":
    main()
