"""Engines play jobs somewhere. To add one is to write one class with a name and `run`."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rmab.study.spec import Job

__all__ = ["ATTEMPTS", "Engine", "Outcome"]

ATTEMPTS = 3  # how many workers may die over one job


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes
    ----------
    job : Job
        The job.
    failure : str
        Empty where its file is written; otherwise one line on why not.
    trace : str
        Where the failure was raised, if it was.
    """

    job: Job
    failure: str = ""
    trace: str = field(default="", compare=False, repr=False)


class Engine(Protocol):
    """Plays jobs and sees to it that their shards reach the folder.

    `run` takes jobs from the iterable as it has room for them, writes each shard in one move (`write_shard`), and yields an
    outcome per job, in any order; it holds no results. A job whose task or learner raises is not played again; one whose
    worker dies is, up to ATTEMPTS times. What concerns the whole study is raised: FileError where the folder cannot be
    written, StudyError where there are no workers. When the generator is closed, everything it started has ended.
    """

    @property
    def name(self) -> str:
        """The name of the engine in the provenance of its runs."""

    def run(self, jobs: Iterable[Job], folder: Path) -> Generator[Outcome, None, None]:
        """Play all jobs, and yield an outcome for each."""
