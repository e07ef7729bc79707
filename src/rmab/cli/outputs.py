"""Files that commands write: what may be replaced, and what may not because it cannot be made again."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmab.errors import FileError, LogError, ModelError

GENERATOR = b'<meta name="generator" content="rmab '  # in the head of every page that rmab writes
HEAD = 10_000  # bytes of a page that contain it


@dataclass(frozen=True)
class Output:
    """A kind of file that a command writes.

    Attributes
    ----------
    noun : str
        What it is called: 'a list'.
    columns : tuple of str
        Columns that every table of this kind has.
    stored : str
        How the kind of a stored object begins: 'rmab fit'.
    form : tuple of str
        Columns of a table that people fill in; a file in which they are filled in is not replaced.
    """

    noun: str
    columns: tuple[str, ...] = ()
    stored: str = ""
    form: tuple[str, ...] = ()


LIST = Output("a list of `rmab list`", columns=("id", "period", "action", "rank", "index", "by", "reason"))
FORM = Output(
    "a list of `rmab live ask`", columns=("arm", "period", "was", "rank", "index", "by"), form=("executed", "state")
)
EXPORT = Output("an export of `rmab live`", columns=("period", "event", "policy", "arm", "assigned", "decided"))
RUN = Output("a table of `rmab run --save`", columns=("task", "learner", "seed", "episode", "reward"))
MODEL = Output("a model of `rmab fit`", stored="rmab fit")
POLICY = Output("a policy of `rmab plan`", stored="rmab policy")
PAGE = Output("a report of rmab")


def check_replaceable(path: Path, kind: Output) -> None:
    """Raise FileError if there is a file of another kind, or a form that is filled in; an empty file may be replaced."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    try:
        mine = _is_kind(path, kind)
    except (FileError, LogError, ModelError):
        mine = False
    if not mine:
        raise FileError(f"{path}: the file exists and is not {kind.noun}; write to another file, or remove this one first")
    if kind.form and _is_filled(path, kind.form):
        what = f"the file exists and is filled in (column {' or '.join(kind.form)})"
        raise FileError(f"{path}: {what}; write to another file, or report it with `rmab live tell` and remove it")


def _is_kind(path: Path, kind: Output) -> bool:
    if kind.columns:
        from rmab.logs.source import read_header

        return set(kind.columns) <= set(read_header(path))
    if kind.stored:
        from rmab.common import kind_of
        from rmab.common.storage import KINDS

        found = kind_of(path)  # custom policies have their own kinds
        return isinstance(found, str) and (found.startswith(kind.stored) or (kind is POLICY and found not in KINDS))
    with path.open("rb") as stream:
        return GENERATOR in stream.read(HEAD)


def _is_filled(path: Path, form: tuple[str, ...]) -> bool:
    from rmab.logs.columns import empty_cells
    from rmab.logs.source import open_source

    try:
        columns = open_source(path, list(form), None).columns
    except LogError:  # no rows, or not in UTF-8
        try:
            columns = open_source(path, list(form), "latin-1").columns
        except LogError:
            return False
    return any(not empty_cells(one).all() for one in columns.values())


def check_draws(path: Path, table: Any, encoding: str | None) -> None:
    """Raise FileError if a list at `path` has random draws that the table of the new list does not repeat."""
    from rmab.decisions.keeping import find_lost_draws

    if not path.is_file() or path.stat().st_size == 0:
        return
    if lost := find_lost_draws(path, table, encoding):
        what = f"the list of {lost} there has random draws that the new list does not repeat, without which it cannot be"
        raise FileError(f"{path}: {what} measured; write to another file, or add --force to replace it")


def check_all(paths: Iterable[Path], kind: Output) -> None:
    """Raise FileError unless all of these files can be written and may be replaced."""
    from rmab.common import check_writable

    for one in paths:
        check_writable(one)
        check_replaceable(one, kind)


def is_same_file(path: Path, other: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to one file that exists."""
    return path.exists() and Path(other).exists() and path.samefile(other)
