"""Windows of Debian's Chromium, driven by Playwright: what they draw, ask for and complain about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "needs Chromium: `scripts/install-servers` installs it"
PATIENCE_MS = 120_000
NO_COMPLAINT = "Autofocus processing was blocked because a document's URL has a fragment"  # as it should be
OPTIONS = (
    "--no-sandbox",  # tests run as root, where Chromium refuses its own sandbox
    "--enable-precise-memory-info",  # else sizes of the heap are rounded, and as old as ten minutes
    "--js-flags=--expose-gc",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Nothing is downloaded, and no name of a host is known."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Window:
    """One window.

    Attributes:
        complaints: uncaught errors, and whatever the console says.
        requests: addresses of everything that was asked for, the page itself first.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.context.set_default_timeout(PATIENCE_MS)  # of its requests, too
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, said: ConsoleMessage) -> None:
        if said.type != "log" and not said.text.startswith(NO_COMPLAINT):
            self.complaints.append(said.text)

    def open(self, path: Path, *, dark: bool = False, width: int = 1200, height: int = 900) -> Page:
        """Opens a file in a colour scheme; complaints and requests are those of this file."""
        self.complaints.clear()
        self.requests.clear()
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.goto(path.as_uri())
        return self.page

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        return self.page.evaluate(expression)


@contextmanager
def window() -> Iterator[Window]:
    """A browser with one window."""
    with chromium() as browser:
        yield Window(browser.new_page())
