"""The status of a programme: what is due, what is missing, and warnings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rmab.live.benefit import measure_benefit
from rmab.live.ledger import Ledger
from rmab.live.observing import transitions

RECENT = 4  # periods
MISSING, SILENT = 0.1, 0.5  # share of the reports that may be missing without a yellow, or a red, finding
REACHED = 0.5  # share of the decisions that should be carried out
SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """A warning: severity 'red' or 'yellow', and a text."""

    severity: str
    what: str


@dataclass(frozen=True)
class Status:
    """The status of a programme.

    Attributes
    ----------
    arms : int
        Number of current arms.
    last, due : str
        The last period that was decided, and the next one.
    budget : int
        Budget of the next one.
    events : int
        The number of the last event.
    missing : dict of str to int
        Number of outstanding reports of recent periods.
    findings : tuple of Finding
        Warnings, red first.
    fallback : str
        Rule that decides if no plan is possible.
    """

    arms: int
    last: str
    due: str
    budget: int
    events: int
    missing: dict[str, int]
    findings: tuple[Finding, ...]
    fallback: str


def find_status(ledger: Ledger) -> Status:
    """Return the status of a programme."""
    last = ledger.last_period
    if last is None:
        return _status_before_lists(ledger)
    missing = {one: _count_unreported(ledger, one) for one in sorted(ledger.decisions)[-RECENT:]}
    found = [*_silent(ledger, missing), *_find_skipped(ledger), *_reach(ledger), *_promise(ledger), *_alike(ledger)]
    body = ledger.decisions[last].body
    if body.status == "fallback":
        found.append(
            Finding("yellow", f"{ledger.label(last)} was decided by the fallback ({ledger.declared.fallback}): {body.why}")
        )
    found += [Finding("yellow", f"{ledger.label(last)}: {one}") for one in body.warnings]
    return Status(
        arms=int(ledger.is_present(last + 1).sum()),
        last=ledger.label(last),
        due=ledger.label(last + 1),
        budget=ledger.budget(last + 1),
        events=ledger.sequence,
        missing={ledger.label(one): count for one, count in missing.items() if count},
        findings=tuple(sorted(found, key=lambda one: one.severity != "red")),
        fallback=ledger.declared.fallback,
    )


def _status_before_lists(ledger: Ledger) -> Status:
    """Return the status before the first list: due is the period after all reports, or the first with arms."""
    due = max(ledger.cells) + 1 if ledger.cells else ledger.stays.last_first
    at, label = due or 0, "" if due is None else ledger.label(due)
    arms, found = int(ledger.is_present(at).sum()), tuple(_alike(ledger))
    return Status(arms, "", label, ledger.budget(at), ledger.sequence, {}, found, ledger.declared.fallback)


def _count_unreported(ledger: Ledger, period: int) -> int:
    """Return the number of arms whose report of a state is outstanding."""
    silent = ledger.is_present(period) & (ledger.cell(period).states(len(ledger.ids)) < 0)
    declared = ledger.cell(period).missing
    return sum(n not in declared for n in np.flatnonzero(silent).tolist())


def _silent(ledger: Ledger, missing: dict[int, int]) -> list[Finding]:
    found = []
    for period, count in missing.items():
        whole = max(int(ledger.is_present(period).sum()), 1)
        if period < max(missing) and count > MISSING * whole:
            severity = "red" if count > SILENT * whole else "yellow"
            what = f"{count:,} of {whole:,} reports of {ledger.label(period)} are outstanding"
            found.append(Finding(severity, f"{what}; report them, or declare them missing"))
        record, seen = ledger.decisions[period], transitions(ledger, period)
        open_ = [n for n in record.rules if seen.executed[n] < 0 and n not in ledger.cell(period).missing]
        if period < max(missing) and open_:
            what = f"no report says whether {len(open_)} of {len(record.rules)} decisions were carried out"
            found.append(Finding("yellow", f"{ledger.label(period)}: {what}; their transitions are not counted"))
    return found


def _find_skipped(ledger: Ledger) -> list[Finding]:
    decided = sorted(ledger.decisions)[-RECENT:]
    gaps = [one for one in range(decided[0], decided[-1]) if one not in ledger.decisions]
    if not gaps:
        return []
    return [Finding("yellow", f"no list was asked for in {', '.join(ledger.label(one) for one in gaps[:SHOWN])}")]


def _reach(ledger: Ledger) -> list[Finding]:
    """Compare decided and executed over the last periods."""
    executions = reports = 0
    for period in sorted(ledger.decisions)[-RECENT:]:
        seen = transitions(ledger, period)
        mine = seen.executed[list(ledger.decisions[period].rules)]
        executions, reports = executions + int((mine == 1).sum()), reports + int((mine >= 0).sum())
    if reports < 10 or executions >= REACHED * reports:
        return []
    return [Finding("yellow", f"few decisions are carried out: {executions} of {reports} in the last {RECENT} periods")]


def _promise(ledger: Ledger) -> list[Finding]:
    found = measure_benefit(ledger)
    if not found.periods or (found.low[-1] <= found.promised_high[-1] and found.promised_low[-1] <= found.high[-1]):
        return []
    return [Finding("yellow", f"model and observation disagree: {found}")]


def _alike(ledger: Ledger) -> list[Finding]:
    """Find ids that differ in case, spaces, signs or leading zeros only."""
    several: dict[str, list[str]] = defaultdict(list)
    for one in ledger.ids:
        several[_plain(one)].append(one)
    pairs = [" and ".join(ids[:2]) for ids in several.values() if len(ids) > 1]
    if not pairs:
        return []
    rest = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
    return [Finding("yellow", f"ids look like duplicates: {', '.join(pairs[:SHOWN])}{rest}")]


@lru_cache(maxsize=2**18)  # asked for again with every page that is shown
def _plain(one: str) -> str:
    """Return an id without case, spaces, signs and leading zeros."""
    return "".join(letter for letter in one.casefold() if letter.isalnum()).lstrip("0")
