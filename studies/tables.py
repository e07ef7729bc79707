"""What all pages share: summaries of studies, tables in Markdown, and which differences are significant."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from kept import Kept, version

from rmab.errors import many
from rmab.report.cells import Page
from rmab.report.numbers import number
from rmab.report.statistics import Interval, Paired, compare_pair, holm, interval
from rmab.report.summary import COLUMNS, Cell, Scaling, Summary, summarise
from rmab.study import Results, TaskSpec

Cells = dict[tuple[str, str], Cell]  # by task and learner
LEVEL = "°"  # marks what is not significantly different


@dataclass(frozen=True, eq=False)
class Found:
    """What a study found, and the versions of the library that found it."""

    summary: Summary
    runs: list[dict[str, Any]]

    @classmethod
    def of(cls, folder: Path) -> "Found":
        """Read a study's folder."""
        results = Results.open(folder)
        table, runs = results.read(COLUMNS)
        return cls(summarise(results.study, table), runs)

    @property
    def cells(self) -> Cells:
        """All cells, by task and learner."""
        return {(cell.task, cell.learner): cell for page in self.summary.pages for cell in page.cells}

    @property
    def pages(self) -> list[tuple[Page, TaskSpec]]:
        """All pages, each with the task of the study that it is about."""
        tasks = {task.label: task for task in self.summary.study.tasks}
        return [(page, tasks[page.task]) for page in self.summary.pages]

    @property
    def name(self) -> str:
        """The study's name."""
        return self.summary.study.name


def made_by(*found: Found | Kept) -> str:
    """Return the last lines of a page: studies and programs, version and computing time."""
    lines, programs, versions = [], [], set()
    for one in found:
        if isinstance(one, Kept):
            programs.append(f"`studies/{one.path.stem}.py`")
            versions |= set(one.versions)
            continue
        hours = sum(float(run.get("seconds") or 0.0) for run in one.runs) / 3600
        lines.append(f"`{one.name}` ({one.summary.finished} of {one.summary.expected} runs, {hours:.1f} hours of computing)")
        versions |= {version(run.get("version"), run.get("revision")) for run in one.runs}
    mixed = "" if len(versions) == 1 else " **These are several versions: run the studies again.**"
    what = "study" if len(lines) == 1 else "studies"
    also = f" and of {', '.join(programs)}" if programs else ""
    return f"Made by `make pages` of the {what} {', '.join(lines)}{also}, with {'; '.join(sorted(versions))}.{mixed}\n"


def rows(head: list[str], lines: list[list[str]], left: int) -> str:
    """Return a table in Markdown, with so many columns of text first."""
    marks = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, marks, *lines]) + "\n"


def per_cent(found: Interval) -> str:
    """Return a mean with the half width of its 95% interval, in per cent; a single round has no interval."""
    if not np.isfinite(found.mean):
        return "-"
    return f"{100 * found.mean:z.1f} ± {100 * found.half:.1f}" if found.count > 1 else f"{100 * found.mean:z.1f}"


def amount(found: Interval) -> str:
    """Return a mean of rewards or regrets with the half width of its interval."""
    return f"{found.mean:z,.0f} ± {found.half:,.0f}" if found.count > 1 else f"{found.mean:z,.0f}"


def exponent(scaling: Scaling | None) -> str:
    """Return the exponent with its interval, in words where there is none."""
    if scaling is None:
        return "not run"
    if scaling.fit is None:
        return "none: not positive"
    fit = scaling.fit.exponent
    return f"{fit.mean:z.2f} ({fit.low:z.2f} to {fit.high:z.2f})" if np.isfinite(fit.low) else f"{fit.mean:z.2f}"


def milliseconds(cells: Iterable[Cell]) -> str:
    """Return the time of the median episode, which has compiled nothing."""
    return number(1000 * float(np.median(np.concatenate([cell.columns["seconds"].ravel() for cell in cells]))), 3)


def by_parts(cell: Cell, number: int = 5) -> str:
    """Return the loss to O1 in equal parts of the run, in per cent of what chance loses there."""
    lost = np.diff(cell.regret("O1"), axis=1, prepend=0.0).mean(axis=0)
    gap = (cell.columns["bound"] - cell.columns["random"]).mean(axis=0)
    ends = np.linspace(0, cell.episodes, number + 1).astype(int)
    parts = [(lost[a:b].sum(), gap[a:b].sum()) for a, b in pairwise(ends) if b > a]
    return ", ".join(f"{100 * one / whole:.0f}" if whole > 0 else "-" for one, whole in parts)


def told_from(cells: Cells, base: str) -> dict[tuple[str, str], Paired]:
    """Compare what every learner earned with the base, in the same rounds, corrected by Holm for all.

    Learners with privileges are left out, unless the base has the same ones: a yardstick is no rival.
    """
    fair = {
        key: cell
        for key, cell in cells.items()
        if (other := cells.get((key[0], base))) is not None and cell.privileged in ("", other.privileged)
    }
    return told_by(fair, dict.fromkeys((label for _, label in fair), base))


def told_by(cells: Cells, bases: dict[str, str]) -> dict[tuple[str, str], Paired]:
    """Compare every learner with its own base, by label, on every task; corrected by Holm for all."""
    keys, pairs = [], []
    for (task, learner), cell in cells.items():
        other = cells.get((task, bases.get(learner, learner)))
        if other is None or other is cell:
            continue
        _, left, right = np.intersect1d(cell.rounds, other.rounds, return_indices=True)
        if left.size:
            keys.append((task, learner))
            pairs.append(compare_pair(learner, other.learner, cell.totals[left], other.totals[right]))
    return dict(zip(keys, holm(pairs), strict=True))


def standing(cell: Cell | None, to: str, pair: Paired | None) -> str:
    """Return regret relative to the random policy, marked where it is not significantly different; rewards if adaptive."""
    if cell is None:
        return ""
    mark = LEVEL if pair is not None and not pair.is_significant else ""
    return (amount(interval(cell.totals)) if cell.adaptive else per_cent(cell.relative_to_random(to))) + mark


def regrets(learners: list[str], tasks: list[str], cells: Cells, to: str, base: str = "ucmd") -> str:
    """Return learners by tasks: regret against a comparator in per cent of the random policy's, or what was earned."""
    lines, told = [], told_from({key: cell for key, cell in cells.items() if key[0] in tasks}, base)
    for label in learners:
        mine = [cells.get((task, label)) for task in tasks]
        there = [cell for cell in mine if cell is not None]
        if there:
            rounds = "-".join(map(str, sorted({cell.rounds.size for cell in there})))
            shown = [standing(cells.get((task, label)), to, told.get((task, label))) for task in tasks]
            lines.append([label, *shown, rounds])
    what = (
        "reward"
        if all(cell.adaptive for (task, _), cell in cells.items() if task in tasks)
        else f"regret against {to}, % of random"
    )
    return rows([what, *heads_of(tasks), "rounds"], lines, 1)


def differences(learners: list[str], tasks: list[str], cells: Cells, base: str = "ucmd") -> str:
    """Return by how much more learners without privileges lose than the base in the same rounds, in points of the gap."""
    told = told_from({key: cell for key, cell in cells.items() if key[0] in tasks}, base)
    lines = []
    for label in (one for one in learners if any((task, one) in told for task in tasks)):
        lines.append([label, *(apart(told.get((task, label)), task, cells) for task in tasks)])
    return rows([f"percentage points above `{base}`", *heads_of(tasks)], lines, 1)


def apart(pair: Paired | None, task: str, cells: Cells, to: str = "O1") -> str:
    """Return by how many points of the chance gap the first of a pair loses more than the second in the same rounds."""
    if pair is None:
        return ""
    one, other = cells[task, pair.first], cells[task, pair.second]
    _, left, right = np.intersect1d(one.rounds, other.rounds, return_indices=True)
    more = interval(one.relative_by_round(to)[left] - other.relative_by_round(to)[right])
    return per_cent(more) + ("" if pair.is_significant else LEVEL)


def heads_of(tasks: Iterable[str]) -> list[str]:
    """Return the heads of columns: the adversaries, or the tasks where these have none."""
    return [task.partition("@")[2] or task for task in tasks]


def sorted_out(tasks: Iterable[str], cells: Cells) -> tuple[list[str], list[str]]:
    """Return the tasks whose adversary does not answer to play, and those where it does."""
    adaptive = {task for (task, _), cell in cells.items() if cell.adaptive}
    there = [task for task in dict.fromkeys(tasks) if any(key[0] == task for key in cells)]
    return [task for task in there if task not in adaptive], [task for task in there if task in adaptive]


def rounds_in_words(cells: Iterable[Cell]) -> str:
    """Return the number of rounds, or its range."""
    counts = sorted({cell.rounds.size for cell in cells})
    return many(counts[0], "round") if len(counts) == 1 else f"{counts[0]} to {many(counts[-1], 'round')}"
