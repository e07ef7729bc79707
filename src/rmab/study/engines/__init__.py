"""Engines execute jobs. A custom engine is a class with a name and `run`."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rmab.study.spec import Job

__all__ = ["ATTEMPTS", "Engine", "Outcome"]

ATTEMPTS = 3  # maximum number of workers that may die during one job


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job.

    Attributes
    ----------
    job : Job
        The job.
    failure : str
        Empty if its file was written; otherwise the reason, in one line.
    trace : str
        Traceback of the exception, if there was one.
    """

    job: Job
    failure: str = ""
    trace: str = field(default="", compare=False, repr=False)


class Engine(Protocol):
    """Executes jobs and writes their shards to the folder.

    `run` takes jobs from the iterable as it has capacity, writes each shard atomically (`write_shard`), and yields an
    outcome per job, in any order; it keeps no results. A job whose task or learner raises is not repeated; a job whose
    worker dies is, up to ATTEMPTS times. Problems of the whole study are raised: FileError if the folder cannot be
    written, StudyError if there are no workers. When the generator is closed, all its processes have ended.
    """

    @property
    def name(self) -> str:
        """Name of the engine in the provenance of its runs."""

    def run(self, jobs: Iterable[Job], folder: Path) -> Generator[Outcome, None, None]:
        """Execute all jobs and yield an outcome for each."""
