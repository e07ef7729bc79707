"""The report of a live programme: one HTML page with its benefit, warnings, and who gets places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common import FloatArray, checked_suffix, require, write_atomically
from rmab.errors import many
from rmab.live.benefit import Benefit, measure_benefit
from rmab.live.engines import engine_of
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer, transitions
from rmab.live.status import find_status

SHOWN, GROUPS, ROWS = 12, 40, 60  # periods, groups and sums in the tables
WIDTH, HEIGHT, EDGE = 860, 300, 24  # of the curve


def write_report(ledger: Ledger, observer: Observer, name: str, path: str | os.PathLike[str]) -> Path:
    """Write the page, and return its path."""
    require("report", "a report")
    checked_suffix(path, (".html",))
    page = Path(path)
    write_atomically(page, render_report(ledger, observer, name).encode())
    return page


def render_report(ledger: Ledger, observer: Observer, name: str) -> str:
    """Return the page as HTML."""
    from rmab.report.output import render_page  # noqa: PLC0415  (an extra)

    config, status, found = ledger.declared, find_status(ledger), measure_benefit(ledger)
    due = f"{status.due} is due, with a budget of {status.budget}" if status.due else "no period is decided yet"
    engine = engine_of(config.engine)
    groups, more = _groups(ledger, observer)
    return render_page(
        "live.html.jinja",
        (),
        ("report.css", "programme.css", "live.css"),
        name=name,
        standing=f"{many(status.arms, 'arm')}; {due}.",
        status=status,
        sentence=f"{str(found)[:1].upper()}{str(found)[1:]}",
        unit=found.unit,
        word=config.action,
        period_word=config.rhythm.unit,
        engine=engine if isinstance(engine, str) else engine.name,
        curve=_curve(found),
        sums=_sums(found),
        periods=_periods(ledger),
        groups=groups,
        more_groups=more,
        digest=ledger.hash[:12],
    )


def _curve(found: Benefit) -> dict[str, Any] | None:
    """Return the points of the drawing; None if fewer than two periods were compared."""
    if len(found.periods) < 2:
        return None
    values = np.concatenate([found.low, found.high, found.promised, [0.0]])
    low, high = float(values.min()), float(values.max())

    def down(several: FloatArray) -> FloatArray:
        return np.asarray(HEIGHT - EDGE - (np.asarray(several) - low) / max(high - low, 1e-12) * (HEIGHT - 2 * EDGE))

    across = np.linspace(EDGE, WIDTH - EDGE, len(found.periods))

    def points(xs: FloatArray, several: FloatArray) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, down(several), strict=True))

    band = points(np.concatenate([across, across[::-1]]), np.concatenate([found.high, found.low[::-1]]))
    ends = (found.periods[0], EDGE, False), (found.periods[-1], WIDTH - EDGE, True)
    texts = [(x, float(HEIGHT - 6), text, end) for text, x, end in ends]
    texts += [(4, float(EDGE - 8), f"{high:,.0f}", False), (4, float(down(np.zeros(1))[0]) - 5, "0", False)]
    texts.append((WIDTH - EDGE, float(down(found.promised[-1:])[0]) - 6, "promised", True))
    texts.append((WIDTH - EDGE, float(down(found.shown[-1:])[0]) - 6, "shown", True))
    labels = [dict(zip(("x", "y", "text", "end"), one, strict=True)) for one in texts]
    sizes = {"width": WIDTH, "height": HEIGHT, "zero": f"{float(down(np.zeros(1))[0]):.1f}"}
    lines = {"shown": points(across, found.shown), "promised": points(across, found.promised)}
    return {**sizes, **lines, "band": band, "labels": labels}


def _sums(found: Benefit) -> list[dict[str, str]]:
    rows = []
    for k in range(max(len(found.periods) - ROWS, 0), len(found.periods)):
        numbers = {one: f"{getattr(found, one)[k]:,.1f}" for one in ("promised", "shown", "low", "high")}
        compared = f"{found.listed[k]:,} and {found.left_out[k]:,}"
        rows.append({"period": found.periods[k], **numbers, "compared": compared})
    return rows


def _periods(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the three facts of the last periods in numbers."""
    found = []
    for period in sorted(ledger.decisions, reverse=True)[:SHOWN]:
        record, seen = ledger.decisions[period], transitions(ledger, period)
        rules = list(record.rules.values())
        forced = sum(rule not in ("index", "lot") for rule in rules)
        places = [len(rules), rules.count("index"), rules.count("lot"), len(record.left_out), forced]
        reported = int((seen.after[record.arms] >= 0).sum())
        numbers = [record.arms.size, *places, int((seen.executed == 1).sum()), reported]
        by = (
            "fallback" if record.body.status == "fallback" else "plan" if record.body.issued is None else "list issued ahead"
        )
        found.append({"period": ledger.label(period), "cells": [*(f"{one:,}" for one in numbers), by]})
    return found


def _groups(ledger: Ledger, observer: Observer) -> tuple[list[dict[str, Any]], int]:
    """Return who gets places by group, most places first, and the number of groups not shown."""
    decided = sorted(ledger.decisions)[-SHOWN:]
    if not decided:
        return [], 0
    size = len(ledger.groups)
    present = np.bincount(ledger.group_of[ledger.is_present(decided[-1])], minlength=size)
    each = [np.bincount(ledger.group_of[list(ledger.decisions[one].rules)], minlength=size) for one in decided]
    reach, table = observer.reach(ledger), ledger.decisions[decided[-1]].body.table
    total = np.sum(each, axis=0)
    rows = []
    for g in np.argsort(-total, kind="stable"):
        if present[g] or total[g]:
            index = ", ".join(f"{value:.2g}" for value in table.get(ledger.groups[g], [])) or "none"
            numbers = [f"{present[g]:,}", f"{each[-1][g]:,}", f"{total[g]:,}", f"{reach[g]:.0%}", index]
            rows.append({"group": ledger.groups[g], "cells": numbers})
    return rows[:GROUPS], max(len(rows) - GROUPS, 0)
