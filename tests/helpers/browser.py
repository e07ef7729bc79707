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
    """One page at a time, on a desk or on a phone; with its complaints and requests since it was opened."""

    page: Page

    def __init__(self, browser: Browser) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.browser = browser
        self.pages = [browser.new_page(is_mobile=phone) for phone in (False, True)]
        for page in self.pages:
            page.on("pageerror", lambda error: self.complaints.append(str(error)))
            page.on("console", lambda one: self.complaints.append(one.text) if one.type in ("error", "warning") else None)
            page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show a file in a window of this size and wait until it is drawn."""
        self.page = self.pages[width < 600]
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.complaints.clear()
        self.requests.clear()
        self.page.goto(path.resolve().as_uri())
        self.until("Boolean(window.report)")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Wait until an expression is true. The page's policy forbids what Playwright's own waiting evaluates in it."""
        for _ in range(600):
            if self.value(expression):
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"waited in vain: {expression}")


@contextmanager
def chromium() -> Iterator[Tab]:
    """Start the browser, and end it."""
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield Tab(browser)
        browser.close()
