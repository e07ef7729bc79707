"""Plain data as TOML, for people to edit: the standard library reads it but does not write it."""

import json
from collections.abc import Mapping

__all__ = ["as_toml"]


def as_toml(fields: Mapping[str, object]) -> str:
    """Return text that `tomllib` reads back to the same: values first, then lists of tables as [[name]] sections."""
    sections = {key: value for key, value in fields.items() if _is_tables(value)}
    lines = [f"{key} = {_value(value)}" for key, value in fields.items() if key not in sections]
    for name, tables in sections.items():
        for table in tables:  # type: ignore[attr-defined]
            lines += ["", f"[[{name}]]", *(f"{key} = {_value(value)}" for key, value in table.items() if value != {})]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return repr(value)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)
