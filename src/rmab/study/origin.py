"""Where a run comes from: version and revision of the library, and the source of custom tasks and learners."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import rmab
from rmab.errors import FileError
from rmab.study.build import files_of, modules_of, source_of
from rmab.study.results import Results
from rmab.study.shards import provenance_of, read_shard, shard_path
from rmab.study.spec import Job, Study


def origin(job: Job) -> dict[str, str | None]:
    """Return version and revision of the library's source, and the SHA-256 of the modules of one's own task and learner."""
    sources = {"source": source_of(job.learner), "task_source": source_of(job.task)}
    return {"version": rmab.__version__, "revision": revision(), **sources}


@dataclass(frozen=True)
class Changes:
    """What has changed since the finished runs of a study.

    Attributes
    ----------
    library : str
        One line where finished runs are of another version of the library; empty otherwise.
    outdated : dict of str to tuple of str
        By task or learner of one's own, such as `learner mine`: ids of finished runs of another source than now.
    """

    library: str
    outdated: dict[str, tuple[str, ...]]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all outdated runs."""
        return frozenset(one for ids in self.outdated.values() for one in ids)


def changes_since(study: Study, folder: Path) -> Changes:
    """Compare the library, and tasks and learners of one's own, with those of the finished runs in a study's folder."""
    if not (folder / "study.json").exists():
        return Changes("", {})
    library = ""
    entries = {f"learner {one.label}": one for one in study.learners} | {f"task {one.label}": one for one in study.tasks}
    now = {what: source_of(one, on_disk=True) for what, one in entries.items() if modules_of(one) or files_of(one)}
    for job, then in _first_runs(study, folder):
        here = origin(job)
        if then.get("version") != here["version"] or _differ(then.get("revision"), here["revision"]):
            library = f"finished runs are of {_named(then)}, here is {_named(here)}: results may differ"
            break
    outdated: dict[str, list[str]] = {}
    own = [job for job in study.jobs() if {f"task {job.task.label}", f"learner {job.learner.label}"} & now.keys()]
    for job, known in Results(folder, study).origins(own):
        for what, key in ((f"learner {job.learner.label}", "source"), (f"task {job.task.label}", "task_source")):
            if known is not None and _differ(known.get(key), now.get(what)):
                outdated.setdefault(what, []).append(job.id)
    return Changes(library, {what: tuple(ids) for what, ids in outdated.items()})


def _first_runs(study: Study, folder: Path) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield the first finished run of every learner, with its provenance."""
    left = {one.label for one in study.learners}
    for job in study.jobs():
        if not left:
            return
        if job.learner.label not in left:
            continue
        try:
            table = read_shard(shard_path(folder, job.id), job.id)
        except FileError:
            continue  # damaged: it is computed again
        if table is not None:
            left.remove(job.learner.label)
            yield job, provenance_of(table.schema)


def _differ(then: object, now: object) -> bool:
    """Return whether both are known, and not the same."""
    return then is not None and now is not None and then != now


def _named(known: dict[str, Any]) -> str:
    revision = known.get("revision")
    return f"rmab {known.get('version')}" + (f" (revision {short(revision)})" if revision else "")


def short(revision: str) -> str:
    """Return a revision as it is shown: its first ten letters, and the `+` of changes after it."""
    return revision[:10] + revision[40:]


@lru_cache(maxsize=1)
def revision() -> str | None:
    """Return the revision of the library's own source; None where it is installed, or has no git around it."""
    return revision_of(Path(rmab.__file__).parent)


def revision_of(folder: Path) -> str | None:
    """Return the last git revision that changed anything in a folder, with a `+` where there are changes after it.

    Revisions that changed other things only, such as documents, are the same version of the code. None where the folder is
    not under version control.
    """
    try:
        last, changed = (
            subprocess.run(["git", *command, "--", "."], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
            for command in (["log", "-1", "--format=%H"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    revision = last.stdout.strip()
    return f"{revision}{'+' if changed.stdout.strip() else ''}" if revision else None
