"""Options of everything that has a name: declared with type, limits and description, and validated by pydantic.

A class declares an option as a field (`rmab.learning.option`), a function as a keyword:

    def ward(*, nurses: Annotated[int, Field(ge=1, description="number of nurses")] = 2) -> Task: ...

Values may come from Python, a command line or a study file. Problems are reported in one line per option, with its name and
the given value.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError, WithJsonSchema, create_model
from pydantic.json_schema import PydanticJsonSchemaWarning
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from rmab.common.checks import as_floats
from rmab.common.registry import Problems, Registry, nearest
from rmab.errors import ModelError

LARGEST = 2**53  # smaller whole numbers are exact as floats

ArmCount = Annotated[int, Field(ge=1, description="number of arms")]
Budget = Annotated[int, Field(description="maximum number of active arms at a step")]
Horizon = Annotated[int, Field(ge=1, description="number of steps")]
Episodes = Annotated[int, Field(ge=1, description="number of episodes")]


class NestedError(ValueError):
    """Problems of nested options, such as those of a component."""

    def __init__(self, found: Problems) -> None:
        super().__init__(in_line(found))
        self.found = found


def share(about: str) -> Any:
    """Return the field of an option that is a number from 0 to 1."""
    return Field(ge=0, le=1, description=about)


@dataclass(frozen=True)
class Numbers:
    """Marker of an option that is a number or nested lists of numbers, stored as an array: `Annotated[Any, Numbers(...)]`.

    Attributes
    ----------
    values : str
        Description of the allowed values.
    about : str
        Description of the option.
    axes : int
        Maximum number of axes.
    file : bool
        Whether it may also be the path of a file, relative to the current folder.
    """

    values: str
    about: str
    axes: int = 1
    file: bool = False

    def read(self, value: object) -> Any:
        """Return the array, or the path of the file; raise ValueError if it is neither."""
        words = f"the path of a file, or {self.values}" if self.file else self.values
        if self.file and isinstance(value, str | os.PathLike) and str(value):
            return str(value)
        if isinstance(value, str | bytes | bool | np.bool_ | dict | os.PathLike) or value is None:
            raise ValueError(f"Input should be {words}")
        table = as_floats(value, "Input")  # type: ignore[arg-type]
        if table.ndim > self.axes or table.size == 0:
            raise ValueError(f"Input should be {words}, not an array of shape {table.shape}")
        for at in np.argwhere(~np.isfinite(table))[:1]:
            raise ValueError(f"Input should be finite{f' at {at.tolist()}' if len(at) else ''}")
        return table

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, core: object, handler: object) -> dict[str, Any]:
        values = f"path of a file, or {self.values}" if self.file else self.values
        return {"values": values, "description": self.about, "file": self.file}


def schema(implementation: Any, given: tuple[str, ...] = ()) -> type[BaseModel]:
    """Return the options of a class or function as a pydantic model.

    given: arguments that are not options.
    """
    return _schema(implementation, given)


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of options; a component has its default's name, and the options of the default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # defaults that are objects
        whole = model.model_json_schema()
    for one in whole.get("properties", {}).values():
        one.update(next((each for each in one.get("anyOf", ()) if "values" in each), {}))
        if "component" in one:
            one["default"] = one.pop("component")
    return whole


@cache
def _schema(implementation: Any, given: tuple[str, ...]) -> type[BaseModel]:
    known, extra = {}, "forbid"
    for name, hint, default in _iterate_options(implementation):
        if name == "**":
            extra = "allow"
        elif name not in given:
            known[name] = (_strict(hint), ... if default in (MISSING, inspect.Parameter.empty) else default)
    config = ConfigDict(extra=extra, frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)  # type: ignore[typeddict-item]
    name = getattr(implementation, "__name__", type(implementation).__name__)
    return create_model(name, __config__=config, **known)  # type: ignore[call-overload,no-any-return]


def _iterate_options(implementation: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and default of each option; `**` stands for any others."""
    if is_dataclass(implementation):
        hints = get_type_hints(implementation, include_extras=True)
        for one in fields(implementation):
            registry: Registry[Any] | None = one.metadata.get("registry")
            limits = {key: value for key, value in one.metadata.items() if key != "registry"}
            hint = hints[one.name] if registry is None else component_type(registry, one.default)
            yield one.name, Annotated[hint, Field(**limits)], one.default
        return
    if getattr(implementation, "__init__", None) is object.__init__:  # a class without arguments
        return
    try:
        parameters = inspect.signature(implementation).parameters.values()
    except (ValueError, TypeError):  # compiled code has no signature; the call will fail instead
        yield "**", Any, None
        return
    hints = _hints(implementation)
    for each in parameters:
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            yield each.name, hints.get(each.name, Any), each.default
        elif each.kind == each.VAR_KEYWORD:
            yield "**", Any, None


def _hints(implementation: Any) -> dict[str, Any]:
    function = vars(implementation).get("__init__") if isinstance(implementation, type) else implementation
    function = function.func if isinstance(function, partial) else function
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  (a custom function may use types that only type checkers import)
        return {}


def _strict(hint: Any) -> Any:
    """Return the strict type of an option: numbers, text and booleans are not converted into each other."""
    kinds = _kinds(hint) - {NoneType}
    if kinds and kinds <= {int, float}:
        return Annotated[hint, BeforeValidator(_number)]
    return Annotated[hint, Strict()] if kinds == {bool} else hint


def _kinds(hint: Any) -> set[Any]:
    """Return the types in a hint."""
    if get_origin(hint) is Annotated:
        return _kinds(get_args(hint)[0])
    return set().union(*map(_kinds, get_args(hint))) if get_origin(hint) in (Union, UnionType) else {hint}


def _number(value: object) -> object:
    if isinstance(value, str | bytes | bool | np.bool_):
        raise ValueError("Input should be a number")
    if isinstance(value, int | np.integer) and abs(int(value)) >= LARGEST:
        raise ValueError("Input should be below 2^53")
    return value


def component_type(registry: Registry[Any], default: object) -> Any:
    """Return the type of an option that is a component: an object, a name, or a table with its name and options."""
    names = [*registry, "module:Class"]
    shown = {"values": " | ".join(names), "names": names, "component": registry.name_of(type(default))}
    shown["options"] = json_schema(schema(type(default))).get("properties", {})
    return Annotated[Any, BeforeValidator(partial(build, registry, default)), WithJsonSchema(shown)]


def build(registry: Registry[Any], default: object, value: object) -> Any:
    """Build a component from an object, a name, or a table with its options.

    A table without a name sets options of the default.
    """
    if isinstance(value, registry.classes()):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("name", ""), str):
        raise ValueError(f"Input should be {registry.classes()[0].__name__}, its name, or a table of its name and options")
    name, options = value.get("name", ""), {key: one for key, one in value.items() if key != "name"}
    cls = registry.load(name) if name else type(default)
    if found := problems(schema(cls), options):
        raise NestedError(found)
    return registry.call(name, **options) if name else cls(**options)


def problems(model: type[BaseModel], options: Mapping[str, object]) -> Problems:
    """Return the wrong options, each with a message."""
    try:
        model.model_validate(dict(options))
    except ValidationError as error:
        return problems_of(error, model)
    return []


def problems_of(error: ValidationError, model: type[BaseModel]) -> Problems:
    """Return the problems that pydantic found, by option."""
    found: Problems = []
    for one in error.errors():
        option, cause = path_of(one["loc"]), one.get("ctx", {}).get("error")
        if isinstance(cause, NestedError):
            found += [(f"{option}.{name}" if name else option, message) for name, message in cause.found]
            continue
        message = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            known = list(model.model_fields) if len(one["loc"]) == 1 else []
            message = f"no such option{nearest(option, known)} Available: {', '.join(known)}" if known else "no such option"
        found.append((option, f"{message} (got {one['input']!r:.60})" if one["type"] != "missing" else message))
    return found


def path_of(place: tuple[int | str, ...]) -> str:
    """Format a location, such as `classes[1].arms`."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place).lstrip(".")


def checked_options(
    what: str, model: type[BaseModel], options: Mapping[str, object], hint: str = "", **location: str
) -> dict[str, Any]:
    """Validate options and return those that were given; raise ModelError with all problems."""
    try:
        valid = model.model_validate(dict(options))
    except ValidationError as error:
        unknown = any(one["type"] == "extra_forbidden" for one in error.errors())
        more = f"; {hint} lists the options" if hint and unknown else ""
        found, code = problems_of(error, model), "unknown-option" if unknown else "bad-option"
        raise ModelError(f"{what}: {in_line(found)}{more}", code=code, **location, option=found[0][0]) from error
    return {key: getattr(valid, key) for key in options}


def in_line(found: Problems) -> str:
    """Join all problems in one line."""
    return "; ".join(f"{option}: {message}" if option else message for option, message in found)
