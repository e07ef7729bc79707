"""Files of the project's root as pages: `{file} CONTRIBUTING.md` stands for that file, with links as they are meant here."""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\{file\} (\S+)\n```$", re.M)
PAGES = {"CONTRIBUTING.md": "contributing.md", "CODE_OF_CONDUCT.md": "conduct.md", "SECURITY.md": "reporting.md"}


def linked(text: str) -> str:
    """Return the text of a file of the root with its links as seen from docs/."""

    def moved(match: re.Match[str]) -> str:
        target = match[1]
        return f"]({PAGES.get(target, target.removeprefix('docs/'))})"

    return re.sub(r"\]\(([^):#]+)\)", moved, text)


def read(app: Sphinx, docname: str, content: list[str]) -> None:  # noqa: ARG001
    """Put the file in its place as a page is read."""

    def whole(match: re.Match[str]) -> str:
        path = ROOT / match[1]
        app.env.note_dependency(str(path))
        return linked(path.read_text(encoding="utf-8"))

    content[0] = BLOCK.sub(whole, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
