"""Figures of a programme's report as PNG: benefit of the plan, who gets an action, effects of an action."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmab.estimation.effects import Effect, hold_together
from rmab.estimation.promise import Estimate, Evaluation
from rmab.estimation.reach import Reach
from rmab.report.output import figure_bytes

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#9aa0a6"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "font.family": "sans-serif",
}
PNG: dict[str, Any] = {"suffix": "png", "dpi": 150, "metadata": {"Software": None}}
MOST = 25  # maximum number of groups in a figure


def draw_programme(found: Evaluation, reached: list[Reach], effects: list[Effect]) -> Iterator[tuple[str, bytes]]:
    """Yield each figure as (file name, content); equal numbers give equal bytes."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        if found.states_benefits:
            yield "benefit.png", figure_bytes(_benefit(found), **PNG)
        yield "reach.png", figure_bytes(_reach(found, reached), **PNG)
        known = hold_together([one for one in effects if np.isfinite(one.value)])
        if known:
            yield "effects.png", figure_bytes(_effects(known), **PNG)


def _axes(rows: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 1.1 + 0.32 * rows), layout="constrained")
    return figure, figure.add_subplot()


def _plain(text: str, width: int = 34) -> str:
    """Escape a text for matplotlib and wrap it to this width."""
    return "\n".join(wrap(text, width)[:3] or [""]).replace("$", r"\$")


def _label(axes: Axes, text: str) -> None:
    axes.set_xlabel(_plain(text, 46))


def _whiskers(axes: Axes, names: list[str], several: list[Estimate] | list[Effect], factor: float) -> None:
    at = np.arange(len(names))[::-1]
    value, low, high = (factor * np.array([getattr(one, name) for one in several]) for name in ("value", "low", "high"))
    axes.hlines(at, low, high, color=BLUE, linewidth=2)
    axes.plot(value, at, "o", color=BLUE)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(at, [_plain(name) for name in names])
    axes.grid(axis="x", color="#e3e5e8")


def _benefit(found: Evaluation) -> Figure:
    stated = {name: one for name, one in found.benefits.items() if not found.leaves_open(name)}
    figure, axes = _axes(len(stated))
    _whiskers(axes, [f"than {name}" for name in stated], list(stated.values()), 1.0)
    _label(axes, f"more {found.unit} in {found.horizon} {found.period_word}s, 95% intervals")
    return figure


def _effects(known: list[Effect]) -> Figure:
    shown = sorted(known, key=lambda one: -one.value)[:MOST]
    figure, axes = _axes(len(shown))
    points = shown[0].in_points
    _whiskers(axes, [one.group for one in shown], shown, 100.0 if points else 1.0)
    what = f"effect on {shown[0].what}{', in percentage points' if points else ''}"
    _label(axes, f"{what}, with 95% intervals{' for all groups at once' if len(known) > 1 else ''}")
    return figure


def _reach(found: Evaluation, reached: list[Reach]) -> Figure:
    shown = sorted(reached, key=lambda one: -one.each)[:MOST]
    figure, axes = _axes(len(shown))
    at = np.arange(len(shown))[::-1]
    axes.barh(at, [one.each for one in shown], color=ORANGE, height=0.6)
    axes.set_yticks(at, [_plain(one.group) for one in shown])
    _label(axes, f"{found.word}s per participant in {found.horizon} {found.period_word}s, on average")
    axes.grid(axis="x", color="#e3e5e8")
    return figure
