"""`fairtrial serve` and a browser that looks at it, as a reader has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from support.command_line import Desk
from support.forking import Started
from support.machines.browser import Window

ADDRESS = re.compile(r"page: (http://127\.0\.0\.1:(\d+)/[\w-]+)/\S*\?token=(\S+)")
SERIOUS = ("serious", "critical")


@dataclass(frozen=True)
class Served:
    """A page that is served, and its token."""

    base: str
    token: str
    process: Started

    def address(self, path: str) -> str:
        """One with the token, as `fairtrial serve` prints it."""
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"


@contextmanager
def served(desk: Desk, *arguments: str | Path) -> Iterator[Served]:
    """The page over a desk's runs."""
    process = desk.start("serve", *(arguments or ("runs",)), "--no-browser")
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = ADDRESS.fullmatch(line.strip())
        assert found is not None, line + process.stdout.read()
        yield Served(found[1], found[3], process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


class Reader(Window):
    """A window that is logged in."""

    def __init__(self, page: Page, served: Served) -> None:
        super().__init__(page)
        self.served = served

    def visit(self, path: str) -> Page:
        """Goes to an address of the page."""
        self.page.goto(self.served.address(path), wait_until="domcontentloaded")
        return self.page

    def run(self, directory: Path, query: str = "") -> Page:
        """Goes to a run."""
        return self.visit(f"/runs/{quote(directory.name)}{query}")

    def findings(self) -> list[str]:
        """What axe-core calls serious or worse, of what is on the page now."""
        found = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {each['nodes'][0]['target']}" for each in found if each["impact"] in SERIOUS]


@contextmanager
def reader(
    browser: Browser, served: Served, *, dark: bool = False, phone: bool = False, scripts: bool = True
) -> Iterator[Reader]:
    """A window of its own; fails if anything went wrong in it that the test has not taken off `complaints`."""
    context = browser.new_context(
        color_scheme="dark" if dark else "light",
        viewport={"width": 390, "height": 844} if phone else {"width": 1200, "height": 900},
        timezone_id="Asia/Tokyo",
        locale="en-GB",
        java_script_enabled=scripts,
    )
    try:
        one = Reader(context.new_page(), served)
        yield one
        assert not one.complaints, one.complaints
        elsewhere = [url for url in one.requests if not url.startswith((served.base, "data:", "blob:"))]
        assert not elsewhere, "a request left the machine"
    finally:
        context.close()
