"""How code is compiled: one decorator, so that the options live in one place.

The machine code is cached on disk. Numba notices a change in a function's own file, but not in other files that it calls
into, and would silently run stale code. So the name of the cache folder has a hash of *all* files in folders named
`compiled`, which call into nothing else (a test checks this). Where there is no folder that can be trusted and written, each
process compiles everything afresh: slower, never wrong (`machine_code.py`).
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import llvmlite
import numba

from rmab.common import machine_code
from rmab.common.machine_code import Dispatcher, Store, prepare_folder

Function = TypeVar("Function", bound=Callable[..., object])


def _folder() -> Path | None:
    version = f"{numba.__version__} {llvmlite.__version__} {sys.version} {numba.config.BOUNDSCHECK}"
    digest = hashlib.sha256(version.encode())
    package = Path(__file__).parents[1]
    for source in sorted([Path(__file__), Path(machine_code.__file__), *package.glob("**/compiled/*.py")]):
        digest.update(source.read_bytes())
    return prepare_folder(digest.hexdigest()[:16])


_FOLDER = _folder()


def _jit(function: Function, **options: object) -> Function:
    if numba.config.DISABLE_JIT:
        return function
    given = {"_nrt": True, **options}  # always: what is not given would be that of the caller
    plain = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **given)(function)
    dispatcher = Dispatcher(function, targetoptions=plain.targetoptions)
    if _FOLDER is not None:
        dispatcher._cache = Store(function, _FOLDER)
    return cast(Function, dispatcher)


def compiled(function: Function) -> Function:
    """Compile a function with Numba: cached, the GIL released, IEEE arithmetic, no Python objects."""
    return _jit(function)


def compiled_inline(function: Function) -> Function:
    """Compile as `compiled` does, and inline it where it is called: for small parts of innermost loops."""
    return _jit(function, forceinline=True)


def compiled_contracting(function: Function) -> Function:
    """Compile as `compiled` does, but let the processor fuse a multiplication and an addition (one rounding, not two)."""
    return _jit(function, fastmath={"contract"})


def compiled_in_any_order(function: Function) -> Function:
    """Compile as `compiled_contracting` does, and let sums be taken in any order, several terms at a time."""
    return _jit(function, fastmath={"contract", "reassoc"})


def compiled_contracting_inline(function: Function) -> Function:
    """Compile as `compiled_contracting` does, and inline it where it is called."""
    return _jit(function, fastmath={"contract"}, forceinline=True)


def compiled_on_loan(function: Function) -> Function:
    """Compile as `compiled_contracting` does, without counting references: for functions that are only called from compiled
    code, and make no arrays. Those that they are given are their caller's, who counts.

    Counting costs two atomic instructions for every array of a tuple that is handed over: more than a small loop.
    """
    return _jit(function, fastmath={"contract"}, _nrt=False)


def compiled_on_loan_inline(function: Function) -> Function:
    """Compile as `compiled_on_loan` does, and inline it where it is called."""
    return _jit(function, fastmath={"contract"}, _nrt=False, forceinline=True)
