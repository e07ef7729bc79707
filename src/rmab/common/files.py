"""Reading and writing a model as one file: a flat dictionary of arrays, numbers and strings.

Two formats by suffix: ``.npz`` (compact, exact) and ``.json`` (readable, written by hand or by another language; floats
survive the round trip exactly). Files are written to a neighbour first and then renamed, so that a reader, or a crash,
never meets a half-written one.
"""

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

__all__ = ["kind_of", "read_fields", "write_atomically", "write_fields"]

SUFFIXES = (".npz", ".json")
WHAT_TO_DO = {  # where the one is found, and the other wanted
    ("rmab problem", "rmab task"): ": give it rewards with Task.from_rewards(Problem.load(file), rewards), and save that",
    ("rmab task", "rmab problem"): ": load_task(file).problem is its problem",
}
# What zipfile, zlib and NumPy raise on an archive in which some byte is wrong.
BROKEN_ARCHIVE = (ValueError, EOFError, KeyError, RuntimeError, SyntaxError, OSError, zipfile.BadZipFile, zlib.error)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path` in one move: either the old file or the new one is there, never a part."""
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
    """Read a file that `write_fields` made, or a JSON file written by hand. Wrong, missing or unknown fields are errors.

    Fields whose name begins with the prefix, if there is one, are known whatever they are called.
    """
    fields = _read(path)
    found = fields.pop("kind", None)
    if not isinstance(found, str) or found != kind:
        raise FileError(f"{path}: {_wrong_kind(found, kind)}")
    if missing := sorted(required - fields.keys()):
        raise FileError(f"{path}: missing {', '.join(missing)}")
    free = {name for name in fields if prefix is not None and name.startswith(prefix)}
    if unknown := sorted(fields.keys() - required - optional - free):
        raise FileError(f"{path}: unknown {', '.join(unknown)} (known: {', '.join(sorted(required | optional))})")
    return fields


def _wrong_kind(found: object, wanted: str) -> str:
    """Return what is wrong with the kind of a file, and what to do."""
    word = wanted.removeprefix("rmab ")
    if found is None:
        return f'does not say what it holds; a {word} has the field "kind": "{wanted}"'
    if not isinstance(found, str) or not found.startswith("rmab "):
        return f'holds {found!r:.40}, not a {word}; a {word} has the field "kind": "{wanted}"'
    return f"holds a {found.removeprefix('rmab ')}, not a {word}{WHAT_TO_DO.get((found, wanted), '')}"


def kind_of(path: str | os.PathLike[str]) -> object:
    """Return what kind of file it says it is, for instance 'rmab task'; None where it does not say."""
    return _read(path).get("kind")


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
