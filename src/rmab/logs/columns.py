"""What the columns of a log mean: ids, actions, rewards and groups, from Arrow columns to numbers.

Text is compared value by value, not row by row: a million rows have few different states.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import LogError, many
from rmab.logs.findings import MANY, Findings, Note, list_some, quote
from rmab.logs.slips import COMMON, RARE, group_alike, near_typo

MISSING = {"", "na", "n/a", "nan", "null", "#n/a"}
YES = {"yes", "y", "true", "t", "1", "1.0", "on"}
NO = {"no", "n", "false", "f", "0", "0.0", "off"}
UNKNOWN = "(unknown)"
NUMERIC = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
GROUPS = re.compile(  # 2,427.6 and 1.047.250: several signs
    r"[+-]?\d{1,3}(?:(?:(?P<one>[.,'\s\u2019])\d{3})(?:(?P=one)\d{3})*(?P<sign>(?!(?P=one))[.,])\d+"
    r"|(?P<two>[.,])\d{3}(?:(?P=two)\d{3})+|(?:['\s\u2019]\d{3})+)"
)
FEW = 200  # groups that are compared with each other


def checked_values(columns: dict[str, Any], name: str) -> dict[str, Any]:
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


def has_copies(columns: dict[str, Any]) -> bool:
    """Return whether two rows agree in all columns that are read."""
    rows = list(zip(*(encode(one)[1].tolist() for one in columns.values()), strict=True))
    return len(set(rows)) < len(rows)


def parse_arms(values: list[Any], codes: IntArray, column: str, findings: Findings) -> list[str]:
    """Return the ids as text: whole numbers without a point; other types are refused."""
    empty = np.flatnonzero(codes < 0)
    if empty.size:
        findings.add(f"no id in column {quote(column)}", empty)
    other = [(k, f"an id cannot be {quote(one)}") for k, one in enumerate(values) if not _is_id(one)]
    findings.add_each(codes, other)
    return [plain_word(one) for one in values]


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
            what += "; translate other words with a mapping (--rename)"
            wrong.append((k, what))
    findings.add_each(codes, wrong)
    return np.asarray(meaning[codes])


def plain_word(value: Any) -> str:
    """Return a state as text: 1.0 and 1 are one state, True is 'True'."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def number_of(text: str, decimal: str) -> float | None:
    """Return the finite number that a text is, or None; where the decimal sign is a comma, a point is none."""
    if decimal != "." and "." in text:
        return None
    try:
        found = float(text.replace(decimal, "."))
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None


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
    infinite = np.flatnonzero(np.isinf(found))
    if infinite.size:
        findings.add(f"column {quote(name)} is infinite", infinite)
    return np.asarray(found, dtype=np.float64)


def _from_text(column: Any, name: str, decimal: str, findings: Findings) -> FloatArray:
    values, codes = encode(column)
    numbers, wrong = np.full(len(values) + 1, math.nan), []
    for k, one in enumerate(values):
        found = number_of(one, decimal)
        if found is not None:
            numbers[k] = found
        elif one.casefold() not in MISSING:
            wrong.append((k, f"{quote(one)} in column {quote(name)} is not a number{_number_hint(one, decimal)}"))
    findings.add_each(codes, wrong)
    return np.asarray(numbers[codes])


def _number_hint(text: str, decimal: str) -> str:
    """Return what to do about a text that is no number with this decimal sign; empty if it looks like none at all."""
    if (percent := text.removesuffix("%").strip()) != text and (share := number_of(percent, decimal)) is not None:
        return f"; write {share / 100:g} for {text}"
    comma, remove = "say decimal=',' (--decimal ,)", "remove the separators of thousands"
    if found := GROUPS.fullmatch(text):
        sign, bare = found["sign"], "".join(one for one in text if one.isdigit() or one in f"+-{found['sign'] or ''}")
        if not sign or sign == decimal:
            return f"; {remove}: {bare}"
        return f"; {remove}: {bare}, and {comma if sign == ',' else 'leave out --decimal , (the decimal sign is a point)'}"
    other = "," if decimal == "." else "."
    if number_of(text, other) is None:
        return ""
    cure = f"where the decimal sign is a comma, {comma}" if decimal == "." else "the decimal sign is a comma here"
    return f"; {cure}; if the {'comma' if other == ',' else 'point'} separates thousands, remove it"


def find_decimal(column: Any) -> str:
    """Return the decimal sign of a column in which no comma can stand for thousands, such as probabilities."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return "."
    return "," if pc.any(pc.match_substring(column, ",")).as_py() else "."


def parse_group(
    column: Any, name: str, arm_of: IntArray, arms: list[str], findings: Findings
) -> tuple[tuple[str, ...], IntArray]:
    """Return the values of a factor, and that of every arm (N,); an arm that has several is refused."""
    values, codes = encode(column)
    words = [one.isoformat() if isinstance(one, date) else plain_word(one) for one in values]
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
