"""Read the log of a programme: columns and their meaning; all problems are reported at once, with line numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rmab.common import PLAIN_DIALECT, BoolArray, Dialect, FloatArray, IntArray, is_number
from rmab.errors import ModelError, many
from rmab.logs.columns import (
    checked_values,
    empty_cells,
    encode,
    find_decimal,
    has_copies,
    parse_actions,
    parse_arms,
    parse_group,
    parse_numbers,
)
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.header import Source
from rmab.logs.lists import check_draw
from rmab.logs.log import Log
from rmab.logs.periods import parse_periods
from rmab.logs.renaming import Renames, rename_values
from rmab.logs.slips import check_actions, check_ids, check_names
from rmab.logs.source import open_source
from rmab.logs.states import States, parse_states
from rmab.logs.thousands import refuse_thousands

LARGEST = 1e150  # reading at which a state begins
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
    chance: str | None = None,
    by: str | None = None,
    reached: str | None = None,
    states: States = None,
    rename: Renames | None = None,
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
        Columns that define groups, in any order. An arm keeps its value.
    chance, by : str, optional
        Columns of the lists (`Decision.save`): the probability of being on the list, and the rule that gave the place, empty
        where there was none. `rmab.data.measure` needs them, for everybody. Without `by` the action is what was decided.
    reached : str, optional
        Column with whether the action reached the arm, yes or no; empty without a decision. `action` is what was
        decided: effects are per decision, and per contact that reached somebody as well.
    states : list of str, or dict of str to float, optional
        The states in their order, the best last; others are refused. Or, for readings, the least reading of every state:
        ``{"low": 0, "ok": 3.5}``. By default the states are those that appear.
    rename : path or dict, optional
        Other names for values: a file with the columns column, from and to, or ``{"state": {"engagiert": "engaged"}}``. It
        applies to all columns that are read, before anything else. An empty `to` is a value that is not known.
    decimal : str
        The decimal sign of readings and rewards, where they are text.
    encoding : str, optional
        Encoding of the CSV file, for example 'cp1252'; UTF-8 by default.

    Returns
    -------
    Log
        The records in the order of arms and periods. `notes` has remarks, for example about gaps, which are kept
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
    if not isinstance(groups, Sequence):
        raise ModelError(f"groups must be a list of columns, got {groups!r:.40}", field="groups")
    factors = [groups] if isinstance(groups, str) else list(groups)
    extra = {
        name: one
        for name, one in (("reward", reward), ("chance", chance), ("by", by), ("reached", reached))
        if one is not None
    }
    if by is not None and chance is None:
        raise ModelError("by needs chance; name the column with the probabilities of the draw", field="by")
    names = _checked_columns(roles | extra, factors)
    _check_states(states)
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise ModelError(f"decimal must be '.' or ',', got {decimal!r:.20}")
    if not isinstance(encoding, str | None):
        raise ModelError(f"encoding must be text, for example 'cp1252', got {encoding!r:.40}", field="encoding")
    given = open_source(log, names, encoding)
    source = replace(given, columns=checked_values(given.columns, given.name))
    findings = Findings(source.name, source.unit, source.line_of)
    if rename is not None:
        source = rename_values(source, rename, findings)
    return _assemble(_drop_blank_rows(source, findings), roles, extra, factors, states, decimal, findings)


def _checked_columns(roles: dict[str, str], factors: list[str]) -> list[str]:
    """Return the columns that are needed, each once; ModelError where one has two meanings."""
    for role, name in [*roles.items(), *(("groups", one) for one in factors)]:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{role} must be the name of a column, got {name!r:.40}")
    seen: dict[str, str] = {}
    for role, name in [*roles.items(), *(("a group", one) for one in factors)]:
        if name in seen:
            raise ModelError(f"column {quote(name)} cannot be both {seen[name]} and {role}")
        seen[name] = role
    return list(seen)


def _check_states(states: States) -> None:
    if states is None:
        return
    if isinstance(states, str) or not isinstance(states, Mapping | Sequence) or len(states) == 0:
        raise ModelError(f"states must be a list of names, or a table of names and smallest readings, got {states!r:.60}")
    if len(set(map(str, states))) < len(states):
        raise ModelError(f"states: {list_some(list(states))} are not all different")
    if isinstance(states, Mapping):
        for name, edge in states.items():
            if not is_number(edge) or not -LARGEST < edge < LARGEST:
                raise ModelError(f"states: the smallest reading of {quote(name)} must be a number, got {edge!r:.40}")
        if len(set(states.values())) < len(states):
            raise ModelError("states: two states begin at the same reading")


def _drop_blank_rows(source: Source, findings: Findings) -> Source:
    """Leave out rows in which all columns that are needed are empty, as spreadsheets write them below a table."""
    blank: BoolArray | None = None
    for column in source.columns.values():
        empty = empty_cells(column)
        blank = empty if blank is None else blank & empty
        if not blank.any():
            return source
    if blank is None or not blank.any():
        return source
    filled, line_of = np.flatnonzero(~blank), source.line_of
    findings.note("blank rows are left out", np.flatnonzero(blank))
    if filled.size == 0:
        findings.add("all rows are blank")
        findings.stop()
    columns = {name: column.filter(~blank) for name, column in source.columns.items()}
    findings.line_of = lambda rows: line_of(np.asarray(filled[rows]))
    return replace(source, columns=columns, line_of=findings.line_of)


def _assemble(
    source: Source,
    roles: dict[str, str],
    extra: dict[str, str],
    factors: list[str],
    states: States,
    decimal: str,
    findings: Findings,
) -> Log:
    columns, reads_numbers = source.columns, "reward" in extra or isinstance(states, Mapping)
    values, codes = encode(columns[roles["arm"]])
    ids = parse_arms(values, codes, roles["arm"], findings)
    if codes.size == 0:
        findings.add("there is no row")
        findings.stop()
    moments, period_codes = encode(columns[roles["period"]])
    if (period_codes < 0).any():
        findings.add(f"no period in column {quote(roles['period'])}", np.flatnonzero(period_codes < 0))
    found = parse_periods(moments, period_codes, codes, roles["period"], findings) if moments else None
    names, where, ordered = parse_states(columns[roles["state"]], roles["state"], states, decimal, findings)
    if not names:
        findings.add(f"column {quote(roles['state'])} is empty: no state was ever seen")
    actions = parse_actions(*encode(columns[roles["action"]]), roles["action"], findings)
    numbers = {}
    for name in extra.keys() & {"reward", "chance"}:
        sign = find_decimal(columns[extra[name]]) if name == "chance" else decimal
        numbers[name] = parse_numbers(columns[extra[name]], extra[name], sign, findings)
    readings = [roles["state"]] if isinstance(states, Mapping) else []
    for one in [*readings, *(extra[name] for name in extra if name == "reward")]:
        refuse_thousands(columns[one], one, decimal, source.dialect.delimiter, findings)
    if "reached" in extra:
        numbers["reached"] = _parse_reached(columns[extra["reached"]], actions, extra["reached"], findings)
    if "chance" in extra:
        on = ~empty_cells(columns[extra["by"]]) if "by" in extra else None
        check_draw(numbers["chance"], on, extra["chance"], findings)
        numbers["listed"] = np.where(np.isnan(numbers["chance"]), -1.0, 0.0 if on is None else on)
    grouped = {one: parse_group(columns[one], one, codes, ids, findings) for one in factors}
    if found is None:  # duplicates are reported all the same
        _sort_records(codes, period_codes, ids, lambda k: str(moments[k]), findings)
        findings.stop()
    assert found is not None
    order, twice = _sort_records(codes, found[1], ids, found[0].label, findings)
    if twice and found[0].kind == "number" and found[0].unit == "week" and found[0].count <= 53:
        findings.add("where weeks begin at 1 again every year, write the year, too: 2024-W11")
    if twice and has_copies(columns):
        findings.add("some of these rows are copies; delete them (in a spreadsheet: Remove Duplicates)")
    findings.stop()
    check_ids(ids, codes, found[1], roles["arm"], findings)
    check_actions(found[1], actions, found[0], roles["action"], findings)
    check_names(names, where, found[1], found[0], findings)
    findings.stop()
    _note_gaps(codes[order], found[1][order], order, findings)
    return Log(
        arms=tuple(ids),
        state_names=names,
        periods=found[0],
        arm_of=codes[order],
        period=found[1][order],
        state=where[order],
        action=actions[order],
        reward=numbers["reward"][order] if "reward" in numbers else None,
        factors={one: levels for one, (levels, _) in grouped.items()},
        factor_of=np.array([place for _, place in grouped.values()], dtype=np.int64).reshape(len(grouped), len(ids)).T,
        ordered=ordered,
        word=WORDS.get(roles["action"].casefold(), "action"),
        notes=tuple(findings.notes),
        chance=numbers["chance"][order] if "chance" in extra else None,
        listed=numbers["listed"][order].astype(np.int64) if "by" in extra else None,
        dialect=_find_dialect(source.dialect, decimal, numbers=reads_numbers),
        reached=numbers["reached"][order].astype(np.int64) if "reached" in extra else None,
    )


def _find_dialect(found: Dialect, decimal: str, *, numbers: bool) -> Dialect | None:
    """Return how a list for the writers of this log is to be written; None for plain commas.

    Where semicolons stand between columns, spreadsheets take a comma for the decimal sign, and a point for a date. So lists
    have commas, too, unless the log has numbers with points.
    """
    comma = decimal == "," or (found.delimiter == ";" and not numbers)
    return None if found == PLAIN_DIALECT and not comma else replace(found, decimal="," if comma else ".")


def _parse_reached(column: Any, actions: IntArray, name: str, findings: Findings) -> FloatArray:
    """Return whether actions reached arms: 1, 0, or -1 if unknown; note arms that were reached without a decision."""
    found = parse_actions(*encode(column), name, findings)
    uncalled = np.flatnonzero((found == 1) & (actions == 0))
    if uncalled.size:
        findings.note(f"reached in column {quote(name)}, but not decided on: they count as not decided on", uncalled)
    return np.where(actions == 1, found, -1).astype(np.float64)


def _sort_records(
    arm_of: IntArray, period: IntArray, ids: list[str], label: Callable[[int], str], findings: Findings
) -> tuple[IntArray, bool]:
    """Return the order by arm and period, and whether an arm has a period twice (an error); note rows out of order."""
    order = np.lexsort((period, arm_of))
    same = (np.diff(arm_of[order]) == 0) & (arm_of[order][1:] >= 0) & (period[order][1:] >= 0)
    twice = np.flatnonzero(same & (np.diff(period[order]) == 0))
    key = np.full(arm_of.size, -1, dtype=np.int64)
    wrong: list[tuple[int, str]] = []
    for k in twice:
        rows = order[[k, k + 1]]
        key[rows] = key[rows[0]] if key[rows[0]] >= 0 else len(wrong)
        if key[rows[0]] == len(wrong):
            what = f"arm {quote(ids[arm_of[rows[0]]])} has more than one row for period {label(int(period[rows[0]]))}"
            wrong.append((len(wrong), what))
    findings.add_each(key, wrong, "duplicate-record")
    late = np.flatnonzero(same & (np.diff(order) < 0)) + 1
    if late.size and not twice.size:
        findings.note("periods are out of order; they were sorted", np.sort(order[late]))
    return np.asarray(order), bool(twice.size)


def _note_gaps(arm_of: IntArray, period: IntArray, order: IntArray, findings: Findings) -> None:
    """Note the records that follow a gap, and the periods that are missing."""
    gap = np.flatnonzero((np.diff(arm_of) == 0) & (np.diff(period) > 1)) + 1
    if gap.size:
        missing = int((np.diff(period)[gap - 1] - 1).sum())
        arms = np.unique(arm_of[gap]).size
        text = (
            f"{many(missing, 'record')} of {many(arms, 'arm')} are missing just before these lines; gaps are not filled in"
        )
        findings.note(text, order[gap])
    single = int((np.bincount(arm_of) == 1).sum())
    if single:
        findings.note(f"{many(single, 'arm')} {'has' if single == 1 else 'have'} one record only, which shows no change")
