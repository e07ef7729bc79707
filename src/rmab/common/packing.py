"""Conversion of dataclasses to flat fields, for `Stored`, and back; nested fields have names such as `log.state`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields as fields_of, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from rmab.common.files import parse_json
from rmab.common.storage import Fields
from rmab.errors import ModelError

Value = TypeVar("Value")
PLAIN = (np.ndarray, str, int, float)


def pack(value: Any, prefix: str = "") -> Fields:
    """Return the fields of a dataclass; values other than arrays, numbers and text become JSON."""
    found: Fields = {}
    for name in (one.name for one in fields_of(value)):
        one, key = getattr(value, name), prefix + name
        if is_dataclass(one):
            found |= pack(one, f"{key}.")
        elif isinstance(one, PLAIN) or (isinstance(one, tuple) and all(isinstance(text, str) for text in one)):
            found[key] = one
        elif one is not None:
            found[key] = json.dumps(one, default=asdict)
    return found


def unpack(cls: type[Value], fields: Fields, prefix: str = "") -> Value:
    """Build the dataclass from such fields; its constructor checks them. Raise ModelError if they are not valid."""
    if unknown := sorted(fields.keys() - set(_names(cls, prefix))):
        raise ModelError(f"unknown field {unknown[0]!r:.60}", code="unknown-field", field=unknown[0])
    try:
        return _build(cls, fields, prefix)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelError(f"the fields do not form a {cls.__name__} ({type(error).__name__}: {error!s:.200})") from error


def _build(cls: type[Value], fields: Fields, prefix: str) -> Value:
    values: dict[str, Any] = {}
    for name, hint, optional in _hints(cls):  # type: ignore[arg-type]
        key = prefix + name
        if optional and not any(one == key or one.startswith(f"{key}.") for one in fields):
            values[name] = None
        elif is_dataclass(hint):
            values[name] = _build(hint, fields, f"{key}.")  # type: ignore[arg-type]
        elif get_origin(hint) is np.ndarray:
            values[name] = np.asarray(fields[key])
        else:
            one = fields[key]
            text = isinstance(one, str) and get_origin(hint) in (tuple, dict)
            values[name] = _revive(hint, parse_json(one) if text else one, key)
    return cls(**values)


def _names(cls: type, prefix: str) -> Iterator[str]:
    """Yield the names of all fields that `pack` may write."""
    for name, hint, _ in _hints(cls):
        yield from _names(hint, f"{prefix}{name}.") if is_dataclass(hint) else [prefix + name]  # type: ignore[arg-type]


@cache
def _hints(cls: type) -> list[tuple[str, Any, bool]]:
    """Return name and type of each field of a dataclass, and whether it may be None."""
    hints, found = get_type_hints(cls), []
    for name in (one.name for one in fields_of(cls)):
        kinds = get_args(hints[name]) if get_origin(hints[name]) is UnionType else (hints[name],)
        found.append((name, kinds[0], NoneType in kinds))
    return found


def _revive(hint: Any, value: Any, key: str) -> Any:
    """Convert a value from JSON to its declared type."""
    if get_origin(hint) is tuple:
        if all(type(one) is get_args(hint)[0] for one in value):  # the common case, and fast
            return tuple(value)
        return tuple(_revive(get_args(hint)[0], one, key) for one in value)
    if get_origin(hint) is dict:
        return {_revive(get_args(hint)[0], k, key): _revive(get_args(hint)[1], one, key) for k, one in value.items()}
    if is_dataclass(hint):
        return hint(**{name: _revive(kind, value[name], key) for name, kind, _ in _hints(hint)})  # type: ignore[arg-type, operator]
    given = value.item() if isinstance(value, np.generic) else value
    if not isinstance(given, (int, float) if hint is float else hint) or (isinstance(given, bool) and hint is not bool):
        raise ModelError(f"{key} must be {hint.__name__}, got {given!r:.40}")
    return given
