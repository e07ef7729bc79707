"""Losses as functions of the number of episodes or arms, for studies of growth and of many arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmab.common import FloatArray
from rmab.errors import many
from rmab.report.cells import ROUNDING, Cell, Page
from rmab.report.statistics import Interval, Power, interval, power

if TYPE_CHECKING:
    from rmab.study import Study, TaskSpec


@dataclass(frozen=True, eq=False)
class Scaling:
    """Loss (L, R) of one learner in the common rounds, at each size (L,), the number of episodes or arms.

    theory (L,) is the theorem's bound on the regret at each size, for the learner that the theorem is stated for.
    """

    group: str
    learner: str
    sizes: FloatArray
    values: FloatArray
    fit: Power | None
    theory: FloatArray | None = None

    @property
    def sure(self) -> bool:
        """Whether the fitted exponent has an interval."""
        return self.fit is not None and bool(np.isfinite(self.fit.exponent.half))

    @property
    def means(self) -> list[Interval]:
        """One interval per size."""
        return [interval(row) for row in self.values]

    def __repr__(self) -> str:
        return f"Scaling({self.learner} on {self.group}, {many(self.sizes.size, 'size')})"


def scalings_of(study: Study, pages: tuple[Page, ...]) -> tuple[Scaling, ...]:
    """Group the tasks that differ only in size, with the regret against O2 by T, or against O1 per arm and episode by N.

    Growth uses O2, because the gap of O1 grows with T for every learner; many arms use O1, whose gap is of interest there.
    """
    if study.kind == "learning":
        return ()
    grown = {"episodes"} if study.kind == "growth" else {"arms", "budget", "copies"}
    families = {spec.label: _family(spec, grown) for spec in study.tasks}
    if len({name for name, _ in families.values()}) == len(set(families.values())):
        families = {label: (name, "") for label, (name, _) in families.items()}  # the names are unique without options
    groups: dict[tuple[str, str], list[Cell]] = {}
    for page in pages:
        for cell in page.cells:
            groups.setdefault(("".join(families[page.task]), cell.learner), []).append(cell)
    scalings = [_scaling(key, cells, study.kind) for key, cells in groups.items()]
    return tuple(one for one in scalings if one.sizes.size and one.values.size)


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
        shared = np.isin(cell.rounds, sorted(common))
        lost = cell.regret("O2" if kind == "growth" else "O1")[shared, -1]
        lost = np.where(np.abs(lost) > ROUNDING * np.abs(cell.totals[shared]), lost, 0.0)
        rows.append(lost if kind == "growth" else lost / cell.sizes["arms"] / cell.episodes)
    sizes, values = np.array([size(cell) for cell in cells], dtype=np.float64), np.array(rows)
    stated = kind == "growth" and all(cell.published and not cell.privileged for cell in cells)
    theory = np.array([cell.theory[-1] for cell in cells]) if stated else None
    return Scaling(*key, sizes, values, power(sizes, values), theory)
