"""Lists that were kept, joined to the log: with which chance everybody was drawn in which period, and who had a place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rmab.common.tables import plain_text
from rmab.logs.columns import empty_cells, encode, parse_numbers
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.log import Log
from rmab.logs.source import open_source

COLUMNS = ["id", "period", "by", "chance"]  # of `Decision.to_table`


def join_lists(log: Log, lists: Iterable[str | os.PathLike[str]]) -> Log:
    """Return a log with the chances and places of lists, as `Decision.save(path, upcoming=None)` wrote them.

    Rows of periods or arms that are not in the log are left out: nothing is known of their outcome. LogError where a list
    has an arm twice, or is for no period.
    """
    chance, listed = np.full(log.period.size, np.nan), np.full(log.period.size, -1, dtype=np.int64)
    arm_at = {one: n for n, one in enumerate(log.arms)}
    period_at = {log.periods.label(t): t for t in range(log.periods.count)}
    key, size = log.arm_of * log.periods.count + log.period, log.period.size
    for path in lists:
        source = open_source(path, COLUMNS, None)
        findings = Findings(source.name, source.unit, source.line_of)
        (ids, arm), (labels, when) = (encode(source.columns[name]) for name in ("id", "period"))
        drawn = parse_numbers(source.columns["chance"], "chance", ".", findings)
        known = [period_at.get(str(one), -1) for one in labels]
        if (when < 0).any() or not any(period >= 0 for period in known):
            shown = list_some([quote(one) for one in labels], 3) or "none"
            findings.add(f"the list is for {shown}, which is no period of the log", np.flatnonzero(when < 0))
        findings.stop()
        at = (
            np.array([arm_at.get(plain_text(str(one)), arm_at.get(str(one), -1)) for one in ids])[arm],
            np.array(known)[when],
        )
        wanted = at[0] * log.periods.count + at[1]
        row = np.minimum(np.searchsorted(key, wanted), size - 1)
        rows = np.flatnonzero((at[0] >= 0) & (at[1] >= 0) & (key[row] == wanted))
        _, first = np.unique(row[rows], return_index=True)
        twice = np.setdiff1d(rows, rows[first])
        if twice.size or (listed[row[rows]] >= 0).any():
            findings.add("an arm has a period more than once, here or in another list", twice)
        findings.stop()
        chance[row[rows]] = drawn[rows]
        listed[row[rows]] = ~empty_cells(source.columns["by"])[rows]
    return replace(log, chance=chance, listed=np.where(np.isnan(chance), -1, listed))
