"""The states of a log: names in their order, spellings that differ, and readings that are cut into states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.common import IntArray
from rmab.logs.columns import MISSING, UNKNOWN, encode, number_of, parse_numbers, plain_word
from rmab.logs.findings import LONGEST, MANY, Findings, list_some, quote
from rmab.logs.slips import COMMON, RARE, SPELLING, group_alike, near_typo

MOST_STATES = 60
TIMES = 20  # a state that is close to one that was seen so many times more often may be a slip
States = Sequence[str] | Mapping[str, float] | None


def parse_states(
    column: Any, name: str, states: States, decimal: str, findings: Findings
) -> tuple[tuple[str, ...], IntArray, bool]:
    """Return the names of the states, the state of every row (-1: not seen), and whether their order means something."""
    if isinstance(states, Mapping):
        return _cut(column, name, states, decimal, findings)
    if states is None:
        states = _find_order(column)
    values, codes = encode(column)
    words = [UNKNOWN if str(one).casefold() in MISSING else plain_word(one) for one in values]
    unseen = [k for k, one in enumerate(words) if one == UNKNOWN and values[k] != UNKNOWN]
    if unseen:
        shown = list_some([quote(values[k]) for k in unseen], 3)
        rows = np.flatnonzero(np.isin(codes, unseen))
        findings.note(f"{shown} in column {quote(name)} is read as: not seen; if it is a state, rename it (--rename)", rows)
    if states is not None:
        return _match_names(words, codes, [str(one) for one in states], findings)
    known = sorted({one for one in words if one != UNKNOWN})
    numeric = bool(known) and all(number_of(one, decimal) is not None for one in known)
    if numeric:
        known.sort(key=lambda one: number_of(one, decimal) or 0.0)
    if len(known) > MOST_STATES:
        findings.add(f"column {quote(name)} has {len(known):,} different states, such as {_examples(known, decimal)}")
        return tuple(known), codes, numeric
    _compare_names(known, words, codes, findings)
    place = {one: k for k, one in enumerate(known)}
    moved = np.array([*(place.get(one, -1) for one in words), -1], dtype=np.int64)
    return tuple(known), np.asarray(moved[codes]), numeric


def _examples(known: list[str], decimal: str) -> str:
    """Return some of very many states, and what to do about them."""
    shown = list_some([quote(one) for one in known], 3)
    commas = all(number_of(one, ",") is not None for one in known)
    if not commas and any(number_of(one, decimal) is None for one in known):
        return f"{shown}; is it the right column?"
    comma = " and decimal=',' (--decimal ,)" if decimal == "." and any("," in one for one in known) else ""
    return f"{shown}; cut numbers into states with states={{'low': 0, 'ok': 3.5}} (--states low=0,ok=3.5){comma}"


def _find_order(column: Any) -> list[str] | None:
    """Return the categories of a column with its own order (an ordered Categorical of pandas), or None."""
    if not (pa.types.is_dictionary(column.type) and column.type.ordered):
        return None
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return [plain_word(one) for one in joined.dictionary.to_pylist()]


def _match_names(
    words: list[str], codes: IntArray, known: list[str], findings: Findings
) -> tuple[tuple[str, ...], IntArray, bool]:
    """Look the states up in a list; others are errors."""
    place = {one: k for k, one in enumerate(known)}
    moved, wrong = np.full(len(words) + 1, -1, dtype=np.int64), list[tuple[int, str]]()
    for k, one in enumerate(words):
        moved[k] = place.get(one, -1)
        if one not in place and one != UNKNOWN:
            near = get_close_matches(one[:LONGEST], known, n=1) if len(wrong) < MANY else []
            hint = f" (did you mean {quote(near[0])}?)" if near else ""
            wrong.append((k, f"unknown state {quote(one)}{hint}; available: {list_some(known)}"))
    findings.add_each(codes, wrong)
    found = np.asarray(moved[codes])
    for k, one in enumerate(known):
        if not (found == k).any():
            findings.note(f"no record has the state {quote(one)}")
    return tuple(known), found, True


def _compare_names(known: list[str], words: list[str], codes: IntArray, findings: Findings) -> None:
    """Refuse states that differ in spelling only, and rare ones that look like a typo; note others that were seen once."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(words))
    count: Counter[str] = Counter()
    for k, one in enumerate(words):
        count[one] += int(sizes[k])
    for several in group_alike(known):
        usual = max(several, key=lambda one: count[one])
        slips = [k for k, one in enumerate(words) if one in several and one != usual]
        how = "capitals" if len({one.casefold() for one in several}) == 1 else SPELLING
        what = f"states {list_some([quote(one) for one in several])} differ only in {how}; write one of them"
        findings.add(what, np.flatnonzero(np.isin(codes, slips)))
    for one in known if len(known) > 1 else ():
        near = near_typo(one, [other for other in known if count[other] >= max(COMMON, TIMES * (count[one] - RARE))])
        if count[one] > RARE and near is None:
            continue
        those = np.flatnonzero(np.isin(codes, [k for k, word in enumerate(words) if word == one]))
        what = f"the state {quote(one)} was seen only {'once' if count[one] == 1 else 'twice'}"
        if near and count[one] > RARE:
            findings.note(f"the state {quote(one)} was seen {count[one]:,} times; is it {quote(near)}?", those)
        elif near:
            findings.add(f"{what}; is it {quote(near)}? If not, name all states: states=[...] (--states)", those)
        elif count[one] == 1:
            close = get_close_matches(one, [other for other in known if other != one], n=1)
            findings.note(f"{what}; is it {quote(close[0])}?" if close else what, those)


def _cut(
    column: Any, name: str, edges: Mapping[str, float], decimal: str, findings: Findings
) -> tuple[tuple[str, ...], IntArray, bool]:
    """Cut readings into states by the least reading of each."""
    order = sorted(edges, key=lambda one: edges[one])
    bounds = np.array([edges[one] for one in order], dtype=np.float64)
    readings = parse_numbers(column, name, decimal, findings)
    found = np.searchsorted(bounds, readings, side="right") - 1
    low = np.flatnonzero(readings < bounds[0])
    if low.size:
        findings.add(f"reading below {bounds[0]:g}, where the lowest state {quote(order[0])} begins", low)
    return tuple(order), np.asarray(np.where(np.isnan(readings), -1, np.maximum(found, -1)), dtype=np.int64), True
