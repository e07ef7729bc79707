"""Numbers of a study: its table of episodes by task and learner, with statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rmab.common import cached_property
from rmab.errors import ModelError, many
from rmab.report.cells import NUMBERS, PAPERS, SIZES, Cell, Page, pair_of
from rmab.report.scalings import Scaling, scalings_of
from rmab.report.statistics import holm

if TYPE_CHECKING:
    import pyarrow as pa

    from rmab.study import Study

COLUMNS = ["task", "learner", "privileged", "round", "episode", *NUMBERS, *SIZES]


@dataclass(frozen=True, eq=False)
class Summary:
    """Numbers of the whole study: a page per task, scalings if it is about growth or many arms, and run counts."""

    study: Study
    pages: tuple[Page, ...]
    scalings: tuple[Scaling, ...]
    expected: int
    finished: int

    @cached_property
    def learners(self) -> list[str]:
        """Learners with results, in the study's order."""
        found = {cell.learner for page in self.pages for cell in page.cells}
        return [spec.label for spec in self.study.learners if spec.label in found]

    @property
    def missing(self) -> list[tuple[str, str, int, int]]:
        """(task, learner, missing rounds, expected rounds) where rounds are missing."""
        there = {(cell.task, cell.learner): cell.rounds.size for page in self.pages for cell in page.cells}
        keys = [(task.label, learner.label) for task in self.study.tasks for learner in self.study.learners]
        most = {task.label: self.study.rounds_of(task) for task in self.study.tasks}
        left = [(*key, most[key[0]] - there.get(key, 0), most[key[0]]) for key in keys]
        return [one for one in left if one[2] > 0]

    def __repr__(self) -> str:
        return f"Summary({self.study.name}, {many(len(self.pages), 'task')}, {self.finished} of {self.expected} runs)"


def summarise(study: Study, table: pa.Table) -> Summary:
    """Return the statistics of a study's table of episodes; ModelError if no run is finished."""
    if table.num_rows == 0:
        raise ModelError(f"study {study.name}: no run is finished; run `rmab study run` first")
    cells = _cells(study, table)
    pages = tuple(
        _page(task.label, [cell for cell in cells if cell.task == task.label], task.stronger) for task in study.tasks
    )
    filled = tuple(page for page in pages if page.cells)
    expected = sum(study.rounds_of(task) for task in study.tasks) * len(study.learners)
    return Summary(study, filled, scalings_of(study, filled), expected, sum(cell.rounds.size for cell in cells))


def _page(task: str, cells: list[Cell], stronger: str = "") -> Page:
    pairs = [pair for a, b in combinations(cells, 2) if (pair := pair_of(a, b)) is not None]
    return Page(task, tuple(cells), tuple(holm(pairs)), stronger)


def _cells(study: Study, table: pa.Table) -> list[Cell]:
    """Sort the rows once and divide them into blocks (R, T) by task and learner, in the study's order."""
    named = [table.column(key).combine_chunks().dictionary_encode() for key in ("task", "learner")]
    task, learner = (one.indices.to_numpy() for one in named)
    order = np.lexsort((table.column("episode").to_numpy(), table.column("round").to_numpy(), learner, task))
    numbers = {key: table.column(key).to_numpy()[order] for key in (*NUMBERS, *SIZES, "round", "episode")}
    changes = np.flatnonzero(np.diff(task[order]) | np.diff(learner[order])) + 1
    blocks, privileges = {}, {}
    for rows in map(slice, [0, *changes], [*changes, order.size]):
        first = int(order[rows.start])
        key = (named[0][first].as_py(), named[1][first].as_py())
        blocks[key], privileges[key] = rows, str(table.column("privileged")[first].as_py() or "")
    published = {one.label for one in study.learners if one.name == PAPERS and not one.options}
    found = []
    for spec in study.tasks:
        keys = [(spec.label, one.label) for one in study.learners if (spec.label, one.label) in blocks]
        found += [_cell(key, numbers, blocks[key], privileges[key], key[1] in published) for key in keys]
    return found


def _cell(key: tuple[str, str], numbers: Mapping[str, Any], rows: slice, privileged: str, published: bool) -> Cell:
    rounds, counts = np.unique(numbers["round"][rows], return_counts=True)
    if (counts != counts[0]).any() or (numbers["episode"][rows] != np.tile(np.arange(counts[0]), rounds.size)).any():
        raise ModelError(
            f"task {key[0]}, learner {key[1]}: its rounds have different numbers of episodes; run the damaged ones again"
        )
    shape = (rounds.size, int(counts[0]))
    columns = {name: np.asarray(numbers[name][rows], dtype=np.float64).reshape(shape) for name in NUMBERS}
    sizes = {name: int(np.nan_to_num(numbers[name][rows.start])) for name in SIZES}  # null in runs of an older format: 0
    return Cell(*key, privileged, published, rounds, columns, sizes)
