"""Files: read in one piece, and written in one move.

A file is written under a temporary name and then renamed, so that neither a reader nor a crash ever sees half of one.
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

DEEPEST = 64  # levels of nesting; no file of ours has ten
# tomllib takes quadratic time for a key of many parts, and does not count them as nesting.
_LONG_KEY = re.compile(r"""(?:\.[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*){1000}""")


def parsed_json(text: str) -> Any:
    """Return what a JSON text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    return _shallow(lambda: json.loads(text, object_pairs_hook=_once))


def parsed_toml(text: str) -> dict[str, Any]:
    """Return what a TOML text says; ValueError with one line where it is none, has a key twice or is nested too deep."""
    if _LONG_KEY.search(text):
        raise ValueError(f"nested too deep: a key of over 1000 parts; {DEEPEST} are the most")
    fields: dict[str, Any] = _shallow(lambda: tomllib.loads(text))
    return fields


def _shallow(parse: Callable[[], Any]) -> Any:
    """Return what `parse` returns; ValueError where it is nested too deep, for the parser or for what reads it later."""
    try:
        whole = parse()
    except RecursionError as error:
        raise ValueError(f"nested too deep; {DEEPEST} levels are the most") from error
    level = [whole]
    for _ in range(DEEPEST + 1):
        nested = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for values in nested for inner in values]
    if level:
        raise ValueError(f"nested too deep; {DEEPEST} levels are the most")
    return whole


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r:.60} is given twice; keep one")
    return fields


SUFFIXES = (".npz", ".json")  # of files that hold what `rmab.common.storage` writes


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path`: a crash leaves the old file or the new one, never a part.

    A file that exists keeps its mode, and a link remains one: what it points to is written. What is no file, such as a
    device or a pipe, is written into, not replaced.
    """
    try:
        target, mode = _target(path)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(content)
            return
        place = _beside(target)
        stream = place.open("xb")  # a new file: the system takes the umask off its mode
        try:
            with stream:
                if mode is not None:
                    place.chmod(mode & 0o777)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            place.replace(target)
        except BaseException:  # an interrupt, too, must leave nothing behind
            place.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # a ValueError: a name that no file can have
        raise _refusal(path, "written", error) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise FileError unless a file could be written there now: create one beside it, and remove that."""
    try:
        target, mode = _target(path)
        if mode is None or stat.S_ISREG(mode):
            place = _beside(target)
            place.open("xb").close()
            place.unlink(missing_ok=True)
        elif stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except (OSError, ValueError) as error:
        raise _refusal(path, "written", error) from error


def _target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Return where a path leads through all links, and the mode of what is there; None if nothing is."""
    target = Path(os.path.realpath(path))
    try:
        return target, target.stat().st_mode
    except FileNotFoundError:
        return target, None


def _beside(target: Path) -> Path:
    return target.with_name(f".rmab.{secrets.token_hex(8)}")


def _refusal(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> FileError:
    code, name = "file-unreadable" if what == "read" else "file-unwritable", os.fspath(path)
    if isinstance(error, OSError):
        return FileError(f"{name}: cannot be {what} ({error.strerror or error})", code=code, path=name)
    return FileError(f"{name!r}: cannot be {what} ({error})", code=code, path=name)


def check_suffix(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> str:
    """Return the suffix of a path; FileError unless it is one of these."""
    try:
        suffix = Path(path).suffix
    except TypeError as error:
        raise FileError(f"{path!r:.40}: a path is text or an object of pathlib, not {type(path).__name__}") from error
    if suffix not in suffixes:
        names = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise FileError(f"{path}: the name must end in {names}", code="file-suffix", path=str(path))
    return suffix


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; FileError, which begins with the path, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise _refusal(path, "read", error) from error
    except MemoryError as error:
        raise FileError(f"{path}: holds more than there is memory for ({error})", path=str(path)) from error
