"""The report of a study: one HTML file that works offline, and the same figures for a paper (PNG and PDF)."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmab.common import require

if TYPE_CHECKING:
    from rmab.study import Results

__all__ = ["Report", "write_report"]


@dataclass(frozen=True)
class Report:
    """A written report: its HTML file, its figures, and three sentences on what the study shows."""

    html: Path
    figures: tuple[Path, ...]
    headline: tuple[str, ...]


def write_report(results: "Results", folder: str | os.PathLike[str]) -> Report:
    """Write `report.html`, `figures/*.png` and `figures/*.pdf` into the folder, from all finished runs."""
    require("report", "a report")
    from rmab.report.figures import draw  # noqa: PLC0415
    from rmab.report.headlines import headline  # noqa: PLC0415
    from rmab.report.output import write_files  # noqa: PLC0415
    from rmab.report.page import render  # noqa: PLC0415
    from rmab.report.summary import COLUMNS, summarise  # noqa: PLC0415

    table, provenance = results.read(COLUMNS)  # reads every shard once
    summary = summarise(results.study, table)
    page = Path(folder) / "report.html"
    figures = write_files(page, render(summary, provenance), page.with_name("figures"), draw(summary))
    return Report(page, figures, tuple(headline(summary)))
