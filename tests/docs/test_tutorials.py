"""Tutorials and gallery are run as they stand, from the first cell to the last, which draws a picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest

from notebooks import DOCS, cells, notebooks

TUTORIALS = [path for path in notebooks() if path.parent.name == "tutorials"]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_runs_and_ends_with_a_picture(path: Path, tmp_path: Path) -> None:
    driver = Path(__file__).parents[1] / "helpers" / "notebooks.py"
    words = [sys.executable, "-W", "error:::rmab", str(driver), str(path)]
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path / "mpl")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "last.png").read_bytes().startswith(b"\x89PNG")


def test_there_are_the_six_tutorials() -> None:
    assert [path.stem[0] for path in TUTORIALS] == list("123456")
    index = (DOCS / "tutorials" / "index.md").read_text()
    assert all(path.stem in index for path in TUTORIALS)


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_opens_in_jupyter(path: Path) -> None:
    notebook = jupytext.read(path)
    nbformat.validate(notebook)
    code = [one.source for one in notebook.cells if one.cell_type == "code"]
    assert [one.strip() for one in code] == [one.strip() for one in cells(path)]
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_in_short_sentences_and_ends_with_next_steps(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    assert text.rstrip().rpartition("## ")[2].startswith("Next steps")
    prose = [one for one in re.split(r"(?<=[.?!:])\s", text.partition("# ")[2]) if not one.startswith(("|", "-", "#"))]
    assert sum(len(one.split()) for one in prose) / len(prose) < 20
