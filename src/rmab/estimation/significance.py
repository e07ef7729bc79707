"""Statistical tests behind the checks of a log: do counts differ, and are forecasts right?

Tests of homogeneity compare counts within like rows (group, state, action) by the likelihood ratio G (Anderson & Goodman
1957 for Markov chains). With many records everything is significant, so a verdict also needs an effect that matters: the
root of the excess of G over its degrees of freedom, per record, which is about how far (in relative terms) probabilities
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from rmab.common import FloatArray, IntArray

FINE, WATCH, PROBLEM, UNKNOWN = "fine", "watch", "problem", "unknown"
# A difference is real below this p: fourteen questions together raise a false alarm in 5% of the logs (Bonferroni).
SURE = 0.0036
MATTERS, MUCH = 0.1, 0.25  # effects that matter, and that matter much
FEW = 20  # records below which little is known
BINS = 10  # of forecasts
SPARSE, MAYBE, PERMUTATIONS = 10_000, 0.1, 299  # records up to which a p below this is found by so many permutations


@dataclass(frozen=True)
class Test:
    """A test: its statistic, which is about chi-square with this freedom if nothing differs, and the records behind it.

    Where records are few it is not chi-square: then `usual` and `chance` are its mean and p by permutation.
    """

    statistic: float
    freedom: int
    records: int
    usual: float | None = None
    chance: float | None = None

    @property
    def p(self) -> float:
        """The chance of so large a statistic, if nothing differed."""
        if self.chance is not None:
            return self.chance
        return float(chi2.sf(self.statistic, self.freedom)) if self.freedom else 1.0

    @property
    def effect(self) -> float:
        """About how far probabilities differ beyond chance, in relative terms."""
        usual = self.freedom if self.usual is None else self.usual
        return float(np.sqrt(max(self.statistic - usual, 0.0) / max(self.records, 1)))

    @property
    def verdict(self) -> str:
        """Fine unless the difference is real and matters."""
        if self.p >= SURE or self.effect < MATTERS:
            return FINE
        return PROBLEM if self.effect >= MUCH else WATCH

    @property
    def numbers(self) -> str:
        """The numbers in words."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"{p}, probabilities differ by about {self.effect:.0%}"


def homogeneity(row: IntArray, part: IntArray, outcome: IntArray, least: int = 10) -> Test:
    """Test whether outcomes (M,) of a row (M,) are alike in all its parts (M,); parts of few records are left out."""
    if row.size == 0:
        return Test(0.0, 0, 0)
    both, where, sizes = np.unique(np.column_stack([row, part]), axis=0, return_inverse=True, return_counts=True)
    large = (sizes >= least)[where.reshape(-1)]
    if not large.any():
        return Test(0.0, 0, 0)
    where = np.unique(where.reshape(-1)[large], return_inverse=True)[1].reshape(-1)
    row_of = np.unique(both[sizes >= least, 0], return_inverse=True)[1].reshape(-1)
    outcome, wide = outcome[large], int(outcome.max()) + 1

    def tabulate(outcome: IntArray) -> tuple[FloatArray, FloatArray]:
        table = np.bincount(where * wide + outcome, minlength=row_of.size * wide).reshape(-1, wide).astype(np.float64)
        whole = np.zeros((int(row_of.max()) + 1, wide))
        np.add.at(whole, row_of, table)
        return table, whole

    def statistic(outcome: IntArray) -> float:
        table, whole = tabulate(outcome)
        expected = table.sum(axis=1, keepdims=True) * (whole / whole.sum(axis=1, keepdims=True))[row_of]
        seen = table > 0
        return 2.0 * float((table[seen] * np.log(table[seen] / expected[seen])).sum())

    table, whole = tabulate(outcome)
    parts = np.bincount(row_of)
    freedom = int(((parts - 1) * ((whole > 0).sum(axis=1) - 1)).sum())
    test = Test(statistic(outcome), freedom, int(table[parts[row_of] > 1].sum()))
    return permute(test, statistic, row_of[where], outcome)


def permute(test: Test, statistic: Callable[[IntArray], float], row: IntArray, outcome: IntArray) -> Test:
    """Return a test with its p by permutation of the outcomes (M,) within rows (M,), where records are few and it matters.

    G of sparse tables is not chi-square, and often larger (Agresti 2013, Section 3.2.3); permutations are exact.
    """
    if test.freedom == 0 or test.p > MAYBE or row.size > SPARSE:
        return test
    rng, order = np.random.default_rng(0), np.argsort(row, kind="stable")
    draws, mixed = np.empty(PERMUTATIONS), np.empty_like(outcome)
    for k in range(PERMUTATIONS):
        mixed[order] = outcome[np.lexsort((rng.random(row.size), row))]
        draws[k] = statistic(mixed)
    return replace(
        test, usual=float(draws.mean()), chance=float((1 + (draws >= test.statistic - 1e-9).sum()) / (1 + PERMUTATIONS))
    )


def calibration_error(
    forecast: FloatArray, outcome: FloatArray, others: FloatArray | None = None
) -> tuple[float, float, float]:
    """Return how far forecasts are from frequencies, bin by bin, what chance alone makes of that, and the chance of so much.

    Chance is that of the outcomes (M,) and, where others (R, M) are given, forecasts as likely as the given ones (M,), that
    of the estimate. The first two are root mean squares over bins of like forecasts; the third is the p of their chi-square
    test.
    """
    order = np.argsort(forecast, kind="stable")
    bins = np.array_split(order, int(np.clip(forecast.size // FEW, 1, BINS)))
    gaps = np.array([forecast[one].mean() - outcome[one].mean() for one in bins])
    noise = np.diag([max(float((forecast[one] * (1 - forecast[one])).sum()), 1e-9) / one.size**2 for one in bins])
    if others is not None:  # errors of the estimate are common to several bins
        means = np.stack([others[:, one].mean(axis=1) for one in bins])
        noise = noise + np.atleast_2d(np.cov(means))
    statistic = float(gaps @ np.linalg.solve(noise, gaps))
    return float(np.sqrt((gaps**2).mean())), float(np.sqrt(np.diag(noise).mean())), float(chi2.sf(statistic, len(bins)))
