"""References by name, parsed only here.

    cpap, cpap@switching       a built-in task, and its adversary
    mine:ward@mine:Adversary   custom ones, as module:attribute
    model.npz, model.json      a file

A reference comes from a study file or a command, and is not trusted: it is called only after a check that it is a class of
the expected kind, or a function that returns one.
"""

import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_origin, get_type_hints

from rmab.common.files import SUFFIXES
from rmab.errors import ModelError

Report = Callable[[str, str], None]

_FOLDERS: list[str] = []  # of custom modules, besides the path; on the path only after the first import of one
_REPORTED: set[str] = set()
_REPORT: list[Report] = []


def look_in(folders: list[str], report: Report | None = None) -> None:
    """Search custom modules in these folders, too, after the path; report each module once, by name and file."""
    _FOLDERS[:], _REPORT[:] = folders, [] if report is None else [report]
    _REPORTED.clear()


def folders() -> list[str]:
    """Return the folders of custom modules besides the path."""
    return list(_FOLDERS)


@contextmanager
def folders_aside() -> Iterator[None]:
    """Remove these folders from the path, for processes started inside; they get them by `look_in`."""
    before = list(sys.path)
    sys.path[:] = [one for one in before if one not in _FOLDERS]
    try:
        yield
    finally:
        sys.path[:] = before


def import_custom(module: str) -> ModuleType:
    """Import a custom module; raise ImportError for one of the standard library."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        raise ImportError(f"{top} is part of Python, not a custom module")
    sys.path.extend(one for one in _FOLDERS if one not in sys.path)
    found = import_module(module)
    if module not in _REPORTED:
        _REPORTED.add(module)
        for report in _REPORT:
            report(module, str(getattr(found, "__file__", None) or "no file"))
    return found


def is_installed(file: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return any(file.resolve().is_relative_to(one) for one in _homes())


@lru_cache(maxsize=1)
def _homes() -> tuple[Path, ...]:
    """Return the folders of Python and of installed packages."""
    known = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(one).resolve() for one in (*known, site.getusersitepackages(), *site.getsitepackages()))


_IMPORTED: dict[str, tuple[object, str | None]] = {}  # by module: its spec, and the digest of its source at import


@dataclass(frozen=True)
class Reference:
    """A parsed reference.

    Attributes
    ----------
    text : str
        The original text.
    name : str
        Part before the `@`: a built-in name, or `module:attribute`. Empty for a file.
    against : str
        The adversary after the `@`; empty if there is none.
    is_file : bool
        Whether it is a path of a file.

    Examples
    --------
    >>> from rmab.common.references import Reference
    >>> Reference.parse("mine:ward@switching")
    Reference(text='mine:ward@switching', name='mine:ward', against='switching', is_file=False)
    """

    text: str
    name: str = ""
    against: str = ""
    is_file: bool = False

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Parse a text; any text with a known suffix is a file."""
        if Path(text).suffix in SUFFIXES:
            return cls(text, is_file=True)
        name, _, against = text.partition("@")
        return cls(text, name, against)

    @property
    def is_custom(self) -> bool:
        """Whether the part before the `@` is `module:attribute`."""
        return ":" in self.name

    @property
    def modules(self) -> set[str]:
        """Custom modules of the reference."""
        return {one.partition(":")[0] for one in (self.name, self.against) if ":" in one}


def load_custom(what: str, name: str, kinds: tuple[type, ...]) -> Any:
    """Import `module:attribute` and check that it is of the expected kind, without calling it.

    Parameters
    ----------
    what : str
        Noun for messages: `learner`.
    name : str
        `module:attribute`.
    kinds : tuple of type
        It must be a class that derives from one of these, or a custom function. A declared return type must be one of
        them; a function of an installed package must declare one.
    """
    home, target = _find(what, name)
    if isinstance(target, type) and issubclass(target, kinds):
        return target
    kind = " or ".join(one.__name__ for one in kinds)
    wanted = f"a {what} is a class that derives from {kind}, or a function that returns one"
    if not isinstance(target, FunctionType):
        raise ModelError(f"{what} {name}: rejected: {_describe(target)}; {wanted}")
    if target.__module__ != home.__name__:
        raise ModelError(f"{what} {name}: rejected: the function is from {target.__module__}; {wanted}")
    returned = _return_type(target)
    if returned is inspect.Signature.empty:
        if is_installed(Path(target.__code__.co_filename)):
            reason = f"it is from an installed package, and does not declare that it returns {kind}"
            raise ModelError(f"{what} {name}: rejected: {reason}")
    elif not (issubclass(returned, kinds) if isinstance(returned, type) else returned in [one.__name__ for one in kinds]):
        shown = returned.__name__ if isinstance(returned, type) else returned
        raise ModelError(f"{what} {name}: rejected: it declares that it returns {shown}, not {kind}")
    return target


def call_custom(
    what: str,
    name: str,
    target: Callable[..., Any],
    kinds: tuple[type, ...],
    values: Sequence[object],
    options: Mapping[str, object],
) -> Any:
    """Call a custom class or function, and return an instance of one of the kinds.

    Raise ModelError, in one line, for unknown options, for any exception including SystemExit, and for other results.
    """
    try:
        signature = inspect.signature(target)
        signature.bind(*values, **options)
    except TypeError as error:
        raise ModelError(f"{what} {name}: {error}; it is {name.partition(':')[2]}{signature}") from error
    except ValueError:
        pass  # compiled code has no signature; the call will fail instead
    try:
        built = target(*values, **options)
    except (Exception, SystemExit) as error:  # custom code may raise anything
        raise ModelError(f"{what} {name}: raised {type(error).__name__} ({_line(error)})") from error
    if not isinstance(built, kinds):
        raise ModelError(f"{what} {name}: returned {type(built).__name__} instead of {kinds[0].__name__}")
    return built


def source_digest(module: str, *, on_disk: bool = False) -> str | None:
    """Return the SHA-256 of a module's source; None if it cannot be read.

    on_disk: hash the current file, instead of the source that this process imported.
    """
    try:
        found = import_custom(module)
        loaded, digest = _IMPORTED.get(module, (None, None))
        if on_disk or loaded is not found.__spec__:  # reloading a module replaces it
            digest = sha256(found.__loader__.get_data(found.__file__)).hexdigest()  # type: ignore[union-attr]
        if not on_disk:
            _IMPORTED[module] = found.__spec__, digest
    except (Exception, SystemExit):  # noqa: BLE001  (custom code: problems are reported when it is built)
        return None
    return digest


def _return_type(target: FunctionType) -> object:
    """Return the declared return type of a function; its name if the type is not known at run time."""
    declared = target.__annotations__.get("return", inspect.Signature.empty)
    try:
        declared = get_type_hints(target).get("return", declared)
    except Exception:  # noqa: BLE001  (names that only type checkers import)
        declared = str(declared).partition("[")[0].rpartition(".")[2]
    return get_origin(declared) or declared


def _describe(thing: object) -> str:
    kind = "a class" if isinstance(thing, type) else type(thing).__name__
    return f"{kind} of {getattr(thing, '__module__', None) or 'no module'}"


def _find(what: str, name: str) -> tuple[ModuleType, Any]:
    """Return the module and the attribute of `module:attribute`."""
    module, _, target = name.partition(":")
    try:
        found = import_custom(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):  # a missing import of the module itself
            raise ModelError(f"{what} {name}: module {module} cannot be imported ({_line(error)})") from error
        raise ModelError(f"{what} {name}: there is no module {module!r}; is its folder on PYTHONPATH?") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {_line(error)}"
        raise ModelError(f"{what} {name}: module {module!r} cannot be imported ({reason})") from error
    attribute = getattr(found, target, None)
    if not callable(attribute):
        problem = "is not a function or class" if hasattr(found, target) else "does not exist"
        raise ModelError(f"{what} {name}: {target!r} {problem} in module {module}")
    return found, attribute


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
