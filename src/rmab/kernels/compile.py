"""How kernels are compiled: one decorator, so that the options live in one place.

The machine code is cached on disk. Numba notices a change in a kernel's own file, but not in another file that the kernel
calls into, and would then run stale code without a word. So the cache folder is named after a hash of *all* kernel sources.
Where no folder can be written, kernels are compiled afresh in each process: slower, never wrong.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., object])


def _cache_folder() -> Path | None:
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = base / "rmab" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


_FOLDER = _cache_folder()


def compiled(function: Function) -> Function:
    """Compile a function with Numba: cached, the GIL released, IEEE arithmetic (no fastmath), no Python objects."""
    previous = numba.config.CACHE_DIR
    try:
        if _FOLDER is not None:
            numba.config.CACHE_DIR = str(_FOLDER)
        return cast(Function, numba.njit(cache=_FOLDER is not None, nogil=True, error_model="numpy")(function))
    finally:
        numba.config.CACHE_DIR = previous
