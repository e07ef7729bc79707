"""Where a run comes from: the library's version and revision, and the source of a learner of one's own."""

import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import rmab
from rmab.errors import FileError
from rmab.study.results import Results
from rmab.study.shards import provenance_of, read_shard, shard_path
from rmab.study.spec import LearnerSpec, Study

__all__ = ["changes_since", "origin"]


def origin(spec: LearnerSpec) -> dict[str, str | None]:
    """Return version and git revision of the library, and the SHA-256 of the module of a learner of one's own."""
    return {"version": rmab.__version__, "revision": _revision(), "source": _source(spec.name)}


def changes_since(study: Study, folder: Path) -> list[str]:
    """Return a line for the library, and one per learner of one's own, that is another than that of finished runs.

    Cheap: of every learner only the first finished run is looked at. The study must be one that can be made.
    """
    if not (folder / "study.json").exists():
        return []
    there, lines = Results.open(folder), dict[str, str]()
    for spec, then in _first_runs(study, folder, (study.hash, there.study.hash, *there.adopted)):
        now = origin(spec)
        if then.get("version") != now["version"] or _differ(then.get("revision"), now["revision"]):
            before, here = _named(then), _named(now)
            lines.setdefault("library", f"finished runs are of {before}, here is {here}: results may differ")
        if _differ(then.get("source"), now["source"]):
            lines[spec.label] = f"the source of learner {spec.name} has changed since the first finished run of it"
    return list(lines.values())


def _first_runs(study: Study, folder: Path, hashes: tuple[str, ...]) -> Iterator[tuple[LearnerSpec, dict[str, Any]]]:
    """Yield every learner that has a finished run, with the provenance of the first one."""
    left = {one.label for one in study.learners}
    for job in study.jobs():
        if not left:
            return
        if job.learner.label not in left:
            continue
        try:
            table = read_shard(shard_path(folder, job.id), job.id, hashes)
        except FileError:
            continue  # damaged: it is played again
        if table is not None:
            left.remove(job.learner.label)
            yield job.learner, provenance_of(table.schema)


def _differ(then: object, now: object) -> bool:
    """Return whether both are known, and not the same."""
    return then is not None and now is not None and then != now


def _named(known: dict[str, Any]) -> str:
    revision = known.get("revision")
    return f"rmab {known.get('version')}" + (f" (revision {revision:.10})" if revision else "")


@lru_cache(maxsize=64)
def _source(name: str) -> str | None:
    """Return the digest of the file of `module:maker`; None for built-in learners, and modules without a file."""
    module, own, _ = name.partition(":")
    if not own:
        return None
    file = getattr(sys.modules.get(module) or import_module(module), "__file__", None)
    try:
        return sha256(Path(file).read_bytes()).hexdigest() if file else None
    except OSError:
        return None  # in an archive, or removed since: unknown, as the revision of an installed library


@lru_cache(maxsize=1)
def _revision() -> str | None:
    """Return the git revision of the library's own source; None where it is installed, or has no git around it."""
    here = Path(__file__)
    try:
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            answer = subprocess.run(
                ["git", *command], cwd=here.parent, capture_output=True, text=True, check=True, timeout=10
            ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.strip()
