"""Statistical tests behind the checks of a log: are counts alike, and are forecasts right?

Tests of homogeneity compare counts within like rows (group, state, action) by the likelihood ratio G (Anderson & Goodman
1957 for Markov chains). With many records everything is significant, so a verdict also needs an effect that matters: the
root of the excess of G over its degrees of freedom, per record, which is about how far (in relative terms) probabilities
differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from rmab.common.arrays import FloatArray, IntArray

FINE, WATCH, PROBLEM = "fine", "watch", "problem"
SURE, MATTERS, MUCH = 0.01, 0.1, 0.25  # p below which a difference is real; effects that matter, and that matter much
FEW = 20  # records below which little is known
BINS = 10  # of forecasts


@dataclass(frozen=True)
class Test:
    """A likelihood ratio test: G, degrees of freedom, records, p and effect."""

    statistic: float
    freedom: int
    records: int

    @property
    def p(self) -> float:
        """The chance of so large a statistic, if nothing differed."""
        return float(chi2.sf(self.statistic, self.freedom)) if self.freedom else 1.0

    @property
    def effect(self) -> float:
        """About how far probabilities differ beyond chance, in relative terms."""
        return float(np.sqrt(max(self.statistic - self.freedom, 0.0) / max(self.records, 1)))

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
        return f"{p}, effect {self.effect:.2f}"


def homogeneity(row: IntArray, part: IntArray, outcome: IntArray, least: int = 10) -> Test:
    """Test whether outcomes (M,) of a row (M,) are alike in all its parts (M,); parts of few records are left out."""
    if row.size == 0:
        return Test(0.0, 0, 0)
    wide = int(outcome.max()) + 1
    _, where = np.unique(np.column_stack([row, part]), axis=0, return_inverse=True)
    where = where.reshape(-1)
    table = np.bincount(where * wide + outcome, minlength=(int(where.max()) + 1) * wide).reshape(-1, wide).astype(np.float64)
    row_of = np.zeros(len(table), dtype=np.int64)
    row_of[where] = row
    kept = table.sum(axis=1) >= least
    table, row_of = table[kept], np.unique(row_of[kept], return_inverse=True)[1].reshape(-1)
    if not len(table):
        return Test(0.0, 0, 0)
    whole = np.zeros((int(row_of.max()) + 1, wide))
    np.add.at(whole, row_of, table)
    expected = table.sum(axis=1, keepdims=True) * (whole / whole.sum(axis=1, keepdims=True))[row_of]
    seen = table > 0
    statistic = 2.0 * float((table[seen] * np.log(table[seen] / expected[seen])).sum())
    parts = np.bincount(row_of)
    freedom = int(((parts - 1) * ((whole > 0).sum(axis=1) - 1)).sum())
    return Test(statistic, freedom, int(table[parts[row_of] > 1].sum()))


def calibration_error(said: FloatArray, came: FloatArray) -> tuple[float, float, float]:
    """Return how far forecasts are from frequencies, bin by bin, what luck alone makes of that, and the chance of so much.

    The first two are root mean squares over bins of like forecasts; the third is the p of their chi-square test.
    """
    order = np.argsort(said, kind="stable")
    bins = np.array_split(order, int(np.clip(said.size // FEW, 1, BINS)))
    gaps = np.array([(said[one].mean() - came[one].mean()) ** 2 for one in bins])
    luck = np.array([max((said[one] * (1 - said[one])).sum(), 1e-9) / one.size**2 for one in bins])
    return float(np.sqrt(gaps.mean())), float(np.sqrt(luck.mean())), float(chi2.sf((gaps / luck).sum(), len(bins)))
