"""The page of a real record in a real browser: drawn whole, in both colour schemes, without a word or a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.browser import CHROMIUM, MISSING, Window, window

SCHEMES = [pytest.param(False, id="light"), pytest.param(True, id="dark")]
PAPER = {False: "rgb(253, 253, 251)", True: "rgb(20, 23, 26)"}
FIGURES = "document.querySelectorAll('.vega')"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture(scope="module")
def page() -> Iterator[Window]:
    with window() as opened:
        yield opened


@pytest.fixture
def report(real_run: Path) -> Path:
    return real_run / "report" / "report.html"


def drawn(page: Window, report: Path, *, dark: bool) -> None:
    """Opens the report and waits until every figure is drawn: those out of view in idle time."""
    page.open(report, dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.page.wait_for_function(f"[...{FIGURES}].length && [...{FIGURES}].every((each) => each.querySelector('svg'))")


@pytest.fixture(scope="module", params=SCHEMES)
def dark(request: pytest.FixtureRequest, page: Window, real_run: Path) -> bool:
    """The report is drawn once in each scheme; a test that changes what is seen is the last of its scheme."""
    drawn(page, real_run / "report" / "report.html", dark=request.param)
    return bool(request.param)


LIGHT = pytest.mark.parametrize("dark", SCHEMES[:1], indirect=True)


@pytest.mark.usefixtures("dark")
def test_every_figure_is_drawn_without_a_complaint_or_a_request(page: Window, report: Path) -> None:
    figures = page.evaluate(f"{FIGURES}.length")
    assert figures == len(re.findall("data-figure=", report.read_text(encoding="utf-8")))
    assert page.evaluate(f"[...{FIGURES}].every((each) => each.querySelector('svg path, svg text'))")
    assert page.complaints == []
    assert page.requests == [report.as_uri()]


def test_the_page_has_the_readers_colours(page: Window, *, dark: bool) -> None:
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER[dark]
    labels = page.evaluate(
        f"[...new Set([...{FIGURES}].flatMap((each) => [...each.querySelectorAll('.role-axis-label text')])"
        ".map((label) => getComputedStyle(label).fill))]"
    )
    quiet = page.evaluate(
        "(() => { const probe = document.body.appendChild(document.createElement('i'));"
        "probe.style.color = 'var(--quiet)'; const found = getComputedStyle(probe).color; probe.remove();"
        "return found; })()"
    )
    assert labels == [quiet]


@LIGHT
@pytest.mark.usefixtures("dark")
def test_verdicts_and_every_trial_can_be_read(page: Window, real_run: Path) -> None:
    text = page.evaluate("document.body.innerText")
    analysis = json.loads((real_run / "report" / "report.json").read_bytes())["analysis"]
    for cell in analysis["cells"]:
        for (comparison,) in cell["comparisons"].values():
            assert comparison["verdict"] in text
    trials = [path.name for path in (real_run / "trials").iterdir()]
    assert len(trials) == 12
    assert [trial for trial in trials if trial not in text] == []


@LIGHT
@pytest.mark.usefixtures("dark")
def test_a_reader_who_changes_to_dark_sees_the_figures_change_too(page: Window) -> None:
    fills = f"[...{FIGURES}].map((each) => getComputedStyle(each.querySelector('.role-axis-label text')).fill).join()"
    before = page.evaluate(fills)
    page.page.emulate_media(color_scheme="dark")
    page.page.wait_for_function(f"new Set(({fills}).match(/rgb[^)]*/g)).size === 1 && {fills} !== {json.dumps(before)}")
    assert page.complaints == []


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_runs_off_the_side_of_a_narrow_screen(page: Window, report: Path, width: int) -> None:
    page.open(report, dark=False, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_browser_of_these_tests_hears_complaints_and_requests(page: Window, tmp_path: Path) -> None:
    """Without this, silence would prove nothing."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        "<img src='https://example.org/a.png'><script>console.warn('hm'); nothing();</script>", encoding="utf-8"
    )
    page.open(broken, dark=False)
    said = " ".join(page.complaints)
    assert "hm" in said
    assert "nothing is not defined" in said
    assert "https://example.org/a.png" in page.requests
