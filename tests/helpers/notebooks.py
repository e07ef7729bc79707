"""Text notebooks of docs/ (MyST): their cells, and a run of them from the first to the last.

`python tests/helpers/notebooks.py FILE` runs a notebook in the current folder, and fails unless its last cell draws.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*\n?(.*?)^```$", re.S | re.M)


def notebooks() -> list[Path]:
    """All text notebooks of the site."""
    return sorted(path for path in DOCS.rglob("*.md") if "{code-cell}" in path.read_text())


def cells(path: Path) -> list[str]:
    """The code of every cell."""
    return CELL.findall(path.read_text())


def run(path: Path) -> None:
    """Run all cells; `%%writefile NAME` writes the rest of its cell."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sys.path.insert(0, "")
    names = {"__name__": "notebook"}
    for number, code in enumerate(cells(path)):
        if code.startswith("%%writefile "):
            first, _, rest = code.partition("\n")
            Path(first.split()[1]).write_text(rest)
            continue
        plt.close("all")
        exec(compile(code, f"{path.name}, cell {number}", "exec"), names)
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    assert drawn, "the last cell draws nothing"
    assert all(axes.has_data() for figure in drawn for axes in figure.axes)
    drawn[-1].savefig("last.png", dpi=130)


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
