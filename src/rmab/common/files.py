"""Reading and writing a model as one file: a flat dictionary of arrays, numbers and strings.

The suffix chooses the format: ``.npz`` is compact, ``.json`` can be read and written by hand or by other languages; both
keep floats exactly. A file is written under a temporary name and then renamed, so that neither a reader nor a crash ever
sees a half-written one.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common.memory import check_memory
from rmab.common.parsing import parsed_json
from rmab.errors import FileError, ModelError

TRIES, LONGEST_NAME = 100, 255  # for a name that nothing has yet; bytes of a file's name
SUFFIXES = (".npz", ".json")
KINDS = {  # what a file of this kind holds, and how to read it
    "rmab problem": ("a problem", "rmab.Problem.load, or plan it with `rmab plan FILE --reward FILE`"),
    "rmab task": ("a task", "rmab.Task.load"),
    "rmab policy": ("a policy", "rmab.IndexPolicy.load"),
    "rmab fit": ("a model fitted to a log", "rmab.data.Fit.load, or list whom to act on with `rmab list FILE`"),
    "rmab learner state": ("a learner's state", "rmab.State.load"),
}
# What zipfile, zlib and NumPy raise on an archive in which some byte is wrong.
BROKEN_ARCHIVE = (ValueError, EOFError, KeyError, RuntimeError, SyntaxError, OSError, zipfile.BadZipFile, zlib.error)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path`: a crash leaves the old file or the new one, never a part.

    A file that is there keeps its mode, and a link stays one: what it points to is written. What is no file, such as a
    device or a pipe, is written into, not replaced.
    """
    try:
        target, mode = _target(path)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(content)
            return
        handle, name = _beside(target, mode)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            name.chmod(mode & 0o777)
        name.replace(target)
    except BaseException as error:  # an interrupt, too, must leave nothing behind
        name.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise FileError unless a file could be written there now; found out by making one beside it, and removing that."""
    try:
        target, mode = _target(path)
        if mode is not None and not stat.S_ISREG(mode):
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            return
        handle, name = _beside(target, mode)
        os.close(handle)
        name.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Return where a path leads through all links, and the mode of what is there; None if nothing is."""
    target = Path(os.path.realpath(path))
    try:
        return target, target.stat().st_mode
    except FileNotFoundError:
        return target, None


def _beside(target: Path, mode: int | None) -> tuple[int, Path]:
    """Open a new file in the folder of the target. The system takes the umask off its mode, as of any other file."""
    for _ in range(TRIES):
        mark = secrets.token_hex(6)
        name = f".{target.name}.{mark}"
        place = target.with_name(name if len(os.fsencode(name)) <= LONGEST_NAME else f".rmab.{mark}")
        with suppress(FileExistsError):
            return os.open(
                place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), (mode or 0o666) & 0o777
            ), place
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _unwritable(path: str | os.PathLike[str], error: OSError) -> FileError:
    return FileError(f"{os.fspath(path)}: cannot be written ({error.strerror or error})")


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
    says = "has no field 'kind'" if found is None else f"has kind {found!r:.40}"
    return f"the file {says}; the kind of {wanted} is {kind!r}"


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    read = _read_json if _suffix(path) == ".json" else _read_npz
    try:
        return read(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except FileError:
        raise
    except ModelError as error:
        raise FileError(f"{path}: {error}") from error
    except ValueError as error:  # a name that no file can have
        raise FileError(f"{path!r}: cannot be read ({error})") from error
    except MemoryError as error:
        raise FileError(f"{path}: holds more than there is memory for ({error})") from error


def check_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> str:
    """Return the suffix of a path; FileError unless it is one of these."""
    try:
        suffix = Path(path).suffix
    except TypeError as error:
        raise FileError(f"{path!r:.40}: a path is text or an object of pathlib, not {type(path).__name__}") from error
    if suffix not in suffixes:
        raise FileError(f"{path}: the name must end in {' or '.join(suffixes)}")
    return suffix


_suffix = check_suffix


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; FileError, which begins with the path, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # a name that no file can have
        raise FileError(f"{path!r}: cannot be read ({error})") from error
    except MemoryError as error:
        raise FileError(f"{path}: holds more than there is memory for ({error})") from error


def _read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        fields = parsed_json(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
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
            with zipfile.ZipFile(stream) as packed:
                check_memory("what it holds", float(sum(one.file_size for one in packed.infolist())))
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as archive:
                if twice := sorted({key for key in archive.files if archive.files.count(key) > 1}):
                    raise ValueError(f"the key {twice[0]!r} is given twice")
                arrays = {key: archive[key] for key in archive.files}
                if other := [key for key, one in arrays.items() if not isinstance(one, np.ndarray)]:
                    raise ValueError(f"{other[0]!r:.40} is not an array")
        except ModelError:
            raise
        except BROKEN_ARCHIVE as error:
            raise FileError(f"{path}: not a readable .npz archive ({error!s:.200})") from error
    return {key: array.item() if array.ndim == 0 else array for key, array in arrays.items()}
