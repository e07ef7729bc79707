"""What a study found, as numbers: its table of episodes, divided by task and learner, and the statistics of each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.forks import cached_property
from rmab.common.words import many
from rmab.errors import ModelError
from rmab.model.adversaries import STRONGER
from rmab.report.statistics import Interval, Paired, Power, holm, interval, paired, power

if TYPE_CHECKING:
    import pyarrow as pa

    from rmab.study import Study, TaskSpec

COMPARATORS = ("O1", "O2", "O3")
TERMS = (
    "Term 0: over-estimation",
    "Term 1: plan, by mirror descent in the paper",
    "Term 2: reward estimator",
    "Term 3: index policy",
)
NUMBERS = (
    "reward",
    "bound",
    "seconds",
    "theory",
    *(f"regret_{which}" for which in COMPARATORS),
    *(f"term{k}" for k in range(4)),
)
SIZES = ("arms", "budget", "horizon")
COLUMNS = ["task", "learner", "privileged", "round", "episode", *NUMBERS, *SIZES]
PAPERS = "ucmd-armab"
ROUNDING = 1e-9  # of what was earned: a smaller loss counts as 0


@dataclass(frozen=True, eq=False)
class Cell:
    """All finished rounds of one learner on one task: rounds (R,) ascending, columns (R, T), sizes arms, budget, horizon.

    privileged says what the learner knows that no real programme does, and is empty if nothing; published says whether it is
    exactly the paper's learner, for which the theorem holds.
    """

    task: str
    learner: str
    privileged: str
    published: bool
    rounds: IntArray
    columns: Mapping[str, FloatArray]
    sizes: Mapping[str, int]

    @property
    def episodes(self) -> int:
        """The number T of episodes."""
        return int(self.columns["reward"].shape[1])

    @property
    def theory(self) -> FloatArray:
        """(T,) the theorem's bound on the regret of the paper's learner."""
        return np.asarray(self.columns["theory"].mean(axis=0))

    @cached_property
    def totals(self) -> FloatArray:
        """(R,) the total reward of each round."""
        return np.asarray(self.columns["reward"].sum(axis=1))

    def regret(self, to: str) -> FloatArray:
        """(R, T) accumulated regret to the comparator 'O1', 'O2' or 'O3'."""
        return self.columns[f"regret_{to}"]

    def relative(self, to: str) -> Interval:
        """Return the mean over rounds of the total regret, relative to what the comparator earns; NaN where that is 0."""
        lost = self.regret(to)[:, -1]
        earned = np.abs(self.totals + lost)
        return interval(lost / np.where(earned > 0, earned, np.nan))

    @cached_property
    def terms(self) -> tuple[Interval, ...] | None:
        """Term0 to Term3, summed over the episodes; None if the learner has no occupancies or estimates."""
        sums = [self.columns[f"term{k}"].sum(axis=1) for k in range(4)]
        return None if np.isnan(sums).any() else tuple(interval(one) for one in sums)

    @cached_property
    def seconds(self) -> Interval:
        """Wall time per episode."""
        return interval(self.columns["seconds"].mean(axis=1))

    def __repr__(self) -> str:
        return f"Cell({self.learner} on {self.task}, {many(self.rounds.size, 'round')}, {many(self.episodes, 'episode')})"


@dataclass(frozen=True, eq=False)
class Page:
    """One task: its learners in the study's order, and the comparisons of all pairs, corrected by Holm.

    stronger says whether its adversary is a built-in one that is stronger than the paper's.
    """

    task: str
    cells: tuple[Cell, ...]
    pairs: tuple[Paired, ...]
    stronger: bool = False

    @property
    def rivals(self) -> list[Cell]:
        """The learners without privileges (or all, if all are privileged), the best mean reward first."""
        honest = [cell for cell in self.cells if not cell.privileged]
        return sorted(honest or self.cells, key=lambda cell: -float(cell.totals.mean()))

    @property
    def papers(self) -> Cell | None:
        """The paper's learner, as published and without privileges, if it plays."""
        return next((cell for cell in self.cells if cell.published and not cell.privileged), None)

    def pair(self, first: Cell, second: Cell) -> Paired | None:
        """Compare the first with the second, with the corrected p-value; None if they have no common round."""
        names = {first.learner, second.learner}
        found = next((one for one in self.pairs if {one.first, one.second} == names), None)
        if found is None or found.first == first.learner:
            return found
        turned = _pair(first, second)
        return None if turned is None else replace(turned, adjusted=found.adjusted)

    def level(self, cell: Cell) -> bool:
        """Whether this learner cannot be told apart from the best rival, be it for lack of a common round."""
        found = self.pair(self.rivals[0], cell)
        return self.rivals[0] is cell or found is None or not found.told

    def __repr__(self) -> str:
        return f"Page({self.task}, {many(len(self.cells), 'learner')})"


@dataclass(frozen=True, eq=False)
class Scaling:
    """How one learner's loss (L, R) in the common rounds changes with a size (L,), the number of episodes or arms."""

    group: str
    learner: str
    sizes: FloatArray
    values: FloatArray
    fit: Power | None

    @property
    def sure(self) -> bool:
        """Whether the fitted exponent has an interval."""
        return self.fit is not None and bool(np.isfinite(self.fit.exponent.half))

    @property
    def means(self) -> list[Interval]:
        """One interval for every size."""
        return [interval(row) for row in self.values]

    def __repr__(self) -> str:
        return f"Scaling({self.learner} on {self.group}, {many(self.sizes.size, 'size')})"


@dataclass(frozen=True, eq=False)
class Summary:
    """The whole study: a page per task, scalings if it is about growth or many arms, and how many runs are finished."""

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
        raise ModelError(f"study {study.name}: no run is finished, so there is nothing to report")
    cells = _cells(study, table)
    pages = tuple(
        _page(task.label, [cell for cell in cells if cell.task == task.label], task.name.partition("@")[2] in STRONGER)
        for task in study.tasks
    )
    filled = tuple(page for page in pages if page.cells)
    expected = sum(study.rounds_of(task) for task in study.tasks) * len(study.learners)
    return Summary(study, filled, _scalings(study, filled), expected, sum(cell.rounds.size for cell in cells))


def _page(task: str, cells: list[Cell], stronger: bool = False) -> Page:
    pairs = [pair for a, b in combinations(cells, 2) if (pair := _pair(a, b)) is not None]
    return Page(task, tuple(cells), tuple(holm(pairs)), stronger)


def _pair(first: Cell, second: Cell) -> Paired | None:
    common, left, right = np.intersect1d(first.rounds, second.rounds, assume_unique=True, return_indices=True)
    if common.size == 0:
        return None
    return paired(first.learner, second.learner, first.totals[left], second.totals[right])


def _cells(study: Study, table: pa.Table) -> list[Cell]:
    """Sort the rows once and divide them into blocks (R, T) by task and learner, in the study's order."""
    named = [table.column(key).combine_chunks().dictionary_encode() for key in ("task", "learner")]
    task, learner = (one.indices.to_numpy() for one in named)
    order = np.lexsort((table.column("episode").to_numpy(), table.column("round").to_numpy(), learner, task))
    numbers = {key: table.column(key).to_numpy()[order] for key in (*NUMBERS, *SIZES, "round", "episode")}
    changes = np.flatnonzero(np.diff(task[order]) | np.diff(learner[order])) + 1
    blocks, told = {}, {}
    for rows in map(slice, [0, *changes], [*changes, order.size]):
        first = int(order[rows.start])
        key = (named[0][first].as_py(), named[1][first].as_py())
        blocks[key], told[key] = rows, str(table.column("privileged")[first].as_py() or "")
    published = {one.label for one in study.learners if one.name == PAPERS and not one.options}
    found = []
    for spec in study.tasks:
        keys = [(spec.label, one.label) for one in study.learners if (spec.label, one.label) in blocks]
        found += [_cell(key, numbers, blocks[key], told[key], key[1] in published) for key in keys]
    return found


def _cell(key: tuple[str, str], numbers: Mapping[str, Any], rows: slice, privileged: str, published: bool) -> Cell:
    rounds, counts = np.unique(numbers["round"][rows], return_counts=True)
    if (counts != counts[0]).any() or (numbers["episode"][rows] != np.tile(np.arange(counts[0]), rounds.size)).any():
        raise ModelError(f"task {key[0]}, learner {key[1]}: its rounds differ in their episodes; run the damaged ones again")
    shape = (rounds.size, int(counts[0]))
    columns = {name: np.asarray(numbers[name][rows], dtype=np.float64).reshape(shape) for name in NUMBERS}
    sizes = {name: int(numbers[name][rows.start]) for name in SIZES}
    return Cell(*key, privileged, published, rounds, columns, sizes)


def _scalings(study: Study, pages: tuple[Page, ...]) -> tuple[Scaling, ...]:
    """Group the tasks that differ only in size: regret to O2 against T, or regret to O1 per arm and episode against N.

    Growth uses O2, because the gap of O1 grows with T whatever is learned; many arms use O1, whose gap is the question.
    """
    if study.kind == "learning":
        return ()
    grown = {"episodes"} if study.kind == "growth" else {"arms", "budget", "copies"}
    families = {spec.label: _family(spec, grown) for spec in study.tasks}
    if len({name for name, _ in families.values()}) == len(set(families.values())):
        families = {label: (name, "") for label, (name, _) in families.items()}  # the names are enough to tell them apart
    groups: dict[tuple[str, str], list[Cell]] = {}
    for page in pages:
        for cell in page.cells:
            groups.setdefault(("".join(families[page.task]), cell.learner), []).append(cell)
    made = [_scaling(key, cells, study.kind) for key, cells in groups.items()]
    return tuple(one for one in made if one.sizes.size and one.values.size)


def _family(spec: TaskSpec, grown: set[str]) -> tuple[str, str]:
    """Return the name of a task, and its options other than the sizes that grow."""
    fixed = ", ".join(f"{key} {value}" for key, value in sorted(spec.options.items()) if key not in grown)
    return spec.name, f" ({fixed})" if fixed else ""


def _scaling(key: tuple[str, str], cells: list[Cell], kind: str) -> Scaling:
    def size(cell: Cell) -> int:
        return cell.episodes if kind == "growth" else cell.sizes["arms"]

    cells = sorted(cells, key=size)
    common = set.intersection(*(set(cell.rounds.tolist()) for cell in cells))
    rows = []
    for cell in cells:
        kept = np.isin(cell.rounds, sorted(common))
        lost = cell.regret("O2" if kind == "growth" else "O1")[kept, -1]
        lost = np.where(np.abs(lost) > ROUNDING * np.abs(cell.totals[kept]), lost, 0.0)
        rows.append(lost if kind == "growth" else lost / cell.sizes["arms"] / cell.episodes)
    sizes, values = np.array([size(cell) for cell in cells], dtype=np.float64), np.array(rows)
    return Scaling(*key, sizes, values, power(sizes, values))
