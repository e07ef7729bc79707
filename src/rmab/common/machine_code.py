"""Machine code on disk, for the next process. A problem is reported once, and the code is compiled again.

It lies in `rmab/compiled-<digest>` in XDG_CACHE_HOME, or ~/.cache. Loading it runs it: so the folder is used only if it is
this user's and nobody else can write there; and every file begins with a checksum of the rest.
"""

import errno
import hashlib
import os
import pickle
import shutil
import signal
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import compiler, serialize, sigutils
from numba.core.caching import _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.event import trigger_event
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral  # type: ignore[attr-defined]

from rmab.errors import FileError, notify_once

RETRIES = 20  # of removing a folder into which others write

_compiling = False  # whether the main thread compiles, so that an interrupt waits


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a compilation: LLVM calls back into Python, where the exception would be lost.

    A second Ctrl-C does not wait. If the program has its own SIGINT handler, it is called at the end.
    """
    global _compiling  # noqa: PLW0603  (signals have one handler per process)
    handler = signal.getsignal(signal.SIGINT)
    if _compiling or threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pending: list[tuple[int, Any]] = []

    def keep(number: int, frame: Any) -> None:
        if pending:
            handler(number, frame)
        pending.append((number, frame))

    signal.signal(signal.SIGINT, keep)
    _compiling = True
    try:
        yield
    finally:
        _compiling = False
        signal.signal(signal.SIGINT, handler)
        if pending:
            handler(*pending[0])


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is linked into others, and never run by itself: neither optimised nor made into machine code."""

    def _optimize_final_module(self) -> None:
        """Leave that to who links it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class InnerFunction:
    """Stands for the entry point that an inner function does not have."""


class InnerCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles a function, in full or as an inner one."""

    def compile_inner(self, args: Any) -> Any:
        """Return the result for these types: LLVM code to be linked, without machine code and wrappers."""
        context, name = self.targetdescr.target_context, self.py_func.__qualname__
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        raw = compiler.compile_extra(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=args,
            return_type=None,
            flags=flags,
            locals=self.locals,
            library=InnerLibrary(context.codegen(), name),
            pipeline_class=self.pipeline_class,
        )
        result = raw._replace(entry_point=InnerFunction())
        context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """A compiled function."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **rest: Any) -> None:
        super().__init__(py_func, locals, targetoptions, **rest)
        own: Any = getattr(self, "_compiler")  # noqa: B009  (its type is unknown)
        self._compiler = InnerCompiler(own.py_func, own.targetdescr, own.targetoptions, own.locals, own.pipeline_class)
        self._inner: set[Any] = set()  # the types for which there is an inner function only
        self._linking = False

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for compiled code that calls it with these types, as an inner function unless there is one in full."""
        args = tuple(map(unliteral, self._compiler.fold_argument_types(args, kws)[1]))  # 0 and 1 are but whole numbers
        if args not in self.overloads:
            self._compile_inner(args)
        self._linking = True  # who compiles holds the lock of the compiler
        try:
            return super().get_call_template(args, {})
        finally:
            self._linking = False

    def compile(self, sig: Any) -> Any:
        """Compile in full for these types: Python calls it."""
        with defer_interrupt(), global_compiler_lock:
            types = tuple(sigutils.normalize_signature(sig)[0])
            if types in self._inner and not self._linking:
                self._inner.discard(types)
                del self.overloads[types]
            return super().compile(sig)

    def _compile_inner(self, types: Any) -> None:
        with self._compiling_counter, trigger_event("numba:compile", data={"dispatcher": self, "args": types}):
            self.overloads[types] = self._compiler.compile_inner(types)  # Python does not get to see it
        self._inner.add(types)


SUM = hashlib.sha256().digest_size
OTHERS = stat.S_IWGRP | stat.S_IWOTH
MALFORMED = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, KeyError, RuntimeError, TypeError, ValueError)


def say_once(where: Path, what: str) -> None:
    """Tell the log, once in a process."""
    notify_once("machine code", f"machine code in {where}: {what}; compiling (see rmab warm --help)")


def home() -> Path:
    """Return the folder of all machine code; RuntimeError where there is no home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rmab"


def problem_of(folder: Path) -> str:
    """Return what speaks against using code from this folder, or an empty string."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "it is no folder"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"it belongs to another user (number {found.st_uid})"
    if os.name == "posix" and found.st_mode & OTHERS:
        return f"others can write there (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def prepare_folder(digest: str) -> Path | None:
    """Return the folder for code of this digest, made if need be; None where there is none that can be used."""
    try:
        folder = home() / f"compiled-{digest}"
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for one in (folder.parent, folder):
            one.mkdir(mode=0o700, exist_ok=True)
            wrong = problem_of(one)
            if wrong:
                say_once(one, wrong)
                return None
    except RuntimeError:
        return None
    except OSError as error:
        say_once(Path(error.filename or "."), error.strerror or str(error))
        return None
    return folder


def clear_cache() -> tuple[int, int]:
    """Remove the machine code of all versions, where it is this user's; return how many files, and their bytes."""
    if not home().is_dir() or problem_of(home()):
        return 0, 0
    sizes: list[int] = []
    for folder in home().glob("compiled-*"):
        if folder.is_dir() and not folder.is_symlink():
            with suppress(FileNotFoundError):  # somebody else removes it, too
                sizes += [one.lstat().st_size for one in folder.rglob("*") if one.is_file() and not one.is_symlink()]
            _remove(folder)
    return len(sizes), sum(sizes)


def _remove(folder: Path) -> None:
    """Remove a folder; what others remove or write meanwhile is no error, anything else is a FileError."""
    for _ in range(RETRIES):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.is_dir():
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise FileError(f"{folder}: cannot be removed ({error.strerror or error})", path=str(folder)) from error
        else:
            return


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
        """Keep the code of a signature, if there is space."""
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
        """Do nothing: `clear_cache` removes what is kept."""
