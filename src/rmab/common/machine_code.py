"""Machine code on disk, for the next process. Whatever is wrong with it is said once, and the code is compiled again.

It lies in `rmab/compiled-<digest>` in XDG_CACHE_HOME, or ~/.cache. Loading it runs it: so the folder is used only if it is
this user's and nobody else can write there; and every file begins with a checksum of the rest.
"""

import hashlib
import os
import pickle
import shutil
import stat
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import compiler, serialize
from numba.core.caching import _Cache

from rmab.common.notices import notify_once

SUM = hashlib.sha256().digest_size
OTHERS = stat.S_IWGRP | stat.S_IWOTH
MALFORMED = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, KeyError, RuntimeError, TypeError, ValueError)


def say_once(where: Path, what: str) -> None:
    """Tell the log, once in a process."""
    notify_once("machine code", f"machine code in {where}: {what}; compiling (see rmab warm --help)")


def home() -> Path:
    """Return the folder of all machine code; RuntimeError where there is no home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rmab"


def fault(folder: Path) -> str:
    """Return what speaks against using code from this folder, or an empty string."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "it is no folder"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"it belongs to another user (number {found.st_uid})"
    if os.name == "posix" and found.st_mode & OTHERS:
        return f"others can write there (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def opened(digest: str) -> Path | None:
    """Return the folder for code of this digest, made if need be; None where there is none that can be used."""
    try:
        folder = home() / f"compiled-{digest}"
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for one in (folder.parent, folder):
            one.mkdir(mode=0o700, exist_ok=True)
            wrong = fault(one)
            if wrong:
                say_once(one, wrong)
                return None
    except RuntimeError:
        return None
    except OSError as error:
        say_once(Path(error.filename or "."), error.strerror or str(error))
        return None
    return folder


def cleared() -> tuple[int, int]:
    """Remove the machine code of all versions, where it is this user's; return how many files, and their bytes."""
    if not home().is_dir() or fault(home()):
        return 0, 0
    sizes: list[int] = []
    for folder in home().glob("compiled-*"):
        if folder.is_dir() and not folder.is_symlink():
            sizes += [one.lstat().st_size for one in folder.rglob("*") if one.is_file() and not one.is_symlink()]
            shutil.rmtree(folder)
    return len(sizes), sum(sizes)


class Store(_Cache):  # type: ignore[misc]
    """The code of one function on disk, a file per signature and processor: what Numba asks for, and gives to keep."""

    def __init__(self, function: Callable[..., object], folder: Path) -> None:
        self.name, self.folder = f"{function.__module__}.{function.__qualname__}", folder

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self.folder)

    def place(self, signature: Any, codegen: Any) -> Path:
        """Return the file of a signature on this kind of processor."""
        key = hashlib.sha256(repr((str(signature), codegen.magic_tuple())).encode()).hexdigest()[:24]
        return self.folder / f"{self.name}-{key}.code"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code of a signature, or None where there is none, or none that can be trusted."""
        target_context.refresh()
        file = self.place(sig, target_context.codegen())
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            say_once(file, error.strerror or str(error))
            return None
        if hashlib.sha256(data[SUM:]).digest() != data[:SUM]:
            say_once(file, "damaged")
            return None
        try:
            known, payload = pickle.loads(data[SUM:])
            return compiler.CompileResult._rebuild(target_context, *payload) if known == sig else None
        except MALFORMED as error:
            say_once(file, f"cannot be loaded ({type(error).__name__})")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code of a signature, if there is room."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        body = serialize.dumps((sig, data._reduce()))
        file = self.place(sig, data.codegen)
        draft = file.with_suffix(f".{uuid.uuid4().hex[:12]}.tmp")
        try:
            draft.write_bytes(hashlib.sha256(body).digest() + body)
            draft.replace(file)  # at once: other processes see all of it, or nothing
        except OSError as error:
            say_once(self.folder, error.strerror or str(error))
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def enable(self) -> None:
        """Do nothing: a store is in use from the start."""

    def disable(self) -> None:
        """Do nothing: a function without a store has none."""

    def flush(self) -> None:
        """Do nothing: `cleared` removes what is kept."""
