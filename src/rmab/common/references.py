"""References: what a name stands for. They are parsed here and nowhere else.

    cpap, cpap@switching       a built-in task, and the adversary that it plays against
    mine:ward@mine:Adversary   custom ones, as module:attribute
    model.npz, model.json      a file

A reference comes from a study file or a command, and may be anybody's: what it names is called only after it was found to
be a class of the kind that is wanted, or a function that returns one.
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


_IMPORTED: dict[str, tuple[object, str | None]] = {}  # by module: its import, and the digest of its source then


@dataclass(frozen=True)
class Reference:
    """What a text names.

    Attributes
    ----------
    text : str
        As it was given.
    name : str
        What stands before the `@`: a built-in name, or `module:attribute`. Empty for a file.
    against : str
        The adversary after the `@`; empty where there is none.
    is_file : bool
        Whether it is the path of a file.

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
        """Return what a text names; a file has one of the known endings, whatever else its name has in it."""
        if Path(text).suffix in SUFFIXES:
            return cls(text, is_file=True)
        name, _, against = text.partition("@")
        return cls(text, name, against)

    @property
    def is_custom(self) -> bool:
        """Whether what stands before the `@` is `module:attribute`."""
        return ":" in self.name

    @property
    def modules(self) -> set[str]:
        """The custom modules that it names."""
        return {one.partition(":")[0] for one in (self.name, self.against) if ":" in one}


def load_custom(what: str, name: str, kinds: tuple[type, ...]) -> Any:
    """Return what `module:attribute` names, after a check that it can be what is wanted; it is not called.

    Parameters
    ----------
    what : str
        What it should be, for messages: `learner`.
    name : str
        `module:attribute`.
    kinds : tuple of type
        It must be a class that derives from one of these, or a custom function. A function that declares what it returns
        must declare one of them; a function of an installed package must declare it.
    """
    home, maker = _found(what, name)
    if isinstance(maker, type) and issubclass(maker, kinds):
        return maker
    kind = " or ".join(one.__name__ for one in kinds)
    wanted = f"a {what} is a class that derives from {kind}, or a function that returns one"
    if not isinstance(maker, FunctionType):
        raise ModelError(f"{what} {name}: rejected: {_described(maker)}; {wanted}")
    if maker.__module__ != home.__name__:
        raise ModelError(f"{what} {name}: rejected: the function is from {maker.__module__}; {wanted}")
    returned = _returned(maker)
    if returned is inspect.Signature.empty:
        if is_installed(Path(maker.__code__.co_filename)):
            reason = f"it is from an installed package, and does not declare that it returns {kind}"
            raise ModelError(f"{what} {name}: rejected: {reason}")
    elif not (issubclass(returned, kinds) if isinstance(returned, type) else returned in [one.__name__ for one in kinds]):
        shown = returned.__name__ if isinstance(returned, type) else returned
        raise ModelError(f"{what} {name}: rejected: it declares that it returns {shown}, not {kind}")
    return maker


def call_custom(
    what: str,
    name: str,
    maker: Callable[..., Any],
    kinds: tuple[type, ...],
    values: Sequence[object],
    options: Mapping[str, object],
) -> Any:
    """Call a custom class or function, and return an instance of one of the kinds.

    Whatever goes wrong is a ModelError of one line: options that it does not take, what it raises (SystemExit, too), and
    something else that it returns.
    """
    try:
        signature = inspect.signature(maker)
        signature.bind(*values, **options)
    except TypeError as error:
        raise ModelError(f"{what} {name}: {error}; it is {name.partition(':')[2]}{signature}") from error
    except ValueError:
        pass  # compiled code has no signature; the call itself will tell
    try:
        built = maker(*values, **options)
    except (Exception, SystemExit) as error:  # custom code may raise anything
        raise ModelError(f"{what} {name}: raised {type(error).__name__} ({_line(error)})") from error
    if not isinstance(built, kinds):
        raise ModelError(f"{what} {name}: returned {type(built).__name__} instead of {kinds[0].__name__}")
    return built


def source_digest(module: str, *, on_disk: bool = False) -> str | None:
    """Return the SHA-256 of a module's source; None where it has none that can be read.

    A process continues with the source that it imported, and that is the one meant, unless asked for the one on disk.
    """
    try:
        found = own_module(module)
        loaded, digest = _IMPORTED.get(module, (None, None))
        if on_disk or loaded is not found.__spec__:  # reloading a module gives it another one
            digest = sha256(found.__loader__.get_data(found.__file__)).hexdigest()  # type: ignore[union-attr]
        if not on_disk:
            _IMPORTED[module] = found.__spec__, digest
    except (Exception, SystemExit):  # noqa: BLE001  (custom code: what is wrong is reported where it is built)
        return None
    return digest


def _returned(maker: FunctionType) -> object:
    """Return the class that a function declares to return; its name where that is not known at run time."""
    declared = maker.__annotations__.get("return", inspect.Signature.empty)
    try:
        declared = get_type_hints(maker).get("return", declared)
    except Exception:  # noqa: BLE001  (names that only type checkers import)
        declared = str(declared).partition("[")[0].rpartition(".")[2]
    return get_origin(declared) or declared


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
    attribute = getattr(found, maker, None)
    if not callable(attribute):
        problem = "is not a function or class" if hasattr(found, maker) else "does not exist"
        raise ModelError(f"{what} {name}: {maker!r} {problem} in module {module}")
    return found, attribute


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
