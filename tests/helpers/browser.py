"""A headless Chromium, driven over its debugging pipe: no port is opened and no driver is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "RMAB_REQUIRE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60.0


def executable() -> str:
    """Return the browser; without one, skip the test, or fail it where the environment asks for a browser."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"no browser found (looked for {', '.join(NAMES)}), and {REQUIRED}=1 asks for one")
    if found is None:
        pytest.skip(f"no browser found (looked for {', '.join(NAMES)}): the report was not opened")
    return found


class Browser:
    """One tab. `events` has all that the browser said of itself."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing
        self.rest, self.number, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the browser and wait for its answer."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        call |= {"sessionId": self.session} if self.session else {}
        os.write(self.writing, json.dumps(call).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            message = self._message(end)
            if message.get("id") == self.number:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])
            self.events.append(message)

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.reading], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self.reading, 1 << 20)
            assert read, "the browser has ended"
            self.rest += read
        message, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show a file in a window of this size and wait until it is drawn."""
        self.resize(width, height)
        self.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        )
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && Boolean(window.report)")

    def resize(self, width: int, height: int) -> None:
        phone = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def wait(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        end = time.monotonic() + PATIENCE
        while not self.value(condition):
            assert time.monotonic() < end, f"still not true: {condition}; {self.complaints()}"
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complaints(self) -> list[dict[str, Any]]:
        """Return errors and warnings of the console since the page was opened."""
        found = [one for one in self.events if one["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
        said = [one for one in self.events if one["method"] == "Runtime.consoleAPICalled"]
        return found + [one for one in said if one["params"]["type"] in ("error", "warning", "assert")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [one["params"]["request"]["url"] for one in self.events if one["method"] == "Network.requestWillBeSent"]

    def box(self, selector: str) -> list[float]:
        """Bring an element into the middle of the window; return its left, top, width and height."""
        find = f"const one = document.querySelector({json.dumps(selector)});"
        move = "one.scrollIntoView({ block: 'center', behavior: 'instant' }); const b = one.getBoundingClientRect();"
        return list(self.value(f"(() => {{ {find} {move} return [b.x, b.y, b.width, b.height]; }})()"))

    def hover(self, selector: str) -> None:
        """Point at the middle of an element."""
        x, y, width, height = self.box(selector)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + height / 2)

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a reader does."""
        x, y, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x + width / 2, y=y + height / 2, button="left", clickCount=1)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the browser with a profile of its own, and end it."""
    command = [executable(), *FLAGS]
    inner_read, write = os.pipe()
    read, inner_write = os.pipe()
    # The browser reads from 3 and writes to 4: the shell puts our two pipes there, from numbers that are neither.
    low = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (inner_read, inner_write)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        shell = f'exec "$@" 3<&{low[0]} 4>&{low[1]} 2>/dev/null'
        line = ["bash", "-c", shell, "bash", *command, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(line, pass_fds=low, stdout=subprocess.DEVNULL)
        for end in (inner_read, inner_write, *low):
            os.close(end)
        try:
            tab = Browser(read, write)
            yield tab
            tab.session = ""
            tab.send("Browser.close")
        finally:
            os.close(write)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(read)
