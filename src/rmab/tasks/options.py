"""Options of the built-in tasks: each is declared where its family is made, with what it may be and what it is.

A maker declares an option as a keyword with a type: `int`, `bool`, or `Annotated[Any, Kind(...)]`. A value that is not of
its kind is refused with one line that names the option. Values come from Python, a command line or a study file alike.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_floats, as_integer, as_share
from rmab.errors import ModelError

Reader = Callable[[object, str], Any]
ABOUT = {
    "arms": "number of arms",
    "budget": "most arms that are active at a step",
    "horizon": "number of steps",
    "episodes": "number of episodes",
    "copies": "copies of every arm, under so many times the budget",
}


@dataclass(frozen=True)
class Kind:
    """What an option may be.

    Attributes
    ----------
    values : str
        In words, for lists of options.
    read : callable
        Called with a value and the option's name: returns the value as the maker wants it, or raises ModelError.
    about : str
        What the option is, in one line.
    file : bool
        Whether it names a file, whose content counts.
    optional : bool
        Whether it may be None.

    Examples
    --------
    >>> from rmab.tasks.options import number
    >>> number("pay of a unit").read(2, "pay")
    2.0
    """

    values: str
    read: Reader
    about: str = ""
    file: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Option:
    """An option of a family: its kind, and the value that it has unless given."""

    kind: Kind
    default: Any

    def value(self, given: object, name: str) -> Any:
        """Return what was given as the maker wants it, or raise ModelError."""
        return None if given is None and self.kind.optional else self.kind.read(given, name)


def options_of(make: Callable[..., Any]) -> dict[str, Option]:
    """Return the options of a maker by name: its keywords, with their kinds and defaults."""
    parameters = inspect.signature(make, eval_str=True).parameters.values()
    return {
        one.name: Option(_kind(one.name, one.annotation), one.default) for one in parameters if one.kind == one.KEYWORD_ONLY
    }


def _kind(name: str, annotation: Any) -> Kind:
    found = next((one for one in get_args(annotation) if isinstance(one, Kind)), None) or PLAIN[annotation]
    return found if found.about else replace(found, about=ABOUT.get(name, ""))


def optional(kind: Kind) -> Kind:
    """Return the kind of an option that may also be None."""
    return replace(kind, optional=True)


def flag(about: str) -> Kind:
    """Return the kind of an option that is true or false."""
    return Kind("true or false", _read_flag, about)


def number(about: str) -> Kind:
    """Return the kind of an option that is one number."""
    return Kind("number", as_number, about)


def share(about: str) -> Kind:
    """Return the kind of an option that is a number from 0 to 1."""
    return Kind("number in [0, 1]", as_share, about)


def whole(about: str) -> Kind:
    """Return the kind of an option that is a whole number."""
    return Kind(WHOLE.values, WHOLE.read, about)


def numbers(values: str, about: str, axes: int = 1) -> Kind:
    """Return the kind of an option that is a number, or a list, or a list of lists, with so many axes at most."""

    def read(value: object, name: str) -> FloatArray:
        if isinstance(value, str | bytes | bool | np.bool_ | dict) or value is None:
            raise ModelError(f"{name} must be {values}, got {value!r:.40}")
        table = as_floats(value, name)  # type: ignore[arg-type]
        if table.ndim > axes or table.size == 0:
            raise ModelError(f"{name} must be {values}, got an array of shape {table.shape}")
        for at in np.argwhere(~np.isfinite(table))[:1]:
            raise ModelError(f"{name}{[int(i) for i in at] if len(at) else ''} is {table[tuple(at)]}, not a finite number")
        return table

    return Kind(values, read, about)


def file_or(other: Kind) -> Kind:
    """Return the kind of an option that is the path of a file, from the current folder, or of another kind."""

    def read(value: object, name: str) -> Any:
        if isinstance(value, str | os.PathLike):
            return _read_path(value, name)
        if value is None or isinstance(value, bool):
            raise ModelError(f"{name} must be the path of a file, or {other.values}, got {value!r}")
        return other.read(value, name)

    return Kind(f"path of a file, or {other.values}", read, other.about, file=True)


def tables(about: str, **kinds: Kind) -> Kind:
    """Return the kind of an option that is a list of tables, each of which has some of these entries."""
    values = f"list of tables with some of {', '.join(kinds)}"

    def read(value: object, name: str) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple) or not value or not all(isinstance(one, dict) for one in value):
            raise ModelError(f"{name} must be a {values}, got {value!r:.40}")
        for place, one in enumerate(value):
            for key in one:
                if key not in kinds:
                    raise ModelError(f"{name}[{place}] has no entry {key!r}; there are {', '.join(kinds)}")
        return [{key: kinds[key].read(one[key], f"{name}[{place}].{key}") for key in one} for place, one in enumerate(value)]

    return Kind(values, read, about)


def _read_flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ModelError(f"{name} must be True or False, got {value!r}")
    return value


def as_number(value: object, name: str) -> float:
    """Return `value` as a float; ModelError unless it is a finite number."""
    fits = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not fits or not np.isfinite(value):  # type: ignore[call-overload]
        raise ModelError(f"{name} must be a number, got {value!r:.40}")
    return float(value)  # type: ignore[arg-type]


def _read_path(value: str | os.PathLike[str], name: str) -> str:
    if not str(value):
        raise ModelError(f"{name} must be the path of a file, got {value!r}")
    return str(value)


WHOLE = Kind("whole number", as_integer)
PLAIN: dict[Any, Kind] = {int: WHOLE, bool: flag("")}
