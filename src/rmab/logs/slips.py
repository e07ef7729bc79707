"""Mistakes that people do not notice: one id written in two ways, a state with a typo, actions that were not entered.

What is surely wrong is refused, and what may be right is noted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from rmab.common import IntArray, many
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.periods import Periods

SEVERAL = 3  # ids in two spellings that never meet, or records that all say yes: more than chance
COMMON = 3  # records of a state that a rare one may be a misspelling of
LONG, LONGER = 4, 8  # letters of a word that may have one typo, or two


def fold(text: str) -> str:
    """Return what spellings of one word have in common: without capitals, spaces, Unicode forms and leading zeros.

    Examples
    --------
    >>> fold(" 007"), fold("Ann B"), fold("annb")
    ('7', 'annb', 'annb')
    """
    bare = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return re.sub(r"(?<![0-9.,])0+(?=[0-9])", "", bare)


def group_alike(words: Iterable[str]) -> list[list[str]]:
    """Return the words that differ by their spelling only, together."""
    found: dict[str, list[str]] = {}
    for one in words:
        found.setdefault(fold(one), []).append(one)
    return [several for several in found.values() if len(several) > 1]


def check_ids(ids: list[str], arm_of: IntArray, period: IntArray, column: str, findings: Findings) -> None:
    """Report ids that differ by their spelling only; refuse them where several of them never have a record together."""
    alike = group_alike(ids)
    if not alike:
        return
    place = {one: k for k, one in enumerate(ids)}
    owner = np.arange(len(ids))
    for several in alike:
        owner[[place[one] for one in several]] = place[several[0]]
    rows = np.flatnonzero(np.isin(arm_of, [place[one] for several in alike for one in several]))
    key = np.column_stack([owner[arm_of[rows]], period[rows]])
    pairs, times = np.unique(key, axis=0, return_counts=True)
    meet = set(pairs[times > 1, 0].tolist())
    apart = [several for several in alike if place[several[0]] not in meet]
    shown = list_some([" and ".join(quote(one) for one in several[:3]) for several in apart or alike], 3)
    what = f"ids in column {quote(column)} differ only in leading zeros, capitals, spaces or Unicode form"
    first = np.flatnonzero(np.isin(arm_of, [place[one] for several in apart for one in several[1:]]))
    if len(apart) >= SEVERAL:
        never = f"and {many(len(apart), 'pair')} of them never {'have' if len(apart) > 1 else 'has'} a record together"
        findings.add(f"{what}, {never}: {shown}; write each id in one way", first)
    else:
        findings.note(f"{what}: {shown}; they are taken for different arms", first)


def check_actions(period: IntArray, action: IntArray, periods: Periods, column: str, findings: Findings) -> None:
    """Refuse a column that only ever says yes; note periods before the last whose actions were not entered."""
    last = periods.count - 1
    empty = np.flatnonzero((action < 0) & (period < last))
    if empty.size and (action == 1).sum() >= SEVERAL and not (action == 0).any():
        what = f"column {quote(column)} says yes, and never no, but is empty here; an empty cell means that it is not known"
        findings.add(f"{what}: write no where nobody was acted on", empty)
        return
    known, every = (np.bincount(period, weights=one, minlength=last + 1) for one in (action >= 0, np.ones(period.size)))
    early = np.arange(last + 1) < last
    usual = known[early].sum() / max(every[early].sum(), 1)
    late = np.flatnonzero(early & (every >= SEVERAL) & (known < 0.5 * usual * every))
    if late.size and usual > 0.5:
        what = f"hardly any action is known in {list_some([periods.label(int(one)) for one in late], 3)}"
        rows = np.flatnonzero(np.isin(period, late) & (action < 0))
        findings.note(f"{what}; if a list was used then, enter who was acted on, or the next list repeats its names", rows)


def near_typo(word: str, others: Sequence[str]) -> str | None:
    """Return the one of the others that a word may be a misspelling of, or None.

    Examples
    --------
    >>> near_typo("engagd", ["engaged", "lapsed"]), near_typo("inactive", ["active"]), near_typo("stage 3", ["stage 2"])
    ('engaged', None, None)
    """
    for other in others:
        if re.sub(r"\d+", "#", word) == re.sub(r"\d+", "#", other) or word.endswith(other) or other.endswith(word):
            continue  # another number, or a word with 'in' or 'un' before it
        shortest = min(len(word), len(other))
        allowed = 0 if shortest < LONG else 1 if shortest < LONGER else 2
        if abs(len(word) - len(other)) <= allowed and _distance(word, other) <= allowed:
            return other
    return None


def _distance(one: str, other: str) -> int:
    """Return how many letters to insert, delete, replace or swap with the next (Damerau 1964)."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, above = above, row
    return above[-1]
