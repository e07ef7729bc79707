"""The folder of a study: `study.json`, a shard per run in `runs/`, and reasons of failed runs in `failures/`."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

import rmab
from rmab.common import check_memory, cores, parse_json, require, write_atomically
from rmab.errors import FileError, ModelError
from rmab.study.failures import Failure, read_failures
from rmab.study.shards import FORMAT, SCHEMA, NewerFormatError, checked_format, provenance_of, read_shard, shard_path
from rmab.study.spec import Job, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

PIECE = 256  # shards that are read together
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Status:
    """Progress of a study.

    Attributes
    ----------
    total, finished, missing, damaged : int
        Numbers of all runs, and of those that are finished, missing, or unreadable.
    failures : tuple of Failure
        Runs whose last attempt failed.
    """

    total: int
    finished: int
    missing: int
    damaged: int
    failures: tuple[Failure, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all runs are finished."""
        return self.finished == self.total


@dataclass(frozen=True, eq=False)
class Results:
    """Results in a study's folder. Nothing is cached: each call reads the folder as it is now.

    Parameters
    ----------
    folder : Path
        The folder; `Results.open` reads which study it belongs to.
    study : Study
        The study.

    Examples
    --------
    >>> import tempfile
    >>> from rmab.study import LocalEngine, Results, Study, run_study
    >>> task = {"name": "cpap", "options": {"arms": 4, "budget": 2, "horizon": 5, "episodes": 3}}
    >>> study = Study(name="small", rounds=1, tasks=[task], learners=[{"name": "random"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     status = run_study(study, folder, engine=LocalEngine(1))
    ...     table = Results.open(folder).table(["learner", "episode", "reward"])
    >>> status.complete, table.num_rows, table.column_names
    (True, 3, ['learner', 'episode', 'reward'])
    """

    folder: Path
    study: Study

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Results":
        """Open the folder of a study that was run, at least in part."""
        path = Path(folder) / "study.json"
        try:
            whole = parse_json(path.read_text(encoding="utf-8"))
            checked_format(path, whole.get("format", 1))
            return cls(Path(folder), Study.model_validate(whole["study"]))
        except NewerFormatError:
            raise
        except OSError as error:
            raise FileError(f"{path}: cannot be read ({error.strerror or error}): not the folder of a study") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise FileError(f"{path}: does not describe a study ({reason})") from error

    def save(self) -> None:
        """Write `study.json`, atomically."""
        known = {"format": FORMAT, "version": rmab.__version__, "hash": self.study.hash}
        text = json.dumps({**known, "study": self.study.model_dump()}, indent=1)
        write_atomically(self.folder / "study.json", text.encode() + b"\n")

    def status(self) -> Status:
        """Read all shards and return the progress of the study; raise FileError if a newer library wrote one."""
        found = list(self.checked(self.study.jobs()))
        marks = [mark for _, mark in found]
        finished, missing = marks.count("finished"), marks.count("missing")
        failures = read_failures(self.folder, (job.id for job, mark in found if mark in ("missing", "damaged")))
        return Status(len(marks), finished, missing, len(marks) - finished - missing, failures)

    def checked(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str]]:
        """Yield each job with `finished`, `missing` or `damaged`, after reading and checking all data."""
        return self._each(jobs, lambda _, mark: mark)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all finished runs, one row per episode, in the order of the study's jobs. Damaged runs count as missing.

        Runs of older versions of the library have nulls in columns that were added since.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to return; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ModelError
            If there is no such column.
        FileError
            If a run was written by a newer version of the library.
        """
        return self.read(columns)[0]

    def read(self, columns: Sequence[str] | None = None) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return `table` and `provenance`, reading each file once."""
        if unknown := sorted(set(columns or ()) - set(SCHEMA.names)):
            raise ModelError(f"unknown column {', '.join(unknown)}; available: {', '.join(SCHEMA.names)}")
        schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])

        def select(table: pa.Table | None, _: str) -> tuple[pa.Table, dict[str, Any]] | None:
            if table is None:
                return None
            return table.select(schema.names).replace_schema_metadata(), provenance_of(table.schema)

        found = [one for _, one in self._each(self.study.jobs(), select) if one is not None]
        return pa.concat_tables([schema.empty_table(), *(table for table, _ in found)]), [known for _, known in found]

    def provenance(self) -> list[dict[str, Any]]:
        """Return version, revision, seed, engine and times of each finished run."""
        return [known for _, known in self.origins(self.study.jobs()) if known is not None]

    def origins(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any] | None]]:
        """Yield each job with the provenance of its run; None if it is not finished."""
        return self._each(jobs, lambda table, _: None if table is None else provenance_of(table.schema))

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return `table` as a data frame."""
        _import_extra("pandas")
        return self.table(columns).to_pandas(self_destruct=True)

    def to_xarray(self) -> "xr.Dataset":
        """Return all results as arrays (task, learner, round, episode), NaN for missing runs and episodes."""
        _import_extra("xarray")
        axes = ("task", "learner", "round", "episode")
        frame = self.to_pandas([one.name for one in SCHEMA if one.name in axes or not pa.types.is_string(one.type)])
        tasks, learners = [one.label for one in self.study.tasks], [one.label for one in self.study.learners]
        longest = 0 if frame.empty else int(frame["episode"].max()) + 1
        shape = (len(tasks), len(learners), self.study.rounds, longest)
        size = 8.0 * np.prod(shape, dtype=float) * len(SCHEMA.names)
        check_memory(f"arrays (task, learner, round, episode) = {shape}", size)
        cube: xr.Dataset = frame.set_index([*axes]).astype(float).to_xarray()
        return cube.reindex(dict(zip(axes, (tasks, learners, range(shape[2]), range(longest)), strict=True)))

    def _each(self, jobs: Sequence[Job], use: Callable[[pa.Table | None, str], Answer]) -> Iterator[tuple[Job, Answer]]:
        """Yield each job, in order, with the result of `use` for its shard (None if it cannot be read) and its mark."""

        def look(job: Job) -> Answer:
            try:
                table = read_shard(shard_path(self.folder, job.id), job.id)
            except NewerFormatError:
                raise
            except FileError:
                return use(None, "damaged")  # counted by `status`, recomputed by the next run
            return use(table, "missing" if table is None else "finished")

        with ThreadPoolExecutor(cores()) as pool:
            for first in range(0, len(jobs), PIECE):
                piece = jobs[first : first + PIECE]
                yield from zip(piece, pool.map(look, piece), strict=True)


def _import_extra(module: str) -> Any:
    require(module, "this")
    return import_module(module)
