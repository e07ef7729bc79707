"""What the columns of a log mean: ids, states, actions, rewards and groups, from Arrow columns to numbers.

Text is compared value by value, not row by row: a million rows have few different states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmab.common import BoolArray, FloatArray, IntArray, many
from rmab.errors import LogError
from rmab.logs.findings import LONGEST, MANY, Findings, Note, list_some, quote
from rmab.logs.slips import COMMON, SPELLING, group_alike, near_typo

MISSING = {"", "na", "n/a", "nan", "null", "#n/a"}
YES = {"yes", "y", "true", "t", "1", "1.0", "on"}
NO = {"no", "n", "false", "f", "0", "0.0", "off"}
MOST_STATES = 60
UNKNOWN = "(unknown)"
NUMERIC = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
RARE = 2  # records of a state that may be a slip
TIMES = 20  # and as often another one, which it is close to, was seen
FEW = 200  # groups that are compared with each other


def check_values(columns: dict[str, Any], name: str) -> dict[str, Any]:
    """Return columns whose values Python can hold; LogError that names those of which it cannot: unknown zones, years."""
    found, wrong = {}, []
    for column, values in columns.items():
        try:
            if isinstance(values.type, pa.BaseExtensionType):  # ids may be UUIDs
                values = pa.array([None if one is None else str(one) for one in values.to_pylist()], pa.string())  # noqa: PLW2901
            if pa.types.is_temporal(values.type):
                pc.unique(values).to_pylist()
            found[column] = values
        except (pa.ArrowException, ValueError, KeyError, OverflowError, TypeError) as error:
            wrong.append(Note(f"column {quote(column)} of {values.type} cannot be read ({error!s:.100})"))
    if wrong:
        raise LogError(name, wrong)
    return found


def empty_cells(column: Any) -> BoolArray:
    """Return which cells are empty: nothing, or spaces only."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_string(joined.type) or pa.types.is_large_string(joined.type):
        blank = pc.equal(pc.utf8_trim_whitespace(joined), pa.scalar("", type=joined.type))
        found = pc.fill_null(blank, pa.scalar(True, type=pa.bool_()))
    else:
        found = pc.is_null(joined, nan_is_null=True)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def encode(column: Any) -> tuple[list[Any], IntArray]:
    """Return the different values of a column, without spaces around text, and the code of every row: -1 where empty."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(joined, pa.ChunkedArray):  # too long for one piece
        joined = pa.concat_arrays(joined.cast(pa.large_string()).chunks)
    if pa.types.is_timestamp(joined.type):
        joined = joined.cast(pa.timestamp("us", joined.type.tz), safe=False)
    if pa.types.is_dictionary(joined.type):
        joined = joined.dictionary_decode()
    packed = joined.dictionary_encode()
    codes = packed.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return _trim(packed.dictionary.to_pylist(), codes)


def _trim(values: list[Any], codes: IntArray) -> tuple[list[Any], IntArray]:
    """Join values that differ by spaces around them only; text of nothing is empty."""
    places: dict[tuple[type, Any], int] = {}
    moved = np.empty(len(values) + 1, dtype=np.int64)
    moved[-1] = -1
    for k, one in enumerate(values):
        bare = one.strip().strip("\ufeff\u200b") if isinstance(one, str) else one
        empty = bare == "" or bare is None or (isinstance(bare, float) and math.isnan(bare))
        moved[k] = -1 if empty else places.setdefault((type(bare), bare), len(places))
    return [value for _, value in places], np.asarray(moved[codes])


def parse_arms(values: list[Any], codes: IntArray, column: str, findings: Findings) -> list[str]:
    """Return the ids as text: whole numbers without a point; other types are refused."""
    empty = np.flatnonzero(codes < 0)
    if empty.size:
        findings.add(f"no id in column {quote(column)}", empty)
    other = [(k, f"an id cannot be {quote(one)}") for k, one in enumerate(values) if not _is_id(one)]
    findings.add_each(codes, other)
    return [_plain(one) for one in values]


def _is_id(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    if isinstance(value, str):
        return "\0" not in value
    return isinstance(value, int) and not isinstance(value, bool)


def parse_actions(values: list[Any], codes: IntArray, column: str, findings: Findings) -> IntArray:
    """Return 1, 0, or -1 where it is not known, for every row."""
    meaning, wrong = np.full(len(values) + 1, -1, dtype=np.int64), []
    for k, one in enumerate(values):
        word = str(one).casefold()
        if word in YES:
            meaning[k] = 1
        elif word in NO:
            meaning[k] = 0
        elif word not in MISSING:
            what = f"action {quote(one)} in column {quote(column)} is neither yes nor no (yes/no, true/false, 1/0)"
            wrong.append((k, what))
    findings.add_each(codes, wrong)
    return np.asarray(meaning[codes])


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
    words = [UNKNOWN if str(one).casefold() in MISSING else _plain(one) for one in values]
    if states is not None:
        return _match_names(words, codes, [str(one) for one in states], findings)
    known = sorted({one for one in words if one != UNKNOWN})
    numeric = bool(known) and all(_number(one, decimal) is not None for one in known)
    if numeric:
        known.sort(key=lambda one: _number(one, decimal) or 0.0)
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
    commas = all(_number(one, ",") is not None for one in known)
    if not commas and any(_number(one, decimal) is None for one in known):
        return f"{shown}; is it the right column?"
    comma = " and decimal=',' (--decimal ,)" if decimal == "." and any("," in one for one in known) else ""
    return f"{shown}; cut numbers into states with states={{'low': 0, 'ok': 3.5}} (--states low=0,ok=3.5){comma}"


def _find_order(column: Any) -> list[str] | None:
    """Return the categories of a column that has an order of its own (an ordered Categorical of pandas), or None."""
    if not (pa.types.is_dictionary(column.type) and column.type.ordered):
        return None
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return [_plain(one) for one in joined.dictionary.to_pylist()]


def _plain(value: Any) -> str:
    """Return a state as text: 1.0 and 1 are one state, True is 'True'."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(text: str, decimal: str) -> float | None:
    try:
        found = float(text.replace(decimal, ".") if decimal != "." else text)
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None


def _match_names(
    words: list[str], codes: IntArray, known: list[str], findings: Findings
) -> tuple[tuple[str, ...], IntArray, bool]:
    """Look the states up in a list; others are refused."""
    place = {one: k for k, one in enumerate(known)}
    moved, wrong = np.full(len(words) + 1, -1, dtype=np.int64), list[tuple[int, str]]()
    for k, one in enumerate(words):
        moved[k] = place.get(one, -1)
        if one not in place and one != UNKNOWN:
            near = get_close_matches(one[:LONGEST], known, n=1) if len(wrong) < MANY else []
            hint = f" (did you mean {quote(near[0])}?)" if near else ""
            wrong.append((k, f"unknown state {quote(one)}{hint}; the states are {list_some(known)}"))
    findings.add_each(codes, wrong)
    found = np.asarray(moved[codes])
    for k, one in enumerate(known):
        if not (found == k).any():
            findings.note(f"nobody was ever seen in the state {quote(one)}")
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


def parse_numbers(column: Any, name: str, decimal: str, findings: Findings) -> FloatArray:
    """Return a column as numbers, NaN where it is empty."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_null(joined.type):
        return np.full(len(joined), math.nan)
    if pa.types.is_dictionary(joined.type):
        joined = joined.dictionary_decode()
    if pa.types.is_string_view(joined.type):
        joined = joined.cast(pa.string())
    if any(is_kind(joined.type) for is_kind in NUMERIC):
        found = joined.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy(zero_copy_only=False).copy()
    elif pa.types.is_string(joined.type) or pa.types.is_large_string(joined.type):
        found = _from_text(joined, name, decimal, findings)
    else:
        findings.add(f"column {quote(name)} holds {joined.type}, not numbers")
        return np.full(len(joined), math.nan)
    endless = np.flatnonzero(np.isinf(found))
    if endless.size:
        findings.add(f"column {quote(name)} is infinite", endless)
    return np.asarray(found, dtype=np.float64)


def _from_text(column: Any, name: str, decimal: str, findings: Findings) -> FloatArray:
    values, codes = encode(column)
    numbers, wrong = np.full(len(values) + 1, math.nan), []
    for k, one in enumerate(values):
        found = _number(one, decimal)
        if found is not None:
            numbers[k] = found
        elif one.casefold() not in MISSING:
            comma = (
                "; where the decimal sign is a comma, say decimal=',' (--decimal ,)" if decimal == "." and "," in one else ""
            )
            wrong.append((k, f"{quote(one)} in column {quote(name)} is not a number{comma}"))
    findings.add_each(codes, wrong)
    return np.asarray(numbers[codes])


def parse_group(
    column: Any, name: str, arm_of: IntArray, arms: list[str], findings: Findings
) -> tuple[tuple[str, ...], IntArray]:
    """Return the values of a factor, and that of every arm (N,); an arm that has several is refused."""
    values, codes = encode(column)
    words = [one.isoformat() if isinstance(one, date) else _plain(one) for one in values]
    lacking = np.array([*(one.casefold() in MISSING for one in words), True])
    codes, count = np.where(lacking[codes], -1, codes), len(arms)
    of_arm = np.full(count, -1, dtype=np.int64)
    seen = np.flatnonzero((codes >= 0) & (arm_of >= 0))
    backwards = seen[::-1]
    of_arm[arm_of[backwards]] = codes[backwards]  # the first one stays
    changed = seen[codes[seen] != of_arm[arm_of[seen]]]
    moves, which = np.unique(np.column_stack([of_arm[arm_of[changed]], codes[changed]]), axis=0, return_inverse=True)
    key, problems = np.full(codes.size, -1, dtype=np.int64), []
    key[changed] = which.reshape(-1)
    for k, (a, b) in enumerate(moves):
        who = np.unique(arm_of[key == k]) if k <= MANY else arm_of[changed[:1]]
        several = f"{who.size:,} arms change" if who.size > 1 else f"arm {quote(arms[who[0]])} changes"
        hint = "; if the group was renamed, write one name" if who.size > 1 else ""
        problems.append((k, f"{several} {quote(name)} from {quote(words[a])} to {quote(words[b])}{hint}"))
    findings.add_each(key, problems)
    if alike := group_alike(one for one in words if one.casefold() not in MISSING):
        shown = list_some([" and ".join(quote(one) for one in several) for several in alike], 3)
        findings.note(f"groups in column {quote(name)} differ only in spelling: {shown}")
    size = dict(zip(words, np.bincount(of_arm[of_arm >= 0], minlength=len(words)).tolist(), strict=True))
    for one in [one for one in words if 0 < size[one] <= RARE] if len(words) <= FEW else []:
        if near := near_typo(one, [other for other in words if size[other] >= COMMON * size[one]]):
            has = f"has {many(size[one], 'arm')} only; is it {quote(near)}?"
            findings.note(f"the group {quote(one)} in column {quote(name)} {has}")
    if (of_arm < 0).any():
        alone = int((of_arm < 0).sum())
        findings.note(f"{alone:,} of {count:,} arms have no {quote(name)}; they are the group {UNKNOWN}")
        of_arm, words = np.where(of_arm < 0, len(words), of_arm), [*words, UNKNOWN]
    order = sorted(range(len(words)), key=lambda k: words[k])
    rank = np.argsort(order)
    return tuple(words[k] for k in order), np.asarray(rank[of_arm])
