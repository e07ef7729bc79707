"""Reading files, and writing them atomically.

A file is written under a temporary name and then renamed, so that no reader sees a partial file, even after a crash.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rmab.errors import FileError

DEEPEST = 64  # maximum levels of nesting; files of the library have less than ten
# tomllib takes quadratic time for a dotted key of many names, and does not count them as nesting.
_LONG_KEY = re.compile(r"""(?:\.[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*){1000}""")


def parse_json(text: str) -> Any:
    """Parse JSON; raise ValueError, in one line, if it is not valid, repeats a key, or is nested too deeply."""
    return _shallow(lambda: json.loads(text, object_pairs_hook=_once))


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise ValueError, in one line, if it is not valid, repeats a key, or is nested too deeply."""
    if _LONG_KEY.search(text):
        raise ValueError(f"nested too deeply: a key with over 1000 levels; the limit is {DEEPEST}")
    fields: dict[str, Any] = _shallow(lambda: tomllib.loads(text))
    return fields


def _shallow(parse: Callable[[], Any]) -> Any:
    """Return the result of `parse`; raise ValueError if it is nested too deeply."""
    try:
        whole = parse()
    except RecursionError as error:
        raise ValueError(f"nested too deeply; the limit is {DEEPEST} levels") from error
    level = [whole]
    for _ in range(DEEPEST + 1):
        nested = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for values in nested for inner in values]
    if level:
        raise ValueError(f"nested too deeply; the limit is {DEEPEST} levels")
    return whole


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r:.60} is given twice; keep one")
    return fields


SUFFIXES = (".npz", ".json")  # of files that `rmab.common.storage` writes


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path` atomically: a crash leaves either the old file or the new one.

    An existing file keeps its mode, and the target of a link is written. A device or a pipe is written to, not replaced.
    """
    try:
        target, mode = _target(path)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(content)
            return
        place = _beside(target)
        stream = place.open("xb")  # a new file: the system applies the umask
        try:
            with stream:
                if mode is not None:
                    place.chmod(mode & 0o777)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            place.replace(target)
        except BaseException:  # also after an interrupt
            place.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        raise _file_error(path, "written", error) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise FileError unless a file can be written there: create a file beside it, and remove it."""
    try:
        target, mode = _target(path)
        if mode is None or stat.S_ISREG(mode):
            place = _beside(target)
            place.open("xb").close()
            place.unlink(missing_ok=True)
        elif stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except (OSError, ValueError) as error:
        raise _file_error(path, "written", error) from error


def _target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Return the target of a path through all links, and the mode of the file there, or None."""
    target = Path(os.path.realpath(path))
    try:
        return target, target.stat().st_mode
    except FileNotFoundError:
        return target, None


def _beside(target: Path) -> Path:
    return target.with_name(f".rmab.{secrets.token_hex(8)}")


def _file_error(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> FileError:
    code, name = "file-unreadable" if what == "read" else "file-unwritable", os.fspath(path)
    if isinstance(error, OSError):
        return FileError(f"{name}: cannot be {what} ({error.strerror or error})", code=code, path=name)
    return FileError(f"{name!r}: cannot be {what} ({error})", code=code, path=name)


def checked_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> str:
    """Return the suffix of a path; raise FileError unless it is one of these."""
    try:
        suffix = Path(path).suffix
    except TypeError as error:
        raise FileError(f"{path!r:.40}: a path must be text or a pathlib object, got {type(path).__name__}") from error
    if suffix not in suffixes:
        names = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise FileError(f"{path}: the name must end in {names}", code="file-suffix", path=str(path))
    return suffix


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; raise FileError, which starts with the path, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise _file_error(path, "read", error) from error
    except MemoryError as error:
        raise FileError(f"{path}: too large for the available memory ({error})", path=str(path)) from error
