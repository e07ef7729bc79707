"""Options of learners and components: typed fields with their limits, checked when an object is built.

    @configured
    class Mine(RewardEstimator):
        memory: int = option(default=10, ge=1, help="episodes that count")

`Mine(memory=0)` is a one-line error; `help(Mine)` lists the options; the command line and study files know them, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from hashlib import sha256
from inspect import cleandoc
from types import FunctionType
from typing import Any, ClassVar, Literal, Self, TypeVar, cast, dataclass_transform

import numpy as np

from rmab.common import Registry, checked_options, schema
from rmab.errors import ModelError

Preset = Literal["theory", "tuned"]
PRESET = "parameters of the theory, or tuned ones (docs/tuning.md), unless they are set explicitly"
Value = TypeVar("Value")
Class = TypeVar("Class", bound=type)


def option(
    *,
    default: Value,
    help: str,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    registry: Registry[Any] | None = None,
) -> Value:
    """Declare an option: its default, one line of help, and the limits of its values.

    registry: registry of components; the option takes one by name, with its options, or a custom one, `module:Class`.
    """
    facts = {"description": help, "gt": gt, "ge": ge, "lt": lt, "le": le, "registry": registry}
    return field(default=default, metadata={key: value for key, value in facts.items() if value is not None})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def configured(cls: Class) -> Class:
    """Make the annotated attributes of a class its options: keywords of the constructor, checked, listed by `help`."""
    result: Any = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)
    head, mark, examples = cleandoc(result.__doc__ or "").partition("\n\nExamples\n")
    listed = [_describe_option(one) for one in fields(result) if one.metadata.get("description")]
    sections = [head, "Parameters\n----------\n" + "\n".join(listed)] if listed else [head]
    result.__doc__ = "\n\n".join(sections) + mark + examples
    return cast(Class, result)


def _describe_option(one: Any) -> str:
    """Return an entry of the section Parameters."""
    kind, about = getattr(one.type, "__name__", str(one.type)), one.metadata["description"]
    signs = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    limits = ", ".join(f"{word} {one.metadata[key]:g}" for key, word in signs.items() if key in one.metadata)
    return (
        f"{one.name} : {kind}, default {one.default!r}\n    {about[0].upper()}{about[1:]}{f' ({limits})' if limits else ''}."
    )


class Configured:
    """Base of learners and components: options that are checked, and a one-line repr.

    TUNED  values of the preset `tuned` for options that are None; the preset `theory` means 1.
    """

    TUNED: ClassVar[Mapping[str, float]] = {}

    def __new__(cls, *_: object, **__: object) -> Self:
        """Reject a class that declares options without @configured."""
        hashable: Any = cls  # hashable, which mypy does not see
        if unmarked := _find_unmarked(hashable):
            raise ModelError(f"{cls.__name__}: {unmarked} is an option, but the class is not marked @configured")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check the options against their types and limits."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        for name, value in checked_options(type(self).__name__, schema(type(self)), given).items():
            object.__setattr__(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        """The declared options by name, and other public attributes of an object."""
        declared: list[str] = [one.name for one in fields(self)] if is_dataclass(self) else []
        other = [name for name in vars(self) if not name.startswith("_") and not hasattr(type(self), name)]
        return {name: getattr(self, name) for name in dict.fromkeys((*declared, *other))}

    def parameter(self, name: str) -> float:
        """Return a parameter in units of its theory: the option, or the preset's value."""
        given: float | None = getattr(self, name)
        if given is not None:
            return given
        preset: Preset = getattr(self, "preset", "theory")
        return {"tuned": self.TUNED.get(name, 1.0), "theory": 1.0}[preset]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


@cache
def _find_unmarked(cls: Any) -> str:
    """Return the first option that no `configured` has seen; empty if there is none."""
    declared = (name for one in cls.__mro__ for name, value in vars(one).items() if isinstance(value, Field))
    return next(declared, "")


def ours(thing: Configured) -> bool:
    """Return whether it and its components belong to this library, and are therefore immutable."""
    components = (one for one in vars(thing).values() if isinstance(one, Configured))
    return type(thing).__module__.startswith("rmab.") and all(map(ours, components))


def describe(value: object) -> str:
    """Return a text for an option that is not a plain value: the same in every process, different for different values."""
    if isinstance(value, Configured):
        own = ", ".join(f"{key}={json.dumps(one, default=describe)}" for key, one in value.options.items())
        return f"{class_name(type(value))}({own})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]}"
    if isinstance(value, FunctionType):
        return f"{value.__module__}:{value.__qualname__}"  # as study files name it
    return class_name(value) if isinstance(value, type) else f"{class_name(type(value))} {value!r}".partition(" at 0x")[0]


def class_name(cls: type) -> str:
    """Return the name of a class, with its module unless it is from this library."""
    return cls.__qualname__ if cls.__module__.startswith("rmab.") else f"{cls.__module__}.{cls.__qualname__}"
