"""The documentation as a site: built strictly, opened in a real browser, every public name on its page."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.machines.browser import CHROMIUM, MISSING, Window, window

import fairtrial

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it: a broken link, a missing anchor or a page in no menu fails here."""
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return made


def test_every_public_name_is_documented_and_on_the_page(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    frames = [name for name in vars(fairtrial.RunFrames) if not name.startswith("_")]
    named = {f"fairtrial.api.{name}" for name in fairtrial.__all__ if name != "__version__"}
    named |= {f"fairtrial.api.RunFrames.{name}" for name in frames}
    assert len(named) > 6
    assert sorted(name for name in named if f'id="{name}"' not in page) == []
    undocumented = [name for name in frames if not inspect.getdoc(getattr(fairtrial.RunFrames, name))]
    assert undocumented == []


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
def test_the_site_opens_in_a_browser(site: Path) -> None:
    with window() as opened:
        assert_drawn(opened, site / "index.html", title="fairtrial", link="first-study.html")
        assert_drawn(opened, site / "reference" / "commands.html", title="Commands", link="../reference/study.html")


def assert_drawn(page: Window, path: Path, *, title: str, link: str) -> None:
    page.open(path, dark=False)
    assert page.evaluate("document.querySelector('article h1').innerText").startswith(title)
    assert page.evaluate("getComputedStyle(document.querySelector('.md-header')).position") == "sticky", "no style"
    page.open(path, dark=True)
    # The address that the browser makes of the menu's link is a file of the site.
    address = page.evaluate(f"(document.querySelector('.md-nav a[href$=\"{Path(link).name}\"]') || {{}}).href")
    assert Path(address.removeprefix("file://")).is_file()
    assert [request for request in page.requests if not request.startswith(("file:", "data:", "blob:"))] == []
