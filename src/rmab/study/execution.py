"""Running a study: what is missing is played, what is damaged is played again, what is finished stays."""

import errno
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import le
from pathlib import Path

from rmab.errors import FileError, StudyError
from rmab.study.engines import Engine
from rmab.study.failures import Failure, forget, keep
from rmab.study.results import Results, Status
from rmab.study.shards import shard_path, sweep
from rmab.study.spec import Job, Study


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    engine: Engine,
    on_progress: Callable[[int, int], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    adopt: bool = False,
    again: Collection[str] = (),
) -> Status:
    """Run what is missing or damaged of a study, in a resumable folder.

    An interrupt, a full disk or a crash leave a folder in which the same call continues.

    Parameters
    ----------
    study : Study
        The study.
    folder : str or path
        Its folder, made if it is not there.
    engine : Engine
        Who plays the runs: LocalEngine or DaskEngine.
    on_progress : callable, optional
        Called with (finished, total), at the beginning and after every run.
    on_failure : callable, optional
        Called with a Failure for every run that fails. The reason is kept in the folder until the run is finished.
    adopt : bool, optional
        Take over a folder of another study: its runs count where they have the ids of this one.
    again : collection of str, optional
        Ids of finished runs to play anew, for instance `changes_since(study, folder).ids`.

    Returns
    -------
    Status
        With the runs that failed in this call.

    Raises
    ------
    ModelError
        If a task or learner of the study cannot be made.
    FileError
        If the folder belongs to another study, holds finished runs of another study, or cannot be written.
    StudyError
        If another process is running the study, or there are no workers.
    """
    study.check()
    place = Path(folder)
    _make_folder(place)
    with _alone_in(place):
        results, changed = _claimed(study, place, adopt)
        jobs = study.jobs()
        todo = _to_play(results, jobs, again)
        if changed:
            results.save()
        sweep(place)
        finished, failures = len(jobs) - len(todo), list[Failure]()
        report = on_progress or (lambda *_: None)
        report(finished, len(jobs))
        try:
            with closing(engine.run(todo, place)) as outcomes:
                for outcome in outcomes if todo else ():
                    if outcome.failure:
                        failures.append(Failure(outcome.job.id, outcome.failure, outcome.trace))
                        keep(place, failures[-1])
                        (on_failure or (lambda _: None))(failures[-1])
                    else:
                        forget(place, outcome.job.id)
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


def _to_play(results: Results, jobs: Sequence[Job], again: Collection[str]) -> list[Job]:
    """Return the jobs that are missing or damaged, or are to be played again."""
    marks = list(results.checked(jobs))
    for job, mark in marks:
        if mark == "foreign":
            path = shard_path(results.folder, job.id)
            raise FileError(f"{path}: a finished run of another study, which is not overwritten: take another folder")
    return [job for job, mark in marks if mark != "finished" or job.id in again]


def _claimed(study: Study, folder: Path, adopt: bool) -> tuple[Results, bool]:
    """Return the folder as this study's, unless it is another's, and whether that is still to be said in it.

    More rounds extend it, fewer leave it as it is.
    """
    if not (folder / "study.json").exists():
        return Results(folder, study), True
    there = Results.open(folder)
    same = there.study.hash == study.hash
    if same and all(map(le, _rounds(study), _rounds(there.study))):
        return there, False
    if not same and not adopt:
        other = f"study {there.study.name!r} ({there.study.hash})"
        raise FileError(
            f"{folder}: belongs to {other}, not to {study.name!r} ({study.hash}): take another folder, or adopt it (--adopt)"
        )
    return Results(folder, study, there.adopted if same else (*there.adopted, there.study.hash)), True


def _rounds(study: Study) -> list[int]:
    """Return how many rounds every task has."""
    return [study.rounds_of(task) for task in study.tasks]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder, so that a second run of the study is refused; the system lets go of it however we end."""
    try:
        import fcntl  # noqa: PLC0415  (not on Windows)
    except ImportError:
        yield  # two runs at once do the work twice, and write the same
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StudyError(f"{folder}: another process is running this study") from error
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EBADF):  # file systems without locks
                raise FileError(f"{folder}: cannot be locked ({error.strerror or error})") from error
        yield
    finally:
        os.close(handle)
