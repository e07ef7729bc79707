"""Options of learners and parts: typed fields with their limits, checked when an object is made.

    @configured
    class Mine(Rewards):
        memory: int = option(default=10, ge=1, help="episodes that count")

`Mine(memory=0)` is refused with one line; `help(Mine)` lists the options; the command line and study files know them, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, partial
from inspect import cleandoc
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast, dataclass_transform, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field as Checked, ValidationError, create_model

from rmab.errors import ModelError

Preset = Literal["theory", "tuned"]
PRESET = "parameters of the theory, or tuned ones (docs/tuning.md), where they are not set by hand"
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
    names: Iterable[str] = (),
) -> Value:
    """Declare an option: its default, one line on what it is, and the limits of its values.

    names: of parts; the option is one of them, or the user's own, `module:Class`.
    """
    limits = {key: value for key, value in {"gt": gt, "ge": ge, "lt": lt, "le": le}.items() if value is not None}
    listed = {"json_schema_extra": {"names": [*names, "module:Class"]}} if names else {}
    return field(default=default, metadata={"description": help, **limits, **listed})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def configured(cls: Class) -> Class:
    """Make the annotated attributes of a class its options: keywords of the constructor, checked, listed by `help`."""
    made: Any = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)
    head, mark, examples = cleandoc(made.__doc__ or "").partition("\n\nExamples\n")
    listed = [_described(one) for one in fields(made) if one.metadata.get("description")]
    sections = [head, "Parameters\n----------\n" + "\n".join(listed)] if listed else [head]
    made.__doc__ = "\n\n".join(sections) + mark + examples
    return cast(Class, made)


def _described(one: Any) -> str:
    """Return an entry of the section Parameters."""
    kind, said = getattr(one.type, "__name__", str(one.type)), one.metadata["description"]
    signs = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    limits = ", ".join(f"{word} {one.metadata[key]:g}" for key, word in signs.items() if key in one.metadata)
    return (
        f"{one.name} : {kind}, default {one.default!r}\n    {said[0].upper()}{said[1:]}{f' ({limits})' if limits else ''}."
    )


class Configured:
    """Base of learners and parts: options that are checked, and one line that says what they are.

    TUNED  what the preset `tuned` sets options to that were left open (None); the preset `theory` means 1.
    """

    TUNED: ClassVar[Mapping[str, float]] = {}

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse a class that declares options without being marked."""
        made: Any = cls  # hashable, which mypy does not see
        if unmarked := _unmarked(made):
            raise ModelError(f"{cls.__name__}: {unmarked} is an option, but the class is not marked @configured")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check the options against their types and limits."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        try:
            checked = schema(type(self)).model_validate(given)
        except ValidationError as error:
            raise ModelError(f"{type(self).__name__}: {in_line(faults(type(self), error))}") from error
        for name in given:
            object.__setattr__(self, name, getattr(checked, name))

    @property
    def options(self) -> dict[str, Any]:
        """The declared options by name, and what else an object was given as public attributes of its own."""
        declared: list[str] = [one.name for one in fields(self)] if is_dataclass(self) else []
        own = [name for name in vars(self) if not name.startswith("_") and not hasattr(type(self), name)]
        return {name: getattr(self, name) for name in dict.fromkeys((*declared, *own))}

    def chosen(self, name: str) -> float:
        """Return a parameter in units of its theory: as it was set, or by the preset."""
        given: float | None = getattr(self, name)
        if given is not None:
            return given
        preset: Preset = getattr(self, "preset", "theory")
        return {"tuned": self.TUNED.get(name, 1.0), "theory": 1.0}[preset]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


def schema(cls: type) -> type[BaseModel]:
    """Return the options of a class as a model that checks them, and that has a JSON schema."""
    return _schema(cls)


@cache
def _unmarked(cls: Any) -> str:
    """Return the first option that no `configured` has seen; empty where there is none."""
    declared = (name for one in cls.__mro__ for name, value in vars(one).items() if isinstance(value, Field))
    return next(declared, "")


@cache
def _schema(cls: Any) -> type[BaseModel]:
    hints = get_type_hints(cls)
    known: dict[str, Any] = {}
    for one in fields(cls) if is_dataclass(cls) else ():
        default = {} if one.default is MISSING else {"default": one.default}
        names = one.metadata.get("json_schema_extra", {}).get("names")
        hint = hints[one.name] if names is None else Annotated[str, AfterValidator(partial(_known, names))]
        known[one.name] = (hint, Checked(**default, **one.metadata))
    config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    return create_model(cls.__name__, __config__=config, **known)


def _known(names: list[str], value: str) -> str:
    if value not in names and ":" not in value:
        raise ValueError(f"Input should be one of {', '.join(names[:-1])}, or {names[-1]} of your own")
    return value


def faults(cls: type, error: ValidationError) -> list[tuple[str, str]]:
    """Return the options of a class that are wrong, and what is wrong with each of them."""
    unknown = f"there is no such option, but {', '.join(schema(cls).model_fields) or 'none'}"
    said = {"extra_forbidden": unknown}
    return [
        (
            ".".join(map(str, one["loc"])),
            f"{said.get(one['type'], one['msg'].removeprefix('Value error, '))} (got {one['input']!r:.60})",
        )
        for one in error.errors()
    ]


def in_line(wrong: list[tuple[str, str]]) -> str:
    """Return all faults in one line."""
    return "; ".join(f"{option}: {message}" if option else message for option, message in wrong)
