"""How code is compiled: one decorator, so that the options live in one place.

The machine code is cached on disk. Numba notices a change in a function's own file, but not in other files that it calls
into, and would silently run stale code. So the name of the cache folder has a hash of *all* files in folders named
`compiled`, which call into nothing else (a test checks this). If no folder can be written, each process compiles
everything afresh: slower, never wrong.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def _cache_folder() -> Path | None:
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    package = Path(__file__).parents[1]
    for source in sorted([Path(__file__), *package.glob("**/compiled/*.py")]):
        digest.update(source.read_bytes())
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        folder = base / "rmab" / f"compiled-{digest.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None


_FOLDER = _cache_folder()


def _jit(function: Function, **options: object) -> Function:
    previous = numba.config.CACHE_DIR
    try:
        if _FOLDER is not None:
            numba.config.CACHE_DIR = str(_FOLDER)
        return cast(Function, numba.njit(cache=_FOLDER is not None, nogil=True, error_model="numpy", **options)(function))
    finally:
        numba.config.CACHE_DIR = previous


def compiled(function: Function) -> Function:
    """Compile a function with Numba: cached, the GIL released, IEEE arithmetic, no Python objects."""
    return _jit(function)


def compiled_inline(function: Function) -> Function:
    """Compile as `compiled` does, and inline it where it is called: for small parts of innermost loops."""
    return _jit(function, forceinline=True)


def compiled_contracting(function: Function) -> Function:
    """Compile as `compiled` does, but let the processor fuse a multiplication and an addition (one rounding, not two)."""
    return _jit(function, fastmath={"contract"})


def compiled_contracting_inline(function: Function) -> Function:
    """Compile as `compiled_contracting` does, and inline it where it is called."""
    return _jit(function, fastmath={"contract"}, forceinline=True)
