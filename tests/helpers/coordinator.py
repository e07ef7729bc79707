"""A coordinator at a screen: a browser with its own session, which remembers complaints and foreign requests."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browser import Tab

AXE = Path(__file__).parent / "axe" / "axe.min.js"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


class Screen:
    """One browser window."""

    def __init__(self, tab: Tab, url: str, size: str = "desk", *, dark: bool = False, token: str = "") -> None:
        width, height = SIZES[size]
        self.url = url
        self.context = tab.browser.new_context(
            viewport={"width": width, "height": height},
            is_mobile=size == "phone",
            color_scheme="dark" if dark else "light",
            bypass_csp=False,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)
        if token:
            self.sign_in(token)

    def _heard(self, one: Any) -> None:
        if one.type in ("error", "warning") and "Failed to load resource" not in one.text:  # a refusal is an answer
            self.complaints.append(one.text)

    def _asked(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.foreign.append(request.url)

    def sign_in(self, token: str) -> None:
        self.go("/sign-in")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "sign-in" not in url)

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)

    def text(self) -> str:
        return str(self.page.inner_text("body"))

    def serious(self) -> list[str]:
        """Return what axe-core finds serious or critical."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:120]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    def close(self) -> None:
        self.context.close()
        assert not self.complaints
        assert not self.foreign
