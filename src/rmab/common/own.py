"""Names of a user's own code: `module:maker`, and the file that it comes from.

A name comes from a study file or a command, and may be anybody's: what it names is called only after it was found to be a
class of the kind that is wanted, or a function that makes one.
"""

import inspect
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_type_hints

from rmab.common.files import SUFFIXES
from rmab.common.imports import is_installed, own_module
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
    cls: Any = _found(what, name)[1]
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ModelError(f"{what} {name}: must be a class that derives from {base.__name__}, got {cls!r:.60}")
    return cls


def made_by(what: str, name: str, kind: type[Any], *values: object, **options: object) -> Any:
    """Call `module:maker` of the user's with these arguments, and return what it made.

    what: what it makes, for error messages; kind: the class that it must be of. The maker is a class that derives from it,
    or a function of this very module; if it says what it returns, that must be of the kind. It is not called otherwise.
    Whatever goes wrong (no such module or maker, options that it does not take, something raised or something else made)
    is a ModelError of one line.
    """
    maker = _maker(what, name, kind)
    try:
        signature = inspect.signature(maker)
        signature.bind(*values, **options)
    except TypeError as error:
        raise ModelError(f"{what} {name}: {error}; the maker is {name.partition(':')[2]}{signature}") from error
    except ValueError:
        pass  # compiled code has no signature; the call itself will tell
    made = called(what, name, maker, *values, **options)
    if not isinstance(made, kind):
        raise ModelError(f"{what} {name}: its maker returned {type(made).__name__} instead of {kind.__name__}")
    return made


def called(what: str, name: str, maker: Callable[..., Any], *values: object, **options: object) -> Any:
    """Call a maker of the user's; whatever it raises is a ModelError of one line, an attempt to end the program, too."""
    try:
        return maker(*values, **options)
    except (Exception, SystemExit) as error:  # the code is the user's, and may raise anything
        raise ModelError(f"{what} {name}: its maker raised {type(error).__name__} ({_line(error)})") from error


def source_digest(module: str, *, on_disk: bool = False) -> str | None:
    """Return the SHA-256 of a module's source; None where it has none that can be read.

    A process goes on with the source that it imported, and that is the one meant, unless asked for the one on disk.
    """
    try:
        found = own_module(module)
        loaded, digest = _IMPORTED.get(module, (None, None))
        if on_disk or loaded is not found.__spec__:  # reloading a module gives it another one
            digest = sha256(found.__loader__.get_data(found.__file__)).hexdigest()  # type: ignore[union-attr]
        if not on_disk:
            _IMPORTED[module] = found.__spec__, digest
    except (Exception, SystemExit):  # noqa: BLE001  (the code is the user's; what is wrong is said where it is made)
        return None
    return digest


def _maker(what: str, name: str, kind: type[Any]) -> Callable[..., Any]:
    """Return what the name means, after a look at whether it can be what is wanted; it was not called."""
    home, maker = _found(what, name)
    if isinstance(maker, type) and issubclass(maker, kind):
        return maker
    wanted = f"a {what} is a class that derives from {kind.__name__}, or a function of your own that returns one"
    if not isinstance(maker, FunctionType):
        raise ModelError(f"{what} {name}: is not called, being {_described(maker)}; {wanted}")
    if maker.__module__ != home.__name__:
        raise ModelError(f"{what} {name}: is not called: the function is from {maker.__module__}; {wanted}")
    made = _returns(maker)
    if made is inspect.Signature.empty:
        if is_installed(Path(maker.__code__.co_filename)):
            told = f"it is from an installed package, and does not say that it returns {kind.__name__}"
            raise ModelError(f"{what} {name}: is not called: {told}")
    elif not (isinstance(made, type) and issubclass(made, kind)) and made != kind.__name__:
        shown = made.__name__ if isinstance(made, type) else str(made)
        raise ModelError(f"{what} {name}: is not called: it says that it returns {shown}, not {kind.__name__}")
    return maker


def _returns(maker: FunctionType) -> object:
    """Return what a function says that it returns; of a name that is not known at run time, the last part."""
    said = maker.__annotations__.get("return", inspect.Signature.empty)
    try:
        return get_type_hints(maker).get("return", said)
    except Exception:  # noqa: BLE001  (names that only type checkers import)
        return said.rpartition(".")[2] if isinstance(said, str) else said


def _described(thing: object) -> str:
    kind = "a class" if isinstance(thing, type) else type(thing).__name__
    return f"{kind} of {getattr(thing, '__module__', None) or 'no module'}"


def _found(what: str, name: str) -> tuple[ModuleType, Any]:
    """Return the module and what is there under the name."""
    module, _, maker = name.partition(":")
    try:
        found = own_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):  # one that the module itself imports
            raise ModelError(f"{what} {name}: module {module} cannot be imported ({_line(error)})") from error
        raise ModelError(f"{what} {name}: there is no module {module!r}; is its folder on PYTHONPATH?") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {_line(error)}"
        raise ModelError(f"{what} {name}: module {module!r} cannot be imported ({reason})") from error
    made = getattr(found, maker, None)
    if not callable(made):
        fault = "is not a function or class" if hasattr(found, maker) else "does not exist"
        raise ModelError(f"{what} {name}: {maker!r} {fault} in module {module}")
    return found, made


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
