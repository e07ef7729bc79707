"""Names of a user's own code: `module:maker`, and the file that it comes from."""

import inspect
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from rmab.common.files import SUFFIXES
from rmab.errors import ModelError

_IMPORTED: dict[str, tuple[object, str | None]] = {}  # by module: its import, and the digest of its source then


def is_own(name: str) -> bool:
    """Return whether a name has a `module:maker` in it; a file has not, whatever it is called."""
    return ":" in name and Path(name).suffix not in SUFFIXES


def own_modules(name: str) -> set[str]:
    """Return the modules in `module:maker` or `family@module:maker`; none of a built-in name or a file."""
    return {piece.partition(":")[0] for piece in name.split("@") if ":" in piece} if is_own(name) else set()


def imported(what: str, name: str, base: Any) -> Any:
    """Return the class that `module:Class` names, without calling it; ModelError unless it derives from the base."""
    cls: Any = _maker(what, name)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ModelError(f"{what} {name}: must be a class that derives from {base.__name__}, got {cls!r:.60}")
    return cls


def made_by(what: str, name: str, kind: type[Any], *values: object, **options: object) -> Any:
    """Call `module:maker` of the user's with these arguments, and return what it made.

    what: what it makes, for error messages; kind: the class that it must be of. Whatever goes wrong (no such module or
    maker, options that it does not take, something raised or something else made) is a ModelError of one line.
    """
    maker = _maker(what, name)
    try:
        signature = inspect.signature(maker)
        signature.bind(*values, **options)
    except TypeError as error:
        raise ModelError(f"{what} {name}: {error}; the maker is {name.partition(':')[2]}{signature}") from error
    except ValueError:
        pass  # compiled code has no signature; the call itself will tell
    try:
        made = maker(*values, **options)
    except Exception as error:  # the code is the user's, and may raise anything
        raise ModelError(f"{what} {name}: its maker raised {type(error).__name__} ({_line(error)})") from error
    if not isinstance(made, kind):
        raise ModelError(f"{what} {name}: its maker returned {type(made).__name__} instead of {kind.__name__}")
    return made


def source_digest(module: str, *, on_disk: bool = False) -> str | None:
    """Return the SHA-256 of a module's source; None where it has none that can be read.

    A process goes on with the source that it imported, and that is the one meant, unless asked for the one on disk.
    """
    try:
        found = sys.modules.get(module) or import_module(module)
        loaded, digest = _IMPORTED.get(module, (None, None))
        if on_disk or loaded is not found.__spec__:  # reloading a module gives it another one
            digest = sha256(found.__loader__.get_data(found.__file__)).hexdigest()  # type: ignore[union-attr]
        if not on_disk:
            _IMPORTED[module] = found.__spec__, digest
    except Exception:  # noqa: BLE001  (the code is the user's; what is wrong with it is said where it is made)
        return None
    return digest


def _maker(what: str, name: str) -> Callable[..., Any]:
    module, _, maker = name.partition(":")
    try:
        found: ModuleType = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):  # one that the module itself imports
            raise ModelError(f"{what} {name}: module {module} cannot be imported ({_line(error)})") from error
        raise ModelError(f"{what} {name}: there is no module {module!r}; is its folder on PYTHONPATH?") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {_line(error)}"
        raise ModelError(f"{what} {name}: module {module!r} cannot be imported ({reason})") from error
    made = getattr(found, maker, None)
    if not callable(made):
        fault = "is not a function or class" if hasattr(found, maker) else "does not exist"
        raise ModelError(f"{what} {name}: {maker!r} {fault} in module {module}")
    return made  # type: ignore[no-any-return]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
