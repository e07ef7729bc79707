"""Read the log of a programme: columns and their meaning, everything wrong told at once, with line numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rmab.common.arrays import BoolArray, IntArray, frozen
from rmab.common.words import many
from rmab.errors import ModelError
from rmab.logs.columns import (
    States,
    empty_cells,
    encoded,
    parse_actions,
    parse_arms,
    parse_group,
    parse_numbers,
    parse_states,
)
from rmab.logs.faults import Faults, listed, quoted
from rmab.logs.header import Source
from rmab.logs.log import Log
from rmab.logs.periods import parse_periods
from rmab.logs.source import opened

WORDS = {  # what an action is called, by the name of its column
    "call": "call", "called": "call", "calls": "call", "visit": "visit", "visited": "visit", "contact": "contact",
    "contacted": "contact", "treated": "treatment", "treatment": "treatment", "reminded": "reminder", "reminder": "reminder",
    "message": "message", "messaged": "message", "charge": "charge", "charged": "charge", "repair": "repair",
    "repaired": "repair", "serviced": "service", "inspected": "inspection", "texted": "text message", "sms": "text message",
}  # fmt: skip


def read_log(
    log: str | os.PathLike[str] | Any,
    *,
    arm: str,
    period: str,
    state: str,
    action: str,
    reward: str | None = None,
    groups: Sequence[str] = (),
    states: States = None,
    decimal: str = ".",
    encoding: str | None = None,
) -> Log:
    """Read the log of a programme: one row per arm and period, from a file or a table.

    Parameters
    ----------
    log : path, DataFrame or Arrow table
        A CSV file (commas, semicolons, tabs or |; also .csv.gz), a Parquet file, a pandas DataFrame, a pyarrow Table, or
        whatever else offers itself as Arrow data.
    arm, period, state, action : str
        The names of the columns. Ids are text and stay as they are: '007' is not 7. Periods are whole numbers, dates, ISO
        weeks (2024-W11), months (2024-03) or times, with a regular step. Actions are yes or no in the usual spellings. An
        empty state was not seen; an empty action is not known.
    reward : str, optional
        A column with what was earned in the period.
    groups : sequence of str
        Columns that part the arms, the most important first: an arm keeps its value.
    states : list of str, or dict of str to float, optional
        The states in their order, the best last; others are refused. Or, for readings, the least reading of every state:
        ``{"low": 0, "ok": 3.5}``. By default the states are those that appear.
    decimal : str
        The decimal sign of readings and rewards, where they are text.
    encoding : str, optional
        Of a CSV file that is not UTF-8.

    Returns
    -------
    Log
        The records in the order of arms and periods. `notes` has what is worth knowing: gaps, for instance, which are kept
        and never bridged.

    Raises
    ------
    LogError
        With everything that is wrong, and the line numbers (rows from 0, for tables).
    FileError
        Where the file cannot be read.

    Examples
    --------
    >>> import pyarrow as pa, rmab
    >>> table = pa.table({"id": ["007", "007", "8"], "week": [1, 2, 1], "state": ["ok", "low", "ok"], "called": [1, 0, 0]})
    >>> rmab.data.read_log(table, arm="id", period="week", state="state", action="called")
    Log(2 arms, 2 weeks, 3 records, states low, ok)
    """
    roles = {"arm": arm, "period": period, "state": state, "action": action}
    factors = [groups] if isinstance(groups, str) else list(groups)
    names = _checked_roles(roles | ({} if reward is None else {"reward": reward}), factors)
    _check_states(states)
    if decimal not in (".", ","):
        raise ModelError(f"decimal must be '.' or ',', got {decimal!r:.20}")
    source = opened(log, names, encoding)
    faults = Faults(source.name, source.unit, source.line_of)
    return _assembled(_without_blanks(source, faults), roles, reward, factors, states, decimal, faults)


def _checked_roles(roles: dict[str, str], factors: list[str]) -> list[str]:
    """Return the columns that are needed, each once; ModelError where one has two meanings."""
    for role, name in [*roles.items(), *(("groups", one) for one in factors)]:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{role} must be the name of a column, got {name!r:.40}")
    seen: dict[str, str] = {}
    for role, name in [*roles.items(), *(("a group", one) for one in factors)]:
        if name in seen:
            raise ModelError(f"column {quoted(name)} cannot be both {seen[name]} and {role}")
        seen[name] = role
    return list(seen)


def _check_states(states: States) -> None:
    if states is None:
        return
    if isinstance(states, str) or not isinstance(states, Mapping | Sequence) or len(states) == 0:
        raise ModelError(f"states must be a list of names, or a table of names and least readings, got {states!r:.60}")
    if len(set(map(str, states))) < len(states):
        raise ModelError(f"states: {listed(list(states))} are not all different")
    if isinstance(states, Mapping):
        for name, edge in states.items():
            if isinstance(edge, bool) or not isinstance(edge, int | float | np.number) or not np.isfinite(edge):
                raise ModelError(f"states: the least reading of {quoted(name)} must be a number, got {edge!r:.40}")
        if len(set(states.values())) < len(states):
            raise ModelError("states: two states begin at the same reading")


def _without_blanks(source: Source, faults: Faults) -> Source:
    """Leave out rows in which all columns that are needed are empty, as spreadsheets write them below a table."""
    blank: BoolArray | None = None
    for column in source.columns.values():
        empty = empty_cells(column)
        blank = empty if blank is None else blank & empty
        if not blank.any():
            return source
    if blank is None or not blank.any():
        return source
    kept, line_of = np.flatnonzero(~blank), source.line_of
    faults.note("blank rows are left out", np.flatnonzero(blank))
    if kept.size == 0:
        faults.add("all rows are blank")
        faults.stop()
    columns = {name: column.filter(~blank) for name, column in source.columns.items()}
    faults.line_of = lambda rows: line_of(np.asarray(kept[rows]))
    return Source(source.name, source.unit, columns, faults.line_of)


def _assembled(
    source: Source,
    roles: dict[str, str],
    reward: str | None,
    factors: list[str],
    states: States,
    decimal: str,
    faults: Faults,
) -> Log:
    columns = source.columns
    values, codes = encoded(columns[roles["arm"]])
    ids = parse_arms(values, codes, roles["arm"], faults)
    if codes.size == 0:
        faults.add("there is no row")
        faults.stop()
    moments, period_codes = encoded(columns[roles["period"]])
    if (period_codes < 0).any():
        faults.add(f"no period in column {quoted(roles['period'])}", np.flatnonzero(period_codes < 0))
    found = parse_periods(moments, period_codes, codes, roles["period"], faults) if moments else None
    names, where, ordered = parse_states(columns[roles["state"]], roles["state"], states, decimal, faults)
    if not names:
        faults.add(f"column {quoted(roles['state'])} is empty: no state was ever seen")
    actions = parse_actions(*encoded(columns[roles["action"]]), roles["action"], faults)
    earned = None if reward is None else parse_numbers(columns[reward], reward, decimal, faults)
    grouped = {one: parse_group(columns[one], one, codes, ids, faults) for one in factors}
    if found is None:  # duplicates can be told all the same
        _in_order(codes, period_codes, ids, lambda k: str(moments[k]), faults)
        faults.stop()
    assert found is not None
    order = _in_order(codes, found[1], ids, found[0].label, faults)
    if found[0].kind == "number" and found[0].unit == "week" and found[0].count <= 53 and faults.has("duplicate-record"):
        faults.add("where weeks begin at 1 again every year, write the year, too: 2024-W11")
    faults.stop()
    _note_gaps(codes[order], found[1][order], order, faults)
    return Log(
        arms=tuple(ids),
        state_names=names,
        periods=found[0],
        arm_of=frozen(codes[order]),
        period=frozen(found[1][order]),
        state=frozen(where[order]),
        action=frozen(actions[order]),
        reward=None if earned is None else frozen(earned[order]),
        factors={one: levels for one, (levels, _) in grouped.items()},
        factor_of=frozen(np.column_stack([place for _, place in grouped.values()]) if grouped else _none(len(ids))),
        ordered=ordered,
        word=WORDS.get(roles["action"].casefold(), "action"),
        notes=tuple(faults.noted),
    )


def _none(count: int) -> IntArray:
    return np.zeros((count, 0), dtype=np.int64)


def _in_order(arm_of: IntArray, period: IntArray, ids: list[str], label: Callable[[int], str], faults: Faults) -> IntArray:
    """Return the order by arm and period; an arm that has a period twice is refused, rows out of order are noted."""
    order = np.lexsort((period, arm_of))
    same = (np.diff(arm_of[order]) == 0) & (arm_of[order][1:] >= 0) & (period[order][1:] >= 0)
    twice = np.flatnonzero(same & (np.diff(period[order]) == 0))
    key = np.full(arm_of.size, -1, dtype=np.int64)
    wrong: list[tuple[int, str]] = []
    for k in twice:
        rows = order[[k, k + 1]]
        key[rows] = key[rows[0]] if key[rows[0]] >= 0 else len(wrong)
        if key[rows[0]] == len(wrong):
            what = f"arm {quoted(ids[arm_of[rows[0]]])} has {label(int(period[rows[0]]))} more than once"
            wrong.append((len(wrong), what))
    faults.add_each(key, wrong, "duplicate-record")
    late = np.flatnonzero(same & (np.diff(order) < 0)) + 1
    if late.size and not twice.size:
        faults.note("periods are out of order; they were sorted", np.sort(order[late]))
    return np.asarray(order)


def _note_gaps(arm_of: IntArray, period: IntArray, order: IntArray, faults: Faults) -> None:
    """Note the records that follow a gap, and the periods that are missing."""
    gap = np.flatnonzero((np.diff(arm_of) == 0) & (np.diff(period) > 1)) + 1
    if gap.size:
        missing = int((np.diff(period)[gap - 1] - 1).sum())
        arms = np.unique(arm_of[gap]).size
        said = f"{many(missing, 'record')} of {many(arms, 'arm')} are missing before these; gaps are kept, not bridged"
        faults.note(said, order[gap])
    single = int((np.bincount(arm_of) == 1).sum())
    if single:
        faults.note(f"{many(single, 'arm')} {'has' if single == 1 else 'have'} one record only, which shows no change")
