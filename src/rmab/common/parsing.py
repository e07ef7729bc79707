"""JSON and TOML from anybody: a key given twice, or absurd depth, is an error, not a guess or a crash."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

DEEPEST = 64  # levels of nesting; no file of ours has ten
# tomllib takes quadratic time for a key of many parts, and does not count them as nesting.
_LONG_KEY = re.compile(r"""(?:\.[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*){1000}""")


def parsed_json(text: str) -> Any:
    """Return what a JSON text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    return _shallow(lambda: json.loads(text, object_pairs_hook=_once))


def parsed_toml(text: str) -> dict[str, Any]:
    """Return what a TOML text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    if _LONG_KEY.search(text):
        raise ValueError(f"nested too deep: a key of over 1000 parts; {DEEPEST} are the most")
    fields: dict[str, Any] = _shallow(lambda: tomllib.loads(text))
    return fields


def _shallow(parse: Callable[[], Any]) -> Any:
    """Return what `parse` returns; ValueError where it is nested too deep, for the parser or for what reads it later."""
    try:
        whole = parse()
    except RecursionError as error:
        raise ValueError(f"nested too deep; {DEEPEST} levels are the most") from error
    level = [whole]
    for _ in range(DEEPEST + 1):
        nested = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for values in nested for inner in values]
    if level:
        raise ValueError(f"nested too deep; {DEEPEST} levels are the most")
    return whole


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice; keep one")
    return fields
