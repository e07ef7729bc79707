"""Data of the interactive charts of a report."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.report.cells import COMPARATORS, TERMS, Page
from rmab.report.statistics import Interval, band
from rmab.report.summary import Summary

NUMBERS = 150_000  # in all curves together, which keeps the file below about 1.5 MB
MOST, LEAST = 400, 20  # points of one curve
COLOURS = 8


def choose_episodes(episodes: int, curves: int) -> list[int]:
    """Return the episodes to draw (from 0, including the first and the last), given the number of curves on the page."""
    points = min(episodes, max(LEAST, min(MOST, NUMBERS // max(curves, 1))))
    return sorted({round(k) for k in np.linspace(0, episodes - 1, points)})


def payload(summary: Summary) -> dict[str, Any]:
    """Return the data of all charts, with five digits; null for numbers that are not finite."""
    curves = sum(len(page.cells) for page in summary.pages) * 2 * (1 + len(COMPARATORS))
    return {
        "learners": learners_of(summary),
        "kind": summary.study.kind,
        "terms": TERMS,
        "tasks": [_charts(summary, page, curves) for page in summary.pages],
        "scaling": _scaling_charts(summary),
        "overview": _overview_chart(summary),
    }


def learners_of(summary: Summary) -> list[dict[str, Any]]:
    """Return label and style of each learner: colours by position, privileged ones dashed, those after the eighth dotted."""
    privileged = {cell.learner: cell.privileged for page in summary.pages for cell in page.cells if cell.privileged}
    return [
        {
            "label": label,
            "privileged": privileged.get(label, ""),
            "colour": k % COLOURS,
            "stroke": "dashed" if label in privileged else "dotted" if k >= COLOURS else "solid",
        }
        for k, label in enumerate(summary.learners)
    ]


def _charts(summary: Summary, page: Page, curves: int) -> dict[str, Any]:
    shown = choose_episodes(page.cells[0].episodes, curves)
    return {
        "label": page.task,
        "episodes": [k + 1 for k in shown],
        "theory": _short(page.cells[0].theory[shown]),
        "papers": page.papers.learner if page.papers else "",
        "learners": [
            {
                "learner": summary.learners.index(cell.learner),
                "reward": _curve(np.cumsum(cell.columns["reward"], axis=1)[:, shown]),
                **{to: _curve(cell.regret(to)[:, shown]) for to in COMPARATORS},
                "terms": None if cell.terms is None else [_ends(one) for one in cell.terms],
            }
            for cell in page.cells
        ],
    }


def _curve(values: FloatArray) -> list[list[float | None]]:
    mean, half = band(values)
    return [_short(mean), _short(half)]


def _short(values: Iterable[float]) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]


def _ends(one: Interval) -> list[float | None]:
    return _short([one.mean, one.low, one.high])


def _scaling_charts(summary: Summary) -> list[dict[str, Any]]:
    """Return one chart per family of tasks that differ only in size."""
    groups = dict.fromkeys(one.group for one in summary.scalings)
    return [
        {
            "label": group,
            "theory": _bound_of(summary, group),
            "series": [
                {
                    "learner": summary.learners.index(one.learner),
                    "x": _short(one.sizes),
                    "ends": [_ends(mean) for mean in one.means],
                    "fit": _short([one.fit.factor, one.fit.exponent.mean]) if one.fit is not None and one.sure else None,
                }
                for one in summary.scalings
                if one.group == group
            ],
        }
        for group in groups
    ]


def _bound_of(summary: Summary, group: str) -> list[list[float | None]] | None:
    """Return sizes and the theorem's bound, if this family has the learner that the theorem is stated for."""
    stated = [(one.sizes, one.theory) for one in summary.scalings if one.group == group and one.theory is not None]
    return [_short(one) for one in stated[0]] if stated else None


def _overview_chart(summary: Summary) -> list[dict[str, Any]]:
    """Return the regret against O1 of each learner on each task, in per cent of the random policy's, with its interval.

    Tasks whose adversary reacts to the learner are omitted: their regrets cannot be compared.
    """
    pages = [page for page in summary.pages if not page.adaptive] if len(summary.pages) > 1 else []
    return [
        {
            "label": page.task,
            "dots": [
                [
                    summary.learners.index(cell.learner),
                    *(None if one is None else 100 * one for one in _ends(cell.relative_to_random("O1"))),
                ]
                for cell in page.cells
            ],
        }
        for page in pages
    ]
