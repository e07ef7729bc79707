"""Every code block of the site is run: notebooks by test_tutorials, three guides by tests of their own, all others here."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from notebooks import DOCS

OWN_TEST = {  # pages whose blocks belong together in a way of their own
    "cli.md": "../cli/test_cli_documents.py",
    "extending.md": "test_extending.py",
    "log.md": "test_documents.py",
}
RUN = {"python", "sh"}
SHOWN = {"output", "text", ""}  # what a block prints, and what needs other machines or another shell
DATA = {"cli.md": {"json", "toml", "csv"}, "extending.md": {"toml"}}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.S | re.M)
PAGES = sorted(path for path in DOCS.rglob("*.md") if "{code-cell}" not in path.read_text())


def blocks(path: Path) -> list[tuple[str, str]]:
    """The language and text of every block."""
    return [(kind, text) for _, kind, text in BLOCK.findall(path.read_text())]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_has_only_blocks_that_are_run_or_shown(path: Path) -> None:
    kinds = {kind for kind, _ in blocks(path)}
    assert kinds <= RUN | SHOWN | DATA.get(path.name, set())
    assert (Path(__file__).parent / OWN_TEST.get(path.name, Path(__file__).name)).exists()


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if path.name not in OWN_TEST and {kind for kind, _ in blocks(path)} & RUN],
    ids=lambda path: str(path.relative_to(DOCS)),
)
def test_the_blocks_of_a_page_run_in_order(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is what the page shows in its blocks of output, if it follows one that is run."""
    from commands import call

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names: dict[str, object] = {"__name__": path.stem}
    printed: str | None = None
    for kind, text in blocks(path):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, path.name, "exec"), names)
            printed = out.getvalue()
        elif kind == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert program == "rmab"
                outcome = call(*words)
                assert outcome.exit_code == 0, f"{line}: {outcome.stderr}"
                printed = outcome.stdout
        elif kind == "output":
            assert printed is not None, "nothing was run that could have printed this"
            assert printed.strip() == text.strip()
            printed = None
