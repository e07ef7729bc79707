"""Running a study: missing and damaged runs are computed, finished runs are kept."""

import errno
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from operator import le
from pathlib import Path

from rmab.errors import FileError, StudyError
from rmab.study.engines import Engine
from rmab.study.failures import Failure, remove_failure, store_failure
from rmab.study.results import Results, Status
from rmab.study.shards import sweep
from rmab.study.spec import Study


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    engine: Engine,
    on_progress: Callable[[int, int], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    again: Collection[str] = (),
) -> Status:
    """Run the missing and damaged runs of a study, in a resumable folder.

    After an interrupt, a full disk or a crash, the same call resumes.

    Parameters
    ----------
    study : Study
        The study.
    folder : str or path
        Its folder; created if it does not exist.
    engine : Engine
        Executes the runs: LocalEngine or DaskEngine.
    on_progress : callable, optional
        Called with (finished, total), at the start and after every run.
    on_failure : callable, optional
        Called with a Failure for every run that fails. The reason is stored in the folder until the run is finished.
    again : collection of str, optional
        Ids of finished runs to compute again, for example `changes_since(study, folder).ids`.

    Returns
    -------
    Status
        With the runs that failed in this call.

    Raises
    ------
    ModelError
        If a task or learner of the study cannot be built.
    FileError
        If the folder belongs to another study, has files of a newer version of the library, or cannot be written.
    StudyError
        If another process is running the study, or there are no workers.
    """
    study.check()
    place = Path(folder)
    _make_folder(place)
    with _lock(place):
        jobs, is_extended = study.jobs(), _is_extended(study, place)
        todo = [job for job, mark in Results(place, study).checked(jobs) if mark != "finished" or job.id in again]
        if is_extended:
            Results(place, study).save()
        sweep(place)
        finished, failures = len(jobs) - len(todo), list[Failure]()
        report = on_progress or (lambda *_: None)
        report(finished, len(jobs))
        try:
            with closing(engine.run(todo, place)) as outcomes:
                for outcome in outcomes if todo else ():
                    if outcome.failure:
                        failures.append(Failure(outcome.job.id, outcome.failure, outcome.trace))
                        store_failure(place, failures[-1])
                        (on_failure or (lambda _: None))(failures[-1])
                    else:
                        remove_failure(place, outcome.job.id)
                        finished += 1
                    report(finished, len(jobs))
        finally:
            sweep(place)
    return Status(len(jobs), finished, len(jobs) - finished, 0, tuple(failures))


def _make_folder(folder: Path) -> None:
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be used as the folder of a study ({error.strerror or error})") from error


def _is_extended(study: Study, folder: Path) -> bool:
    """Return whether the folder is new or gets more rounds of this study; raise FileError if it belongs to another study."""
    if not (folder / "study.json").exists():
        return True
    there = Results.open(folder).study
    if there.hash != study.hash:
        other = f"study {there.name!r} ({there.hash}), not to {study.name!r} ({study.hash})"
        raise FileError(f"{folder}: belongs to {other}: use another folder (copy runs/ there to reuse common runs)")
    return not all(map(le, _rounds(study), _rounds(there)))


def _rounds(study: Study) -> list[int]:
    """Return the number of rounds of each task."""
    return [study.rounds_of(task) for task in study.tasks]


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock the folder against a second process; the system releases the lock even after a crash."""
    try:
        import fcntl  # noqa: PLC0415  (not on Windows)
    except ImportError:
        yield  # two processes would do the same work and write equal files
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StudyError(f"{folder}: another process is running this study; wait until it ends") from error
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EBADF):  # file systems without locks
                raise FileError(f"{folder}: cannot be locked ({error.strerror or error})") from error
        yield
    finally:
        os.close(handle)
