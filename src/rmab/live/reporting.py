"""Effect of reports on a ledger: every row is checked against the arms and against earlier reports before any is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rmab.common import IntArray
from rmab.errors import ModelError
from rmab.live.cells import Cells, columns_of, is_known
from rmab.live.events import UNKNOWN, Correct, Missing, Tell
from rmab.live.rows import row_findings
from rmab.logs.findings import Findings, quote

if TYPE_CHECKING:
    from rmab.live.ledger import Ledger

SHOWN = 100  # most conflicts that are listed one by one
Columns = dict[str, NDArray[np.generic]]


def tell(ledger: Ledger, body: Tell) -> Callable[[], None]:
    """Return what a report, or a correction, changes; LogError with all rows that are wrong."""
    findings, count = row_findings("reports"), len(ledger.ids)
    arms, columns = find_wrong(ledger, body, findings)
    findings.stop()

    def change() -> None:
        mine = ledger.cells.setdefault(body.period, Cells())
        mine.write("corrected" if isinstance(body, Correct) else "told", arms, columns, count)

    return change


def find_wrong(ledger: Ledger, body: Tell, findings: Findings) -> tuple[IntArray, Columns]:
    """Return the numbers of the arms (M,) and the columns of a report; wrong rows are added to findings."""
    columns = columns_of(body)
    if any(values.size != len(body.arms) for values in columns.values()):
        raise ModelError(f"every column must have {len(body.arms)} entries, one for each arm")
    arms = ledger.places(body.arms, body.period, findings)
    for name, stop in (("state", len(ledger.declared.states)), ("executed", 2)):
        if name in columns:
            values = columns[name].astype(np.int64)
            wrong = np.flatnonzero((values < -1) | (values >= stop))
            if wrong.size:
                findings.add(f"{name} must be -1..{stop - 1}", wrong)
                columns[name] = np.where((values < -1) | (values >= stop), UNKNOWN, values)
    if not isinstance(body, Correct):
        _find_conflicts(ledger, body, arms, columns, findings)
    return arms, columns


def _find_conflicts(ledger: Ledger, body: Tell, arms: IntArray, columns: Columns, findings: Findings) -> None:
    cells = ledger.cell(body.period)
    for name, values in columns.items():
        if not len(ledger.ids):
            return
        old = cells.read(name, len(ledger.ids), "told")[arms]
        clash = np.flatnonzero((arms >= 0) & is_known(name, old) & is_known(name, values) & (old != values))
        for row in clash[:SHOWN]:
            was, now = (_format_value(ledger, name, one) for one in (old[row], values[row]))
            what = f"{quote(body.arms[row])} was reported with {name} {was}, now {now}; use correct"
            findings.add(what, row, "conflict")
        if clash.size > SHOWN:
            findings.add(f"{clash.size - SHOWN:,} more reports that differ", clash[SHOWN:], "conflict")


def _format_value(ledger: Ledger, name: str, value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    if name == "state":
        return quote(ledger.declared.states[int(number)])
    return ("no", "yes")[int(number)] if name == "executed" else f"{number:g}"


def declare_missing(ledger: Ledger, body: Missing) -> Callable[[], None]:
    """Return what changes if reports will never arrive."""
    arms = ledger.find(body.arms, body.period)

    def change() -> None:
        ledger.cells.setdefault(body.period, Cells()).missing |= set(arms)

    return change
