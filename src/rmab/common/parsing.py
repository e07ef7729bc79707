"""JSON and TOML as they come from anybody: a key given twice, or absurd depth, is an error, not a guess or a crash."""

import json
import re
import tomllib
from itertools import accumulate
from typing import Any

DEEPEST = 64  # levels of nesting; no file of ours has ten
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOML_TEXT = re.compile(r'"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"' r"|'''.*?'''|'[^'\n]*'|#[^\n]*", re.DOTALL)
_NO_BRACKET = re.compile(r"[^][}{]+")
_NO_KEY = re.compile(r"[],=[{}\n]")


def parsed_json(text: str) -> Any:
    """Return what a JSON text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    _check_depth(_JSON_TEXT.sub("", text))
    return json.loads(text, object_pairs_hook=_once)


def parsed_toml(text: str) -> dict[str, Any]:
    """Return what a TOML text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    bare = _TOML_TEXT.sub(lambda found: "" if found[0].startswith("#") else "x", text)
    _check_depth(bare)
    words = re.sub(r"[ \t]+", "", bare)
    if (dots := max(one.count(".") for one in _NO_KEY.split(words))) >= DEEPEST:
        raise ValueError(f"a key of {dots + 1} parts; {DEEPEST} are the most")
    return tomllib.loads(text)


def _check_depth(bare: str) -> None:
    """Raise ValueError where brackets, in a text without strings, are nested too deep."""
    steps = (1 if one in "[{" else -1 for one in _NO_BRACKET.sub("", bare))
    if (deepest := max(accumulate(steps), default=0)) > DEEPEST:
        raise ValueError(f"nested {deepest} levels deep; {DEEPEST} are the most")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the key {key!r} is given twice; keep one")
        fields[key] = value
    return fields
