"""Links between the files of the project lead somewhere: README, the pages of docs/ as they are read in the repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / ".github").rglob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "benchmarks" / "REPORT.md",
    ]
)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page(path: Path) -> None:
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        name, _, anchor = target.partition("#")
        found = path.parent / name if name else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_page_is_in_a_toctree() -> None:
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    for path in docs.rglob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text(), re.S | re.M):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {path.parent / f"{name}.md" for name in names}
    assert set(docs.rglob("*.md")) == listed


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of a machine, and no invented address."""
    for path in FILES:
        assert not re.search(r"/(work|tmp|home|root)/", path.read_text()), path


UNCLEAR = re.compile(r"told apart|chance gap|\banew\b|\bby lot\b|\bmend(s|ed)?\b|\bluck\b|\bodds\b|\bwhom to\b", re.I)
IN_CODE = re.compile(r"^```.*?^```|`[^`]*`", re.S | re.M)
NOT_REWRITTEN = {"ucmd.md", "learning_tables.md", "planners.md"}


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in NOT_REWRITTEN], ids=lambda path: path.name)
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    """For example 'not significantly different', 'regret relative to the random policy', 'random numbers', 'fix'."""
    found = UNCLEAR.search(IN_CODE.sub("", path.read_text()))
    assert found is None, found
