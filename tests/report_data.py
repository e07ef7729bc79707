"""Studies that were really played, small, and what a report needs of their results."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import rmab


@dataclass(frozen=True)
class Spec:
    name: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)
    feedback: str | None = None


@dataclass(frozen=True)
class Study:
    name: str
    rounds: int
    tasks: list[Spec]
    learners: list[Spec]
    kind: str = "learning"
    title: str = ""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Results:
    """Stands in for the results of a study: a table in memory."""

    study: Study
    rows: pa.Table

    def table(self, columns: list[str] | None = None) -> pa.Table:
        return self.rows if columns is None else self.rows.select(columns)

    def provenance(self) -> list[dict[str, Any]]:
        runs = self.rows.select(["id", "seed"]).to_pandas().drop_duplicates()
        same = {"version": "0.1.0", "revision": None, "study_hash": "abc", "engine": "local", "started": "2026-01-01T00:00:00+00:00"}
        return [{**same, "seed": seed, "seconds": 1.5} for seed in runs["seed"]]


def play(task: Spec, learner: Spec, number: int) -> pa.Table:
    """One run as a shard of a study."""
    game = rmab.task(task.name, seed=number, feedback=learner.feedback or "bandit", **task.options)
    run = rmab.run(game, rmab.learner(learner.name, **learner.options), number)
    columns: dict[str, Any] = run.to_table()
    view = game.view()
    fixed = {
        "id": f"{task.label}.{learner.label}.{number}",
        "task": task.label,
        "learner": learner.label,
        "feedback": game.feedback,
        "privileged": run.privileged,
        "round": number,
        "seed": number,
        "arms": view.arms,
        "budget": view.budget,
        "horizon": view.horizon,
    }
    columns |= {key: np.full(run.reward.size, value) for key, value in fixed.items()}
    return pa.table(columns | {"theory": rmab.theory_curve(view)})


def played(study: Study) -> Results:
    """Play all runs."""
    shards = [play(task, learner, k) for task in study.tasks for learner in study.learners for k in range(study.rounds)]
    return Results(study, pa.concat_tables(shards))


SMALL = {"arms": 4, "budget": 2, "horizon": 8}
HONEST = [Spec("ucmd-armab", "ucmd-armab"), Spec("ucmd", "ucmd"), Spec("random", "random")]
EVERYONE = [*HONEST, Spec("ucmd", "ucmd, full feedback", {}, "full"), Spec("oracle", "oracle")]


@cache
def learning() -> Results:
    """Two tasks, five learners, four rounds."""
    tasks = [Spec(name, name, {**SMALL, "episodes": 12}) for name in ("cpap@noisy", "cpap@switching")]
    return played(Study("small", 4, tasks, EVERYONE, title="Five learners on two tasks"))


@cache
def growth() -> Results:
    """Three lengths against two adversaries, three learners, three rounds."""
    lengths = (6, 12, 24)
    tasks = [
        Spec(name, f"{name}, T={one}", {**SMALL, "episodes": one}) for name in ("cpap@noisy", "cpap@switching") for one in lengths
    ]
    return played(Study("growth", 3, tasks, HONEST, "growth"))


@cache
def asymptotic() -> Results:
    """Three sizes, two learners, three rounds."""
    tasks = [Spec("cpap", f"cpap, N={4 * k}", {"horizon": 8, "episodes": 5, "arms": 4 * k, "budget": 2 * k}) for k in (1, 2, 4)]
    return played(Study("many arms", 3, tasks, [Spec("oracle", "oracle"), Spec("random", "random")], "asymptotic"))
