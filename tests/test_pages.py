"""Pages of docs/ are made from the folders of studies."""

import runpy
from pathlib import Path

import pytest

from rmab.study import BUILTIN, run_study
from studies import TINY, Inline, small_study

PAGES = Path(__file__).parents[1] / "studies" / "pages.py"
DOCS = PAGES.parents[1] / "docs"


def test_the_learning_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"name": name, "options": TINY} for name in ("cpap@ramp", "cpap@noisy", "cpap-adherence@iid")]
    learners = [{"name": "ucmd"}, {"name": "random"}, {"name": "oracle", "label": "oracle (privileged)"}]
    run_study(small_study(2, tasks=tasks, learners=learners), tmp_path / "table", engine=Inline())
    parts = [{"name": "ucmd", "label": "fading, lazy", "options": {"estimator": "fading"}}]
    run_study(small_study(1, tasks=tasks[:1], learners=parts), tmp_path / "parts", engine=Inline())
    words = ["pages.py", "learning", str(tmp_path / "table"), str(tmp_path / "parts"), "--docs", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    runpy.run_path(str(PAGES), run_name="__main__")
    page = (tmp_path / "learning_tables.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == ["## cpap", "## cpap-adherence", "## Parts of `ucmd`, exchanged one by one (cpap)"]
    differences = page.partition("above `ucmd`'s")[2].partition("## ")[0]
    assert "| random |" in differences
    assert "oracle" not in differences
    assert page.count("| fading, lazy |") == 1


def test_the_page_has_a_row_for_every_learner_of_its_studies() -> None:
    page = (DOCS / "learning_tables.md").read_text()
    for study in ("learning-table", "ucmd-parts"):
        for learner in BUILTIN[study].learners:
            assert f"| {learner.label} |" in page, learner.label
