"""Why runs failed: stored in the study's folder until they are finished."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rmab.common.files import write_atomically
from rmab.common.parsing import parsed_json
from rmab.errors import FileError


@dataclass(frozen=True)
class Failure:
    """A run that could not be finished.

    Attributes
    ----------
    id : str
        Id of the run.
    message : str
        One line on why.
    trace : str
        Where it was raised, if it was.
    """

    id: str
    message: str
    trace: str = field(default="", compare=False, repr=False)


def keep(folder: Path, failure: Failure) -> None:
    """Write down why a run failed, in place of what was said of an earlier try."""
    path = _path(folder, failure.id)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{path.parent}: cannot be made ({error.strerror or error})") from error
    write_atomically(path, json.dumps(asdict(failure), indent=1).encode() + b"\n")


def forget(folder: Path, run_id: str) -> None:
    """Remove what was said of a run that is finished by now."""
    path = _path(folder, run_id)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be removed ({error.strerror or error})") from error


def kept(folder: Path, run_ids: Iterable[str]) -> tuple[Failure, ...]:
    """Return why these runs failed the last time that they came to an end; nothing of those that never did."""
    found = []
    for run_id in run_ids:
        path = _path(folder, run_id)
        try:
            found.append(_read(run_id, parsed_json(path.read_text(encoding="utf-8"))))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            found.append(Failure(run_id, f"{path}: cannot be read ({error})".replace("\n", " ")))
    return tuple(found)


def _read(run_id: str, said: object) -> Failure:
    """Return a failure as `keep` wrote it; ValueError where it is not."""
    if not isinstance(said, dict) or said.keys() != {"id", "message", "trace"} or said["id"] != run_id:
        raise ValueError("it is not what was written of this run")
    if not all(isinstance(one, str) for one in said.values()) or len(said["message"].splitlines()) > 1:
        raise ValueError("its message is not one line of text")
    return Failure(**said)


def _path(folder: Path, run_id: str) -> Path:
    return folder / "failures" / f"{run_id}.json"
