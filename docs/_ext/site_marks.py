"""The version of the library that produced the numbers of a page, in a line under its title."""

import re

from sphinx.application import Sphinx

MADE = re.compile(r"with rmab (\d+\.\d+\.\d+)|rmab (\d+\.\d+\.\d+), revision (\w+)")
PAGES = (  # with numbers that were measured
    "benchmarks",
    "comparison",
    "growth",
    "learning",
    "learning_tables",
    "planners",
    "reproduction",
    "tuning",
)
TITLE = re.compile(r"\A(# .*\n)")


def mark(text: str, release: str) -> str:
    """Return the line for the text of a page with numbers."""
    found = {match[1] or f"{match[2]} (revision {match[3]})" for match in MADE.finditer(text)}
    made = f"The results on this page are from rmab {' and '.join(sorted(found))}"
    none = "The results on this page are from rmab 0.1.0 or older"
    return f"{made if found else none}; this site documents rmab {release}."


def say(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the line under the title as a page is read."""
    if docname in PAGES:
        note = f"{{.made-with}}\n{mark(content[0], app.config.release)}\n"
        content[0] = TITLE.sub(rf"\1\n{note}", content[0], count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", say)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
