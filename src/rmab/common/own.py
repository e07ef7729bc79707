"""What a user names as `module:Class`: imported, and checked to be of the declared kind before anything is called."""

from importlib import import_module
from typing import Any, TypeVar

from rmab.errors import ModelError

__all__ = ["found", "imported"]

Base = TypeVar("Base")


def found(name: str, what: str) -> Any:
    """Return what `module:name` names, without calling it; ModelError where it is not there."""
    module, _, attribute = name.partition(":")
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except Exception as error:  # the module is the user's, and may raise anything
        reason = " ".join(f"{error or type(error).__name__}".split())
        raise ModelError(f"{what} {name}: cannot be imported ({reason})") from error
    return value


def imported(name: str, base: type[Base], what: str) -> type[Base]:
    """Return the class that `module:Class` names; ModelError unless it derives from the base."""
    cls = found(name, what)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ModelError(f"{what} {name}: must be a class derived from {base.__name__}, got {cls!r:.60}")
    return cls
