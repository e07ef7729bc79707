"""Reading and writing a model as one file: a flat dictionary of arrays, numbers and strings.

The suffix chooses the format: ``.npz`` is compact, ``.json`` can be read and written by hand or by other languages; both
keep floats exactly. A file is written under a temporary name and then renamed, so that neither a reader nor a crash ever
sees a half-written one.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from rmab.errors import FileError

SUFFIXES = (".npz", ".json")
KINDS = {  # what a file of this kind holds, and how to read it
    "rmab problem": ("a problem", "rmab.Problem.load, or plan it with `rmab plan FILE --reward FILE`"),
    "rmab task": ("a task", "rmab.load_task"),
    "rmab learner state": ("a learner's state", "rmab.State.load"),
}
# What zipfile, zlib and NumPy raise on an archive in which some byte is wrong.
BROKEN_ARCHIVE = (ValueError, EOFError, KeyError, RuntimeError, SyntaxError, OSError, zipfile.BadZipFile, zlib.error)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path`: a crash leaves the old file or the new one, never a part."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({error.strerror or error})") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)  # mkstemp's own mode is private; the file should be as any other
        Path(name).replace(target)
    except BaseException as error:  # an interrupt, too, must leave nothing behind
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(f"{target}: cannot be written ({error.strerror or error})") from error
        raise


def write_fields(path: str | os.PathLike[str], kind: str, fields: Mapping[str, Any]) -> None:
    """Write `fields` (None is left out) as a file of this `kind`, in the format of the path's suffix."""
    present = {"kind": kind, **{key: value for key, value in fields.items() if value is not None}}
    if _suffix(path) == ".json":
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in present.items()}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in plain.items())
        write_atomically(path, f"{{\n{lines}\n}}\n".encode())
        return
    with tempfile.SpooledTemporaryFile(max_size=1 << 26) as stream:
        np.savez_compressed(stream, **present)
        stream.seek(0)
        write_atomically(path, stream.read())


def read_fields(
    path: str | os.PathLike[str], kind: str, required: Set[str], optional: Set[str], *, prefix: str | None = None
) -> dict[str, Any]:
    """Read a file that `write_fields` wrote, or a JSON file written by hand; FileError if fields are missing or unknown.

    Fields whose names begin with `prefix` are always allowed.
    """
    fields = _read(path)
    found = fields.pop("kind", None)
    if not isinstance(found, str) or found != kind:
        raise FileError(f"{path}: {_wrong_kind(kind, found)}")
    if missing := sorted(required - fields.keys()):
        raise FileError(f"{path}: missing {', '.join(missing)}")
    free = {name for name in fields if prefix is not None and name.startswith(prefix)}
    if unknown := sorted(fields.keys() - required - optional - free):
        raise FileError(f"{path}: unknown {', '.join(unknown)} (known: {', '.join(sorted(required | optional))})")
    return fields


def kind_of(path: str | os.PathLike[str]) -> object:
    """Return the kind of file that it claims to be, for instance 'rmab task', or None if it does not say."""
    return _read(path).get("kind")


def _wrong_kind(kind: str, found: object) -> str:
    """Say what a file holds instead of what was asked for, and what to do."""
    wanted = KINDS.get(kind, (repr(kind), ""))[0]
    if isinstance(found, str) and found in KINDS:
        held, reader = KINDS[found]
        return f"the file holds {held}, not {wanted}; read it with {reader}"
    says = "has no field 'kind'" if found is None else f"has kind {found!r}"
    return f"the file {says}; the kind of {wanted} is {kind!r}"


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    read = _read_json if _suffix(path) == ".json" else _read_npz
    try:
        return read(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: the name must end in {' or '.join(SUFFIXES)}")
    return suffix


def _read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise FileError(f"{path}: expected an object with named fields, found {type(fields).__name__}")
    return fields


def _read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    with Path(path).open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise FileError(f"{path}: not a readable .npz archive")
        stream.seek(0)
        try:
            with np.load(stream, allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except BROKEN_ARCHIVE as error:
            raise FileError(f"{path}: not a readable .npz archive ({error})") from error
    return {key: array.item() if array.ndim == 0 else array for key, array in arrays.items()}
