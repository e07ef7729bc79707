"""Settings of the whole suite: no deadlines (code compiles on first use), the same examples on every run, no terminal."""

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from browser import Tab
    from clusters import Cluster

DOCS = Path(__file__).parent / "docs"
settings.register_profile("rmab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rmab")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background; tests interrupt what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # until all tests are collected: nothing of that is garbage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what follows the pages by its folder, and what opens a browser by its fixture; long files come first.

    Processes are given whole files: those with slow tests at the end would let one process wait for another.
    """
    for item in items:
        if DOCS in item.path.parents:
            item.add_marker(pytest.mark.docs)
        if "tab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    long = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "docs", "browser")))}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Keep thousands of collected tests out of later garbage collections, some of which tests ask for themselves."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the size of the terminal that a test runner claims to have."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def tab() -> "Iterator[Tab]":
    """Return the one browser that all tests share."""
    from browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def start_cluster(tmp_path: Path) -> "Iterator[Callable[[int], Cluster]]":
    """Return what starts a Dask scheduler with so many workers on loopback; they end with the test."""
    from clusters import Cluster

    with ExitStack() as stack:
        yield lambda workers: Cluster(tmp_path, stack, workers)
