"""Rows with ids, state names, yes and no become the columns of an event; all errors are listed together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rmab.common import IntArray, is_several, nearest
from rmab.errors import LogError, ModelError
from rmab.logs.findings import Findings, Note, quote

COLUMNS = ("arm", "state", "executed", "reward")
EMPTY = ("", "na", "n/a", "nan", "null", "none")
YES, NO = ("yes", "true", "y", "t", "on", "1"), ("no", "false", "n", "f", "off", "0")
LineOf = Callable[[IntArray], IntArray]


def as_columns(rows: Any) -> dict[str, list[Any]]:
    """Return columns by name of a list of dictionaries, a dictionary of columns, a DataFrame or an Arrow table."""
    if hasattr(rows, "to_pydict"):
        rows = rows.to_pydict()
    elif hasattr(rows, "iloc"):
        rows = {str(name): rows[name].tolist() for name in rows.columns}
    if isinstance(rows, Mapping):
        if not all(is_several(values) for values in rows.values()):
            raise ModelError("rows: every column must be a list")
        columns = {str(name): list(values) for name, values in rows.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise ModelError("rows: all columns must have the same length")
        return columns
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(isinstance(one, Mapping) for one in rows):
        raise ModelError("rows must be a list of dictionaries, a dictionary of columns, a DataFrame or an Arrow table")
    names = dict.fromkeys(name for one in rows for name in one)
    return {str(name): [one.get(name) for one in rows] for name in names}


def report_columns(rows: Any, states: Sequence[str]) -> tuple[dict[str, Any], Findings]:
    """Return the fields of a report: arms, and state, executed and reward as far as there are such columns.

    The findings have every row that is wrong: an unknown state or answer, a reward that is not a number, an id that is
    missing. Wrong cells are empty in the fields, so that the rest can be checked as well. LogError if there are no ids.
    """
    given = as_columns(rows)
    findings = row_findings("rows")
    for unknown in [one for one in given if one not in COLUMNS]:
        findings.add(f"unknown column {quote(unknown)}{nearest(unknown, COLUMNS)} Available: {', '.join(COLUMNS)}")
    if not given.get("arm"):
        findings.add("column 'arm' is missing or empty")
        findings.stop()
    found: dict[str, Any] = {"arms": [as_text(one) for one in given["arm"]]}
    blank = [k for k, one in enumerate(found["arms"]) if not one]
    if blank:
        findings.add("an id is missing", blank)
    code = state_codes(states)
    if "state" in given:
        found["state"] = _each(given["state"], lambda one: _encode(code, one))
        _report(findings, found["state"], given["state"], f"is not a state; available: {', '.join(states)}")
    if "executed" in given:
        found["executed"] = _each(given["executed"], _answer)
        _report(findings, found["executed"], given["executed"], "is neither yes nor no")
    if "reward" in given:
        found["reward"] = [_number(one) for one in given["reward"]]
        wrong = [k for k, one in enumerate(found["reward"]) if one is not None and not math.isfinite(one)]
        for value in dict.fromkeys(as_text(given["reward"][k]) for k in wrong):
            findings.add(f"reward {quote(value)}: not a number", [k for k in wrong if as_text(given["reward"][k]) == value])
        found["reward"] = [None if one is None or not math.isfinite(one) else one for one in found["reward"]]
    return found, findings


def state_codes(states: Sequence[str]) -> dict[str, int]:
    """Return the numbers of states by name; ignoring case ('Engaged') unless two names only differ in case."""
    other = {one.casefold(): k for k, one in enumerate(states)}
    return {**(other if len(other) == len(states) else {}), **{one: k for k, one in enumerate(states)}}


def _encode(code: Mapping[str, int], value: Any) -> int:
    text = as_text(value)
    return code.get(text, code.get(text.casefold(), -1 if _is_empty(value) else -2))


def as_ids(arms: Sequence[str], name: str = "arms") -> list[str]:
    """Return ids as text; ModelError if a single text is given, which would be split into letters."""
    if isinstance(arms, str):
        raise ModelError(f"{name} must be a list of ids, got {arms!r:.60}; use [{arms!r:.60}]")
    return [str(one) for one in arms]


def per_arm(value: Any, count: int, name: str) -> list[Any]:
    """Return one value for each arm: the same for all, or a sequence (N,)."""
    if value is None or isinstance(value, str):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise ModelError(f"{name} must have {count} entries, one for each arm, got {len(values)}")
    return values


def relocate(error: LogError, name: str, unit: str, line_of: LineOf) -> LogError:
    """Return an error about rows as one about the lines of a file."""
    notes = [
        Note(one.what, tuple(int(k) for k in line_of(np.array(one.at, dtype=np.int64))), unit, one.code)
        if isinstance(one, Note)
        else one
        for one in error.problems
    ]
    return LogError(name, notes)


def _each(values: list[Any], read: Callable[[Any], int]) -> list[int]:
    """Return what values mean; each distinct value is parsed once."""
    try:
        known = {value: read(value) for value in set(values)}
    except TypeError:  # what cannot be in a set
        return [read(value) for value in values]
    return [known[value] for value in values]


def _report(findings: Findings, codes: list[int], values: Sequence[Any], what: str) -> None:
    wrong = [k for k, one in enumerate(codes) if one == -2]
    for value in dict.fromkeys(as_text(values[k]) for k in wrong):
        findings.add(f"{quote(value)} {what}", [k for k in wrong if as_text(values[k]) == value])
    for k in wrong:
        codes[k] = -1


def as_text(value: Any) -> str:
    """Return a cell as text: an empty one is '', and 7.0 is '7'."""
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _is_empty(value: Any) -> bool:
    return as_text(value).lower() in EMPTY


def _answer(value: Any) -> int:
    """Return 1, 0, -1 for nothing, -2 for something else."""
    text = as_text(value).lower()
    return 1 if text in YES else 0 if text in NO else -1 if text in EMPTY else -2


def _number(value: Any) -> float | None:
    if _is_empty(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def row_findings(name: str) -> Findings:
    """Return an empty collection of findings about rows."""
    return Findings(name, "row", lambda rows: rows)


def find_duplicates(ids: Sequence[str]) -> tuple[IntArray, list[tuple[int, str]]]:
    """Return a code for every row, and the findings about duplicate ids."""
    if len(set(ids)) == len(ids):
        return np.zeros(len(ids), dtype=np.int64), []
    names = {one: k for k, one in enumerate(dict.fromkeys(ids))}
    codes = np.array([names[one] for one in ids], dtype=np.int64)
    every = list(names)
    twice = [k for k in np.flatnonzero(np.bincount(codes) > 1).tolist() if every[k]]
    return codes, [(k, f"{quote(every[k])} is given more than once") for k in twice]
