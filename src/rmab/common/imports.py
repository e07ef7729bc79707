"""Importing a user's own modules: where they are looked for, what is never imported, and who is told.

Nothing here is heavy: the command line says at its start where own modules may lie, and that is all that happens until a
name asks for one.
"""

import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

Tell = Callable[[str, str], None]

_FOLDERS: list[str] = []  # where own modules may lie besides the path; on the path only once one is asked for
_TOLD: set[str] = set()
_TELL: list[Tell] = []


def look_in(folders: list[str], tell: Tell | None = None) -> None:
    """Look for own modules in these folders, too, after the path; and tell of each module once, by name and file."""
    _FOLDERS[:], _TELL[:] = folders, [] if tell is None else [tell]
    _TOLD.clear()


def folders() -> list[str]:
    """Return the folders besides the path in which own modules are looked for."""
    return list(_FOLDERS)


@contextmanager
def folders_aside() -> Iterator[None]:
    """Take these folders off the path, for a process that is started inside: it gets them by `look_in`."""
    before = list(sys.path)
    sys.path[:] = [one for one in before if one not in _FOLDERS]
    try:
        yield
    finally:
        sys.path[:] = before


def own_module(module: str) -> ModuleType:
    """Import a module of the user's. One of the standard library is refused with ImportError, and not imported."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        raise ImportError(f"{top} is part of Python, not a custom module")
    sys.path.extend(one for one in _FOLDERS if one not in sys.path)
    found = import_module(module)
    if module not in _TOLD:
        _TOLD.add(module)
        for tell in _TELL:
            tell(module, str(getattr(found, "__file__", None) or "no file"))
    return found


def is_installed(file: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package, not to a folder of the user's."""
    return any(file.resolve().is_relative_to(one) for one in _homes())


@lru_cache(maxsize=1)
def _homes() -> tuple[Path, ...]:
    """Return the folders of Python and of installed packages."""
    known = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(one).resolve() for one in (*known, site.getusersitepackages(), *site.getsitepackages()))
