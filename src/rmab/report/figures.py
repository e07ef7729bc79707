"""Figures for a paper, as PDF and PNG, one column wide (the overview: page width).

The font is STIX, similar to Times, 8 points when printed. Global settings of Matplotlib are not changed.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FormatStrFormatter

from rmab.report.cells import Page
from rmab.report.charts import learners_of
from rmab.report.output import ASSETS, figure_bytes
from rmab.report.scalings import Scaling
from rmab.report.statistics import band
from rmab.report.summary import Summary

COLUMN, WHOLE, HEIGHT = 3.25, 6.75, 2.3  # inches
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b65a93", "#d18f00", "#3fa3e0", "#6b5ca5", "#6f747a")
MARKERS = "osD^vPX*"
WIDE = 0.047  # width of a letter in a legend, in inches
LONGEST = 150  # maximum length of a task's name in a file name, in bytes
DEPTH = 1e-6  # relative to the highest value: lower values are omitted on logarithmic axes
SHORT_TERMS = ("Term 0\nover-estimation", "Term 1\nplan", "Term 2\nestimator", "Term 3\nindex policy")


def draw(summary: Summary) -> Iterator[tuple[str, bytes]]:
    """Yield each figure as (file name, content), as PNG and as PDF."""
    styles, slugs = _Styles(summary), _Slugs()
    if summary.scalings:
        for group in dict.fromkeys(one.group for one in summary.scalings):
            members = [one for one in summary.scalings if one.group == group]
            yield from _render(
                f"{summary.study.kind}-{slugs.new(group)}", partial(_scaling, members, summary.study.kind, styles)
            )
        return
    for page in summary.pages:
        name = slugs.new(page.task)
        yield from _render(f"{name}-reward", partial(_curves, page, "reward", styles))
        yield from _render(f"{name}-regret", partial(_curves, page, "regret", styles))
        if page.papers is not None:
            yield from _render(f"{name}-theory", partial(_theory, page, styles))
        if any(cell.terms for cell in page.cells):
            yield from _render(f"{name}-sources", partial(_sources, page, styles))
    if len(summary.pages) > 1:
        yield from _render("overview", partial(_overview, summary, styles))


class _Styles:
    """Colour, dash and label of each learner, the same in all figures and in the HTML."""

    def __init__(self, summary: Summary) -> None:
        self.learners = {one["label"]: (k, one) for k, one in enumerate(learners_of(summary))}

    def line(self, learner: str) -> dict[str, Any]:
        one = self.learners[learner][1]
        return {"color": COLOURS[one["colour"]], "linestyle": one["stroke"], "label": self.label(learner)}

    def point(self, learner: str) -> dict[str, Any]:
        k, one = self.learners[learner]
        hollow = {"markerfacecolor": "white"} if k >= len(COLOURS) else {}
        return {"color": COLOURS[one["colour"]], "marker": MARKERS[k % len(MARKERS)], **hollow, "label": self.label(learner)}

    def label(self, learner: str) -> str:
        marked = self.learners[learner][1]["privileged"] and "privileged" not in learner
        return _literal(f"{learner} (privileged)" if marked else learner)


def _literal(text: str) -> str:
    """Escape a label for Matplotlib: $ starts no formula, and a leading _ does not hide it from the legend."""
    plain = text.replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain


class _Slugs:
    """Unique file names: letters and digits of any script, short enough for all file systems."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def new(self, text: str) -> str:
        plain = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", text)).encode()[:LONGEST].decode(errors="ignore")
        name = stem = plain.strip("-.") or "task"
        number = 1
        while name.casefold() in self.used:  # some file systems ignore case
            number += 1
            name = f"{stem}-{number}"
        self.used.add(name.casefold())
        return name


def _render(name: str, make: Callable[[], Figure]) -> Iterator[tuple[str, bytes]]:
    """Yield one figure in both formats, without a time stamp, so that equal data give equal files."""
    with context(str(ASSETS / "figures.mplstyle")):
        figure = make()
        for suffix, options in (("png", {"dpi": 300}), ("pdf", {"metadata": {"CreationDate": None}})):
            yield f"{name}.{suffix}", figure_bytes(figure, suffix, **options)
            figure.set_layout_engine("none")  # keep the layout for the second format


def _axes(width: float = COLUMN, height: float = HEIGHT) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _legend(axes: Axes, entries: int, *, below: bool = False) -> None:
    """Place the legend where it hides least, or below the axes if it has many entries."""
    if entries <= 4 and not below:
        axes.legend(loc="best")
        return
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) * WIDE < figure.get_figwidth() / 2 - 0.4 else 1
    figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + 0.14 * -(-entries // columns))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _curves(page: Page, what: str, styles: _Styles) -> Figure:
    figure, axes = _axes()
    for cell in page.cells:
        values = np.cumsum(cell.columns["reward"], axis=1) if what == "reward" else cell.regret("O1")
        _draw_band(axes, values, styles.line(cell.learner))
    if what == "regret":
        axes.axhline(0, color="#8a8f95", linewidth=0.6, zorder=1)
    axes.set(xlabel="episode", ylabel="accumulated reward" if what == "reward" else "accumulated regret against O1")
    axes.margins(x=0)
    _legend(axes, len(page.cells))
    return figure


def _draw_band(axes: Axes, values: Any, style: dict[str, Any]) -> None:
    """Draw the mean of (R, T) with its 95% band."""
    mean, half = band(values)
    at = np.arange(1, mean.size + 1)
    axes.plot(at, mean, marker="o" if mean.size == 1 else "", **style)
    if np.isfinite(half).all():
        axes.fill_between(at, mean - half, mean + half, color=style["color"], alpha=0.2, linewidth=0)


def _theory(page: Page, styles: _Styles) -> Figure:
    figure, axes = _axes()
    at = np.arange(1, page.cells[0].episodes + 1)
    for cell in page.cells:
        mean = band(cell.regret("O1"))[0]
        shown = mean > DEPTH * page.cells[0].theory[-1]
        if shown.any():
            axes.plot(at, np.where(shown, mean, np.nan), **styles.line(cell.learner))
    axes.plot(at, page.cells[0].theory, color="black", linestyle=(0, (1, 1)), label="theorem's bound")
    axes.set(xscale="log", yscale="log", xlabel="episode", ylabel="accumulated regret against O1")
    _legend(axes, len(page.cells) + 1)
    return figure


def _sources(page: Page, styles: _Styles) -> Figure:
    figure, axes = _axes()
    cells = [cell for cell in page.cells if cell.terms]
    width = 0.8 / len(cells)
    for i, cell in enumerate(cells):
        terms = cell.terms or ()
        at = np.arange(4) + (i - (len(cells) - 1) / 2) * width
        halves = np.nan_to_num([one.half for one in terms])
        style = styles.line(cell.learner)
        hatch = "////" if style.pop("linestyle") == "dashed" else None
        axes.bar(
            at, [one.mean for one in terms], 0.9 * width, yerr=halves, hatch=hatch, edgecolor="white", linewidth=0,
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "capthick": 0.8}, **style,
        )  # fmt: skip
    axes.axhline(0, color="#555555", linewidth=0.6)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(4), SHORT_TERMS, fontsize=6.5)
    axes.set_ylabel("contribution to regret against O1")
    _legend(axes, len(cells), below=True)
    return figure


def _scaling(members: list[Scaling], kind: str, styles: _Styles) -> Figure:
    """Draw means with intervals on logarithmic axes, and the fitted powers; values <= 0 are omitted.

    Learners without any positive value are named in the legend, as theirs may be the best results.
    """
    figure, axes = _axes()
    hidden: list[str] = []
    for one in members:
        means, halves = np.array([m.mean for m in one.means]), np.nan_to_num([m.half for m in one.means])
        shown, style = means > 0, styles.point(one.learner)
        if not shown.any():
            hidden.append(f"{style['label']}: never positive")
            continue
        lower = np.minimum(halves, 0.9 * means)[shown]
        if one.fit is not None and one.sure:
            style["label"] += f" (exponent {one.fit.exponent.mean:z.2f})"
            axes.plot(
                one.sizes, one.fit.factor * one.sizes**one.fit.exponent.mean, "--", color=style["color"], linewidth=0.7
            )
        errors = np.stack([lower, halves[shown]])
        axes.errorbar(
            one.sizes[shown], means[shown], errors, linestyle="", markersize=3.5, capsize=1.5, elinewidth=0.8, **style
        )
    for one in members:
        if one.theory is not None:
            axes.plot(one.sizes, one.theory, color="black", linestyle=(0, (1, 1)), label="theorem's bound")
    growth = kind == "growth"
    axes.set(xscale="log", yscale="log", xlabel="episodes $T$" if growth else "arms $N$")
    axes.set_ylabel("regret against O2" if growth else "regret against O1 per arm and episode")
    axes.set_xticks(members[0].sizes, [f"{size:.0f}" for size in members[0].sizes])
    axes.minorticks_off()
    drawn = len(axes.get_legend_handles_labels()[1])
    if drawn:
        for label in hidden:
            axes.errorbar([], [], linestyle="", label=label)
        _legend(axes, drawn + len(hidden), below=True)
    else:
        axes.text(0.5, 0.5, "no mean is positive", transform=axes.transAxes, ha="center")
    return figure


def _overview(summary: Summary, styles: _Styles) -> Figure:
    """Draw the regret against O1 of each learner on each task, relative to the random policy, with intervals.

    Tasks whose adversary reacts to the learner are omitted, unless there are no others: their regrets cannot be compared.
    """
    pages = [page for page in summary.pages if not page.adaptive] or list(summary.pages)
    count = len(pages)
    figure, axes = _axes(WHOLE, 0.6 + 0.26 * count)
    learners = summary.learners
    for i, learner in enumerate(learners):
        rows = [
            (k, cell.relative_to_random("O1"))
            for k, page in enumerate(pages)
            for cell in page.cells
            if cell.learner == learner
        ]
        at = [k + 0.6 * ((i + 0.5) / len(learners) - 0.5) for k, _ in rows]
        halves = np.nan_to_num([100 * found.half for _, found in rows])
        style = {**styles.point(learner), "linestyle": "", "markersize": 3.2, "capsize": 0, "elinewidth": 0.8}
        axes.errorbar([100 * found.mean for _, found in rows], at, xerr=halves, **style)
    axes.axvline(0, color="#555555", linewidth=0.6)
    axes.set_yticks(range(count), [_literal(page.task) for page in pages])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlabel("regret against O1, % of random (less is better)")
    if max(map(abs, axes.get_xlim())) > 200:  # a few very large regrets would hide the rest
        axes.set_xscale("symlog", linthresh=10)
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    _legend(axes, len(learners), below=True)
    return figure
