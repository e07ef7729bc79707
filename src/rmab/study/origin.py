"""Provenance of a run: version and revision of the library, and the source of custom tasks and learners."""

import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import rmab
from rmab.study.build import files_of, modules_of, source_of
from rmab.study.results import Results
from rmab.study.spec import Job, Study


def origin(job: Job) -> dict[str, str | None]:
    """Return version and revision of the library's source, and the SHA-256 of the modules of custom tasks and learners."""
    sources = {"source": source_of(job.learner), "task_source": source_of(job.task)}
    return {"version": rmab.__version__, "revision": revision(), **sources}


@dataclass(frozen=True)
class Changes:
    """Changes of code since the finished runs of a study.

    Attributes
    ----------
    library : str
        One line if finished runs used another version of the library; empty otherwise.
    outdated : dict of str to tuple of str
        Ids of finished runs whose source has changed, by custom task or learner, such as `learner mine`.
    """

    library: str
    outdated: dict[str, tuple[str, ...]]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all outdated runs."""
        return frozenset(one for ids in self.outdated.values() for one in ids)


def changes_since(study: Study, folder: Path) -> Changes:
    """Compare the library and custom tasks and learners with those of the finished runs in a study's folder."""
    if not (folder / "study.json").exists():
        return Changes("", {})
    there, library, jobs = Results(folder, study), "", study.jobs()
    entries = {f"learner {one.label}": one for one in study.learners} | {f"task {one.label}": one for one in study.tasks}
    now = {what: source_of(one, on_disk=True) for what, one in entries.items() if modules_of(one) or files_of(one)}
    unseen = {one.label for one in study.learners}
    for job, then in there.origins(jobs):  # the first finished run of each learner
        if then is not None and job.learner.label in unseen:
            unseen.remove(job.learner.label)
            here = origin(job)
            if then.get("version") != here["version"] or _differ(then.get("revision"), here["revision"]):
                library = f"finished runs used {_format_version(then)}, this is {_format_version(here)}: results may differ"
        if library or not unseen:
            break
    outdated: dict[str, list[str]] = {}
    custom = [job for job in jobs if {f"task {job.task.label}", f"learner {job.learner.label}"} & now.keys()]
    for job, known in there.origins(custom):
        for what, key in ((f"learner {job.learner.label}", "source"), (f"task {job.task.label}", "task_source")):
            if known is not None and _differ(known.get(key), now.get(what)):
                outdated.setdefault(what, []).append(job.id)
    return Changes(library, {what: tuple(ids) for what, ids in outdated.items()})


def _differ(then: object, now: object) -> bool:
    """Return whether both are known and different."""
    return then is not None and now is not None and then != now


def _format_version(known: dict[str, Any]) -> str:
    revision = known.get("revision")
    return f"rmab {known.get('version')}" + (f" (revision {short(revision)})" if revision else "")


def short(revision: str) -> str:
    """Shorten a revision to its first ten characters, and the `+` of uncommitted changes."""
    return revision[:10] + revision[40:]


@lru_cache(maxsize=1)
def revision() -> str | None:
    """Return the revision of the library's source; None if it is installed or not under version control."""
    return revision_of(Path(rmab.__file__).parent)


def revision_of(folder: Path) -> str | None:
    """Return the last git revision that changed a folder, with a `+` if there are uncommitted changes.

    Revisions that changed only other folders, such as documents, are the same version of the code. None if the folder is
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
