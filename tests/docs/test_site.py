"""The site: it builds without a warning, its links lead somewhere, and it has every public name with its docstring."""

import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).parents[2]
DOCS, LINTED = ROOT / "docs", ROOT / "out" / "site-lint"


@pytest.fixture(scope="module")
def names(monkeypatch_module: pytest.MonkeyPatch) -> list[str]:
    """Return every public name, as the reference knows them."""
    monkeypatch_module.syspath_prepend(DOCS / "_ext")
    return list(import_module("site_names").public_names())


@pytest.fixture(scope="module")
def monkeypatch_module() -> pytest.MonkeyPatch:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


class Page(HTMLParser):
    """The links, anchors and words of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.said: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.links.append(value)
                self.loaded += (
                    [value] if tag in ("script", "img", "iframe") or "stylesheet" in dict(attributes).values() else []
                )
            if key in ("id", "name") and value:
                self.anchors.add(value)

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def words(self) -> Counter[str]:
        return Counter(re.findall(r"\w+", " ".join(self.said)))


def built(folder: Path) -> Path:
    """Return the site that `make lint` has just built, or build it."""
    sources = [*DOCS.rglob("*.*"), *(ROOT / "src").rglob("*.py"), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    newest = max(path.stat().st_mtime for path in sources if "__pycache__" not in path.parts)
    ready = LINTED / "objects.inv"
    if ready.exists() and ready.stat().st_mtime > newest:
        return LINTED
    words = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(
        words, env={**os.environ, "RMAB_DOCS_EXECUTION": "off"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_whole(tmp_path: Path, names: list[str]) -> None:
    """One build: links are followed, names looked up, docstrings compared."""
    site = built(tmp_path)
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert [fault for path, page in pages.items() for fault in dead_links(path, page, pages)] == []
    assert not [
        link for page in pages.values() for link in page.loaded if urlsplit(link).scheme not in ("", "data")
    ]  # offline
    assert equations(site / "explanation" / "paper.html") == [(str(number), str(number)) for number in range(1, 18)]
    known = inventory(site)
    assert [name for name in names if name not in known] == []
    for name in names:
        missing = unsaid(name, pages[(site / known[name]).resolve()])
        assert not missing, f"{name}: its docstring has {missing}, the page has not"


def equations(path: Path) -> list[tuple[str, str]]:
    """Return the label and the number of every equation that has one."""
    return re.findall(r'id="equation-eq-(\d+)".*?class="eqno">\((\d+)\)', path.read_text(encoding="utf-8"), re.S)


def dead_links(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Return the links of a page that lead nowhere; those to other sites must be https, and are not followed."""
    faults = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            faults += [] if parts.scheme in ("https", "data") else [f"{path.name}: {link}"]
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        found = target.exists() and (not parts.fragment or target not in pages or parts.fragment in pages[target].anchors)
        if not found and link not in ("#",):
            faults.append(f"{path.name}: {link}")
    return faults


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    one.write_text(
        '<a href="two.html#there">x</a><a href="two.html#gone">x</a><img src="no.png"><a href="http://x.org">x</a>'
    )
    two.write_text('<p id="there"><a href="">x</a><a href="https://x.org">x</a></p>')
    pages = {path: Page(path) for path in (one, two)}
    assert dead_links(one, pages[one], pages) == ["one.html: two.html#gone", "one.html: no.png", "one.html: http://x.org"]
    assert dead_links(two, pages[two], pages) == []


def inventory(site: Path) -> dict[str, str]:
    """Return the page of every Python name that is documented."""
    with (site / "objects.inv").open("rb") as stream:
        content = InventoryFile.load(stream, "", lambda base, path: path)
    rooms = {kind: content[kind] for kind in content if kind.startswith("py:")}
    return {name: item.uri.partition("#")[0] for found in rooms.values() for name, item in found.items()}


def unsaid(name: str, page: Page) -> list[str]:
    """Return the words of a docstring that its page does not have: `help` and the site say the same."""
    room, _, last = name.rpartition(".")
    thing = getattr(import_module(room), last)
    if not (isinstance(thing, type) or inspect.isroutine(thing)):
        return []
    said = re.sub(r"^-+$|>>>|\.\.\.", " ", inspect.getdoc(thing) or "", flags=re.M)
    return sorted(set(re.findall(r"\w+", said)) - page.words.keys())


def test_every_public_name_is_listed_once_by_subject(names: list[str]) -> None:
    pages = "\n".join(path.read_text() for path in sorted((DOCS / "reference").glob("*.md")))
    blocks = re.findall(r"^```\{names\} (\S+)\n(.*?)^```", pages, re.S | re.M)
    listed = [f"{module}.{name}" for module, block in blocks for name in block.split()]
    assert sorted(listed) == sorted(names)


def test_pages_with_numbers_say_their_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    marks = import_module("site_marks")
    assert marks.mark("Made with rmab 0.1.0; more", "9.9.9") == (
        "The results on this page are from rmab 0.1.0; this site documents rmab 9.9.9."
    )
    made = "Made by `make pages` of the studies `growth` (3 of 3 runs), with rmab 0.2.0, revision abcdef1234."
    assert "0.2.0" in marks.mark(made, "0.2.0")
    assert "rmab 0.1.0 or older" in marks.mark("nothing", "0.2.0")
    assert all((DOCS / f"{page}.md").exists() for page in marks.PAGES)


def test_the_picture_of_the_packages_is_that_of_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    pictures = import_module("site_pictures")
    drawn = pictures.packages()
    for package in pictures.descriptions():
        assert f"rmab.{package}" in drawn
    assert pictures.imports("play") == {"common", "errors", "model"}
    shown = pictures.dataflow()
    for thing in ("Task", "View", "State", "EpisodePlan", "Policy", "Trajectory", "Feedback"):
        assert f">{thing}<" in shown


def test_a_graph_is_drawn_downwards_without_what_follows_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    layers = import_module("layers")
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")}
    assert layers.reduced(edges) == {("a", "b"), ("b", "c"), ("c", "d")}
    assert layers.ranked("abcd", edges) == {"a": 0, "b": 1, "c": 2, "d": 3}
    nodes = [layers.Node(name, (name,)) for name in "abcd"]
    assert layers.svg(nodes, edges, title="a & b").count("<rect") == 4
    rows = {node.name: node for node in nodes}
    assert rows["a"].y < rows["b"].y < rows["c"].y < rows["d"].y


def test_the_equations_of_the_paper_have_its_numbers() -> None:
    page = (DOCS / "explanation" / "paper.md").read_text()
    assert re.findall(r"^:label: eq-(\d+)$", page, re.M) == [str(number) for number in range(1, 18)]
