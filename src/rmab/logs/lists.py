"""Lists that were kept, joined to the log: with which chance everybody was drawn in which period, and who had a place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.common.tables import plain_text
from rmab.logs.columns import empty_cells, encode, find_decimal, parse_numbers, plain_word
from rmab.logs.findings import Findings, Note, list_some, quote
from rmab.logs.log import Log
from rmab.logs.slips import SPELLING, fold
from rmab.logs.source import open_source

COLUMNS = ["id", "period", "by", "chance"]  # of `Decision.to_table`


def join_lists(log: Log, lists: Iterable[str | os.PathLike[str]], *, encoding: str | None = None) -> Log:
    """Return a log with the chances and places of lists, as `Decision.save(path, upcoming=None)` wrote them.

    Rows of periods or arms that are not in the log are left out, and noted: nothing is known of what followed. Actions of
    the log that differ from a list are noted, too. LogError if a list has an arm twice, or is for no period, or for nobody
    of the log, or if its ids are spelled otherwise than in the log. encoding: of lists that are not UTF-8.
    """
    chance, listed = np.full(log.period.size, np.nan), np.full(log.period.size, -1, dtype=np.int64)
    key, notes = log.arm_of * log.periods.count + log.period, []
    for path in lists:
        source = open_source(path, COLUMNS, encoding)
        findings = Findings(source.name, source.unit, source.line_of)
        wanted = _find_records(log, source.columns, findings)
        row = np.minimum(np.searchsorted(key, wanted), key.size - 1)
        rows = np.flatnonzero(key[row] == wanted)
        drawn = parse_numbers(source.columns["chance"], "chance", find_decimal(source.columns["chance"]), findings)
        on = ~empty_cells(source.columns["by"])
        check_draw(drawn, on, "chance", findings)
        _, first = np.unique(row[rows], return_index=True)
        twice = np.setdiff1d(rows, rows[first])
        if twice.size or (listed[row[rows]] >= 0).any():
            findings.add("an arm has a period more than once, here or in another list", twice)
        findings.stop()
        _note_other_actions(log.action[row[rows]], on[rows], rows, findings)
        chance[row[rows]], listed[row[rows]] = drawn[rows], on[rows]
        notes += [Note(f"{source.name}: {one}") for one in findings.notes]
    listed = np.where(np.isnan(chance), -1, listed)
    return replace(log, chance=chance, listed=listed, notes=(*log.notes, *notes))


def _find_records(log: Log, columns: dict[str, Any], findings: Findings) -> IntArray:
    """(R,) which record of the log a line of a list is for, as arm * periods + period; -1 for none."""
    arm_at = {one: n for n, one in enumerate(log.arms)}
    period_at = {log.periods.label(t): t for t in range(log.periods.count)}
    (ids, arm), (labels, when) = (encode(columns[name]) for name in ("id", "period"))
    names = [plain_word(one) for one in ids]
    arms = np.array([*(arm_at.get(plain_text(one), arm_at.get(one, -1)) for one in names), -1])[arm]
    periods = np.array([*(period_at.get(plain_word(one), -1) for one in labels), -1])[when]
    if not (periods >= 0).any() or (when < 0).any():
        shown = list_some([quote(one) for one in labels], 3) or "none"
        last = log.periods.label(log.periods.count - 1)
        what = f"the list is for {shown}, which is no period of the log (the last one is {last})"
        findings.add(what, np.flatnonzero(when < 0))
    unknown = np.flatnonzero(arms < 0)
    _refuse_spellings(log, names, arm, arms, findings)
    if unknown.size == arms.size and not findings.errors:
        findings.add(f"nobody of the list is in the log: {list_some([quote(one) for one in names], 3)}")
    elif unknown.size:
        findings.note("these ids are not in the log, and are left out", unknown)
    findings.stop()
    return np.where((arms >= 0) & (periods >= 0), arms * log.periods.count + periods, -1)


def _refuse_spellings(log: Log, names: list[str], arm: IntArray, arms: IntArray, findings: Findings) -> None:
    """Refuse ids of a list that the log spells otherwise, such as '7' for '007', and that the list does not have as well.

    names are the ids of the list, arm (R,) which of them a line has, and arms (R,) that of the log, -1 for none.
    """
    absent = set(log.arms) - {log.arms[n] for n in np.unique(arms[arms >= 0])}
    spelled = {fold(one): one for one in log.arms if one in absent}
    alike = [k for k, one in enumerate(names) if fold(one) in spelled and one not in log.arms]
    lines = np.flatnonzero(np.isin(arm, alike) & (arms < 0))
    if lines.size:
        shown = list_some([f"{quote(names[k])} is {quote(spelled[fold(names[k])])} there" for k in alike], 3)
        what = f"ids differ from those of the log only in {SPELLING}: {shown}"
        findings.add(f"{what}; use the list as rmab wrote it, or format its ids as text and write them as in the log", lines)


def _note_other_actions(action: IntArray, on: BoolArray, rows: IntArray, findings: Findings) -> None:
    """Note arms whose action in the log (R,) is another one than on the list (R,): 1, 0, or -1 if it is not known."""
    without, extra = int((on & (action == 0)).sum()), int((~on & (action == 1)).sum())
    if without + extra:
        known = int((action >= 0).sum())
        what = f"the log's actions differ from the list for {without + extra:,} of {known:,} arms ({without:,} on the list"
        what += f" without an action, {extra:,} not on it with one); what is measured is being on the list"
        much = 2 * (without + extra) > known
        findings.note(
            what + ("; is it the right list, and the right column?" if much else ""),
            rows[(on & (action == 0)) | (~on & (action == 1))],
        )


def check_draw(chance: FloatArray, on: BoolArray | None, name: str, findings: Findings) -> None:
    """Refuse chances (R,) that cannot be, also beside who is on the list (R,), where that is known."""
    wrong = np.flatnonzero((chance < 0) | (chance > 1))
    if wrong.size:
        findings.add(f"column {quote(name)} must be in 0..1: the probability of being on the list", wrong)
    if on is None:
        return
    lacking = np.flatnonzero(on & np.isnan(chance))
    if lacking.size:
        findings.add(f"on a list, but without its chance in column {quote(name)}", lacking)
    never = np.flatnonzero((on & (chance == 0)) | (~on & (chance == 1)))
    if never.size:
        findings.add(f"column {quote(name)} is 0 for who is on the list, or 1 for who is not", never)
