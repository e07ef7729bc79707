"""Storage of objects: object <-> fields <-> bytes, with a format version.

Fields are a flat dictionary of arrays, numbers, strings and lists of strings. The suffix of a file chooses how they are
written: ``.npz`` is compact, ``.json`` can be read and written by people and other languages; both store floats exactly.
Every file has its ``kind`` and the version of its ``format``. Older versions are upgraded, or rejected in one line.

A class that can be stored derives from `Stored`, declares its `Format`, and has a row in `KINDS`.
"""

from __future__ import annotations

import io
import json
import os
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rmab.common.checks import check_memory
from rmab.common.files import SUFFIXES, checked_suffix, parse_json, read_file, write_atomically
from rmab.errors import FileError, ModelError, raise_as

Fields = dict[str, Any]
EXACT = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))  # number types without loss in Python
# Exceptions of zipfile, zlib and NumPy for a damaged archive.
BROKEN_ARCHIVE = (
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


class Kind(NamedTuple):
    """A kind of file: its noun, the class that reads it, and the function to suggest in errors."""

    noun: str
    place: str
    reader: str


KINDS = {
    "rmab problem": Kind("a problem", "rmab.model.problem:Problem", "rmab.Problem.load or `rmab plan FILE --reward FILE`"),
    "rmab task": Kind("a task", "rmab.tasks.definition:Task", "rmab.Task.load"),
    "rmab view": Kind("a view", "rmab.model.view:View", "rmab.View.load"),
    "rmab learner state": Kind("a learner's state", "rmab.learning.state:State", "rmab.State.load"),
    "rmab fit": Kind("a model fitted to a log", "rmab.estimation.fit:Fit", "rmab.data.Fit.load or `rmab list FILE`"),
    "rmab decision": Kind("a decision", "rmab.decisions.decision:Decision", "rmab.data.Decision.load"),
    "rmab policy": Kind("an index policy", "rmab.play.index_policy:IndexPolicy", "rmab.IndexPolicy.load"),
    "rmab policy rolling": Kind("a rolling policy", "rmab.planners.rolling:Rolling", "rmab.planners.Rolling.load"),
    "rmab policy lp-update": Kind("an LP-update policy", "rmab.planners.rolling:LpUpdate", "rmab.planners.LpUpdate.load"),
    "rmab policy id": Kind("an ID policy", "rmab.planners.infinite:IdPolicy", "rmab.planners.IdPolicy.load"),
    "rmab policy set-expansion": Kind(
        "a set-expansion policy", "rmab.planners.expansion:SetExpansion", "rmab.planners.SetExpansion.load"
    ),
    "rmab plan": Kind("the result of rmab.plan", "rmab.planners.plan:PlanResult", "rmab.PlanResult.load"),
    "rmab policy ftva": Kind("an FTVA policy", "rmab.planners.infinite:Ftva", "rmab.planners.Ftva.load"),
}


@dataclass(frozen=True)
class Format:
    """Fields of a kind of file, and the version of their layout.

    Parameters
    ----------
    kind : str
        Kind of the file: a key of `KINDS`.
    version : int
        Version for writing. Files without a version have version 1.
    required, optional : set of str
        Names of the fields of this version.
    prefix : str, optional
        Fields whose names start with it are always allowed; '' allows all.
    upgrades : mapping of int to function, optional
        By version, the function that converts its fields to the next version. A KeyError is reported as a missing field.
    remedy : str, optional
        Advice for a file whose version has no upgrade.
    suffixes : tuple of str, optional
        Allowed suffixes of files.

    Examples
    --------
    >>> from rmab.common.storage import Format, decode, encode
    >>> ward = Format("ward", 2, {"beds"}, upgrades={1: lambda fields: {"beds": fields["places"]}})
    >>> decode(ward, encode(ward, {"beds": 12}, ".json"), "ward.json", ".json")
    {'beds': 12}
    >>> decode(ward, b'{"kind": "ward", "places": 10}', "old.json", ".json")
    {'beds': 10}
    """

    kind: str
    version: int
    required: Set[str]
    optional: Set[str] = frozenset()
    prefix: str | None = None
    upgrades: Mapping[int, Callable[[Fields], Fields]] = field(default_factory=dict)
    remedy: str = "create the file again with this version"
    suffixes: tuple[str, ...] = SUFFIXES


class Stored(ABC):
    """Base of classes that can be stored. A subclass sets `FORMAT` and implements `to_fields` and `from_fields`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rmab.common.storage import Format, Stored
    >>> @dataclass
    ... class Ward(Stored):
    ...     FORMAT = Format("ward", 1, {"beds"})
    ...     beds: int
    ...     def to_fields(self):
    ...         return {"beds": self.beds}
    ...     @classmethod
    ...     def from_fields(cls, fields):
    ...         return cls(fields["beds"])
    >>> Ward.from_bytes(Ward(12).to_bytes())
    Ward(beds=12)
    """

    FORMAT: ClassVar[Format]

    @abstractmethod
    def to_fields(self) -> Fields:
        """Return the object as arrays, numbers, strings and lists of strings by name; None is omitted."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: Fields) -> Self:
        """Build the object from its fields, and validate them like the constructor's arguments.

        Arrays may be nested lists, from JSON. Raise ModelError, or PolicyError, if the fields do not fit.
        """

    def to_bytes(self, suffix: str = ".npz") -> bytes:
        """Return the object as the content of a file with this suffix."""
        checked_suffix(f"{type(self).__name__}{suffix}", self.FORMAT.suffixes)
        return encode(self.FORMAT, self.to_fields(), suffix)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Build the object from what `to_bytes` returned, with either suffix; errors are those of `load`."""
        if not isinstance(content, bytes):
            raise FileError(f"{cls.__name__}: expected bytes of to_bytes, got {type(content).__name__}")
        suffix = ".npz" if content.startswith(b"PK") else ".json"
        checked_suffix(f"{cls.__name__}{suffix}", cls.FORMAT.suffixes)
        return cls._build(parse(content, cls.__name__, suffix), cls.__name__)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the object to one file, `.npz` or `.json`, atomically; raise FileError if it cannot be written."""
        write_atomically(path, self.to_bytes(checked_suffix(path, self.FORMAT.suffixes)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of `save`, or a handwritten JSON file with the same fields.

        Raises
        ------
        FileError
            If the file cannot be read, has other content, or was written by a newer rmab.
        ModelError, PolicyError
            If its fields are not valid. The message starts with the path.
        """
        return cls._build(_parse_file(path, cls.FORMAT.suffixes), str(path))

    @classmethod
    def _build(cls, fields: Fields, name: str) -> Self:
        known = checked_fields(cls.FORMAT, fields, name)
        with raise_as(None, f"{name}: ", path=name):
            return cls.from_fields(known)


def load_any(path: str | os.PathLike[str]) -> Stored:
    """Read a file of any kind: a problem, a task, a policy, ...

    Raises
    ------
    FileError, ModelError, PolicyError
        As `Stored.load` does, and FileError if the kind is unknown.
    """
    return build_any(_parse_file(path), str(path))


def build_any(fields: Fields, name: str) -> Stored:
    """Build an object of any kind from its fields, including `kind` and `format`; errors start with `name`."""
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        wrong = f"{name}: {_kind_in_words(kind)}; known kinds: {', '.join(KINDS)}"
        raise FileError(wrong, code="file-kind", path=name)
    module, _, attribute = KINDS[kind].place.partition(":")
    stored: type[Stored] = getattr(import_module(module), attribute)
    return stored._build(fields, name)


def kind_of(path: str | os.PathLike[str]) -> object:
    """Return the kind of a file, for example 'rmab task', or None if it has none."""
    return _parse_file(path).get("kind")


def _parse_file(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> Fields:
    suffix = checked_suffix(path, suffixes)
    return parse(read_file(path), str(path), suffix)


def encode(form: Format, fields: Mapping[str, Any], suffix: str) -> bytes:
    """Return fields (None is omitted) as the content of a file of this format."""
    present = {name: value for name, value in fields.items() if value is not None}
    whole = {"kind": form.kind, "format": form.version, **present}
    if suffix == ".json":
        lines = (f"  {json.dumps(name)}: {json.dumps(value, default=_as_plain)}" for name, value in whole.items())
        return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()
    stream = io.BytesIO()
    np.savez_compressed(stream, **whole)
    return stream.getvalue()


def _as_plain(value: Any) -> Any:
    return value.tolist()  # for arrays and NumPy numbers


def decode(form: Format, content: bytes, name: str, suffix: str) -> Fields:
    """Return the fields of a file of this format, upgraded to its version; raise FileError, which starts with `name`.

    Text is str or list of str. Arrays are arrays from `.npz`, and nested lists from `.json`.
    """
    return checked_fields(form, parse(content, name, suffix), name)


def checked_fields(form: Format, fields: Fields, name: str) -> Fields:
    """Return the fields without `kind` and `format`, upgraded to this version; raise FileError if they are not valid."""
    with raise_as(FileError, f"{name}: ", path=name):
        return _upgrade(form, fields)


def _upgrade(form: Format, fields: Fields) -> Fields:
    rest = {one: value for one, value in fields.items() if value is not None}
    kind, version = rest.pop("kind", None), fields.get("format", 1)
    rest.pop("format", None)
    if not isinstance(kind, str) or kind != form.kind:
        raise FileError(_wrong_kind(form.kind, kind), code="file-kind")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FileError(f"format must be a whole number, 1 or more, got {version!r:.40}")
    if version > form.version:
        both = f"(format {version!r:.40}, this one reads up to {form.version})"
        raise FileError(f"written by a newer rmab {both}; update rmab", code="file-version")
    for old in range(version, form.version):
        if old not in form.upgrades:
            both = f"(format {version}, this one reads format {form.version})"
            raise FileError(f"written by an older rmab {both}; {form.remedy}", code="file-version")
        try:
            rest = form.upgrades[old](rest)
        except KeyError as error:
            raise FileError(f"missing {error.args[0]}", field=error.args[0]) from error
    if missing := sorted(form.required - rest.keys()):
        raise FileError(f"missing {', '.join(missing)}", field=missing[0])
    free = {one for one in rest if form.prefix is not None and one.startswith(form.prefix)}
    if unknown := sorted(rest.keys() - form.required - form.optional - free):
        known = ", ".join(sorted(form.required | form.optional))
        raise FileError(f"unknown {', '.join(unknown)} (known: {known})", field=unknown[0])
    return rest


def _wrong_kind(wanted: str, found: object) -> str:
    """Return the message for a file of another kind, with the right reader."""
    noun = KINDS[wanted].noun if wanted in KINDS else repr(wanted)
    if isinstance(found, str) and found in KINDS:
        return f"the file contains {KINDS[found].noun}, not {noun}; read it with {KINDS[found].reader}"
    return f"{_kind_in_words(found)}; the kind of {noun} is {wanted!r}"


def _kind_in_words(found: object) -> str:
    return "the file " + ("has no field 'kind'" if found is None else f"has kind {found!r:.40}")


def parse(content: bytes, name: str, suffix: str) -> Fields:
    """Return all fields of a file, including `kind` and `format`; raise FileError if it is not a file of the library."""
    with raise_as(FileError, f"{name}: ", path=name):
        try:
            return _parse_json(content) if suffix == ".json" else _parse_npz(content)
        except MemoryError as error:
            raise FileError(f"too large for the available memory ({error})") from error


def _parse_json(content: bytes) -> Fields:
    try:
        fields = parse_json(content.decode())
    except ValueError as error:
        raise FileError(f"not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise FileError(f"expected an object with named fields, found {type(fields).__name__}")
    return fields


def _parse_npz(content: bytes) -> Fields:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            check_memory("its content", float(sum(one.file_size for one in packed.infolist())))
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            if twice := [key for key, times in Counter(archive.files).most_common(1) if times > 1]:
                raise ValueError(f"the key {twice[0]!r:.60} is given twice")
            return {key: _as_value(archive[key], key) for key in archive.files}
    except ModelError:
        raise
    except BROKEN_ARCHIVE as error:
        raise FileError(f"not a readable .npz archive ({error!s:.200})") from error


def _as_value(array: Any, key: str) -> Any:
    """Return an array of numbers unchanged, a single number as a Python number if that is exact, and text as str."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
        raise ValueError(f"{key!r:.40} is not an array of numbers or text")
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        raise ValueError(f"{key!r:.40} holds numbers of type {array.dtype}, which compiled code does not know; use float64")
    if array.dtype.kind == "U":
        return array.tolist()
    if array.ndim:
        return array
    return array.item() if array.dtype in EXACT else array[()]
