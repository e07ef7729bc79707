"""Small studies that were really played, as folders of results (played once and kept), and cells made by hand."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rmab.report.cells import Cell, Page
from rmab.report.summary import Summary, _page
from rmab.study import Results, Study, play
from rmab.study.shards import encode_table, write_shard

SMALL = {"arms": 4, "budget": 2, "horizon": 8}
HONEST: list[dict[str, Any]] = [{"name": "ucmd-armab"}, {"name": "ucmd"}, {"name": "random"}]
EVERYONE = [*HONEST, {"name": "ucmd", "feedback": "full"}, {"name": "oracle"}]


@cache
def learning() -> Study:
    """Two tasks, five learners, four rounds."""
    tasks = [{"name": name, "options": {**SMALL, "episodes": 12}} for name in ("cpap@noisy", "cpap@switching")]
    return _study("small", 4, tasks, EVERYONE, title="Five learners on two tasks")


@cache
def growth() -> Study:
    """Three lengths against two adversaries, three learners, three rounds."""
    tasks = [
        {"name": name, "label": f"{name}, T={length}", "options": {**SMALL, "episodes": length}}
        for name in ("cpap@noisy", "cpap@switching")
        for length in (6, 12, 24)
    ]
    return _study("longer", 3, tasks, HONEST, kind="growth")


@cache
def asymptotic() -> Study:
    """Three sizes, two learners, three rounds."""
    tasks = [
        {
            "name": "cpap",
            "label": f"cpap, N={4 * k}",
            "options": {"horizon": 8, "episodes": 5, "arms": 4 * k, "budget": 2 * k},
        }
        for k in (1, 2, 4)
    ]
    return _study("larger", 3, tasks, [{"name": "oracle"}, {"name": "random"}], kind="asymptotic")


def cell(
    learner: str,
    totals: list[float],
    *,
    task: str = "task",
    privileged: str = "",
    published: bool = False,
    bound: float = 10.0,
    chance: float = 0.0,
    adaptive: bool = False,
    first: int = 0,
) -> Cell:
    """One episode, one round for each total (the first has this number), against a comparator that earns the bound."""
    reward = np.array(totals)[:, None]
    columns = {f"regret_{to}": bound - reward for to in ("O1", "O2", "O3")} | {
        f"term{k}": np.full_like(reward, np.nan) for k in range(4)
    }
    columns |= {
        "reward": reward,
        "bound": np.full_like(reward, bound),
        "random": np.full_like(reward, chance),
        "seconds": reward * 0,
        "theory": np.full_like(reward, 5.0),
    }
    rounds = first + np.arange(len(totals))
    return Cell(
        task,
        learner,
        privileged,
        published,
        rounds,
        columns,
        {"arms": 2, "budget": 1, "horizon": 3, "adaptive": int(adaptive)},
    )


def page(*cells: Cell) -> Page:
    """One task, as the summary of a study has it."""
    return _page(cells[0].task, list(cells))


def summary(*pages: Page, rounds: int | None = None) -> Summary:
    """A study of which these pages are all that has been played."""
    cells = [one for found in pages for one in found.cells]
    most = max(one.rounds.size for one in cells)
    tasks = [{"name": "cpap", "label": found.task, "options": {"arms": 4 + k}} for k, found in enumerate(pages)]
    learners = [{"name": "random", "label": label} for label in dict.fromkeys(one.learner for one in cells)]
    study = _study("made", rounds or most, tasks, learners)
    expected = sum(map(study.rounds_of, study.tasks)) * len(learners)
    return Summary(study, pages, (), expected, sum(one.rounds.size for one in cells))


def _study(name: str, rounds: int, tasks: list[dict[str, Any]], learners: list[dict[str, Any]], **rest: Any) -> Study:
    return Study.model_validate({"name": name, "rounds": rounds, "tasks": tasks, "learners": learners, **rest})


_PLAYED: dict[str, bytes] = {}


def results(study: Study, folder: Path, *, without: int = 0) -> Results:
    """Put all runs but the last so many into a folder, as a study does."""
    (folder / "runs").mkdir(parents=True)
    found = Results(folder, study)
    found.save()
    jobs = study.jobs()
    for job in jobs[: len(jobs) - without]:
        if job.id not in _PLAYED:
            _PLAYED[job.id] = encode_table(play(job))
        write_shard(folder, job.id, _PLAYED[job.id])
    return found
