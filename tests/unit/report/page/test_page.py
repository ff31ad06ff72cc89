"""The page: self-contained, escaped, of bounded size, and every figure drawable."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import vl_convert

from fairtrial.analyse.models import Analysis, Interval
from fairtrial.record import Record
from fairtrial.report import page
from fairtrial.report.scene import Scene

MAX_BYTES = 5 << 20
HOSTILE = "</script><img src=x onerror=alert(1)>"


class _Page(HTMLParser):
    """Elements, their references, and the text of scripts and of everything else."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.figures: list[int] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action"):
                self.references.append(value or "")
            if name == "data-figure":
                self.figures.append(int(value or -1))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.get_starttag_text().startswith("<script"):
            self.scripts.append(data)
        self.text += data


@pytest.fixture(scope="module")
def html(record: Record, analysis: Analysis) -> str:
    return _rendered(record, analysis)


def _rendered(record: Record, analysis: Analysis) -> str:
    scene = Scene(record=record, analysis=analysis)
    return page.render(scene, ratios=page.ratio_figures(scene), cells=list(page.cell_figures(scene)))


def test_the_head_says_from_how_many_blocks_a_run_could_stop(record: Record, analysis: Analysis) -> None:
    for least, said in ((None, "· 6 blocks, "), (4, "· 4 to 6 blocks, ")):
        plan = record.plan.model_copy(update={"design": record.plan.design.model_copy(update={"min_blocks": least})})
        assert said in page.render(Scene(record=replace(record, plan=plan), analysis=analysis), ratios=[], cells=[])


def test_a_metric_without_a_unit_has_no_empty_part(record: Record, analysis: Analysis) -> None:
    bare = {name: each.model_copy(update={"unit": ""}) for name, each in analysis.metrics.items()}
    scene = Scene(record=record, analysis=analysis.model_copy(update={"metrics": bare}))
    shown = page.render(scene, ratios=[], cells=[])
    assert "<strong>throughput</strong>, higher is better" in shown
    assert ">throughput</th>" in shown


def _specs(html: str) -> list[dict[str, object]]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', html, re.DOTALL)
    assert found
    specs: list[dict[str, object]] = json.loads(found[1])
    return specs


def test_the_page_refers_to_nothing_outside_itself_and_forbids_it(html: str) -> None:
    assert _Page(html).references == []
    assert "default-src 'none'" in html
    assert not re.search(r"@import|url\(", html.split("</style>", maxsplit=1)[0])
    assert len(html.encode()) < MAX_BYTES


def test_verdicts_come_first_and_everything_promised_is_there(html: str) -> None:
    order = [
        html.index(f'id="{section}"')
        for section in ("verdicts", "doubts", "ratios", "differences", "trials", "where", "again")
    ]
    assert order == sorted(order)
    for words in (
        "1 of 12 blocks was voided",
        "6.1.0-18-amd64",
        "journal_mode",
        "the server restarted",
        "0015-high-wal-b3",
        "fairtrial verify",
    ):
        assert words in html


def test_every_figure_has_its_place_and_can_be_drawn(html: str) -> None:
    specs = _specs(html)
    assert sorted(_Page(html).figures) == list(range(len(specs)))
    for spec in specs:
        assert "<svg" in vl_convert.vegalite_to_svg(spec | {"width": 400})


def test_every_trial_of_the_record_is_a_dot_in_some_figure(html: str, record: Record) -> None:
    drawn = json.dumps(_specs(html))
    assert all(trial.trial.id in drawn for trial in record.trials)


def test_a_metric_of_zeros_has_no_figure_of_ratios(record: Record, analysis: Analysis) -> None:
    """An axis without a value is drawn from minus to plus infinity, and the browser says so."""
    none = Interval(estimate=None, low=None, high=None)
    cells = tuple(
        cell.model_copy(
            update={
                "comparisons": cell.comparisons
                | {
                    "throughput_nopm": tuple(
                        one.model_copy(update={"ratio": none}) for one in cell.comparisons["throughput_nopm"]
                    )
                }
            }
        )
        for cell in analysis.cells
    )
    whole, without = (
        page.ratio_figures(Scene(record=record, analysis=each))
        for each in (analysis, analysis.model_copy(update={"cells": cells}))
    )
    assert len(without) == len(whole) - 1 == 2


def test_whatever_a_study_says_stays_text(record: Record, analysis: Analysis) -> None:
    doubt = analysis.doubts[0].model_copy(update={"message": HOSTILE})
    cells = tuple(cell.model_copy(update={"levels": {HOSTILE: cell.levels["users"]}}) for cell in analysis.cells)
    hostile = analysis.model_copy(update={"study": HOSTILE, "question": HOSTILE, "doubts": (doubt,), "cells": cells})
    html = _rendered(record, hostile)
    assert HOSTILE not in html
    parsed = _Page(html)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 3
    assert _specs(html)


def test_names_with_markup_from_the_place_are_escaped(html: str) -> None:
    assert "An &lt;Example&gt; Processor &amp; Co" in html
    assert "<b>2024-05-23</b>" not in html


def test_an_unfinished_run_says_so(record: Record, analysis: Analysis) -> None:
    assert "preliminary" in _rendered(record, analysis.model_copy(update={"finished": False}))
