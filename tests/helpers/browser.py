"""A headless Chromium, driven by Playwright: `tests/conftest.py` has the fixture `tab`."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

REQUIRED = "RMAB_REQUIRE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str:
    """Return the browser; without one, skip the test, or fail it where the environment asks for a browser."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"no browser found (looked for {', '.join(NAMES)}), and {REQUIRED}=1 asks for one")
    if found is None:
        pytest.skip(f"no browser found (looked for {', '.join(NAMES)}): the report was not opened")
    return found


class Tab:
    """One page at a time, with what it complained of and what it asked for since it was opened."""

    page: Page

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show a file in a window of this size and wait until it is drawn."""
        for context in self.browser.contexts:
            context.close()
        self.complaints, self.requests = [], []
        size, scheme = {"width": width, "height": height}, "dark" if dark else "light"
        self.page = self.browser.new_page(viewport=size, color_scheme=scheme, is_mobile=width < 600)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda one: self.complaints.append(one.text) if one.type in ("error", "warning") else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.resolve().as_uri())
        self.page.wait_for_function("Boolean(window.report)")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.page.evaluate(expression)


@contextmanager
def chromium() -> Iterator[Tab]:
    """Start the browser, and end it."""
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield Tab(browser)
        browser.close()
