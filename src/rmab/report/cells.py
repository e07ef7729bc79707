"""Data of a report: all rounds of one learner on one task, and all learners of one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray, cached_property
from rmab.errors import many
from rmab.report.statistics import Interval, Paired, compare_pair, interval

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
    "random",
    "seconds",
    "theory",
    *(f"regret_{which}" for which in COMPARATORS),
    *(f"term{k}" for k in range(4)),
)
SIZES = ("arms", "budget", "horizon", "adaptive")
PAPERS = "ucmd-armab"
ROUNDING = 1e-9  # relative to the reward: a smaller loss counts as 0


@dataclass(frozen=True, eq=False)
class Cell:
    """All finished rounds of one learner on one task: rounds (R,) ascending, columns (R, T), sizes arms, budget, horizon.

    privileged describes what the learner knows that a real programme would not, and is empty otherwise; published is true
    for exactly the paper's learner, for which the theorem is stated. The size `adaptive` is 1 if the adversary reacts to
    the learner.
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
        """Number T of episodes."""
        return int(self.columns["reward"].shape[1])

    @property
    def adaptive(self) -> bool:
        """Whether the adversary reacts to the learner, so that each learner has different rewards and comparators."""
        return bool(self.sizes.get("adaptive", 0))

    @property
    def theory(self) -> FloatArray:
        """(T,) theorem's bound on the regret of the paper's learner."""
        return np.asarray(self.columns["theory"].mean(axis=0))

    @cached_property
    def totals(self) -> FloatArray:
        """(R,) total reward of each round."""
        return np.asarray(self.columns["reward"].sum(axis=1))

    def regret(self, to: str) -> FloatArray:
        """(R, T) accumulated regret against the comparator 'O1', 'O2' or 'O3'."""
        return self.columns[f"regret_{to}"]

    def relative(self, to: str) -> Interval:
        """Return the mean over rounds of the total regret, relative to the comparator's reward; NaN if that is 0."""
        lost = self.regret(to)[:, -1]
        earned = np.abs(self.totals + lost)
        return interval(lost / np.where(earned > 0, earned, np.nan))

    def relative_of_random(self, to: str) -> Interval:
        """Return the same for the random policy: its total regret, relative to the comparator's reward."""
        best = self.totals + self.regret(to)[:, -1]
        return interval((best - self.columns["random"].sum(axis=1)) / np.where(best != 0, np.abs(best), np.nan))

    def relative_by_round(self, to: str) -> FloatArray:
        """(R,) total regret of each round relative to the random policy's in the same round; NaN if that is 0."""
        lost = self.regret(to)[:, -1]
        gap = self.totals + lost - self.columns["random"].sum(axis=1)
        return np.asarray(lost / np.where(gap > ROUNDING * np.abs(self.columns["reward"]).sum(axis=1), gap, np.nan))

    def relative_to_random(self, to: str) -> Interval:
        """Return the mean regret relative to the random policy: 0 is the comparator, 1 is the random policy."""
        return interval(self.relative_by_round(to))

    @property
    def whole(self) -> Interval:
        """Regret of the whole run against O1."""
        return interval(self.regret("O1")[:, -1])

    @cached_property
    def terms(self) -> tuple[Interval, ...] | None:
        """Term0 to Term3, summed over episodes; None if the learner has no occupancies or estimates."""
        sums = [self.columns[f"term{k}"].sum(axis=1) for k in range(4)]
        return None if np.isnan(sums).any() else tuple(interval(one) for one in sums)

    @cached_property
    def seconds(self) -> Interval:
        """Wall time of the median episode, which excludes compilation."""
        return interval(np.median(self.columns["seconds"], axis=1))

    def __repr__(self) -> str:
        return f"Cell({self.learner} on {self.task}, {many(self.rounds.size, 'round')}, {many(self.episodes, 'episode')})"


@dataclass(frozen=True, eq=False)
class Page:
    """One task: its learners in the study's order, and the comparisons of all pairs, corrected by Holm.

    stronger describes what makes its adversary stronger than the paper's, and is empty otherwise.
    """

    task: str
    cells: tuple[Cell, ...]
    pairs: tuple[Paired, ...]
    stronger: str = ""

    @property
    def rivals(self) -> list[Cell]:
        """Learners without privileges (or all, if all are privileged), by descending mean reward."""
        honest = [cell for cell in self.cells if not cell.privileged]
        return sorted(honest or self.cells, key=lambda cell: -float(cell.totals.mean()))

    @property
    def adaptive(self) -> bool:
        """Whether the adversary reacts to the learner, so that rewards can be compared and regrets cannot."""
        return self.cells[0].adaptive

    @property
    def papers(self) -> Cell | None:
        """The paper's learner, as published and without privileges, if the study has it."""
        return next((cell for cell in self.cells if cell.published and not cell.privileged), None)

    def pair(self, first: Cell, second: Cell) -> Paired | None:
        """Compare the first with the second, with the corrected p-value; None if they have no common round."""
        names = {first.learner, second.learner}
        found = next((one for one in self.pairs if {one.first, one.second} == names), None)
        if found is None or found.first == first.learner:
            return found
        turned = pair_of(first, second)
        return None if turned is None else replace(turned, adjusted=found.adjusted)

    def level(self, cell: Cell) -> bool:
        """Return whether this learner is not significantly different from the best rival, or has no common round with it."""
        found = self.pair(self.rivals[0], cell)
        return self.rivals[0] is cell or found is None or not found.is_significant

    def __repr__(self) -> str:
        return f"Page({self.task}, {many(len(self.cells), 'learner')})"


def pair_of(first: Cell, second: Cell) -> Paired | None:
    """Compare the rewards of two learners in their common rounds; None if there are none."""
    common, left, right = np.intersect1d(first.rounds, second.rounds, assume_unique=True, return_indices=True)
    if common.size == 0:
        return None
    return compare_pair(first.learner, second.learner, first.totals[left], second.totals[right])
