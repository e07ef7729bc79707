"""Mistakes that people do not notice: one id written in two ways, a state with a typo, actions that were not entered.

What is surely wrong is refused, and what may be right is noted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from rmab.common import IntArray
from rmab.errors import many
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.periods import Periods

SEVERAL = 3  # ids in two spellings that never meet, or records that all say yes: more than chance
RARE = 2  # records of a state that may be a slip, or arms of a group
COMMON = 3  # records of a state that a rare one may be a misspelling of
SPELLING = "leading zeros, a final .0, capitals, spaces or Unicode form"
OFTEN = 10  # records of a state that one can tell when it began or ended
LONG, LONGER = 4, 8  # letters of a word that may have one typo, or two


def fold(text: str) -> str:
    """Return what spellings of one word have in common: no capitals, spaces, Unicode forms, leading zeros, or .0 at the end.

    Examples
    --------
    >>> fold(" 007"), fold("7.0"), fold("Ann B"), fold("a\u20131") == fold("A-1")
    ('7', '7', 'annb', True)
    """
    bare = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    if not bare.isascii():  # all dashes are one, and letters without a width are none
        kinds = [(one, unicodedata.category(one)) for one in bare]
        bare = "".join("-" if kind == "Pd" else one for one, kind in kinds if kind != "Cf")
    bare = re.sub(r"\A([0-9]+)\.0+\Z", r"\1", bare)
    return re.sub(r"(?<![0-9.,])0+(?=[0-9])", "", bare)


def group_alike(words: Iterable[str]) -> list[list[str]]:
    """Return the words that differ by their spelling only, together."""
    found: dict[str, list[str]] = {}
    for one in words:
        found.setdefault(fold(one), []).append(one)
    return [several for several in found.values() if len(several) > 1]


def suggest_spelling(words: Iterable[str], known: Iterable[str]) -> str:
    """Return a hint at the first known word that one of these words is but for its spelling; empty if there is none."""
    spelled = {fold(one): one for one in known}
    return next((f"; did you mean {quote(spelled[fold(one)])}?" for one in words if fold(one) in spelled), "")


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
    what = f"ids in column {quote(column)} differ only in {SPELLING}"
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


def check_names(names: Sequence[str], state: IntArray, period: IntArray, periods: Periods, findings: Findings) -> None:
    """Note a state that is never seen after another one has begun: it may have been renamed."""
    often = [s for s in range(len(names)) if (state == s).sum() >= OFTEN]
    first, last = ({s: int(end(period[state == s])) for s in often} for end in (np.min, np.max))
    for old, new in ((a, b) for a in often for b in often if first[b] == last[a] + 1):
        when = f"{quote(names[old])} is last seen in {periods.label(last[old])}, {quote(names[new])} first after it"
        findings.note(f"the state {when}; if it was renamed, write one name")


def near_typo(word: str, others: Sequence[str]) -> str | None:
    """Return the one of the others that a word may be a misspelling of, or None.

    Examples
    --------
    >>> near_typo("engagd", ["engaged", "lapsed"]), near_typo("inactive", ["active"]), near_typo("stage 3", ["stage 2"])
    ('engaged', None, None)
    """
    one = word.casefold()
    for other in others:
        two = other.casefold()
        if re.sub(r"\d+", "#", one) == re.sub(r"\d+", "#", two) or one.endswith(two) or two.endswith(one):
            continue  # another number, or a word with 'in' or 'un' before it
        shortest = min(len(one), len(two))
        allowed = 0 if shortest < LONG else 1 if shortest < LONGER else 2
        if abs(len(one) - len(two)) <= allowed and _distance(one, two) <= allowed:
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
