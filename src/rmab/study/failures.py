"""Reasons of failed runs, stored in the study's folder until the runs are finished."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rmab.common import parse_json, write_atomically
from rmab.errors import FileError


@dataclass(frozen=True)
class Failure:
    """A failed run.

    Attributes
    ----------
    id : str
        Id of the run.
    message : str
        Reason, in one line.
    trace : str
        Traceback of the exception, if there was one.
    """

    id: str
    message: str
    trace: str = field(default="", compare=False, repr=False)


def store_failure(folder: Path, failure: Failure) -> None:
    """Store why a run failed, replacing an earlier failure."""
    path = _path(folder, failure.id)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{path.parent}: cannot be created ({error.strerror or error})") from error
    write_atomically(path, json.dumps(asdict(failure), indent=1).encode() + b"\n")


def remove_failure(folder: Path, run_id: str) -> None:
    """Remove the failure of a run that is finished now."""
    path = _path(folder, run_id)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be removed ({error.strerror or error})") from error


def read_failures(folder: Path, run_ids: Iterable[str]) -> tuple[Failure, ...]:
    """Return the stored failures of these runs; runs without one are left out."""
    found = []
    for run_id in run_ids:
        path = _path(folder, run_id)
        try:
            found.append(_read(run_id, parse_json(path.read_text(encoding="utf-8"))))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            found.append(Failure(run_id, f"{path}: cannot be read ({error})".replace("\n", " ")))
    return tuple(found)


def _read(run_id: str, content: object) -> Failure:
    """Return a failure as `store_failure` wrote it; raise ValueError if it is not."""
    if not isinstance(content, dict) or content.keys() != {"id", "message", "trace"} or content["id"] != run_id:
        raise ValueError("it is not the failure of this run")
    if not all(isinstance(one, str) for one in content.values()) or len(content["message"].splitlines()) > 1:
        raise ValueError("its message is not one line of text")
    return Failure(**content)


def _path(folder: Path, run_id: str) -> Path:
    return folder / "failures" / f"{run_id}.json"
