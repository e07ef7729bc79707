"""Files: read in one piece, and written in one move.

A file is written under a temporary name and then renamed, so that neither a reader nor a crash ever sees half of one.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from rmab.errors import FileError

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
        raise FileError(f"{path}: the name must end in {' or '.join(suffixes)}", code="file-suffix", path=str(path))
    return suffix


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; FileError, which begins with the path, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise _refusal(path, "read", error) from error
    except MemoryError as error:
        raise FileError(f"{path}: holds more than there is memory for ({error})", path=str(path)) from error
