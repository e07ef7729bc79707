"""The page of a report: one HTML file with its tables, the charts' numbers as JSON, scripts and styles."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rmab.report.cells import COMPARATORS, Cell, Page
from rmab.report.charts import learners_of, payload
from rmab.report.headlines import headline
from rmab.report.numbers import number, share, spread
from rmab.report.output import asset, render_page
from rmab.report.scalings import Scaling
from rmab.report.sentences import coverage, page_words, scaling_caution, scaling_words
from rmab.report.statistics import interval
from rmab.report.summary import Summary

SAMPLES = 6  # columns of the table of a curve


def render(summary: Summary, provenance: Iterable[Mapping[str, Any]]) -> str:
    """Return the whole report as HTML."""
    runs = list(provenance)
    return render_page(
        "report.html.jinja",
        ("uPlot.iife.min.js", "pictures.js", "report.js", "tables.js"),
        ("uPlot.min.css", "report.css"),
        licence=asset("uPlot.LICENSE.txt"),
        data=json.dumps(payload(summary), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        study=summary.study,
        headline=headline(summary),
        coverage=coverage(summary),
        learners=learners_of(summary),
        overview=_overview(summary),
        pages=summary.pages,
        comparators=COMPARATORS,
        page_words=page_words,
        samples=_samples,
        mark=_mark,
        behind=_behind,
        probability=_probability,
        interval=interval,
        number=number,
        share=share,
        spread=spread,
        scaling=_scaling_rows(summary),
        missing=summary.missing,
        provenance=_origins(runs),
        mixed=_list_versions(runs),
    )


def _scaling_rows(summary: Summary) -> dict[str, Any]:
    rows = [{"one": one, "fit": _format_fit(one), "cells": [spread(mean) for mean in one.means]} for one in summary.scalings]
    return {
        "rows": rows,
        "words": [scaling_words(one, summary.study.kind) for one in summary.scalings],
        "caution": scaling_caution(summary),
        "sizes": sorted({int(size) for one in summary.scalings for size in one.sizes}),
    }


def _format_fit(one: Scaling) -> str:
    if one.fit is None:
        return "no fit: not positive" if one.sizes.size > 1 else "only one size"
    found = one.fit.exponent
    if math.isfinite(found.half):
        return f"{found.mean:z.2f} ({found.low:z.2f} to {found.high:z.2f})"
    return "no interval (too near zero)" if found.count > 1 else "no interval (one round)"


def _overview(summary: Summary) -> list[dict[str, Any]]:
    """Return regret by task and learner, relative to the random policy, one table per comparator.

    If the adversary reacts to the learner, regrets cannot be compared, and the table has rewards instead.
    """
    found = []
    for to in COMPARATORS:
        rows = []
        for page in summary.pages:
            cells = {cell.learner: {"text": _standing(cell, to), "mark": _mark(page, cell)} for cell in page.cells}
            rows.append({"task": page.task, "cells": [cells.get(label) for label in summary.learners]})
        found.append({"to": to, "rows": rows})
    return found


def _standing(cell: Cell, to: str) -> str:
    return f"earned {spread(interval(cell.totals))}" if cell.adaptive else share(cell.relative_to_random(to))


def _mark(page: Page, cell: Cell) -> str:
    """Return 'best', 'level' (not significantly different from the best), 'privileged' or an empty string."""
    if cell not in page.rivals:
        return "privileged"
    if len(page.rivals) == 1:
        return ""
    return "best" if cell is page.rivals[0] else "level" if page.level(cell) else ""


def _behind(page: Page, cell: Cell) -> str:
    """Format the difference of a learner to the best rival."""
    pair = page.pair(cell, page.rivals[0]) if cell is not page.rivals[0] else None
    if pair is None:
        return ""
    return share(pair.relative) if pair.relative is not None else spread(pair.difference)


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _samples(page: Page) -> dict[str, Any]:
    """Return the curves as a table: accumulated reward and regret of each learner at a few episodes."""
    at = sorted({round(k) for k in np.linspace(0, page.cells[0].episodes - 1, SAMPLES)})
    rows = []
    for cell in page.cells:
        reward, regret = np.cumsum(cell.columns["reward"], axis=1), cell.regret("O1")
        rows.append((cell.learner, "reward", [spread(interval(reward[:, k])) for k in at]))
        rows.append((cell.learner, "regret against O1", [spread(interval(regret[:, k])) for k in at]))
    if np.isfinite(page.cells[0].theory).all():
        rows.append(("the theorem", "bound on the regret", [number(value) for value in page.cells[0].theory[at]]))
    return {"episodes": [k + 1 for k in at], "rows": rows}


def _distinct(runs: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return sorted({str(run.get(key) or "unknown") for run in runs})


def _list_versions(runs: Sequence[Mapping[str, Any]]) -> str:
    """List the versions and revisions of the library, if the runs differ in them; else return an empty string."""
    found = [(f"{word}s of rmab", _distinct(runs, word)) for word in ("version", "revision")]
    return " and ".join(f"{len(several)} {name} ({', '.join(several)})" for name, several in found if len(several) > 1)


def _origins(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the rows of the provenance table."""

    def distinct(key: str) -> str:
        return ", ".join(_distinct(runs, key)) or "unknown"

    rows = [("runs", f"{len(runs):,}")]
    rows += [(name, distinct(key)) for name, key in (("version of rmab", "version"), ("revision", "revision"))]
    rows += [(name, distinct(key)) for name, key in (("study", "study"), ("engine", "engine"))]
    starts = sorted(str(run["started"]) for run in runs if run.get("started"))
    if starts:
        rows.append(("first and last start", f"{starts[0]} and {starts[-1]}"))
    spent = sum(float(run.get("seconds") or 0.0) for run in runs)
    return [*rows, ("computing time", _duration(spent))]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
