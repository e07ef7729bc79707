"""One run of a study: execute a job and return a table with its provenance."""

import time
import traceback
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.runs.comparators import theory_curve
from rmab.runs.record import RunResult
from rmab.runs.running import run
from rmab.study.build import learner_of, task_of
from rmab.study.origin import origin
from rmab.study.shards import SCHEMA, encode_table, with_provenance
from rmab.study.spec import Job


def play(job: Job, engine: str = "none") -> pa.Table:
    """Execute one run of a study.

    Parameters
    ----------
    job : Job
        The run.
    engine : str, optional
        Name of the engine, for the provenance.

    Returns
    -------
    pyarrow.Table
        One row per episode; version, seed, engine and times are in the metadata of its schema.
    """
    started, begin = datetime.now(UTC), time.perf_counter()
    game, player = task_of(job.task, job.seed), learner_of(job.learner)
    table = _tidy(job, run(game, player, job.seed, feedback=job.learner.feedback))
    times = {"started": started.isoformat(timespec="seconds"), "seconds": round(time.perf_counter() - begin, 6)}
    return with_provenance(table, {**_origin(job), "episodes": table.num_rows, "engine": engine, **times})


def attempt(job: Job, engine: str) -> tuple[bytes | None, str, str]:
    """Execute a job for an engine; return (shard, "", ""), or (None, error in one line, traceback)."""
    try:
        return encode_table(play(job, engine)), "", ""
    except (Exception, SystemExit) as error:  # noqa: BLE001  (custom code may raise anything; it is recorded)
        return None, " ".join(f"{type(error).__name__}: {error}".split()), traceback.format_exc()


def attempt_text(text: str, engine: str) -> tuple[bytes | None, str, str]:
    """Execute a job that came as text; see attempt."""
    return attempt(Job.from_text(text), engine)


def _tidy(job: Job, played: RunResult) -> pa.Table:
    game, view = played.task, played.task.view()
    constant: dict[str, Any] = {
        "id": job.id,
        "task": job.task.label,
        "learner": job.learner.label,
        "feedback": game.feedback,
        "privileged": played.privileged,
        "round": job.round,
        "seed": job.seed,
        "arms": view.arms,
        "budget": int(view.budgets.max()),  # the largest, if it changes between steps
        "horizon": view.horizon,
        "adaptive": int(game.adversary.adaptive),
    }
    columns: dict[str, Any] = {name: np.full(game.episodes, value) for name, value in constant.items()}
    columns |= {**played.to_table(), "theory": theory_curve(view)}
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def _origin(job: Job) -> dict[str, Any]:
    entries = {"task": job.task.model_dump(), "learner": job.learner.model_dump(), "round": job.round}
    return {"id": job.id, "study": job.study_hash, "seed": job.seed, "job": entries, **origin(job)}
