"""The list of all error messages (`make messages`) has every kind of message."""

import ast

from messages import messages, messages_of

CODE = """
def check(size, name):
    if size < 0:
        raise ModelError(f"{name} must be positive, " + f"got {size}", arm=3)
    why = "the file is empty" if size else f"{name} is no file"
    problems.append((4, "line 4: there is no price"))
    raise FileError(why)
"""


def test_messages_are_found_with_their_inserted_values() -> None:
    found = [(one.line, one.kind, one.text) for one in sorted(messages_of(ast.parse(CODE)))]
    assert found == [
        (4, "ModelError", "{name} must be positive, got {size}"),
        (6, "problems", "line 4: there is no price"),
        (7, "FileError", "the file is empty"),
        (7, "FileError", "{name} is no file"),
    ]


def test_the_list_has_the_messages_of_the_library() -> None:
    found = messages()
    assert len(found) > 600
    assert any(one.path == "model/problem.py" and "horizon must be at least 1" in one.text for one in found)
